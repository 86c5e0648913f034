//! Deployments and actions as one list.

use api::{
    Timestamp,
    control::{ActionStatus, ActionType, ControlAction},
    deployment::{DeploymentStatus, PromptDeployment},
};
use present::format::{short_id, thousands};
use uuid::Uuid;

use super::{filter::ApprovalFilter, state::ApprovalsTab};
use crate::{
    keymap::Action,
    shell::{Older, PagedRow, PagedRows},
    travel,
};

/// Older rows are requested when the cursor is this many rows from the last loaded one.
const PREFETCH_ROWS: usize = 10;

impl PagedRow for PromptDeployment {
    fn id(&self) -> Uuid {
        self.id
    }

    fn time(&self) -> Timestamp {
        self.created_at
    }
}

impl PagedRow for ControlAction {
    fn id(&self) -> Uuid {
        self.id
    }

    fn time(&self) -> Timestamp {
        self.created_at
    }
}

/// A row of the queue.
#[derive(Clone, Copy, Debug)]
pub enum ApprovalRow<'a> {
    /// A version of a prompt.
    Deployment(&'a PromptDeployment),
    /// A control action.
    Action(&'a ControlAction),
}

impl ApprovalRow<'_> {
    /// Returns the id of the record.
    pub const fn id(&self) -> Uuid {
        match self {
            Self::Deployment(it) => it.id,
            Self::Action(it) => it.id,
        }
    }

    /// Returns the creation time.
    pub const fn created_at(&self) -> Timestamp {
        match self {
            Self::Deployment(it) => it.created_at,
            Self::Action(it) => it.created_at,
        }
    }

    /// Returns the time since which the record waits for a decision: the end of the test, or the creation.
    pub fn waiting_since(&self) -> Timestamp {
        match self {
            Self::Deployment(it) => {
                it.ab.as_ref().and_then(|test| test.completed_at).unwrap_or(it.created_at)
            }
            Self::Action(it) => it.created_at,
        }
    }

    /// Returns whether the record waits for a decision.
    pub const fn is_waiting(&self) -> bool {
        match self {
            Self::Deployment(it) => matches!(it.status, DeploymentStatus::AbPassed),
            Self::Action(it) => matches!(it.status, ActionStatus::PendingApproval),
        }
    }

    /// Returns the state, as the API names it.
    pub const fn status(&self) -> &'static str {
        match self {
            Self::Deployment(it) => it.status.as_str(),
            Self::Action(it) => it.status.as_str(),
        }
    }

    /// Returns the name of the record: `support-tone v14`, `retry on 77d0fe12`.
    pub fn name(&self) -> String {
        match self {
            Self::Deployment(it) => version_name(it),
            Self::Action(it) => action_name(it),
        }
    }
}

/// Returns the name of a version of a prompt.
pub fn version_name(it: &PromptDeployment) -> String {
    format!("{} v{}", it.prompt_name, it.version)
}

/// Returns the name of an action: what it does, and the end of its trace's id.
pub fn action_name(it: &ControlAction) -> String {
    format!("{} on {}", requested_type(it), short_id(it.trace_id))
}

/// Returns what an action does when it is executed. An escalation executes the type that was requested.
pub fn requested_type(it: &ControlAction) -> ActionType {
    it.metadata.requested_action_type.unwrap_or(it.action_type)
}

/// Deployments and actions, each in pages, with one cursor.
#[derive(Debug)]
pub struct ApprovalQueue {
    /// The tab that shows the rows.
    tab: ApprovalsTab,
    /// The deployments, newest first.
    pub deployments: PagedRows<PromptDeployment>,
    /// The actions, newest first.
    pub actions: PagedRows<ControlAction>,
    /// Whether the server has more deployments than the lists that were read as a whole contain.
    pub has_more_deployments: bool,
    /// Whether the server has more actions than the lists that were read as a whole contain.
    pub has_more_actions: bool,
    /// The record under the cursor; none for the first row.
    cursor: Option<Uuid>,
    /// The position of the cursor, for when its record is gone.
    position: usize,
}

impl ApprovalQueue {
    /// Returns the queue of a tab.
    pub fn new(tab: ApprovalsTab) -> Self {
        Self {
            tab,
            deployments: PagedRows::default(),
            actions: PagedRows::default(),
            has_more_deployments: false,
            has_more_actions: false,
            cursor: None,
            position: 0,
        }
    }

