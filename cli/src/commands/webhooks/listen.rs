//! `loupe webhooks listen`: receives deliveries on this machine, verifies, prints and forwards them.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use api::webhook::EventType;
use clap::Args;
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    post::PostTarget,
    receiver::{ReceivedDelivery, Rehearsal, WebhookReceiver},
    save::SaveFolder,
    secret::{self, WebhookSecretArgs},
    temporary::TemporaryWebhook,
    view::RECEIVED_VIEW,
};
use crate::{
    args::positive,
    config::duration,
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
};

/// Maximum number of connections at the same time.
const MAX_CONNECTIONS: usize = 64;
/// Time that a receiver to which deliveries are forwarded has for its response.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that the last responses get at the end of the command, in addition to `--delay`.
const LAST_RESPONSE_WAIT: Duration = Duration::from_secs(2);
/// Delay after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Arguments of `webhooks listen`.
#[derive(Debug, Args)]
pub struct ListenArgs {
    #[command(flatten)]
    secret: WebhookSecretArgs,
    /// Create a webhook for this https address, which a tunnel forwards to this machine, and delete it at the end
    #[arg(long, value_name = "ADDRESS", conflicts_with = "secret_file")]
    pub public_url: Option<String>,
    /// Events of this webhook, separated by commas (default: failure.detected)
    #[arg(long, value_name = "EVENTS", value_delimiter = ',', requires = "public_url")]
    events: Option<Vec<EventType>>,
    /// Port; 0 for any free port
    #[arg(long, value_name = "PORT", default_value_t = 4400)]
    port: u16,
    /// IP address to listen on; other machines can reach an address that is not loopback
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Forward valid deliveries to this address and return its response
    #[arg(long, value_name = "ADDRESS")]
    forward_to: Option<String>,
    /// Forward invalid deliveries, too
    #[arg(long, requires = "forward_to")]
    insecure_forward: bool,
    /// Refuse deliveries whose signed timestamp differs from the current time by more than this, such as 5m
    #[arg(long, value_name = "DURATION")]
    tolerance: Option<String>,
    /// Write each delivery to NNN.body and NNN.headers in this folder
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// End after this many deliveries: with code 0, or 6 if one was invalid
    #[arg(long, value_name = "N", value_parser = positive::<u64>)]
    count: Option<u64>,
    /// End after this long; with --count, code 7 if fewer deliveries arrived
    #[arg(long = "for", value_name = "DURATION")]
    limit: Option<String>,
    #[command(flatten)]
    rehearsal: RehearsalArgs,
}

/// Failures that the listener simulates, as flags.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rehearse failures")]
pub struct RehearsalArgs {
    /// Return this status for valid deliveries, such as 500
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(200..=599))]
    respond: Option<u16>,
    /// Wait this long before each response
    #[arg(long, value_name = "DURATION")]
    delay: Option<String>,
    /// Close the connection instead of a response
    #[arg(long, conflicts_with = "respond")]
    drop: bool,
}

/// Receives deliveries until the command is stopped or reaches its limit.
pub async fn run(ctx: &mut Ctx, args: ListenArgs) -> Result {
    ctx.out.check(&RECEIVED_VIEW)?;
    let limit = args.limit.as_deref().map(duration).transpose()?;
    let delay = args.rehearsal.delay.as_deref().map(duration).transpose()?.unwrap_or_default();
    let tolerance = args.tolerance.as_deref().map(duration).transpose()?;
    let forward = match &args.forward_to {
        Some(address) => Some(PostTarget::new("--forward-to", address, FORWARD_TIMEOUT, ctx.observer())?),
        None => None,
    };
    let secret = match args.public_url {
        Some(_) => secret::generate()?,
        None => args.secret.read(ctx)?,
    };
    let save = args.save.map(SaveFolder::new).transpose()?;
    let address = SocketAddr::new(args.host, args.port);
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let why = api::plain::io_error(&error);
        CliError::new(Exit::Unexpected, format!("can't listen on {address}: {why}"))
            .hint("--port 0 takes any free port")
    })?;
    let temporary = match &args.public_url {
        Some(url) => match TemporaryWebhook::create(ctx, url, args.events, &secret).await? {
            Some(webhook) => Some(webhook),
            // A dry run has shown the request.
            None => return Ok(()),
        },
        None => None,
    };
    let (sender, received) = mpsc::channel(1);
    let receiver = Arc::new(WebhookReceiver {
        secret,
        tolerance,
        forward,
        forwards_invalid: args.insecure_forward,
        rehearsal: Rehearsal { status: args.rehearsal.respond, delay, drops: args.rehearsal.drop },
        sender,
    });
    let work = DeliveryLoop {
        listener,
        receiver,
        received,
        save,
        count: args.count,
        deadline: limit.map(|limit| Instant::now() + limit),
        last_wait: delay + LAST_RESPONSE_WAIT,
        cleans_up: temporary.is_some(),
    };
    let announced = announce(ctx, &work.listener, args.forward_to.as_deref(), temporary.is_some());
    let result = match announced {
        Ok(()) => work.run(ctx).await,
        Err(error) => Err(error),
    };
    if let Some(webhook) = temporary {
        webhook.remove(ctx).await;
    }
    result
}

