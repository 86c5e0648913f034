//! Converts rows of policies and control actions to wire types.

use api::{
    FailureType, Timestamp,
    control::{ActionMetadata, ControlAction},
    policy::{Policy, PolicyTrigger, TriggerType},
};
use entities::{control_action, policy};
use semantics::{money, rollup::FailureSet};

use crate::error::Result;

/// Returns a policy.
///
/// # Errors
///
/// Fails when the row is invalid.
pub fn policy(row: policy::Model) -> Result<Policy> {
    let policy::Model {
        tenant_id: _,
        id,
        project_id,
        name,
        enabled,
        trigger_type,
        failure_types,
        metric_name,
        max_score,
        action_type,
        action_config,
        callback_secret: _,
        require_approval,
        max_retry_depth,
        max_cascade_depth,
        cooldown_seconds,
        daily_budget,
        created_at,
        updated_at,
    } = row;
    let trigger_type: Option<TriggerType> =
        trigger_type.map(|it| it.parse()).transpose().map_err(anyhow::Error::from)?;
    let types = FailureSet::from_bits(u8::try_from(failure_types).map_err(anyhow::Error::from)?);
    let types = FailureType::ALL.iter().copied().filter(|it| types.contains(*it)).collect();
    Ok(Policy {
        id,
        project_id,
        name,
        enabled,
        trigger: trigger_type.map(|trigger_type| PolicyTrigger {
            trigger_type,
            failure_types: Some(types).filter(|_| trigger_type == TriggerType::Failure),
            metric_name,
            max_score,
        }),
        action_type: action_type.parse().map_err(anyhow::Error::from)?,
        action_config: serde_json::from_str(&action_config).map_err(anyhow::Error::from)?,
        require_approval,
        max_retry_depth,
        max_cascade_depth,
        cooldown_seconds,
        daily_budget_usd: daily_budget.map(money::to_usd),
        created_at: Timestamp::from_micros(created_at),
        updated_at: Timestamp::from_micros(updated_at),
    })
}

/// Returns a control action.
///
/// # Errors
///
/// Fails when the row is invalid.
pub fn action(row: control_action::Model) -> Result<ControlAction> {
    let control_action::Model {
        tenant_id: _,
        id,
        project_id,
        trace_id,
        span_id,
        policy_id,
        action_type,
        requested_type,
        action_config,
        status,
        require_approval,
        is_counted: _,
        escalation_reason,
        retry_count,
        trigger_type,
        trigger_id,
        remediated_span_id,
        error,
        requested_by,
        decided_by,
        decided_at,
        attempts,
        called_at: _,
        cost,
        similarity: _,
        completed_at,
        created_at,
        updated_at,
    } = row;
    let trigger: Option<TriggerType> =
        trigger_type.map(|it| it.parse()).transpose().map_err(anyhow::Error::from)?;
    let is_escalated = escalation_reason.is_some();
    let requested_type = requested_type.parse().map_err(anyhow::Error::from)?;
    let reason = escalation_reason.map(|it| it.parse()).transpose().map_err(anyhow::Error::from)?;
    let metadata = ActionMetadata {
        escalation_reason: reason,
        retry_count,
        requested_action_type: is_escalated.then_some(requested_type),
        trigger,
        failing_span_id: trigger_id.filter(|_| trigger == Some(TriggerType::Failure)),
        evaluation_id: trigger_id.filter(|_| trigger == Some(TriggerType::Evaluation)),
    };
    Ok(ControlAction {
        id,
        project_id,
        trace_id,
        span_id,
        policy_id,
        action_type: action_type.parse().map_err(anyhow::Error::from)?,
        action_config: serde_json::from_str(&action_config).map_err(anyhow::Error::from)?,
        status: status.parse().map_err(anyhow::Error::from)?,
        require_approval,
        metadata,
        remediated_span_id,
        error,
        requested_by,
        decided_by,
        decided_at: decided_at.map(Timestamp::from_micros),
        attempts,
        // While an action runs, the column has an estimate.
        cost: cost.filter(|_| completed_at.is_some()).map(money::to_usd),
        completed_at: completed_at.map(Timestamp::from_micros),
        created_at: Timestamp::from_micros(created_at),
        updated_at: Timestamp::from_micros(updated_at),
    })
}
