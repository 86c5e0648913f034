//! `loupe doctor`: checks the connection to the server, one line for each check.

use std::time::Instant;

use ::api::{
    Timestamp,
    client::{ApiResponse, Auth, Call, Client, calls},
    tenant::Me,
};
use chrono::DateTime;
use clap::Args;
use serde_json::{Value, json};

use crate::{
    commands::auth::usage,
    config::expiry::approximate_duration,
    ctx::Ctx,
    env::now,
    error::{CliError, Result},
    exit::Exit,
    output::{Column, View, cell},
};

/// Maximum difference between the clocks of client and server; with a larger one, `from:-1h` is
/// misleading.
const MAX_CLOCK_SKEW_SECONDS: i64 = 30;

/// Value that the server sends as the limit of a plan without a limit.
const UNLIMITED_REQUESTS: u64 = 1_000_000_000;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  loupe doctor\n  loupe doctor --json --jq '.checks[] | select(.ok | not)'\n"
)]
pub struct DoctorArgs {}

const CHECK_VIEW: View = View {
    plural: "checks",
    id: "name",
    columns: &[
        Column::new("", "ok", |row, style| {
            cell::mark(!row.get("ok").and_then(Value::as_bool).unwrap_or_default(), style)
        }),
        Column::new("CHECK", "name", |row, style| cell::text(row, "name", style)),
        Column::new("FOUND", "detail", |row, style| cell::text(row, "detail", style)).elastic(),
    ],
    fields: &["name", "ok", "detail"],
};

/// Runs every check. The first failed check decides the exit code.
pub async fn run(ctx: &mut Ctx, _: DoctorArgs) -> Result {
    ctx.out.check(&CHECK_VIEW)?;
    let mut checks = Checks::default();
    let settings = &ctx.settings;
    checks.good("address", format!("{} (from {})", settings.url.value, settings.url.source));

    let client = ctx.client()?;
    checks.transport(&client);
    if let Some(response) = checks.reach(&client).await {
        checks.clock(&response);
        let ready = Call::<Value>::get("/readyz").with(Auth::None);
        checks.note("ready", client.send(&ready).await.map(|_| "the server accepts requests".to_owned()));
        for (name, result) in
            [("api key", settings.api_key.is_some()), ("session", settings.session.is_some())]
        {
            if result {
                checks.credential(ctx, name).await?;
            }
        }
        if settings.api_key.is_none() && settings.session.is_none() {
            checks.bad("credential", crate::error::no_credential());
        }
    }
    let Checks { rows, failure } = checks;
    ctx.out.list(&CHECK_VIEW, json!({ "checks": rows }))?;
    failure.map_or(Ok(()), Err)
}

#[derive(Default)]
struct Checks {
    rows: Vec<Value>,
    failure: Option<CliError>,
}

impl Checks {
    fn good(&mut self, name: &str, detail: String) {
        self.rows.push(json!({ "name": name, "ok": true, "detail": detail }));
    }

    fn bad(&mut self, name: &str, error: CliError) {
        self.rows.push(json!({ "name": name, "ok": false, "detail": error.message }));
        self.failure.get_or_insert(error);
    }

    /// Returns whether a row of this name exists. Both credentials belong to one tenant, whose usage and rate
    /// limit are reported once.
    fn has(&self, name: &str) -> bool {
        self.rows.iter().any(|row| row["name"] == name)
    }

    fn note<E: Into<CliError>>(&mut self, name: &str, result: std::result::Result<String, E>) {
        match result {
            Ok(detail) => self.good(name, detail),
            Err(error) => self.bad(name, error.into()),
        }
    }

    fn transport(&mut self, client: &Client) {
        let url = client.url();
        let local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        match url.scheme() {
            "https" => self.good("transport", "TLS".to_owned()),
            _ if local => self.good("transport", "plain http, to this machine only".to_owned()),
            // Plain HTTP may be intended in a private network, so it is not a failure.
            _ => self.good("transport", "plain http: credentials travel in clear text".to_owned()),
        }
    }

    async fn reach(&mut self, client: &Client) -> Option<ApiResponse> {
        let start = Instant::now();
        match client.send(&calls::health()).await {
            Ok(response) => {
                self.good(
                    "server",
                    format!("answered in {}", present::format::latency(start.elapsed().as_millis() as i64)),
                );
                Some(response)
            }
            Err(error) => {
                self.bad("server", error.into());
                None
            }
        }
    }

    fn clock(&mut self, response: &ApiResponse) {
        let date = response
            .headers
            .get("date")
            .and_then(|date| DateTime::parse_from_rfc2822(date.to_str().ok()?).ok());
        let Some(theirs) = date else { return };
        let skew = (now().to_utc() - theirs.to_utc()).num_seconds();
        if skew.abs() <= MAX_CLOCK_SKEW_SECONDS {
            return self.good("clock", format!("within {} s of the server's", skew.abs().max(1)));
        }
        let side = if skew > 0 { "ahead of" } else { "behind" };
        let message = format!("this machine is {} s {side} the server", skew.abs());
        self.bad("clock", CliError::new(Exit::Failed, message).hint("set the clock, or use absolute times"));
    }

    /// Reports the usage of the month once, from the first credential that the server accepts.
    fn usage(&mut self, me: &Me) {
        let is_reported = self.has("usage");
        let used_up_limit = me
            .limits
            .traces_per_month
            .filter(|limit| me.usage.traces >= 0 && *limit <= me.usage.traces as u64);
        match used_up_limit {
            _ if is_reported => {}
            None => self.good("usage", usage(me)),
            Some(limit) => {
                let message = format!("all {limit} traces of {} are used", me.usage.month);
                let error = CliError::new(Exit::Plan, message);
                self.bad(
                    "usage",
                    error.hint("no more traces are stored until the month ends or the plan changes"),
                );
            }
        }
    }

    async fn credential(&mut self, ctx: &Ctx, name: &str) -> Result {
        let mut options = ctx.settings.client(None);
        if name == "session" {
            options.api_key = None
        } else {
            options.session_token = None
        }
        let result = Client::new(options)?.send(&calls::me()).await;
        let limits = result.as_ref().ok().and_then(ApiResponse::rate_limit);
        let me = result.and_then(|response| response.json::<Me>());
        if let Ok(me) = &me {
            self.usage(me);
        }
        let described = me.map(|me| {
            let left = |time: Timestamp| (time.micros() - ctx.out.style.now.micros()) / 1_000_000;
            let left = me
                .expires_at
                .map(|time| format!(", {} left", approximate_duration(left(time))))
                .unwrap_or_default();
            format!("role {} in {}, plan {}{left}", me.role, me.tenant.name, me.tenant.plan)
        });
        self.note(name, described);
        if let Some((limit, remaining)) = limits.filter(|_| !self.has("rate limit")) {
            let left = match limit {
                UNLIMITED_REQUESTS.. => "no limit on this plan".to_owned(),
                _ => format!("{remaining} of {limit} requests left in this minute"),
            };
            self.good("rate limit", left);
        }
        Ok(())
    }
}
