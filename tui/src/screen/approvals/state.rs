//! The records of Approvals: the queue, the history, and what the panes show beside the selected row.

use api::{
    Timestamp,
    control::{ControlAction, ControlActionList, DiffResponse, RemediationDiff},
    deployment::{PromptDeployment, PromptDeploymentList},
    policy::Policy,
    trace::Span,
};
use uuid::Uuid;

use super::{
    change::Decision,
    filter::ApprovalFilter,
    queue::{ApprovalQueue, ApprovalRow},
};
use crate::{
    find,
    net::{List, NetError},
    shell::{Pending, RequestPurpose},
    widgets::table::Pieces,
};

/// A tab of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalsTab {
    /// Deployments and actions that wait for a decision.
    #[default]
    Pending,
    /// All others.
    History,
}

impl ApprovalsTab {
    /// Returns the other tab.
    pub const fn other(self) -> Self {
        match self {
            Self::Pending => Self::History,
            Self::History => Self::Pending,
        }
    }
}

/// The purpose of an open request of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalsRequest {
    /// The deployments that wait for a decision.
    PendingDeployments,
    /// The actions that wait for a decision.
    PendingActions,
    /// The first page of the deployments of the history.
    Deployments,
    /// An older page of these deployments.
    OlderDeployments,
    /// The first page of the actions of the history.
    Actions,
    /// An older page of these actions.
    OlderActions,
    /// The baseline of a deployment.
    Baseline(Uuid),
    /// The trace of this action, for the output of the original span.
    Original(Uuid),
    /// The policy of an action.
    Policy(Uuid),
    /// The remediation diff of this action.
    Remediation(Uuid),
    /// The deployment about which the server refused a decision.
    RefusedDeployment(Decision),
    /// The action about which the server refused a decision.
    RefusedAction(Decision),
}

impl RequestPurpose for ApprovalsRequest {}

impl List for PromptDeploymentList {
    type Row = PromptDeployment;

    fn into_rows(self) -> (Vec<PromptDeployment>, Option<String>) {
        (self.deployments, self.next_cursor)
    }
}

impl List for ControlActionList {
    type Row = ControlAction;

    fn into_rows(self) -> (Vec<ControlAction>, Option<String>) {
        (self.actions, self.next_cursor)
    }
}

/// Microseconds after which a baseline, a trace or a policy that could not be read is requested again.
const RELATED_RETRY_MICROS: i64 = 30_000_000;

/// A record that is shown beside the selected row, or why it could not be read.
#[derive(Debug)]
pub struct RelatedRecord<T> {
    /// Time at which the response arrived.
    pub at: Timestamp,
    /// The record.
    pub result: Result<T, NetError>,
}

/// Records that are shown beside rows, by id.
pub type RelatedRecords<T> = RecentRecords<RelatedRecord<T>>;

/// Maximum number of records of one kind that are kept for rows that were selected before.
const MAX_RECENT_RECORDS: usize = 8;

/// The records that were stored last, by id. A dropped record is requested again when its row is selected.
#[derive(Debug)]
pub struct RecentRecords<T>(Vec<(Uuid, T)>);

impl<T> Default for RecentRecords<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> RecentRecords<T> {
    /// Returns a record.
    pub fn get(&self, id: Uuid) -> Option<&T> {
        self.0.iter().find(|(its, _)| *its == id).map(|(_, record)| record)
    }

    /// Stores a record in place of the one with the same id, or of the oldest one.
    pub fn insert(&mut self, id: Uuid, record: T) {
        self.0.retain(|(its, _)| *its != id);
        if self.0.len() >= MAX_RECENT_RECORDS {
            self.0.remove(0);
        }
        self.0.push((id, record));
    }

