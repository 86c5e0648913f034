//! `loupe traces delete`: deletes traces.

use api::client::calls;
use clap::Args;
use serde_json::json;

use crate::{commands::report, ctx::Ctx, error::Result, find, prompt};

/// Arguments of `traces delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Ids, the last characters of recent ids, or OpenTelemetry trace ids
    #[arg(required = true)]
    ids: Vec<String>,
}

/// Deletes traces one after another; stops at the first error.
pub async fn run(ctx: &mut Ctx, args: DeleteArgs) -> Result {
    prompt::require_answer(ctx)?;
    let client = ctx.client()?;
    let mut ids = Vec::new();
    for wanted in &args.ids {
        ids.push(find::trace_id(&client, &ctx.settings, wanted).await?);
    }
    let what = match ids.as_slice() {
        [id] => format!("This deletes the trace {id} with its spans, evaluations and feedback."),
        several => {
            format!("This deletes {} traces with their spans, evaluations and feedback.", several.len())
        }
    };
    prompt::confirm(ctx, &what, "delete").await?;
    for id in &ids {
        if ctx.write(&client, &calls::delete_trace(id)).await?.is_some() {
            report(ctx, &format!("deleted {id}"), id, json!({ "id": id, "deleted": true }))?;
        }
    }
    Ok(())
}
