//! The demo: a temporary installation with sample data.
//!
//! The demo runs the server itself with a SQLite file in a temporary folder, filled through the ordinary
//! ingest path. The data depends only on the seed, except times, which are relative to now. Each part of the
//! product adds its data in a file of its own: `tenant`, `history`, `live_traffic`, `evaluations`, `feedback`,
//! `incident`, `webhooks`, `prompt_history`, `control_loop`. The demo's own `provider` returns vectors, verdicts and answers,
//! and its `webhook_receiver` answers the deliveries. Prompts and actions of the control loop are created through the API
//! (`own_api`) after the start, because jobs execute them.

mod chat_model;
mod context;
mod control_loop;
mod embedder;
mod error_messages;
mod evaluations;
mod feedback;
mod history;
mod incident;
mod judge;
mod live_traffic;
mod loopback;
mod own_api;
mod prompt_application;
mod prompt_history;
mod provider;
mod tenant;
mod texts;
mod trace_builder;
mod traces;
mod webhook_receiver;
mod webhooks;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use api::profile;
use fastrand::Rng;
use store::new_id;
use uuid::Uuid;

pub use self::{context::DemoContext, tenant::DemoTenant};
use self::{
    history::History, own_api::OwnApi, prompt_history::DemoUser, provider::DemoProvider,
    webhook_receiver::WebhookReceiver,
};
use crate::{
    anomalies::start_detection,
    app::App,
    config::{self, Config, OidcSettings},
    http::route::Route,
    metric_folding,
};

/// The temporary folder, the model provider and the webhook receiver of a demo. Dropping the value removes the folder.
pub struct DemoEnvironment {
    folder: PathBuf,
    provider: DemoProvider,
    receiver: WebhookReceiver,
}

impl DemoEnvironment {
    /// Creates the folder and changes the configuration to use it. Configured databases, keys, identity
    /// providers, embedding providers, judges and private addresses are not used. The demo's own endpoints embed, judge
    /// and receive webhooks.
    ///
    /// # Errors
    ///
    /// Fails when the folder cannot be created, or no port of the loopback address is free.
    pub fn create(config: &mut Config) -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("loupe-demo-{}", new_id().simple()));
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&folder).with_context(|| format!("can't create {}", folder.display()))?;
        config.data_dir.clone_from(&folder);
        config.database_url = None;
        config.database_read_url = None;
        config.master_key = None;
        config.session_secret = None;
        config.oidc = OidcSettings::default();
        config.bootstrap_api_key = None;
        config.write_profile = false;
        config.no_workers = false;
        let provider = DemoProvider::open()?;
        (config.embedding, config.judge) = provider.settings();
        let receiver = WebhookReceiver::open(&folder)?;
        config.egress = receiver.settings();
        Ok(Self { folder, provider, receiver })
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes the folder.
    pub fn clear(&self) {
        // A folder that cannot be removed remains in the system's folder for temporary files.
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Drop for DemoEnvironment {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Fills an empty installation, and stores a new trace every second until the app stops. Through the `routes` of the server,
/// it then creates prompts, policies and actions of the control loop.
///
/// # Errors
///
/// Fails when the data cannot be stored.
pub async fn fill(
    app: &Arc<App>,
    environment: &DemoEnvironment,
    routes: &'static [Route],
    seed: u64,
) -> anyhow::Result<DemoTenant> {
    environment.provider.serve(app)?;
    environment.receiver.serve(app)?;
    let mut rng = Rng::with_seed(seed);
    let mut demo_tenant = tenant::create(app).await?;
    webhooks::create(app, &demo_tenant, &environment.receiver).await?;
    let History { trace_count, feedback, last_trace } = history::fill(app, &demo_tenant, &mut rng).await?;
    demo_tenant.traces = trace_count;
    evaluations::create_rules(app, &demo_tenant).await?;
    // The detection learns from folded metrics, which would otherwise be ready minutes later.
    metric_folding::run_round(app, app.clock.now()).await?;
    start_detection(app, demo_tenant.tenant_id).await?;
    let api = OwnApi::new(app, routes, &demo_tenant)?;
    start_control_loop(app, demo_tenant.clone(), api.clone(), last_trace, Rng::with_seed(seed));
    live_traffic::start(app, demo_tenant.clone(), api, feedback, rng);
    Ok(demo_tenant)
}

/// Spawns a task that creates the prompts and the actions of the control loop, which takes some seconds.
fn start_control_loop(app: &Arc<App>, tenant: DemoTenant, api: OwnApi, last_trace: Uuid, rng: Rng) {
    let server = Arc::clone(app);
    app.spawn(async move {
        let mut user = DemoUser { app: &server, tenant: &tenant, api: &api, rng };
        let created = async {
            prompt_history::create(&mut user).await?;
            control_loop::create(&mut user, last_trace).await
        };
        match created.await {
            Ok(()) => tracing::info!("the control loop has acted on sample traces"),
            Err(_) if server.is_stopping() => {}
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "the demo has no complete control loop")
            }
        }
    });
}

/// Writes the demo's context, which dropping the returned value removes, and returns the text to print.
///
/// # Errors
///
/// Fails when the configuration cannot be written.
pub fn welcome_text(
    app: &App,
    tenant: &DemoTenant,
    url: &str,
) -> anyhow::Result<(String, Option<DemoContext>)> {
    let token = tenant.session(app)?;
    let (projects, traces) = (tenant.projects.len(), with_separators(tenant.traces));
    let mut lines = format!(
        "loupe-server {}  demo: SQLite in a temporary folder, {projects} projects, {traces} traces, nothing leaves this machine\n  API      {url}/v1/\n  models   a scripted judge, a scripted chat model and an embedder, all in this process\n  webhooks three, to a receiver of the demo in this process\n  loop     actions on bad answers and tests of prompts; some wait for your approval after a few seconds\n",
        env!("CARGO_PKG_VERSION")
    );
    let context = match config::profile_folder() {
        Some(folder) => {
            let context = DemoContext::write(&folder, url, tenant.key.reveal(), &token)?;
            let flag =
                if context.is_current { String::new() } else { format!(" --context {}", context.name) };
            lines.push_str(&format!(
                "  owner    session token written to {} (context \"{}\"), removed when the demo ends\n  next     in another terminal:   loupe console{flag}",
                folder.join(profile::CREDENTIALS_FILE).display(),
                context.name
            ));
            Some(context)
        }
        None => {
            lines.push_str(&format!(
                "  owner    export LOUPE_URL={url} LOUPE_SESSION_TOKEN={token}\n  next     in a terminal with these:   loupe console"
            ));
            None
        }
    };
    Ok((lines, context))
}

/// Formats a number with a comma before every three digits.
fn with_separators(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