    /// Returns a record, after storing an empty one if there is none.
    pub fn get_or_default(&mut self, id: Uuid) -> &mut T
    where
        T: Default,
    {
        let at = match self.0.iter().position(|(its, _)| *its == id) {
            Some(at) => at,
            None => {
                self.insert(id, T::default());
                self.0.len() - 1
            }
        };
        &mut self.0[at].1
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<T> RelatedRecords<T> {
    /// Stores the response to a request.
    pub fn store(&mut self, id: Uuid, at: Timestamp, result: Result<T, NetError>) {
        self.insert(id, RelatedRecord { at, result });
    }

    /// Returns a record that could be read.
    pub fn read(&self, id: Uuid) -> Option<&T> {
        self.get(id)?.result.as_ref().ok()
    }

    /// Returns why a record could not be read.
    pub fn error(&self, id: Uuid) -> Option<&NetError> {
        self.get(id)?.result.as_ref().err()
    }

    /// Returns whether a record has to be requested: it is not loaded, or it could not be read some time ago.
    pub fn is_missing(&self, id: Uuid, now: Timestamp) -> bool {
        self.get(id)
            .is_none_or(|it| it.result.is_err() && now.micros() - it.at.micros() >= RELATED_RETRY_MICROS)
    }

    /// Removes the records that could not be read, so that they are requested again.
    pub fn drop_failed(&mut self) {
        self.0.retain(|(_, it)| it.result.is_ok());
    }
}

/// The original span of an action.
#[derive(Clone, Debug, Default)]
pub struct OriginalSpan {
    /// The span; none if it is not on the first page of the trace's spans.
    pub span: Option<Span>,
}

/// The remediation diff of an action, and the progress of its evaluations.
#[derive(Debug, Default)]
pub struct RemediationState {
    /// The number of responses.
    pub checks: u32,
    /// Time at which to request it again.
    pub next: Option<Timestamp>,
    /// The last response.
    pub response: Option<DiffResponse>,
    /// The error of the last request, if it failed.
    pub error: Option<NetError>,
}

impl RemediationState {
    /// Returns the diff if it is complete.
    pub const fn diff(&self) -> Option<&RemediationDiff> {
        match &self.response {
            Some(DiffResponse::Complete(diff)) => Some(diff),
            _ => None,
        }
    }
}

/// A text that fills the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoomedApproval {
    /// The row of this record, with its whole diff.
    Row(Uuid),
    /// The remediation diff of an action.
    Remediation {
        /// The action.
        action: Uuid,
        /// The trace and the span that the user came from; none if the diff was opened on this screen.
        back: Option<(Uuid, Uuid)>,
    },
}

/// The two texts of a diff, and its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffKey {
    /// The deployment or the action.
    pub id: Uuid,
    /// The baseline, if it is loaded.
    pub baseline: Option<Uuid>,
    /// The columns.
    pub cols: usize,
    /// Whether the diff is unified.
    pub is_unified: bool,
    /// Whether lines that both texts have are shown in full.
    pub is_whole: bool,
}

/// A diff that is laid out.
#[derive(Debug)]
pub struct ComposedDiff {
    /// The texts and the layout.
    pub key: DiffKey,
    /// The titles of the two texts.
    pub titles: [String; 2],
    /// The lines.
    pub lines: Vec<Pieces>,
}

/// The state of the screen.
#[derive(Debug)]
pub struct Approvals {
    /// The selected tab.
    pub tab: ApprovalsTab,
    /// The current filter line.
    pub text: String,
    /// The filter of that line.
    pub filter: ApprovalFilter,
    /// Lines used before, oldest first.
    pub history: Vec<String>,
    /// Words that find looks for, in lower case.
    pub find: Option<String>,
    /// What waits for a decision.
    pub pending_queue: ApprovalQueue,
    /// All deployments and actions. The history hides those that wait for a decision.
    pub past: ApprovalQueue,
    /// The trace whose pending action the cursor goes to as soon as it is loaded.
    pub awaited_trace: Option<Uuid>,
    /// The baselines of deployments, by their own ids.
    pub baselines: RelatedRecords<PromptDeployment>,
    /// The original spans of actions, by the ids of the actions.
    pub originals: RelatedRecords<OriginalSpan>,
    /// The policies of actions.
    pub policies: RelatedRecords<Policy>,
    /// The remediation diffs of actions, by the ids of the actions.
    pub remediations: RecentRecords<RemediationState>,
    /// Whether diffs are unified although there is room for two sides.
    pub is_unified: bool,
    /// The text that fills the body, and its first visible line.
    pub zoom: Option<(ZoomedApproval, usize)>,
    /// The diff that is shown, laid out.
    pub diff: Option<ComposedDiff>,
    /// Open requests.
    pub pending: Pending<ApprovalsRequest>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            tab: ApprovalsTab::default(),
            text: String::new(),
            filter: ApprovalFilter::default(),
            history: Vec::new(),
            find: None,
            pending_queue: ApprovalQueue::new(ApprovalsTab::Pending),
            past: ApprovalQueue::new(ApprovalsTab::History),
            awaited_trace: None,
            baselines: RelatedRecords::default(),
            originals: RelatedRecords::default(),
            policies: RelatedRecords::default(),
            remediations: RecentRecords::default(),
            is_unified: false,
            zoom: None,
            diff: None,
            pending: Pending::default(),
        }
    }
}

