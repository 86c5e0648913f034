//! Triggers of policies: failures of traces that become ready, and evaluations with low scores.
//!
//! The transaction that stores a score enqueues a job if the score triggers a policy, so other evaluations cost nothing.

use std::sync::Arc;

use api::{
    Plan,
    control::{ActionConfig, ActionType},
    policy::TriggerType,
};
use entities::{evaluation, job, policy, span, trace};
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::{control_actions, evaluations, traces};
use uuid::Uuid;

use super::{
    policy_set::PolicySet,
    requests::{self, ActionRequest, Requester, Trigger},
};
use crate::{
    app::App,
    error::{Error, Result},
    pools,
};

/// Maximum number of spans of a trace that are searched for the failing one.
const MAX_SPANS: u64 = 2_000;

/// Completed evaluations whose scores trigger policies.
#[derive(Debug, Serialize, Deserialize)]
pub struct TriggerPolicies {
    /// The evaluations.
    pub evaluations: Vec<Uuid>,
}

impl Job for TriggerPolicies {
    const KIND: &'static str = "trigger_policies";
    const POOL: &'static WorkerPool = &pools::ACTIONS_POOL;
    // A trigger is never lost because its job failed.
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// Returns the job for evaluations of a tenant that ended together, if one of the scores triggers a policy.
pub fn jobs(policies: &PolicySet, tenant: Uuid, ended: &[evaluation::Model], now: i64) -> Vec<job::Model> {
    let triggers = |it: &&evaluation::Model| {
        it.score
            .is_some_and(|score| policies.of_score(it.project_id, &it.metric_name, score).next().is_some())
    };
    let evaluations: Vec<Uuid> = ended.iter().filter(triggers).map(|it| it.id).collect();
    if evaluations.is_empty() {
        return Vec::new();
    }
    vec![new_job(tenant, &TriggerPolicies { evaluations }, now, now)]
}

// Requests the actions of the policies. A repeated job requests no action twice.
impl RunJob<App> for TriggerPolicies {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match scored(app, row.tenant_id, &self.evaluations).await {
            Ok(()) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

async fn scored(app: &App, tenant: Uuid, ids: &[Uuid]) -> Result<()> {
    if !may_act(app, tenant).await? {
        return Ok(());
    }
    let policies = app.access_cache.policies(tenant).await?;
    for row in evaluations::some(app.db.current(), tenant, ids).await? {
        let Some(score) = row.score else { continue };
        for policy in policies.of_score(row.project_id, &row.metric_name, score) {
            let trigger = Trigger { trigger_type: TriggerType::Evaluation, id: row.id };
            let span = match evaluated_span(app, tenant, &row).await? {
                Some(span) => Some(span),
                None => requests::last_call(app, tenant, row.trace_id).await?.map(|it| it.id),
            };
            act(app, tenant, policy, row.trace_id, span, trigger).await?;
        }
    }
    Ok(())
}

/// Returns the evaluated span. For an evaluation of an action's output, this is the span whose request the
/// action repeated.
async fn evaluated_span(app: &App, tenant: Uuid, row: &evaluation::Model) -> Result<Option<Uuid>> {
    if row.source_action_id.is_nil() {
        return Ok(row.span_id);
    }
    let action = control_actions::get(app.db.current(), tenant, row.source_action_id).await?;
    Ok(action.and_then(|it| it.span_id).or(row.span_id))
}

/// Enqueues a job if failures of the traces with these keys trigger policies. Traces that are not ready are ignored.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn traces_ready(app: &App, tenant: Uuid, keys: &[i64]) -> Result<()> {
    let policies = app.access_cache.policies(tenant).await?;
    if policies.of_failures().next().is_none() {
        return Ok(());
    }
    let mut rows = traces::some_by_key(&app.db, tenant, keys).await?;
    rows.retain(|trace| trace.ready && policies.of_failures().any(|it| concerns(it, trace)));
    if rows.is_empty() {
        return Ok(());
    }
    let (now, traces) = (app.clock.now(), rows.iter().map(|it| it.id).collect());
    let jobs = vec![new_job(tenant, &TriggerOnFailures { traces }, now, now)];
    let txn = app.db.begin().await?;
    queue::enqueue_all(&txn, jobs.clone()).await?;
    txn.commit().await?;
    app.wake_ups().wake_for(&jobs);
    Ok(())
}

/// Ready traces whose failures trigger policies.
#[derive(Debug, Serialize, Deserialize)]
pub struct TriggerOnFailures {
    /// The traces.
    pub traces: Vec<Uuid>,
}

impl Job for TriggerOnFailures {
    const KIND: &'static str = "trigger_policies_on_failures";
    const POOL: &'static WorkerPool = &pools::ACTIONS_POOL;
    // A trigger is never lost because its job failed.
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

// Requests the actions of the policies. A repeated job requests no action twice.
impl RunJob<App> for TriggerOnFailures {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match failed(app, row.tenant_id, &self.traces).await {
            Ok(()) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

async fn failed(app: &App, tenant: Uuid, ids: &[Uuid]) -> Result<()> {
    if !may_act(app, tenant).await? {
        return Ok(());
    }
    let policies = app.access_cache.policies(tenant).await?;
    for trace in traces::some(app.db.current(), tenant, ids).await? {
        let mut spans = traces::spans(&app.db.primary(), tenant, trace.id, None, MAX_SPANS).await?;
        spans.retain(|it| it.failure.is_some());
        for policy in policies.of_failures().filter(|it| concerns(it, &trace)) {
            let Some(span) = failing_span(&spans, policy.failure_types) else { continue };
            let trigger = Trigger { trigger_type: TriggerType::Failure, id: span };
            act(app, tenant, policy, trace.id, Some(span), trigger).await?;
        }
    }
    Ok(())
}

fn concerns(policy: &policy::Model, trace: &trace::Model) -> bool {
    policy.project_id == trace.project_id && policy.failure_types & trace.failure_types != 0
}

/// Returns the ID of the last model call with a failure of these types, else the last other span with one. Model calls take
/// precedence, because a wrapper repeats the error of the call inside it.
fn failing_span(spans: &[span::Model], types: i16) -> Option<Uuid> {
    let has_failed = |it: &&span::Model| it.failure.is_some_and(|failure| failure & types != 0);
    let is_call = |it: &&span::Model| it.kind == api::SpanType::Llm.as_str();
    let failing = || spans.iter().rev().filter(has_failed);
    failing().find(is_call).or_else(|| failing().next()).map(|it| it.id)
}

async fn act(
    app: &App,
    tenant: Uuid,
    policy: &policy::Model,
    trace_id: Uuid,
    span_id: Option<Uuid>,
    trigger: Trigger,
) -> Result<()> {
    let action_type: ActionType = policy.action_type.parse().map_err(anyhow::Error::from)?;
    let config: ActionConfig = serde_json::from_str(&policy.action_config).map_err(anyhow::Error::from)?;
    let requester = Requester::Trigger(trigger);
    let request = ActionRequest { trace_id, span_id, action_type, config, policy: Some(policy), requester };
    match requests::request(app, tenant, request).await {
        // The trace was deleted meanwhile.
        Err(Error::Problem(problem)) if problem.code == api::ErrorCode::NotFound => Ok(()),
        other => other.map(drop),
    }
}

/// Whether the tenant's plan includes the control loop.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn may_act(app: &App, tenant: Uuid) -> Result<bool> {
    let Some(row) = app.access_cache.tenant(tenant).await? else { return Ok(false) };
    let plan: Plan = row.plan.parse().map_err(anyhow::Error::from)?;
    Ok(plan >= Plan::Team)
}
