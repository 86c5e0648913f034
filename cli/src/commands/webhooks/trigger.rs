//! `loupe webhooks trigger`: signs a sample event here and posts it to a receiver. The server is not involved, so that
//! the receiver may be on this machine.

use std::time::Duration;

use api::{Timestamp, webhook::EventType};
use clap::Args;
use serde_json::{Map, Value, json};

use super::{
    post::{PostResult, PostTarget, failure},
    sample::SampleEvent,
    secret::WebhookSecretArgs,
    signature::Headers,
    view::{SAMPLE_VIEW, response_sheet},
};
use crate::{
    commands::{evals::wait::combine_results, flag_value},
    ctx::Ctx,
    env::now,
    error::{CliError, Result},
    exit::Exit,
};

/// Time that the server gives a receiver.
const RECEIVER_TIMEOUT: Duration = Duration::from_secs(10);

/// Arguments of `webhooks trigger`.
#[derive(Debug, Args)]
pub struct TriggerArgs {
    /// The event, such as failure.detected or ping
    event: EventType,
    /// Address of the receiver, http or https
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    #[command(flatten)]
    secret: WebhookSecretArgs,
    /// The event's data instead of a sample: a JSON object, a file with one, or - for stdin
    #[arg(long, value_name = "JSON|FILE|-")]
    data: Option<String>,
}

/// Posts a sample event. Ends with code 6 unless the receiver returns a status from 200 to 299.
pub async fn run(ctx: &mut Ctx, args: TriggerArgs) -> Result {
    ctx.out.check(&SAMPLE_VIEW)?;
    let timeout = ctx.settings.timeout.as_ref().map_or(RECEIVER_TIMEOUT, |limit| limit.value);
    let target = PostTarget::new("--to", &args.to, timeout, ctx.observer())?;
    let secret = args.secret.read(ctx)?;
    let data = args.data.as_deref().map(|it| flag_value::object("--data", it)).transpose()?;
    let time = Timestamp::from(now().to_utc());
    let event = SampleEvent::new(args.event, data.map(Value::Object), time)?;
    let headers = event.headers(&secret, time);
    if ctx.global.dry_run {
        return show_request(ctx, &args.to, &headers, &event);
    }
    let PostResult { status, body, error, latency_ms } = target.post(&headers, &event.body).await;
    let row = json!({
        "event": event.event_type, "event_id": event.id, "delivery_id": event.delivery,
        "status": status, "body": body, "error": error, "latency_ms": latency_ms,
    });
    let written = ctx.out.whole(&SAMPLE_VIEW, &row, response_sheet);
    let accepted = match status {
        200..=299 => Ok(()),
        _ => Err(CliError::new(Exit::Failed, failure(status, error.as_deref()))),
    };
    combine_results(written, accepted)
}

/// Prints a request without sending it.
fn show_request(ctx: &mut Ctx, url: &str, headers: &Headers, event: &SampleEvent) -> Result {
    let body = String::from_utf8_lossy(&event.body);
    if ctx.out.format.is_json() {
        let headers: Map<String, Value> =
            headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        return ctx.out.json(&json!({ "method": "POST", "url": url, "headers": headers, "body": body }));
    }
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    let url = api::text::printable(url);
    ctx.out.write(&format!("POST {url}\ncontent-type: application/json\n{headers}\n{body}\n"))
}