impl Approvals {
    /// Returns the queue of the selected tab.
    pub const fn queue(&self) -> &ApprovalQueue {
        match self.tab {
            ApprovalsTab::Pending => &self.pending_queue,
            ApprovalsTab::History => &self.past,
        }
    }

    /// Returns the queue of the selected tab.
    pub const fn queue_mut(&mut self) -> &mut ApprovalQueue {
        match self.tab {
            ApprovalsTab::Pending => &mut self.pending_queue,
            ApprovalsTab::History => &mut self.past,
        }
    }

    /// Returns the visible rows of the selected tab.
    pub fn rows(&self) -> Vec<ApprovalRow<'_>> {
        self.queue().rows(&self.filter)
    }

    /// Returns the row under the cursor.
    pub fn current(&self) -> Option<ApprovalRow<'_>> {
        self.queue().current(&self.filter)
    }

    /// Puts the cursor on a row.
    pub fn select(&mut self, at: usize) {
        match self.tab {
            ApprovalsTab::Pending => self.pending_queue.select(&self.filter, at),
            ApprovalsTab::History => self.past.select(&self.filter, at),
        }
    }

    /// Keeps the cursors on their records, and closes the whole text of a row that is gone. Returns
    /// whether it was closed.
    pub fn anchor(&mut self) -> bool {
        self.pending_queue.anchor(&self.filter);
        self.past.anchor(&self.filter);
        let Some((ZoomedApproval::Row(id), _)) = self.zoom else { return false };
        let is_gone = self.current().is_none_or(|row| row.id() != id);
        if is_gone {
            self.zoom = None;
        }
        is_gone
    }

    /// Returns a loaded deployment.
    pub fn deployment(&self, id: Uuid) -> Option<&PromptDeployment> {
        let loaded = self.pending_queue.deployments.items.iter().chain(&self.past.deployments.items);
        let related = || self.baselines.read(id);
        loaded.into_iter().find(|it| it.id == id).or_else(related)
    }

    /// Returns a loaded action.
    pub fn action(&self, id: Uuid) -> Option<&ControlAction> {
        let mut loaded = self.pending_queue.actions.items.iter().chain(&self.past.actions.items);
        loaded.find(|it| it.id == id)
    }

    /// Returns whether find matches a row.
    pub fn is_hit(&self, row: &ApprovalRow<'_>) -> bool {
        let Some(words) = &self.find else { return false };
        let texts = match row {
            ApprovalRow::Deployment(it) => [Some(it.template.as_str()), it.reason.as_deref()],
            ApprovalRow::Action(it) => {
                [it.error.as_deref(), it.metadata.escalation_reason.map(|it| it.as_str())]
            }
        };
        let name = row.name();
        let texts = texts.into_iter().flatten().chain([name.as_str(), row.status()]);
        texts.into_iter().any(|text| text.to_lowercase().contains(words))
    }

    /// Returns the number of the match at or before the cursor, from 1, and the number of matches.
    pub fn hits(&self) -> Option<(usize, usize)> {
        self.find.as_ref()?;
        let rows = self.rows();
        Some(find::counted(rows.len(), self.queue().selected(&rows), |at| self.is_hit(&rows[at])))
    }

    /// Returns the next row that find matches, or the one before.
    pub fn find_from(&self, forward: bool) -> Option<usize> {
        let rows = self.rows();
        find::next(rows.len(), self.queue().selected(&rows), forward, |at| self.is_hit(&rows[at]))
    }
}