/// Receives deliveries until a limit or a signal.
struct DeliveryLoop {
    listener: TcpListener,
    receiver: Arc<WebhookReceiver>,
    received: mpsc::Receiver<ReceivedDelivery>,
    save: Option<SaveFolder>,
    /// Number of deliveries after which the command ends.
    count: Option<u64>,
    deadline: Option<Instant>,
    /// Time that the last responses get.
    last_wait: Duration,
    /// Whether a signal ends the loop, so that the command cleans up.
    cleans_up: bool,
}

impl DeliveryLoop {
    async fn run(self, ctx: &mut Ctx) -> Result {
        let Self { listener, receiver, mut received, mut save, count, deadline, last_wait, cleans_up } = self;
        let signal = ctx.signal.clone().received();
        tokio::pin!(signal);
        let mut connections = JoinSet::new();
        let (mut left, mut invalid) = (count, 0_u64);
        while left != Some(0) {
            tokio::select! {
                accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, _)) => _ = connections.spawn(Arc::clone(&receiver).serve(stream)),
                    // The cause may be too many open files. Other connections close their files when they
                    // end.
                    Err(_) => sleep(ACCEPT_RETRY_DELAY).await,
                },
                Some(_) = connections.join_next() => {}
                Some(delivery) = received.recv() => {
                    print(ctx, &delivery, save.as_mut())?;
                    invalid += u64::from(!delivery.check.is_valid());
                    left = left.map(|left| left - 1);
                }
                () = passed(deadline) => break,
                // A command that does not clean up is cancelled.
                _ = &mut signal, if cleans_up => return Ok(()),
            }
        }
        // The last responses are still being sent; further deliveries are not awaited.
        drop((listener, received));
        let last_responses = async { while connections.join_next().await.is_some() {} };
        _ = timeout(last_wait, last_responses).await;
        verdict(count, left, invalid)
    }
}

/// Waits until the deadline; never returns without one.
async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => _ = timeout_at(deadline, std::future::pending::<()>()).await,
        None => std::future::pending().await,
    }
}

/// Returns the result of the command after its last delivery.
fn verdict(count: Option<u64>, left: Option<u64>, invalid: u64) -> Result {
    match (count, left) {
        (_, Some(left)) if left > 0 => {
            let message =
                format!("{left} of {} deliveries did not arrive in time", count.unwrap_or_default());
            Err(CliError::new(Exit::TimedOut, message))
        }
        (Some(count), _) if invalid > 0 => {
            let message = format!("{invalid} of {count} deliveries had an invalid signature or timestamp");
            Err(CliError::new(Exit::Failed, message))
        }
        _ => Ok(()),
    }
}

/// Prints the address: as a note, and in the JSON formats as the first line.
fn announce(ctx: &mut Ctx, listener: &TcpListener, forward_to: Option<&str>, has_tunnel: bool) -> Result {
    let address = listener.local_addr().map_err(|error| {
        CliError::new(Exit::Unexpected, format!("no local address: {}", api::plain::io_error(&error)))
    })?;
    let url = format!("http://{address}/");
    if !address.ip().is_loopback() {
        ctx.out.say(&format!(
            "warning: {address} is not a loopback address; other machines can send requests to it"
        ));
    }
    ctx.out.note(&format!("Listening on {url} and verifying X-Service-Signature (Ctrl-C to stop)"));
    if address.ip().is_loopback() && !has_tunnel {
        ctx.out.note(&format!(
            "The server delivers to public https addresses only. Point a tunnel here, or allow the address on a development server: LOUPE_EGRESS_ALLOW_CIDRS={address}"
        ));
    }
    if ctx.out.format.is_json() && ctx.global.fields.is_empty() {
        ctx.out.row(&RECEIVED_VIEW, &json!({ "ready": true, "url": url, "forward_to": forward_to }))?;
    }
    Ok(())
}

/// Saves and prints a delivery, with the details of an invalid signature below it.
fn print(ctx: &mut Ctx, delivery: &ReceivedDelivery, save: Option<&mut SaveFolder>) -> Result {
    let saved = save.map(|folder| folder.write(&delivery.headers, &delivery.body)).transpose()?;
    let mut row = delivery.row();
    row["saved"] = json!(saved);
    ctx.out.row(&RECEIVED_VIEW, &row)?;
    if delivery.check.is_valid() || ctx.out.format.is_json() {
        return Ok(());
    }
    let cause = delivery.check.cause.as_deref();
    if delivery.check.is_stale {
        ctx.out.note(&format!("  {}", cause.unwrap_or_default()));
        return Ok(());
    }
    let received = delivery.check.received.as_deref().unwrap_or("nothing");
    ctx.out.note(&format!("  computed {}\n  received {received}", delivery.check.computed));
    if let Some(cause) = cause {
        ctx.out.note(&format!("  likely cause: {cause}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_depends_on_signatures_and_on_the_count() {
        for (count, left, invalid, code) in [
            (None, None, 0, 0),
            (None, None, 3, 0),
            (Some(2), Some(0), 0, 0),
            (Some(2), Some(0), 1, 6),
            (Some(2), Some(1), 0, 7),
            (Some(2), Some(1), 1, 7),
        ] {
            let found = verdict(count, left, invalid).err().map_or(0, |error| error.exit.code());
            assert_eq!(found, code, "{count:?} {left:?} {invalid}");
        }
    }
}
