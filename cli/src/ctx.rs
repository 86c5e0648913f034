//! The environment that every command runs in: settings, output and the client of the server.

use std::sync::Arc;

use api::client::{Body, Call, Client, Notice, Observer};
use serde_json::{Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use crate::{
    args::GlobalArgs,
    config::Settings,
    env::Env,
    error::{CliError, Result, session_required},
    exit::Exit,
    find,
    output::{self, Output},
};

/// The environment of one command: flags, settings and output.
pub struct Ctx {
    /// Flags of every command.
    pub global: GlobalArgs,
    /// Environment variables and terminals of the process.
    pub env: Env,
    /// The resolved settings.
    pub settings: Settings,
    /// The output of the command.
    pub out: Output,
    /// The signal that ends the command.
    pub signal: Signal,
}

/// The first signal that the process receives. It cancels commands that do not clean up by themselves.
#[derive(Clone, Debug)]
pub struct Signal(pub watch::Receiver<Option<Exit>>);

impl Signal {
    /// Waits for the signal and returns the exit code of the process.
    pub async fn received(mut self) -> Exit {
        match self.0.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(Exit::Interrupted),
            // The handle no longer waits for a signal.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Ctx {
    /// Creates the environment of a command and prints the warnings about configuration files.
    pub fn new(global: GlobalArgs, env: Env, settings: Settings, signal: Signal) -> Result<Self> {
        let mut out = Output::of_process(&global, &env, settings.format.value, settings.utc)?;
        for warning in &settings.warnings {
            out.note(warning);
        }
        Ok(Self { global, env, settings, out, signal })
    }

    /// Returns a client for the server of this run.
    pub fn client(&self) -> Result<Client> {
        Ok(Client::new(self.settings.client(self.observer()))?)
    }

    /// Returns a client, and the id of the project of this run if one is set.
    pub async fn client_and_project(&self) -> Result<(Client, Option<Uuid>)> {
        let client = self.client()?;
        let project = find::current_project(&client, &self.settings).await?;
        Ok((client, project))
    }

    /// Returns a client that has a session token, which the operation named by `subject` requires. A dry
    /// run needs no session token.
    pub fn session_client(&self, subject: &str) -> Result<Client> {
        let client = self.client()?;
        if client.has_session() || self.global.dry_run { Ok(client) } else { Err(session_required(subject)) }
    }

    /// Returns whether to change local files; with `--dry-run`, prints what would be done and returns
    /// false.
    pub fn changes_files(&mut self, what: &str) -> bool {
        if self.global.dry_run {
            self.out.say(&format!("would {what}"));
        }
        !self.global.dry_run
    }

    /// Sends a request that changes something and returns the response. With `--dry-run`, prints the
    /// request and returns `None`.
    pub async fn write<T>(&mut self, client: &Client, call: &Call<T>) -> Result<Option<Value>> {
        if self.global.dry_run {
            self.show_call(call)?;
            return Ok(None);
        }
        self.check_writable()?;
        Ok(Some(client.value(call).await?))
    }

    /// Refuses writes if the context is read-only.
    pub fn check_writable(&self) -> Result<()> {
        if !self.settings.context.read_only {
            return Ok(());
        }
        let name = self.settings.context_name.as_ref().map(|name| name.value.as_str()).unwrap_or_default();
        Err(CliError::usage(format!("the context {name} is read-only"))
            .hint(format!("loupe context set {name} --read-only false")))
    }

    /// Prints a request without sending it.
    pub fn show_call<T>(&mut self, call: &Call<T>) -> Result<()> {
        let body = match &call.body {
            Body::Empty => Value::Null,
            Body::Json(value) => masked(value),
            Body::Bytes { content_type, bytes } => {
                json!({ "content_type": content_type, "bytes": bytes.len() })
            }
        };
        if self.out.format.is_json() {
            let shown = json!({ "method": call.method.as_str(), "path": call.target(), "body": body });
            return self.out.json(&shown);
        }
        self.out.write(&format!("{} {}\n", call.method, api::text::printable(&call.target())))?;
        if body.is_null() {
            Ok(())
        } else {
            self.out.write(&output::json::text(&body, true).unwrap_or_default())
        }
    }

    /// Returns the observer that prints requests with `--verbose` and delays.
    pub fn observer(&self) -> Option<Observer> {
        let logged = match self.env.var("LOUPE_LOG") {
            Some("trace") => 2,
            Some("debug") => 1,
            _ => 0,
        };
        let (verbose, quiet) = (self.global.verbose.max(logged), self.global.quiet);
        Some(Arc::new(move |notice| match notice {
            Notice::Requested { method, path, outcome, elapsed, request_id, headers } if verbose > 0 => {
                let outcome = outcome.as_ref().map_or_else(Clone::clone, u16::to_string);
                let id = request_id.as_deref().unwrap_or("-");
                output::trace(&format!("{method} {path} {outcome} {}ms {id}", elapsed.as_millis()));
                for (name, value) in headers.iter().filter(|_| verbose > 1) {
                    output::trace(&format!("  {name}: {value}"));
                }
            }
            Notice::Waiting { why, delay, attempt, attempts } if !quiet => {
                let wait = match delay.as_millis() {
                    ms @ ..1_000 => format!("{ms}ms"),
                    _ => format!("{}s", delay.as_secs_f64().ceil()),
                };
                output::trace(&format!("{why}; waiting {wait} (try {attempt} of {attempts})"));
            }
            Notice::Requested { .. } | Notice::Waiting { .. } => {}
        }))
    }
}

/// Members of request bodies that hold secrets.
const SECRET_MEMBERS: [&str; 2] = ["api_key", "secret"];
/// Members of `action_config` that hold secrets.
const ACTION_CONFIG_SECRETS: [&str; 1] = ["callback_secret"];

/// Returns a request body with its secrets masked.
fn masked(body: &Value) -> Value {
    let mut body = body.clone();
    mask(&mut body, &SECRET_MEMBERS);
    if let Some(config) = body.get_mut("action_config") {
        mask(config, &ACTION_CONFIG_SECRETS);
    }
    body
}

fn mask(object: &mut Value, names: &[&str]) {
    for name in names {
        if let Some(secret) = object.get_mut(*name).filter(|it| it.is_string()) {
            *secret = "***".into();
        }
    }
}
