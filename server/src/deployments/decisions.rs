//! Decisions of owners about deployments.

use api::{
    ErrorCode,
    deployment::{DeploymentDecision, DeploymentStatus},
};
use entities::prompt_deployment;
use store::prompts;
use uuid::Uuid;

use super::locked_prompt::{Decider, LockedPrompt, details};
use crate::{
    access::Caller,
    app::App,
    audit::{self, AuditAction, AuditEvent},
    error::{Problem, Result, not_found, problem},
};

/// A prompt deployment was approved.
pub const DEPLOYMENT_APPROVE: AuditAction =
    AuditAction::new("prompt_deployment.approve", "prompt_deployment");
/// A prompt deployment was rejected.
pub const DEPLOYMENT_REJECT: AuditAction = AuditAction::new("prompt_deployment.reject", "prompt_deployment");
/// A prompt deployment was rolled back.
pub const DEPLOYMENT_ROLLBACK: AuditAction =
    AuditAction::new("prompt_deployment.rollback", "prompt_deployment");

/// Maximum length of a note in characters.
const MAX_NOTE_CHARS: usize = 2_000;

/// A decision of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerDecision {
    /// Ships a version that passed.
    Approve,
    /// Rejects a version; the version before it is served again.
    Reject,
    /// Rolls a shipped version back; the version before it is served again.
    Rollback,
}

impl OwnerDecision {
    /// Whether the decision is possible in a state.
    fn is_allowed(self, status: DeploymentStatus) -> bool {
        match self {
            Self::Approve => status == DeploymentStatus::AbPassed,
            Self::Reject => status.is_rejectable(),
            Self::Rollback => status.is_served(),
        }
    }

    const fn action(self) -> AuditAction {
        match self {
            Self::Approve => DEPLOYMENT_APPROVE,
            Self::Reject => DEPLOYMENT_REJECT,
            Self::Rollback => DEPLOYMENT_ROLLBACK,
        }
    }

    const fn participle(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Reject => "rejected",
            Self::Rollback => "rolled back",
        }
    }
}

/// Decides about a deployment. Concurrent decisions wait for each other: the second one sees the state after the first.
///
/// # Errors
///
/// Fails with `not_found`, with `invalid_state` and the current status, or with `validation_failed` for a note that is too
/// long.
pub async fn decide(
    app: &App,
    caller: &Caller,
    id: Uuid,
    decision: OwnerDecision,
    body: DeploymentDecision,
) -> Result<prompt_deployment::Model> {
    let tenant = caller.tenant_id;
    let note = body.note.map(validate_note).transpose()?;
    let missing = || not_found("prompt deployment");
    let found = prompts::deployment(app.db.current(), tenant, id).await?.ok_or_else(missing)?;
    let locked = LockedPrompt::lock(app, tenant, found.project_id, &found.prompt_name, &[]).await?;
    let (mut prompt, _) = locked.ok_or_else(missing)?;
    let mut row = prompts::deployment(&prompt.txn, tenant, id).await?.ok_or_else(missing)?;
    let status: DeploymentStatus = row.status.parse().map_err(anyhow::Error::from)?;
    if !decision.is_allowed(status) {
        let allowed = DeploymentStatus::ALL.iter().filter(|it| decision.is_allowed(**it));
        let allowed: Vec<&str> = allowed.map(|it| it.as_str()).collect();
        let message = format!(
            "the deployment is {status}; only a deployment that is {} can be {}",
            allowed.join(" or "),
            decision.participle()
        );
        return Err(problem(ErrorCode::InvalidState, message));
    }
    let decider = Decider::Person(caller, note);
    match decision {
        OwnerDecision::Approve => prompt.ship(&mut row, decider).await?,
        OwnerDecision::Reject => prompt.withdraw(&mut row, DeploymentStatus::Rejected, decider).await?,
        OwnerDecision::Rollback => prompt.withdraw(&mut row, DeploymentStatus::RolledBack, decider).await?,
    }
    let event = AuditEvent::of(decision.action()).on(id).with(details(&row));
    audit::record(&prompt.txn, caller, event, prompt.now).await?;
    prompt.commit().await?;
    Ok(row)
}

fn validate_note(note: String) -> Result<String> {
    if note.contains('\0') || note.chars().count() > MAX_NOTE_CHARS {
        let message = format!("must have at most {MAX_NOTE_CHARS} characters, none of them NUL");
        return Err(Problem::field("note", message).into());
    }
    Ok(note)
}
