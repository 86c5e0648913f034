//! Runs the code evaluators of eval rules on traces that become ready, before the transaction that marks them.
//!
//! The transaction inserts each evaluation with its result, in one write. An evaluation without a result is inserted as
//! pending, with a job that executes it later ([`code_evaluation`](super::code_evaluation)): after a long text, a slow
//! evaluator or a failure of this step, and when a worker was lost. Traces wait for this step, so its time is bounded.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::EvaluatorType;
use entities::trace;
use store::evaluations::{self, EvaluationResult};
use tokio::time::timeout;
use uuid::Uuid;

use super::{
    code_evaluation::PreparedEvaluator,
    rule_firing::DueTrace,
    subject_reader::{MAX_SHORT_TRACE_SPANS, TraceParts, read_short},
};
use crate::{
    app::App,
    code_runner::MAX_SHORT_TASK_TIME,
    error::Result,
    rule_set::{ParsedRule, RuleSet},
};

/// Maximum number of traces that are read and evaluated together.
const MAX_TRACES_PER_TASK: usize = 64;
/// Maximum number of their spans, unless one trace has more.
const MAX_SPANS_PER_TASK: usize = 256;
/// Maximum number of their evaluations, unless one trace has more.
const MAX_EVALUATIONS_PER_TASK: usize = 512;
/// Maximum time to wait for a thread.
const MAX_PERMIT_WAIT: Duration = Duration::from_millis(100);
/// Maximum size in bytes of the reasonings that wait for their transaction.
const MAX_REASONING_BYTES: usize = 4 * 1024 * 1024;

/// The results of evaluations, by trace and rule.
pub type ImmediateResults = HashMap<(Uuid, Uuid), EvaluationResult>;

/// A trace, and the rules with a code evaluator that evaluate it.
type TraceTask = (trace::Model, Vec<Arc<ParsedRule>>);

/// Evaluates traces before they are marked as ready, until a time in microseconds. Evaluations without a result are
/// those that are better executed later.
pub async fn evaluate(
    app: &App,
    tenant: Uuid,
    rule_set: &RuleSet,
    due: &[DueTrace],
    is_paused: impl Fn(Uuid) -> bool,
    until: i64,
) -> ImmediateResults {
    let mut evaluators = HashMap::new();
    for rule in due.iter().flat_map(|it| &it.1) {
        if rule.kind == EvaluatorType::Rule
            && !is_paused(rule.row.id)
            && !evaluators.contains_key(&rule.row.id)
            && let Some(evaluator) = rule_set.evaluator(&rule.row.metric_name)
        {
            let prepared = PreparedEvaluator { evaluator, config_json: rule.row.config.clone() };
            evaluators.insert(rule.row.id, Arc::new(prepared));
        }
    }
    let mut batch = ImmediateBatch { app, tenant, evaluators, results: HashMap::new(), reasoning_bytes: 0 };
    if let Err(error) = batch.evaluate_all(due, until).await {
        tracing::warn!(%tenant, %error, "evaluations of traces that became ready are postponed");
    }
    batch.results
}

/// Evaluations that are executed together.
struct ImmediateBatch<'a> {
    app: &'a App,
    tenant: Uuid,
    /// The evaluators by rule.
    evaluators: HashMap<Uuid, Arc<PreparedEvaluator>>,
    results: ImmediateResults,
    reasoning_bytes: usize,
}

