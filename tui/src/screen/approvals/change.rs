//! The decisions about deployments and actions.

use std::sync::Arc;

use api::{
    client::{Auth, calls},
    control::{ActionStatus, ControlAction},
    deployment::{DeploymentDecision, DeploymentStatus, PromptDeployment},
};
use uuid::Uuid;

use super::{
    queue::ApprovalRow,
    state::{Approvals, ApprovalsRequest, ApprovalsTab},
    update::{load_history, load_pending},
};
use crate::{
    change::{Change, ChangeOutcome, CheckContext, ExcerptLine, SentState},
    net::{Effect, NetError, Request, RequestId, Response},
    shell::{ScreenChanges, Shell},
};

/// A decision about a deployment or an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Ships the deployment, or executes the action.
    Approve,
    /// Rejects it.
    Reject,
    /// Replaces the shipped deployment by the version before it.
    RollBack,
}

impl Decision {
    /// Returns whether the server accepts the decision about a row in its state.
    pub const fn applies_to(self, row: &ApprovalRow<'_>) -> bool {
        match (self, row) {
            (Self::Approve, ApprovalRow::Deployment(it)) => {
                matches!(it.status, DeploymentStatus::AbPassed)
            }
            (Self::Reject, ApprovalRow::Deployment(it)) => it.status.is_rejectable(),
            (Self::RollBack, ApprovalRow::Deployment(it)) => it.status.is_served(),
            (Self::Approve | Self::Reject, ApprovalRow::Action(it)) => {
                matches!(it.status, ActionStatus::PendingApproval)
            }
            (Self::RollBack, ApprovalRow::Action(_)) => false,
        }
    }

    /// Returns the participle of the decision.
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Reject => "rejected",
            Self::RollBack => "rolled back",
        }
    }
}

/// The kind of the record that is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedRecord {
    /// A deployment, and whether applications get it.
    Deployment {
        /// Whether applications get the version before the decision.
        is_served: bool,
    },
    /// An action.
    Action,
}

/// A decision, with what it changes.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalChange {
    /// The decision.
    pub decision: Decision,
    /// The kind of the record.
    pub record: DecidedRecord,
    /// The id of the record.
    pub id: Uuid,
    /// The name of the record.
    pub name: String,
    /// What changes.
    pub excerpt: Vec<ExcerptLine>,
    /// The note; only for deployments.
    pub note: Option<String>,
}

impl ApprovalChange {
    /// Returns a decision about a row.
    pub fn new(decision: Decision, row: &ApprovalRow<'_>, excerpt: Vec<ExcerptLine>) -> Self {
        let record = match row {
            ApprovalRow::Deployment(it) => DecidedRecord::Deployment { is_served: it.status.is_served() },
            ApprovalRow::Action(_) => DecidedRecord::Action,
        };
        Self { decision, record, id: row.id(), name: row.name(), excerpt, note: None }
    }
}

impl Change for ApprovalChange {
    fn title(&self) -> &'static str {
        match (self.decision, self.record) {
            (Decision::Approve, DecidedRecord::Deployment { .. }) => "Approve a deployment",
            (Decision::Reject, DecidedRecord::Deployment { .. }) => "Reject a deployment",
            (Decision::Approve, DecidedRecord::Action) => "Approve an action",
            (Decision::Reject, DecidedRecord::Action) => "Reject an action",
            (Decision::RollBack, _) => "Roll a deployment back",
        }
    }

    fn verb(&self) -> &'static str {
        match self.decision {
            Decision::Approve => "Approve",
            Decision::Reject => "Reject",
            Decision::RollBack => "Roll back",
        }
    }

    fn consequences(&self) -> &'static str {
        match (self.decision, self.record) {
            (Decision::Approve, DecidedRecord::Deployment { .. }) => {
                "All applications get this version. It can be rolled back later."
            }
            (Decision::Reject, DecidedRecord::Deployment { is_served: true }) | (Decision::RollBack, _) => {
                "Applications get the version shipped before it, if any. This version can't be shipped again."
            }
            (Decision::Reject, DecidedRecord::Deployment { is_served: false }) => {
                "Applications keep their version. This one can't be shipped any more."
            }
            (Decision::Approve, DecidedRecord::Action) => {
                "The action is executed once, outside the limits of its policy. It calls a model, which costs money."
            }
            (Decision::Reject, DecidedRecord::Action) => "The action is not executed.",
        }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn id(&self) -> Option<Uuid> {
        Some(self.id)
    }

    fn excerpt(&self) -> &[ExcerptLine] {
        &self.excerpt
    }

    fn with_note(&self, note: &str) -> Option<Arc<dyn Change>> {
        let DecidedRecord::Deployment { .. } = self.record else { return None };
        let note = (!note.is_empty()).then(|| note.to_owned());
        Some(Arc::new(Self { note, ..self.clone() }))
    }

    fn done(&self) -> String {
        match (self.decision, self.record) {
            (Decision::Approve, DecidedRecord::Deployment { .. }) => format!("{} is shipped", self.name),
            (Decision::Approve, DecidedRecord::Action) => {
                format!("{} was approved and waits for its execution", self.name)
            }
            (Decision::Reject, _) => format!("{} was rejected", self.name),
            (Decision::RollBack, _) => format!("{} was rolled back", self.name),
        }
    }

    // The endpoints accept a session token only, as their calls declare.
    fn request(&self, request: RequestId, _auth: Auth) -> Request {
        let decision = DeploymentDecision { note: self.note.clone() };
        match (self.decision, self.record) {
            (Decision::Approve, DecidedRecord::Deployment { .. }) => {
                Request::new(request, calls::approve_deployment(self.id, &decision))
            }
            (Decision::Reject, DecidedRecord::Deployment { .. }) => {
                Request::new(request, calls::reject_deployment(self.id, &decision))
            }
            (Decision::Approve, DecidedRecord::Action) => {
                Request::new(request, calls::approve_action(self.id))
            }
            (Decision::Reject, DecidedRecord::Action) => Request::new(request, calls::reject_action(self.id)),
            (Decision::RollBack, _) => Request::new(request, calls::roll_back_deployment(self.id, &decision)),
        }
    }

    fn check(&self, request: RequestId, _context: CheckContext) -> Option<Request> {
        Some(match self.record {
            DecidedRecord::Deployment { .. } => Request::new(request, calls::deployment(self.id)),
            DecidedRecord::Action => Request::new(request, calls::control_action(self.id)),
        })
    }
}

