//! Decisions about records that wait for a person, in the same way for control actions and prompt deployments.

use api::client::{Call, Client};
use serde_json::Value;

use crate::{
    commands::evals::view::text_member,
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    output::{Style, cell},
};

/// Sends a decision and returns the decided record. If the state of the record does not permit the decision, the error
/// contains the current state. With `--dry-run`, prints the request and returns `None`.
pub async fn send<T>(
    ctx: &mut Ctx,
    client: &Client,
    decision: &Call<T>,
    record: &Call<T>,
) -> Result<Option<Value>> {
    let mut error = match ctx.write(client, decision).await {
        Err(error) if is_invalid_state(&error) => error,
        other => return other,
    };
    // Another person may have decided in the meantime. Without the record, the message of the server must do.
    if let Ok(row) = client.value(record).await {
        error.detail.push(current_state(&row));
    }
    Err(error)
}

/// Creates the error for a decision that the state of a record does not permit, before any decision is sent.
pub fn invalid_state(kind: &str, row: &Value, permitted: &str) -> CliError {
    let status = text_member(row, "status");
    let mut error = CliError::new(Exit::Conflict, format!("the {kind} is {status}; {permitted}"));
    error.detail.push(current_state(row));
    error
}

fn is_invalid_state(error: &CliError) -> bool {
    error.response.as_ref().is_some_and(|response| response.code == "invalid_state")
}

/// Returns a line with the state of a record, and the last decision about it.
fn current_state(row: &Value) -> String {
    let state = format!("state       {}", text_member(row, "status"));
    match (text_member(row, "decided_by"), text_member(row, "decided_at")) {
        ("", _) => state,
        (who, "") => format!("{state}, decided by {who}"),
        (who, when) => format!("{state}, decided by {who} at {when}"),
    }
}

/// Returns who decided about a record, and when; empty before the decision.
pub fn decided(row: &Value, style: &Style) -> String {
    match (text_member(row, "decided_by"), cell::timestamp(row, "decided_at")) {
        (user, Some(_)) if !user.is_empty() => {
            format!("by {user} at {}", cell::date(row, "decided_at", style).text)
        }
        (user, _) => user.to_owned(),
    }
}

/// Returns the last characters of the id of a record, which tables show and a protected context asks for.
pub fn short_id(row: &Value) -> String {
    let id = text_member(row, "id");
    let skipped = id.chars().count().saturating_sub(8);
    id.chars().skip(skipped).collect()
}
