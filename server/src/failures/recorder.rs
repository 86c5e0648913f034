//! Stores failures with their clusters, and fires failure rules.
//!
//! The failures of a trace are stored in one transaction, those of many traces in several if many webhooks receive an
//! event for each trace. A transaction locks the clustering of each project first, so that two processes neither store a
//! failure twice nor lose a count, and then the traces, so that none of them is removed meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use api::{FailureType, webhook::EventType};
use entities::{failure, trace};
use store::{Transaction, failures, new_id_at, traces, traces::bit_of};
use uuid::Uuid;

use super::{
    changes::{self, ProjectClusters},
    event,
    firing::{self, SpanTypes},
    ready_match,
    rule_set::FailureRules,
};
use crate::{app::App, error::Result, subscriptions::Subscriptions};

/// Length of the part of a message that is stored with the failure, in characters. The span has all of it.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// A failure that may be stored already.
#[derive(Clone, Debug)]
pub struct NewFailure {
    /// The trace.
    pub trace_id: Uuid,
    /// The span; the nil UUID for an error of the trace itself.
    pub span_id: Uuid,
    /// The type.
    pub failure_type: FailureType,
    /// The evaluation that found a remediation regression.
    pub evaluation_id: Option<Uuid>,
    /// The error message.
    pub message: String,
    /// The model of the span.
    pub model: Option<String>,
    /// The name of the span.
    pub span_name: String,
    /// Time at which the failing span was stored, microseconds.
    pub created_at: i64,
}

/// A remediated output that scores lower than the original.
#[derive(Clone, Debug)]
pub struct RemediationRegression {
    /// The trace.
    pub trace_id: Uuid,
    /// The remediated span.
    pub span_id: Uuid,
    /// The evaluation of the remediated output.
    pub evaluation_id: Uuid,
    /// Says what became worse.
    pub message: String,
    /// The model of the remediated span.
    pub model: Option<String>,
    /// The name of the span.
    pub span_name: String,
}

/// Records a remediation regression as a failure. Returns false if it is recorded already, or the trace does not exist.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn record_regression(app: &App, tenant: Uuid, regression: RemediationRegression) -> Result<bool> {
    let RemediationRegression { trace_id, span_id, evaluation_id, message, model, span_name } = regression;
    let Some(trace) = traces::some(app.db.current(), tenant, &[trace_id]).await?.pop() else {
        return Ok(false);
    };
    let failure = NewFailure {
        trace_id,
        span_id,
        failure_type: FailureType::RemediationRegression,
        evaluation_id: Some(evaluation_id),
        message,
        model,
        span_name,
        created_at: app.clock.now(),
    };
    Ok(record(app, tenant, &HashMap::from([(trace_id, trace)]), vec![failure]).await? > 0)
}

/// Stores the failures that are not stored yet, with everything that follows from them. `traces` has the rows
/// of their traces; failures of other traces are dropped. Returns the number of stored failures.
///
/// # Errors
///
/// Fails when the database fails. A repeated call stores the failures that are not stored yet.
pub async fn record(
    app: &App,
    tenant: Uuid,
    traces: &HashMap<Uuid, trace::Model>,
    mut failures: Vec<NewFailure>,
) -> Result<usize> {
    failures.retain(|it| traces.contains_key(&it.trace_id));
    if failures.is_empty() {
        return Ok(0);
    }
    failures.sort_by_key(|it| it.created_at);
    let rules = firing::rules_of(app, tenant).await?;
    let span_types = firing::span_types(app, tenant, rules.as_deref(), traces.keys()).await?;
    let subscriptions = app.access_cache.subscriptions(tenant).await?;
    let max_traces = match rules {
        Some(_) => subscriptions.max_events_per_transaction(EventType::FailureDetected),
        None => usize::MAX,
    };
    let recording = Recording { app, tenant, traces, rules, span_types, subscriptions };
    let mut count = 0;
    for group in event::split_by_trace(failures, |it| it.trace_id, max_traces) {
        count += recording.record(group).await?;
    }
    Ok(count)
}

/// The values that all transactions of one call of [`record`] share.
struct Recording<'a> {
    app: &'a App,
    tenant: Uuid,
    traces: &'a HashMap<Uuid, trace::Model>,
    rules: Option<Arc<FailureRules>>,
    span_types: SpanTypes,
    subscriptions: Arc<Subscriptions>,
}