    /// Returns the rows that match the filter: what waits for a decision longest first, or the history newest first.
    /// Rows that are older than the last loaded row of a list with older pages are left out, because rows between them
    /// are not loaded.
    pub fn rows(&self, filter: &ApprovalFilter) -> Vec<ApprovalRow<'_>> {
        let (deployments_end, actions_end) = self.ends();
        let complete_from = deployments_end.max(actions_end);
        let deployments = self.deployments.items.iter().map(ApprovalRow::Deployment);
        let mut rows: Vec<ApprovalRow<'_>> = deployments
            .chain(self.actions.items.iter().map(ApprovalRow::Action))
            .filter(|row| complete_from.is_none_or(|from| row.created_at() >= from))
            .filter(|row| self.tab == ApprovalsTab::Pending || !row.is_waiting())
            .filter(|row| filter.matches(row))
            .collect();
        match self.tab {
            ApprovalsTab::Pending => rows.sort_by_key(|row| (row.waiting_since(), row.id())),
            ApprovalsTab::History => rows.sort_by_key(|row| std::cmp::Reverse((row.created_at(), row.id()))),
        }
        rows
    }

    /// Returns the times of the last loaded deployment and action, where older ones are not loaded.
    fn ends(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let end = |is_partial: bool, last: Option<Timestamp>| last.filter(|_| is_partial);
        (
            end(self.deployments.older.is_some(), self.deployments.items.last().map(|it| it.created_at)),
            end(self.actions.older.is_some(), self.actions.items.last().map(|it| it.created_at)),
        )
    }

    /// Returns whether there is a row, whatever the filter.
    pub fn has_rows(&self) -> bool {
        !self.rows(&ApprovalFilter::default()).is_empty()
    }

    /// Returns the number of loaded records, whatever the filter.
    pub fn len(&self) -> usize {
        self.deployments.items.len() + self.actions.items.len()
    }

    /// Returns the number of loaded records as text: `2,040+` if there are more.
    pub fn counted(&self) -> String {
        let more = if self.has_more_deployments || self.has_more_actions { "+" } else { "" };
        format!("{}{more}", thousands(self.len()))
    }

    /// Returns whether both lists have arrived at least once, or failed.
    pub fn is_settled(&self) -> bool {
        (self.deployments.loaded || self.deployments.error.is_some())
            && (self.actions.loaded || self.actions.error.is_some())
    }

    /// Returns whether there are older rows to load.
    pub const fn has_older(&self) -> bool {
        self.deployments.older.is_some() || self.actions.older.is_some()
    }

    /// Returns the position of the cursor among the rows.
    pub fn selected(&self, rows: &[ApprovalRow<'_>]) -> usize {
        let kept = self.cursor.and_then(|id| rows.iter().position(|row| row.id() == id));
        kept.unwrap_or_else(|| self.position.min(rows.len().saturating_sub(1)))
    }

    /// Returns the row under the cursor.
    pub fn current(&self, filter: &ApprovalFilter) -> Option<ApprovalRow<'_>> {
        let rows = self.rows(filter);
        let selected = self.selected(&rows);
        rows.into_iter().nth(selected)
    }

    /// Puts the cursor on a row.
    pub fn select(&mut self, filter: &ApprovalFilter, at: usize) {
        let id = self.rows(filter).get(at).map(ApprovalRow::id);
        (self.cursor, self.position) = (id, at);
    }

    /// Keeps the cursor on its record while rows arrive or go. Before both lists have arrived, it stays on the first row
    /// unless the user moved it.
    pub fn anchor(&mut self, filter: &ApprovalFilter) {
        if self.cursor.is_none() && !self.is_settled() {
            return;
        }
        let rows = self.rows(filter);
        let at = self.selected(&rows);
        (self.cursor, self.position) = (rows.get(at).map(ApprovalRow::id), at);
    }

    /// Puts the cursor on the first action of a trace. Returns whether there is one.
    pub fn select_trace(&mut self, trace: Uuid) -> bool {
        let of_trace = self.actions.items.iter().find(|it| it.trace_id == trace);
        let Some(id) = of_trace.map(|it| it.id) else { return false };
        self.cursor = Some(id);
        true
    }

    /// Moves the cursor. Returns whether the action is a movement.
    pub fn travel(&mut self, filter: &ApprovalFilter, action: Action, page: usize) -> bool {
        let rows = self.rows(filter);
        let (at, last) = (self.selected(&rows), rows.len().saturating_sub(1));
        let Some(to) = travel::to(action, at, last, page) else { return false };
        self.select(filter, to);
        true
    }

    /// Returns where the older deployments and the older actions begin, if the cursor is near the last row.
    pub fn missing_older(&self, filter: &ApprovalFilter) -> (Option<Older>, Option<Older>) {
        let rows = self.rows(filter);
        if self.selected(&rows) + PREFETCH_ROWS < rows.len() {
            return (None, None);
        }
        (self.deployments.older.clone(), self.actions.older.clone())
    }

    /// Returns where the older rows of the lists begin that keep the first row from being shown: every record that is
    /// newer waits for a decision.
    pub fn missing_first(&self) -> (Option<Older>, Option<Older>) {
        if !self.is_settled() || self.has_rows() {
            return (None, None);
        }
        let (deployments_end, actions_end) = self.ends();
        let complete_from = deployments_end.max(actions_end);
        (
            self.deployments.older.clone().filter(|_| deployments_end == complete_from),
            self.actions.older.clone().filter(|_| actions_end == complete_from),
        )
    }
}
