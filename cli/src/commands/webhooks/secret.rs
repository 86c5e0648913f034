//! Secrets of webhooks: read from a file or the environment, or generated.

use std::path::{Path, PathBuf};

use base64::{Engine, prelude::BASE64_STANDARD};
use clap::Args;

use super::signature::STANDARD_SECRET_PREFIX;
use crate::{
    commands::{flag_value, secret_file},
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
};

/// Variable with the secret of a webhook.
const SECRET_VARIABLE: &str = "LOUPE_WEBHOOK_SECRET";
/// Length of a generated key in bytes.
const GENERATED_KEY_BYTES: usize = 32;

/// Flag that names the secret of a webhook.
#[derive(Clone, Debug, Args)]
pub struct WebhookSecretArgs {
    /// File with the webhook's secret; a line break at its end is ignored (default: the variable
    /// LOUPE_WEBHOOK_SECRET)
    #[arg(long, value_name = "PATH")]
    secret_file: Option<PathBuf>,
}

impl WebhookSecretArgs {
    /// Reads the secret.
    pub fn read(&self, ctx: &Ctx) -> Result<String> {
        if let Some(path) = &self.secret_file {
            return read_file(path);
        }
        let secret = ctx.env.var(SECRET_VARIABLE).map(str::to_owned);
        secret.ok_or_else(|| no_secret("--secret-file PATH"))
    }
}

/// Flags that say where a new secret comes from and where it is stored.
#[derive(Clone, Debug, Args)]
pub struct NewSecretArgs {
    /// File with the secret; with --generate-secret, a new file for it with mode 0600
    #[arg(long, value_name = "PATH")]
    secret_file: Option<PathBuf>,
    /// Generate the secret, and show it once
    #[arg(long)]
    generate_secret: bool,
}

/// A secret that a request sets.
pub struct NewSecret {
    /// The secret.
    pub secret: String,
    /// Whether the secret was generated, so that it has to be shown or stored.
    pub is_generated: bool,
    file: Option<PathBuf>,
}

impl NewSecretArgs {
    /// Returns the secret of a new webhook: generated, or from the file or the environment.
    pub fn of_new_webhook(&self, ctx: &Ctx) -> Result<NewSecret> {
        match (&self.secret_file, ctx.env.var(SECRET_VARIABLE)) {
            _ if self.generate_secret => self.generate(ctx),
            (Some(path), _) => Ok(NewSecret { secret: read_file(path)?, is_generated: false, file: None }),
            (None, Some(secret)) => {
                Ok(NewSecret { secret: secret.to_owned(), is_generated: false, file: None })
            }
            (None, None) => Err(no_secret("--generate-secret, or --secret-file PATH")),
        }
    }

    /// Returns the secret that replaces another one. The variable is not read: it holds the old secret.
    pub fn of_rotation(&self, ctx: &Ctx) -> Result<NewSecret> {
        match &self.secret_file {
            Some(path) if !self.generate_secret => {
                Ok(NewSecret { secret: read_file(path)?, is_generated: false, file: None })
            }
            _ => self.generate(ctx),
        }
    }

    fn generate(&self, ctx: &Ctx) -> Result<NewSecret> {
        if !ctx.global.dry_run {
            // Checks the file before the request: the secret would be lost if the file could not be
            // written afterwards.
            secret_file::check(self.secret_file.as_deref(), None)?;
        }
        Ok(NewSecret { secret: generate()?, is_generated: true, file: self.secret_file.clone() })
    }
}

/// Generates a secret.
pub fn generate() -> Result<String> {
    let mut key = [0_u8; GENERATED_KEY_BYTES];
    getrandom::fill(&mut key)
        .map_err(|_| CliError::new(Exit::Unexpected, "the system has no randomness for a secret"))?;
    Ok(format!("{STANDARD_SECRET_PREFIX}{}", BASE64_STANDARD.encode(key)))
}

impl NewSecret {
    /// Writes a generated secret to the requested file and returns the file's path.
    pub fn store(&self) -> Result<Option<PathBuf>> {
        secret_file::store(self.file.as_deref(), None, &self.secret)
    }
}

fn read_file(path: &Path) -> Result<String> {
    flag_value::secret("--secret-file", path)
}

fn no_secret(flags: &str) -> CliError {
    CliError::usage("the webhook's secret is missing").hint(format!("pass {flags}, or set {SECRET_VARIABLE}"))
}