impl Recording<'_> {
    /// Stores failures in one transaction. Returns the number of those that were not stored before.
    async fn record(&self, mut failures: Vec<NewFailure>) -> Result<usize> {
        let Self { app, tenant, traces, rules, span_types, subscriptions } = self;
        let (tenant, now) = (*tenant, app.clock.now());
        let txn = app.db.begin().await?;
        let mut projects = BTreeMap::new();
        let ids: BTreeSet<Uuid> = failures.iter().map(|it| traces[&it.trace_id].project_id).collect();
        for project in ids {
            projects.insert(project, ProjectClusters::lock(app, &txn, tenant, project).await?);
        }
        keep_unrecorded(app, &txn, tenant, traces, &mut failures).await?;
        let mut stored = Vec::with_capacity(failures.len());
        let mut muted = HashSet::new();
        for (project, clusters) in &mut projects {
            let of_project: Vec<&NewFailure> =
                failures.iter().filter(|it| traces[&it.trace_id].project_id == *project).collect();
            if of_project.is_empty() {
                continue;
            }
            let (cluster_ids, rows) = clusters.assign(&txn, &of_project).await?;
            let of_project = of_project.into_iter().zip(cluster_ids);
            let of_project: Vec<failure::Model> =
                of_project.map(|(it, cluster)| row(tenant, *project, it, cluster)).collect();
            muted.extend(changes::store(app, &txn, clusters, rows, &of_project, now).await?);
            stored.extend(of_project);
        }
        failures::add(&txn, &stored).await?;
        let mut deliveries = Vec::new();
        if let Some(rules) = rules {
            let relevant = stored.iter().filter(|it| !muted.contains(&it.cluster_id));
            let (matches, waiting) = firing::of_failures(rules, traces, span_types, relevant);
            let fired = firing::fire(&txn, tenant, matches, now).await?;
            deliveries = event::publish(&txn, subscriptions, tenant, traces, fired, now).await?;
            ready_match::enqueue(&txn, tenant, waiting.into_iter().map(|it| &traces[&it]), now).await?;
        }
        txn.commit().await?;
        app.wake_ups().wake_for(&deliveries);
        projects.into_values().for_each(|it| it.keep(app));
        Ok(stored.len())
    }
}

/// Locks the traces, and drops the failures that are stored already or whose trace no longer exists.
async fn keep_unrecorded(
    app: &App,
    txn: &Transaction,
    tenant: Uuid,
    traces: &HashMap<Uuid, trace::Model>,
    failures: &mut Vec<NewFailure>,
) -> Result<()> {
    let ids: BTreeSet<Uuid> = failures.iter().map(|it| it.trace_id).collect();
    let locked = traces::lock_created(txn, tenant, &ids.into_iter().collect::<Vec<_>>()).await?;
    let locked: HashMap<Uuid, i64> = locked.into_iter().collect();
    failures.retain(|it| locked.get(&it.trace_id) == Some(&traces[&it.trace_id].created_at));
    let (mut spans, mut regressions) = (Vec::new(), Vec::new());
    for it in failures.iter() {
        match it.evaluation_id {
            Some(evaluation) => regressions.push((it.trace_id, evaluation)),
            None => spans.push((it.trace_id, it.span_id)),
        }
    }
    let spans = failures::recorded_spans(txn, &app.db, tenant, &spans).await?;
    let regressions = failures::recorded_regressions(txn, &app.db, tenant, &regressions).await?;
    failures.retain(|it| match it.evaluation_id {
        Some(evaluation) => !regressions.contains(&(it.trace_id, evaluation)),
        None => !spans.contains(&(it.trace_id, it.span_id)),
    });
    Ok(())
}

fn row(tenant_id: Uuid, project_id: Uuid, it: &NewFailure, cluster_id: Uuid) -> failure::Model {
    failure::Model {
        tenant_id,
        id: new_id_at(it.created_at),
        project_id,
        trace_id: it.trace_id,
        span_id: it.span_id,
        failure_type: bit_of(it.failure_type),
        source_id: it.evaluation_id.unwrap_or_default(),
        message: beginning(&it.message).to_owned(),
        model: it.model.clone(),
        span_name: it.span_name.clone(),
        cluster_id,
        created_at: it.created_at,
    }
}

/// Returns the part of a message that is stored and shown.
pub fn beginning(message: &str) -> &str {
    message.char_indices().nth(MAX_MESSAGE_CHARS).map_or(message, |(end, _)| &message[..end])
}
