//! Requests and decisions of control actions, each in one transaction under the lock of the trace.

use api::{
    ErrorCode,
    control::{ActionConfig, ActionPendingApproval, ActionStatus, ActionType},
    policy::{DEFAULT_MAX_CASCADE_DEPTH, DEFAULT_MAX_RETRY_DEPTH, TriggerType},
    webhook::EventType,
};
use entities::{control_action, job, policy, span};
use queue::{Job, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::{Transaction, control_actions, new_id_at, traces};
use uuid::Uuid;

use super::{
    gates::{self, DepthLimits},
    view,
};
use crate::{
    access::Caller,
    app::App,
    audit::{self, Actor, AuditAction, AuditEvent},
    error::{Result, not_found, problem},
    pools,
    webhooks::{NewEvent, publish},
};

/// A control action was requested.
pub const ACTION_REQUEST: AuditAction = AuditAction::new("control_action.request", "control_action");
/// A control action was approved.
pub const ACTION_APPROVE: AuditAction = AuditAction::new("control_action.approve", "control_action");
/// A control action was rejected.
pub const ACTION_REJECT: AuditAction = AuditAction::new("control_action.reject", "control_action");

/// Maximum number of spans among which the last model call is searched.
const MAX_SPANS: u64 = 2_000;

/// A queued control action. [`crate::remediation`] executes it.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunAction {
    /// The action.
    pub action: Uuid,
}

impl Job for RunAction {
    const KIND: &'static str = "run_control_action";
    const POOL: &'static WorkerPool = &pools::ACTIONS_POOL;
    // An action ends with a reason, never because its job failed.
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// What triggered a policy.
#[derive(Clone, Copy, Debug)]
pub struct Trigger {
    /// A failing span, or an evaluation.
    pub trigger_type: TriggerType,
    /// Its ID.
    pub id: Uuid,
}

/// The origin of a request.
pub enum Requester<'a> {
    /// A person.
    Person(&'a Caller),
    /// A policy.
    Trigger(Trigger),
}

/// A requested control action.
pub struct ActionRequest<'a> {
    /// The trace.
    pub trace_id: Uuid,
    /// The span whose request is repeated.
    pub span_id: Option<Uuid>,
    /// One of [`ActionType::REQUESTABLE_TYPES`].
    pub action_type: ActionType,
    /// How the request is changed.
    pub config: ActionConfig,
    /// The policy whose limits apply.
    pub policy: Option<&'a policy::Model>,
    /// The origin.
    pub requester: Requester<'a>,
}

/// Returns the last model call of a trace that is not the output of an action, else its last span.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn last_call(app: &App, tenant: Uuid, trace: Uuid) -> Result<Option<span::Model>> {
    let remediated = control_actions::remediated_spans(&app.db, tenant, trace).await?;
    let mut spans = traces::spans(&app.db.primary(), tenant, trace, None, MAX_SPANS).await?;
    spans.retain(|it| !remediated.contains(&it.id));
    let is_call = |it: &span::Model| it.kind == api::SpanType::Llm.as_str();
    let last = spans.iter().rposition(is_call).or(spans.len().checked_sub(1));
    Ok(last.map(|it| spans.swap_remove(it)))
}

/// Stores a requested action. It is queued, or waits for approval if the policy requires it or a limit is reached.
/// Returns `None` if the policy has acted on the same trigger, or its cool-down has not passed.
///
/// # Errors
///
/// Fails with `not_found` if the trace does not exist, with `conflict` if a person requests it during the cool-down, or
/// when the database fails.
pub async fn request(
    app: &App,
    tenant: Uuid,
    request: ActionRequest<'_>,
) -> Result<Option<control_action::Model>> {
    let ActionRequest { trace_id, span_id, action_type, config, policy, requester } = request;
    let subscriptions = app.access_cache.subscriptions(tenant).await?;
    let now = app.clock.now();
    let txn = app.db.begin().await?;
    let trace = traces::lock(&txn, tenant, trace_id).await?.ok_or_else(|| not_found("trace"))?;
    let trigger = match requester {
        Requester::Person(_) => None,
        Requester::Trigger(trigger) => Some(trigger),
    };
    if let Some(policy) = policy {
        let earlier = control_actions::triggered_by(&txn, &app.db, tenant, trace_id, policy.id).await?;
        if trigger.is_some_and(|it| earlier.iter().any(|earlier| earlier.1 == Some(it.id))) {
            return Ok(None);
        }
        let cooldown = i64::from(policy.cooldown_seconds) * 1_000_000;
        let last = earlier.iter().map(|it| it.0).max();
        if let Some(ends) = last.map(|it| it.saturating_add(cooldown)).filter(|it| *it > now) {
            return match trigger {
                Some(_) => Ok(None),
                None => {
                    let seconds = (ends - now) / 1_000_000 + 1;
                    let message =
                        format!("the policy's cool-down on this trace ends in {seconds} s; try again then");
                    Err(problem(ErrorCode::Conflict, message))
                }
            };
        }
    }
    let counts = control_actions::counts(&txn, &app.db, tenant, trace_id).await?;
    let escalation = gates::escalation(action_type, counts, limits(policy));
    let require_approval = escalation.is_some() || policy.is_some_and(|it| it.require_approval);
    let status = if require_approval { ActionStatus::PendingApproval } else { ActionStatus::Queued };
    let row = control_action::Model {
        tenant_id: tenant,
        id: new_id_at(now),
        project_id: trace.project_id,
        trace_id,
        span_id,
        policy_id: policy.map(|it| it.id),
        action_type: escalation.map_or(action_type, |_| ActionType::Escalate).as_str().to_owned(),
        requested_type: action_type.as_str().to_owned(),
        action_config: serde_json::to_string(&config).map_err(anyhow::Error::from)?,
        status: status.as_str().to_owned(),
        require_approval,
        is_counted: !require_approval,
        escalation_reason: escalation.map(|it| it.reason.as_str().to_owned()),
        retry_count: escalation.map(|it| i32::try_from(it.count).unwrap_or(i32::MAX)),
        trigger_type: trigger.map(|it| it.trigger_type.as_str().to_owned()),
        trigger_id: trigger.map(|it| it.id),
        remediated_span_id: None,
        error: None,
        requested_by: match requester {
            Requester::Person(caller) => Some(Actor::from(caller).id),
            Requester::Trigger(_) => None,
        },
        decided_by: None,
        decided_at: None,
        attempts: 0,
        called_at: None,
        cost: None,
        similarity: None,
        completed_at: None,
        created_at: now,
        updated_at: now,
    };
    control_actions::add(&txn, row.clone()).await?;
    if let Requester::Person(caller) = requester {
        audit::record(&txn, caller, AuditEvent::of(ACTION_REQUEST).on(row.id), now).await?;
    }
    let jobs = if require_approval {
        let data = ActionPendingApproval { action: view::action(row.clone())? };
        let event = NewEvent {
            event_type: EventType::ControlActionPendingApproval,
            project_id: Some(row.project_id),
            trace_id: Some(trace_id),
            data: serde_json::to_value(data).map_err(anyhow::Error::from)?,
        };
        publish(&txn, &subscriptions, tenant, &[event], now).await?
    } else {
        enqueue(&txn, &row, now).await?
    };
    txn.commit().await?;
    app.wake_ups().wake_for(&jobs);
    Ok(Some(row))
}

