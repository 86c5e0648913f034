//! Fires failure rules: decides which rules match which traces, and stores the matches.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use api::{Plan, failure::LowScore, failure_rule::FiredRule};
use entities::{failure, failure_rule, failure_rule_match, trace};
use store::{Transaction, failure_rules, traces};
use uuid::Uuid;

use super::rule_set::{FailureRules, ParsedFailureRule};
use crate::{app::App, error::Result, rule_filter::mismatch_reason};

/// The lowest plan on which failure rules fire.
pub const LOWEST_PLAN: Plan = Plan::Pro;

const MINUTE: i64 = 60_000_000;

/// The span types that each trace contains, by the ID of the trace.
pub type SpanTypes = HashMap<Uuid, HashSet<String>>;

/// A rule that matches a trace.
#[derive(Clone, Debug)]
pub struct RuleMatch {
    /// The rule.
    pub rule: Uuid,
    /// The trace.
    pub trace: Uuid,
    /// Time of the failure or of the evaluation, microseconds.
    pub at: i64,
    /// What matched.
    pub cause: MatchCause,
}

/// What a rule matched.
#[derive(Clone, Debug)]
pub enum MatchCause {
    /// A failure.
    Failure(Box<failure::Model>),
    /// An evaluation.
    Score(LowScore),
}

/// The rules that fired for a trace.
#[derive(Clone, Debug)]
pub struct FiredTrace {
    /// The trace.
    pub trace: Uuid,
    /// What the first of the rules matched.
    pub cause: MatchCause,
    /// The rules.
    pub rules: Vec<FiredRule>,
}

/// Returns the enabled rules of a tenant; none if there are no rules, or its plan does not include them.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn rules_of(app: &App, tenant: Uuid) -> Result<Option<Arc<FailureRules>>> {
    let rules = app.access_cache.failure_rules(tenant).await?;
    if rules.rules.is_empty() {
        return Ok(None);
    }
    let Some(known) = app.access_cache.tenant(tenant).await? else { return Ok(None) };
    let plan: Plan = known.plan.parse().map_err(anyhow::Error::from)?;
    Ok((plan >= LOWEST_PLAN).then_some(rules))
}

/// Returns the types of the spans of these traces, if a filter of the rules depends on them.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn span_types(
    app: &App,
    tenant: Uuid,
    rules: Option<&FailureRules>,
    ids: impl Iterator<Item = &Uuid>,
) -> Result<SpanTypes> {
    if !rules.is_some_and(FailureRules::depends_on_span_types) {
        return Ok(SpanTypes::new());
    }
    let ids: Vec<Uuid> = ids.copied().collect();
    Ok(traces::span_kinds(&app.db, tenant, &ids).await?)
}

/// Whether a rule's project and filter select a trace.
pub fn selects(rule: &ParsedFailureRule, trace: &trace::Model, span_types: &SpanTypes) -> bool {
    let has = |word: &str| span_types.get(&trace.id).is_some_and(|it| it.contains(word));
    rule.concerns(trace.project_id) && mismatch_reason(&rule.filter, trace, has).is_none()
}

/// Returns the matches of rules with failures, and the traces that a filter may select when they are ready.
pub fn of_failures<'a>(
    rules: &FailureRules,
    traces: &HashMap<Uuid, trace::Model>,
    span_types: &SpanTypes,
    failures: impl Iterator<Item = &'a failure::Model>,
) -> (Vec<RuleMatch>, BTreeSet<Uuid>) {
    let (mut matches, mut waiting) = (Vec::new(), BTreeSet::new());
    for failure in failures {
        let Some(trace) = traces.get(&failure.trace_id) else { continue };
        for rule in rules.rules.iter().filter(|it| it.matches_type(failure.failure_type)) {
            if selects(rule, trace, span_types) {
                let cause = MatchCause::Failure(Box::new(failure.clone()));
                matches.push(RuleMatch { rule: rule.row.id, trace: trace.id, at: failure.created_at, cause });
            } else if rule.concerns(trace.project_id) && !trace.ready {
                waiting.insert(trace.id);
            }
        }
    }
    (matches, waiting)
}

/// Stores the matches of enabled rules with traces that they have not matched before. Returns the traces for which
/// rules fired: those with enough matches within the window of a rule.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn fire(
    txn: &Transaction,
    tenant: Uuid,
    mut matches: Vec<RuleMatch>,
    now: i64,
) -> Result<Vec<FiredTrace>> {
    if matches.is_empty() {
        return Ok(Vec::new());
    }
    let ids: BTreeSet<Uuid> = matches.iter().map(|it| it.rule).collect();
    let ids: Vec<Uuid> = ids.into_iter().collect();
    // The locks make transactions count the matches of a rule one after the other.
    let rules: BTreeMap<Uuid, failure_rule::Model> = failure_rules::lock(txn, tenant, &ids)
        .await?
        .into_iter()
        .filter(|it| it.enabled)
        .map(|it| (it.id, it))
        .collect();
    let traces: BTreeSet<Uuid> = matches.iter().map(|it| it.trace).collect();
    let traces: Vec<Uuid> = traces.into_iter().collect();
    let mut known = failure_rules::matched(txn, tenant, &ids, &traces).await?;
    matches.sort_by_key(|it| it.at);
    matches.retain(|it| rules.contains_key(&it.rule) && known.insert((it.rule, it.trace)));
    let (Some(first), Some(last)) = (matches.first().map(|it| it.at), matches.last().map(|it| it.at)) else {
        return Ok(Vec::new());
    };
    let mut counting = HashMap::new();
    for rule in rules.values().filter(|it| it.min_count > 1) {
        let (period, limit) = ((first - window(rule), last), i64::from(rule.min_count) - 1);
        let times = failure_rules::match_times(txn, tenant, rule.id, period, limit.unsigned_abs()).await?;
        counting.insert(rule.id, times);
    }
    let (mut fired, mut fired_rules) = (BTreeMap::<Uuid, FiredTrace>::new(), BTreeSet::new());
    for it in &matches {
        let rule = &rules[&it.rule];
        if !counting.get_mut(&it.rule).is_none_or(|times| has_enough(rule, times, it.at)) {
            continue;
        }
        fired_rules.insert(rule.id);
        let fired = fired.entry(it.trace).or_insert_with(|| FiredTrace {
            trace: it.trace,
            cause: it.cause.clone(),
            rules: Vec::new(),
        });
        fired.rules.push(FiredRule { id: rule.id, name: rule.name.clone() });
    }
    let rows: Vec<failure_rule_match::Model> = matches
        .iter()
        .map(|it| failure_rule_match::Model {
            tenant_id: tenant,
            id: it.rule,
            matched_at: it.at,
            trace_id: it.trace,
        })
        .collect();
    failure_rules::add_matches(txn, &rows).await?;
    if !fired_rules.is_empty() {
        failure_rules::set_fired(txn, tenant, fired_rules, now).await?;
    }
    Ok(fired.into_values().collect())
}

/// Adds a match to the `times` of the others. Returns whether there are enough within the window that ends with it.
fn has_enough(rule: &failure_rule::Model, times: &mut Vec<i64>, at: i64) -> bool {
    times.push(at);
    let within = times.iter().filter(|it| (at - window(rule) + 1..=at).contains(it)).count();
    within >= usize::try_from(rule.min_count).unwrap_or(usize::MAX)
}

fn window(rule: &failure_rule::Model) -> i64 {
    i64::from(rule.window_minutes) * MINUTE
}
