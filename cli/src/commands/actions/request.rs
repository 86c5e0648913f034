//! `loupe actions request`: requests a control action, and waits for its end.

use api::{
    client::{Client, calls},
    control::{ActionType, NewControlAction},
};
use clap::Args;
use present::format;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::view::{ACTION_VIEW, sheet};
use crate::{
    commands::{
        action_config::{ActionConfigArgs, requestable_type},
        evals::{
            poller::Poller,
            view::text_member,
            wait::{WaitArgs, combine_results},
        },
    },
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    find,
};

/// Arguments of `actions request`.
#[derive(Debug, Args)]
pub struct RequestArgs {
    /// The trace: id, the last characters of a recent id, or an OpenTelemetry trace id
    trace: String,
    /// What the action does
    #[arg(long = "type", value_name = "TYPE", value_parser = requestable_type())]
    action_type: ActionType,
    /// The span whose request is repeated: id, or the last characters of it (default: the last model
    /// call)
    #[arg(long, value_name = "ID")]
    span: Option<String>,
    /// The policy whose limits and configuration apply: name, id, or the last characters of the id
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    #[command(flatten)]
    config: ActionConfigArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

impl RequestArgs {
    /// Returns whether the command waits for the end of the action.
    pub fn waits(&self) -> bool {
        self.wait.is_given()
    }
}

/// Requests a control action.
pub async fn run(ctx: &mut Ctx, args: RequestArgs) -> Result {
    ctx.out.check(&ACTION_VIEW)?;
    let until = args.wait.until()?;
    let client = ctx.session_client("requesting a control action")?;
    let action_config = args.config.is_given().then(|| args.config.apply_to(None)).transpose()?;
    let trace_id = find::trace(&client, &ctx.settings, &args.trace).await?;
    let span_id = match &args.span {
        Some(wanted) => Some(find::span_id(&client, trace_id, wanted).await?),
        None => None,
    };
    let policy_id = match &args.policy {
        Some(wanted) => Some(find::policy(&client, &ctx.settings, wanted).await?),
        None => None,
    };
    let new = NewControlAction {
        trace_id,
        action_type: args.action_type.to_string(),
        span_id,
        policy_id,
        action_config,
    };
    let Some(mut action) = ctx.write(&client, &calls::request_action(&new)).await? else {
        return Ok(());
    };
    let id = text_member(&action, "id").to_owned();
    let next = match text_member(&action, "status") {
        "pending_approval" => format!("the action waits for approval: loupe actions approve {id}"),
        _ => format!("requested; compare the outputs: loupe actions diff {id} --wait"),
    };
    // Printed before waiting, because a user who interrupts the command needs it.
    ctx.out.note(&next);
    let Some(until) = until else { return ctx.out.whole(&ACTION_VIEW, &action, sheet) };
    let uuid: Uuid = id.parse().map_err(|_| CliError::new(Exit::Unexpected, "the response has no id"))?;
    wait_for_end(ctx, &client, uuid, &mut action, until).await?;
    let judged = judge(&action);
    let shown = ctx.out.whole(&ACTION_VIEW, &action, sheet);
    combine_results(shown, judged)
}

/// Reads an action until it has ended or the deadline has passed.
async fn wait_for_end(
    ctx: &mut Ctx,
    client: &Client,
    id: Uuid,
    action: &mut Value,
    until: Instant,
) -> Result {
    let mut poller = Poller::until(until);
    let mut progress = ctx.out.waiting("actions");
    while !is_finished(action) {
        progress.report(None, |elapsed| {
            let status = text_member(action, "status");
            format!("the action is {status}, {}", format::elapsed(elapsed.as_secs()))
        });
        if !poller.pause_before_next_poll(1).await {
            break;
        }
        let Some(seen) = poller.poll(client.value(&calls::control_action(id))).await else { break };
        *action = seen.map_err(|error| CliError::from(error).hint(format!("see loupe actions get {id}")))?;
    }
    Ok(())
}

fn is_finished(action: &Value) -> bool {
    matches!(text_member(action, "status"), "succeeded" | "failed" | "rejected")
}

/// Returns an error unless the action succeeded.
fn judge(action: &Value) -> Result {
    let id = text_member(action, "id");
    match (text_member(action, "status"), text_member(action, "error")) {
        ("succeeded", _) => Ok(()),
        ("failed", error) => Err(CliError::new(Exit::Failed, format!("the action failed: {error}"))),
        ("rejected", _) => {
            let by = text_member(action, "decided_by");
            Err(CliError::new(Exit::Failed, format!("the action was rejected by {by}")))
        }
        (status, _) => Err(CliError::new(Exit::TimedOut, format!("the action is still {status}"))
            .hint(format!("see loupe actions get {id}"))),
    }
}