/// Approves or rejects an action that waits for approval. An approved action that has reached a limit meanwhile becomes
/// an escalation, so that it is executed but does not count.
///
/// # Errors
///
/// Fails with `not_found`, or with `invalid_state` if the action does not wait for approval.
pub async fn decide(app: &App, caller: &Caller, id: Uuid, approve: bool) -> Result<control_action::Model> {
    let (tenant, now) = (caller.tenant_id, app.clock.now());
    let found = control_actions::get(app.db.current(), tenant, id).await?;
    let trace = found.ok_or_else(|| not_found("control action"))?.trace_id;
    let txn = app.db.begin().await?;
    traces::lock_in_order(&txn, tenant, &[trace]).await?;
    let row = control_actions::lock(&txn, tenant, id).await?;
    let mut row = row.ok_or_else(|| not_found("control action"))?;
    if row.status != ActionStatus::PendingApproval.as_str() {
        let message = format!("the action is {}; only a pending_approval action can be decided", row.status);
        return Err(problem(ErrorCode::InvalidState, message));
    }
    row.decided_by = Some(Actor::from(caller).id);
    (row.decided_at, row.updated_at) = (Some(now), now);
    let mut jobs = Vec::new();
    if approve {
        let policy = match row.policy_id {
            Some(policy) => store::policies::get(&txn, tenant, policy).await?,
            None => None,
        };
        let counts = control_actions::counts(&txn, &app.db, tenant, trace).await?;
        let action_type: ActionType = row.action_type.parse().map_err(anyhow::Error::from)?;
        if let Some(escalation) = gates::escalation(action_type, counts, limits(policy.as_ref())) {
            row.action_type = ActionType::Escalate.as_str().to_owned();
            row.escalation_reason = Some(escalation.reason.as_str().to_owned());
            row.retry_count = Some(i32::try_from(escalation.count).unwrap_or(i32::MAX));
        }
        row.is_counted = row.action_type != ActionType::Escalate.as_str();
        row.status = ActionStatus::Queued.as_str().to_owned();
        jobs = enqueue(&txn, &row, now).await?;
    } else {
        row.status = ActionStatus::Rejected.as_str().to_owned();
        row.completed_at = Some(now);
    }
    control_actions::replace(&txn, row.clone()).await?;
    let action = if approve { ACTION_APPROVE } else { ACTION_REJECT };
    audit::record(&txn, caller, AuditEvent::of(action).on(id), now).await?;
    txn.commit().await?;
    app.wake_ups().wake_for(&jobs);
    Ok(row)
}

/// Returns the limits of a policy, or the default limits.
fn limits(policy: Option<&policy::Model>) -> DepthLimits {
    DepthLimits {
        max_retry_depth: policy.map_or(DEFAULT_MAX_RETRY_DEPTH, |it| it.max_retry_depth),
        max_cascade_depth: policy.map_or(DEFAULT_MAX_CASCADE_DEPTH, |it| it.max_cascade_depth),
    }
}

/// Enqueues the execution of an action. Returns its job.
async fn enqueue(txn: &Transaction, row: &control_action::Model, now: i64) -> Result<Vec<job::Model>> {
    let jobs = vec![new_job(row.tenant_id, &RunAction { action: row.id }, now, now)];
    queue::enqueue_all(txn, jobs.clone()).await?;
    Ok(jobs)
}
