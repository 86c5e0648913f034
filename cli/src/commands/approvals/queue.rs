//! Everything that waits for approval, read from the lists of deployments and actions.

use api::{
    client::{
        Call, Client, Error,
        calls::{self, Page},
    },
    control::{ActionFilter, ActionStatus},
    deployment::{DeploymentFilter, DeploymentStatus},
    page::MAX_LIMIT,
};
use serde_json::Value;
use uuid::Uuid;

use super::view::{action_row, deployment_row, waiting_since};
use crate::pages::next_cursor;

/// Prompt deployments and control actions that wait for approval, each newest first, as the API sends them.
#[derive(Debug)]
pub struct ApprovalQueue {
    /// Deployments that are `ab_passed`.
    pub deployments: Vec<Value>,
    /// Actions that are `pending_approval`.
    pub actions: Vec<Value>,
    /// Whether more records wait than were read.
    pub has_more: bool,
}

impl ApprovalQueue {
    /// Reads up to `limit` deployments and as many actions, of a project or of all projects.
    pub async fn read(client: &Client, project_id: Option<Uuid>, limit: usize) -> Result<Self, Error> {
        let status = Some(DeploymentStatus::AbPassed);
        let filter = DeploymentFilter { project_id, status, ..DeploymentFilter::default() };
        let (deployments, more_deployments) =
            rows_of(client, "deployments", limit, |page| calls::deployments(&filter, page)).await?;
        let status = Some(ActionStatus::PendingApproval);
        let filter = ActionFilter { project_id, status, ..ActionFilter::default() };
        let (actions, more_actions) =
            rows_of(client, "actions", limit, |page| calls::control_actions(&filter, page)).await?;
        Ok(Self { deployments, actions, has_more: more_deployments || more_actions })
    }

    /// Returns one row for each record, newest first.
    pub fn rows(&self) -> Vec<Value> {
        let actions = self.actions.iter().map(action_row);
        let mut rows: Vec<Value> = self.deployments.iter().map(deployment_row).chain(actions).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(waiting_since(row)));
        rows
    }
}

/// Reads the first rows of a list. Returns them, and whether there are more.
async fn rows_of<T>(
    client: &Client,
    plural: &str,
    limit: usize,
    call: impl Fn(&Page) -> Call<T>,
) -> Result<(Vec<Value>, bool), Error> {
    let mut rows: Vec<Value> = Vec::new();
    let mut page = Page::default();
    loop {
        let left = limit.saturating_sub(rows.len());
        page.limit = Some(u32::try_from(left).unwrap_or(MAX_LIMIT).min(MAX_LIMIT));
        let mut document = client.value(&call(&page)).await?;
        page.cursor = next_cursor(&document);
        if let Some(Value::Array(more)) = document.get_mut(plural).map(Value::take) {
            rows.extend(more);
        }
        if page.cursor.is_none() || rows.len() >= limit {
            return Ok((rows, page.cursor.is_some()));
        }
    }
}