impl ScreenChanges for Approvals {
    type Change = ApprovalChange;

    fn changed(
        &mut self,
        shell: &mut Shell,
        change: &ApprovalChange,
        response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        match change.record {
            DecidedRecord::Deployment { .. } => drop(response.decoded::<PromptDeployment>()?),
            DecidedRecord::Action => drop(response.decoded::<ControlAction>()?),
        }
        shell.notify(change.done());
        Ok(reload(self, shell))
    }

    fn checked(
        &mut self,
        shell: &mut Shell,
        change: &ApprovalChange,
        _sent: SentState<'_>,
        response: Response,
    ) -> Result<(ChangeOutcome, Vec<Effect>), NetError> {
        let outcome = match change.record {
            DecidedRecord::Deployment { is_served } => {
                deployment_outcome(change, is_served, &response.decoded()?)
            }
            DecidedRecord::Action => action_outcome(change, &response.decoded()?),
        };
        Ok((outcome, reload(self, shell)))
    }

    fn change_refused(&mut self, shell: &mut Shell, change: &ApprovalChange) -> Vec<Effect> {
        // The record shows the decision that was taken elsewhere.
        let ticket = shell.ticket();
        let mut effects = vec![match change.record {
            DecidedRecord::Deployment { .. } => {
                let purpose = ApprovalsRequest::RefusedDeployment(change.decision);
                self.pending.send(ticket, purpose, calls::deployment(change.id))
            }
            DecidedRecord::Action => {
                let purpose = ApprovalsRequest::RefusedAction(change.decision);
                self.pending.send(ticket, purpose, calls::control_action(change.id))
            }
        }];
        effects.extend(reload(self, shell));
        effects
    }
}

/// Returns whether a deployment shows that a decision was taken.
fn deployment_outcome(change: &ApprovalChange, was_served: bool, it: &PromptDeployment) -> ChangeOutcome {
    let is_unchanged = if was_served {
        it.status.is_served()
    } else {
        matches!(it.status, DeploymentStatus::AbRunning | DeploymentStatus::AbPassed)
    };
    let is_made = match change.decision {
        Decision::Approve => it.status.is_served(),
        Decision::Reject => it.status == DeploymentStatus::Rejected,
        Decision::RollBack => it.status == DeploymentStatus::RolledBack,
    };
    match (is_made, is_unchanged) {
        (true, _) => ChangeOutcome::Made,
        (false, true) => ChangeOutcome::NotMade,
        _ => taken_elsewhere(&change.name, it.status.as_str()),
    }
}

/// Returns whether an action shows that a decision was taken.
fn action_outcome(change: &ApprovalChange, it: &ControlAction) -> ChangeOutcome {
    let is_rejected = it.status == ActionStatus::Rejected;
    match it.status {
        ActionStatus::PendingApproval => ChangeOutcome::NotMade,
        _ if is_rejected == (change.decision == Decision::Reject) => ChangeOutcome::Made,
        status => taken_elsewhere(&change.name, status.as_str()),
    }
}

fn taken_elsewhere(name: &str, status: &str) -> ChangeOutcome {
    ChangeOutcome::NeedsAttention(format!("the response was lost, and {name} is {status} now"))
}

/// Requests the rows of the selected tab at once.
fn reload(approvals: &mut Approvals, shell: &mut Shell) -> Vec<Effect> {
    let mut effects = load_pending(approvals, shell);
    if approvals.tab == ApprovalsTab::History {
        effects.extend(load_history(approvals, shell));
    }
    effects
}
