//! The demo: a temporary installation with sample data.
//!
//! The demo runs the server itself with a SQLite file in a temporary folder, filled through the ordinary
//! ingest path. The data depends only on the seed, except times, which are relative to now. Each part of the
//! product adds its data in a file of its own: `people`, `history`, `live`, `verdicts`, `voices`. The demo's
//! own `endpoint` provides vectors and verdicts.

mod context;
mod draft;
mod embedder;
mod endpoint;
mod failures;
mod history;
mod judge;
mod live;
mod people;
mod stories;
mod texts;
mod verdicts;
mod voices;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use api::profile;
use fastrand::Rng;
use store::new_id;

use self::endpoint::Endpoint;
pub use self::{context::DemoContext, people::Cast};
use crate::{
    app::App,
    config::{self, Config, OidcSettings},
};

/// The temporary folder and the model provider of a demo. Dropping the value removes the folder.
#[derive(Debug)]
pub struct Stage {
    folder: PathBuf,
    endpoint: Endpoint,
}

impl Stage {
    /// Creates the folder and changes the configuration to use it. Configured databases, keys, identity
    /// providers, embedding providers and judges are not used. The demo's own endpoint embeds and judges.
    ///
    /// # Errors
    ///
    /// When the folder cannot be created, or no port of the loopback address is free.
    pub fn set(config: &mut Config) -> anyhow::Result<Self> {
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
        let endpoint = Endpoint::open()?;
        (config.embedding, config.judge) = endpoint.settings();
        Ok(Self { folder, endpoint })
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

impl Drop for Stage {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Fills an empty installation, and stores a new trace every second until the app stops.
///
/// # Errors
///
/// When the data cannot be stored.
pub async fn open(app: &Arc<App>, stage: &Stage, seed: u64) -> anyhow::Result<Cast> {
    stage.endpoint.serve(app)?;
    let mut rng = Rng::with_seed(seed);
    let mut cast = people::make(app).await?;
    let (traces, voices) = history::fill(app, &cast, &mut rng).await?;
    cast.traces = traces;
    verdicts::set_up(app, &cast).await?;
    live::start(app, &cast, voices, rng);
    Ok(cast)
}

/// Writes the demo's context, which dropping the returned value removes, and returns the text to print.
///
/// # Errors
///
/// When the configuration cannot be written.
pub fn greeting(app: &App, cast: &Cast, url: &str) -> anyhow::Result<(String, Option<DemoContext>)> {
    let token = cast.session(app)?;
    let (projects, traces) = (cast.projects.len(), grouped(cast.traces));
    let mut lines = format!(
        "loupe-server {}  demo: SQLite in a temporary folder, {projects} projects, {traces} traces, nothing leaves this machine\n  API      {url}/v1/\n  models   a scripted judge and an embedder of the demo, both in this process\n",
        env!("CARGO_PKG_VERSION")
    );
    let context = match config::profile_folder() {
        Some(folder) => {
            let context = DemoContext::write(&folder, url, cast.key.reveal(), &token)?;
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
fn grouped(number: usize) -> String {
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
