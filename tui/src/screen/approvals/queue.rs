//! Deployments and actions as one list, newest first.

use api::{
    Timestamp,
    control::{ActionType, ControlAction},
    deployment::PromptDeployment,
};
use present::format::short_id;
use uuid::Uuid;

use super::filter::ApprovalFilter;
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
#[derive(Debug, Default)]
pub struct ApprovalQueue {
    /// The deployments, newest first.
    pub deployments: PagedRows<PromptDeployment>,
    /// The actions, newest first.
    pub actions: PagedRows<ControlAction>,
    /// The record under the cursor; none for the first row.
    cursor: Option<Uuid>,
    /// The position of the cursor, for when its record is gone.
    position: usize,
}

impl ApprovalQueue {
    /// Returns the rows that match the filter, newest first. Rows that are older than the last loaded row of a list with
    /// older pages are left out, because rows between them are not loaded.
    pub fn rows(&self, filter: &ApprovalFilter) -> Vec<ApprovalRow<'_>> {
        let end = |is_partial: bool, last: Option<Timestamp>| last.filter(|_| is_partial);
        let deployments_end =
            end(self.deployments.older.is_some(), self.deployments.items.last().map(|it| it.created_at));
        let actions_end =
            end(self.actions.older.is_some(), self.actions.items.last().map(|it| it.created_at));
        let complete_from = deployments_end.max(actions_end);
        let deployments = self.deployments.items.iter().map(ApprovalRow::Deployment);
        let mut rows: Vec<ApprovalRow<'_>> = deployments
            .chain(self.actions.items.iter().map(ApprovalRow::Action))
            .filter(|row| complete_from.is_none_or(|from| row.created_at() >= from))
            .filter(|row| filter.matches(row))
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.created_at(), row.id())));
        rows
    }

    /// Returns the number of loaded records, whatever the filter.
    pub fn len(&self) -> usize {
        self.deployments.items.len() + self.actions.items.len()
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
}