impl ImmediateBatch<'_> {
    async fn evaluate_all(&mut self, due: &[DueTrace], until: i64) -> Result<()> {
        let mut task: Vec<TraceTask> = Vec::new();
        let (mut spans, mut requested) = (0, 0);
        for (trace, rules) in due {
            let rules: Vec<Arc<ParsedRule>> =
                rules.iter().filter(|it| self.evaluators.contains_key(&it.row.id)).cloned().collect();
            let its_spans = usize::try_from(trace.span_count).unwrap_or(0);
            if rules.is_empty() || its_spans > MAX_SHORT_TRACE_SPANS {
                continue;
            }
            let is_full = task.len() >= MAX_TRACES_PER_TASK
                || spans + its_spans > MAX_SPANS_PER_TASK
                || requested + rules.len() > MAX_EVALUATIONS_PER_TASK;
            if is_full && !task.is_empty() {
                if !self.evaluate_together(std::mem::take(&mut task), until).await? {
                    return Ok(());
                }
                (spans, requested) = (0, 0);
            }
            spans += its_spans;
            requested += rules.len();
            task.push((trace.clone(), rules));
        }
        self.evaluate_together(task, until).await?;
        Ok(())
    }

    /// Evaluates some of the traces. Returns whether there is time for more.
    async fn evaluate_together(&mut self, task: Vec<TraceTask>, until: i64) -> Result<bool> {
        let (app, tenant) = (self.app, self.tenant);
        if task.is_empty() || app.clock.now() > until || !app.code_runner.allows_short_tasks(tenant) {
            return Ok(false);
        }
        let task = self.without_evaluated(task).await?;
        let (rows, rules): (Vec<_>, Vec<_>) = task.into_iter().unzip();
        let parts = read_short(&app.db, tenant, rows).await?;
        let traces: Vec<(TraceParts, Vec<Arc<ParsedRule>>)> =
            parts.into_iter().zip(rules).filter_map(|(parts, rules)| Some((parts?, rules))).collect();
        if traces.is_empty() {
            return Ok(true);
        }
        let Ok(Some(permit)) = timeout(MAX_PERMIT_WAIT, app.code_runner.permit(tenant)).await else {
            return Ok(false);
        };
        // The results before an interruption are kept.
        let results = Arc::<Mutex<Vec<((Uuid, Uuid), EvaluationResult)>>>::default();
        let run = {
            let (results, evaluators) = (Arc::clone(&results), self.evaluators.clone());
            let compiled_evaluators = Arc::clone(&app.compiled_evaluators);
            permit.run_within(MAX_SHORT_TASK_TIME, move || {
                let mut compiled = HashMap::new();
                for (parts, rules) in traces {
                    let trace = parts.trace_id();
                    let subject = parts.into_subject();
                    for rule in rules {
                        let id = rule.row.id;
                        let Some(prepared) = evaluators.get(&id) else { continue };
                        let evaluator = compiled
                            .entry(id)
                            .or_insert_with(|| prepared.compile(tenant, &compiled_evaluators));
                        let result = prepared.evaluate_compiled(evaluator, &subject);
                        results.lock().unwrap_or_else(PoisonError::into_inner).push(((trace, id), result));
                    }
                }
            })
        };
        let ended = run.await;
        let results = std::mem::take(&mut *results.lock().unwrap_or_else(PoisonError::into_inner));
        let rules: HashSet<Uuid> = results.iter().map(|it| it.0.1).collect();
        for rule in rules {
            // Only evaluations in a task of their own are counted as too slow.
            app.code_runner.is_too_slow(tenant, rule, false);
        }
        for (key, result) in results {
            self.reasoning_bytes += result.verdict.as_ref().map_or(0, |it| it.reasoning.len());
            self.results.insert(key, result);
        }
        if ended.is_err() {
            app.code_runner.pause_short_tasks(tenant);
        }
        Ok(ended.is_ok() && self.reasoning_bytes < MAX_REASONING_BYTES)
    }

    /// Returns the task without the evaluations that exist already, because the trace was ready before.
    async fn without_evaluated(&self, task: Vec<TraceTask>) -> Result<Vec<TraceTask>> {
        let traces: Vec<Uuid> = task.iter().map(|it| it.0.id).collect();
        let rules: Vec<Uuid> = self.evaluators.keys().copied().collect();
        let db = self.app.db.current();
        let evaluated = evaluations::evaluated_by_rules(db, self.tenant, &rules, &traces).await?;
        let left = task.into_iter().map(|(trace, mut rules)| {
            rules.retain(|it| !evaluated.contains(&(it.row.id, trace.id)));
            (trace, rules)
        });
        Ok(left.filter(|it| !it.1.is_empty()).collect())
    }
}
