//! `loupe auth login`: checks a credential and stores it under a context.

use api::{
    client::{Client, calls},
    profile::{self, Config, Credentials},
};
use clap::Args;

use super::status::describe_caller;
use crate::{
    ctx::Ctx,
    error::{CliError, Result},
    prompt,
};

/// Arguments of `auth login`.
#[derive(Debug, Default, Args)]
pub struct LoginArgs {
    /// Store an API key; `-` reads it from stdin
    #[arg(long, value_name = "-", num_args = 0..=1, default_missing_value = "", conflicts_with = "session")]
    key: Option<String>,
    /// Store a session token; `-` reads it from stdin
    #[arg(long, value_name = "-", num_args = 0..=1, default_missing_value = "")]
    session: Option<String>,
    /// Store without asking the server whether it is valid
    #[arg(long)]
    no_check: bool,
}

/// Kinds of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CredentialKind {
    Key,
    Session,
}

impl CredentialKind {
    /// Determines from the format of a secret whether it is an API key or a session token; `None` if it is
    /// neither.
    fn of(secret: &str) -> Option<Self> {
        if secret.starts_with("lp_") {
            return Some(Self::Key);
        }
        (secret.starts_with("ey") && secret.split('.').count() == 3).then_some(Self::Session)
    }

    fn flag(self) -> &'static str {
        match self {
            Self::Key => "--key",
            Self::Session => "--session",
        }
    }
}

/// Prompts for a secret, checks it and stores it.
pub async fn run(ctx: &mut Ctx, args: LoginArgs) -> Result {
    let requested = match (&args.key, &args.session) {
        (Some(_), _) => Some(CredentialKind::Key),
        (_, Some(_)) => Some(CredentialKind::Session),
        _ => None,
    };
    let name =
        ctx.settings.context_name.as_ref().map_or_else(|| "default".to_owned(), |name| name.value.clone());
    check_context_server(ctx, &name)?;
    let secret = secret(ctx, requested, args.session.or(args.key)).await?;
    let detected = CredentialKind::of(&secret);
    let kind = requested.or(detected).unwrap_or(CredentialKind::Key);
    if let Some(detected) = detected.filter(|detected| *detected != kind) {
        let message = format!("the secret does not have the form that {} requires", kind.flag());
        return Err(CliError::usage(message).hint(format!("loupe auth login {}", detected.flag())));
    }
    let (key, session) = match kind {
        CredentialKind::Key => (Some(secret.as_str()), None),
        CredentialKind::Session => (None, Some(secret.as_str())),
    };
    if !args.no_check {
        let mut options = ctx.settings.client(None);
        (options.api_key, options.session_token) = (key.map(str::to_owned), session.map(str::to_owned));
        let me = Client::new(options)?.call(&calls::me()).await?;
        ctx.out.note(&format!("signed in to {} as {}", me.tenant.name, describe_caller(&me)));
    }
    let dir = ctx.settings.profile_dir()?.to_owned();
    let path = dir.join(profile::CREDENTIALS_FILE);
    let destination = format!("{} (context {name})", path.display());
    if !ctx.changes_files(&format!("store it in {destination}")) {
        return Ok(());
    }
    let url = ctx.settings.url.value.clone();
    delete_credentials_of_old_server(ctx, &name, &url)?;
    profile::write_context(&dir, &name, &url, key, session)?;
    ctx.out.note(&format!("stored in {destination}"));
    let config = Config::load(&dir)?;
    if config.current.as_deref() != Some(name.as_str()) {
        ctx.out.note(&format!("to use it without -c: loupe context use {name}"));
    }
    Ok(())
}

/// Refuses to change the server of the current context unless the context is named on the command line.
fn check_context_server(ctx: &Ctx, name: &str) -> Result {
    let settings = &ctx.settings;
    let given = ctx.global.context.is_some();
    match settings.context.url.as_deref().filter(|url| !given && *url != settings.url.value) {
        None => Ok(()),
        Some(url) => {
            Err(CliError::usage(format!("the context {name} is for {url}, not for {}", settings.url.value))
                .hint(format!("name a context for this server: -c NAME (or -c {name} to move that one)")))
        }
    }
}

async fn secret(ctx: &mut Ctx, requested: Option<CredentialKind>, value: Option<String>) -> Result<String> {
    let flag = requested.unwrap_or(CredentialKind::Key).flag();
    let label = match requested {
        None => "API key or session token",
        Some(CredentialKind::Key) => "API key",
        Some(CredentialKind::Session) => "Session token",
    };
    let secret = match value.as_deref() {
        Some("-") => prompt::line().await?,
        None | Some("") => prompt::secret(ctx, label, &format!("`{flag} -` and the secret on stdin")).await?,
        Some(_) => {
            let message = format!(
                "{flag} takes no value: a secret on the command line is kept in the history of the shell"
            );
            return Err(
                CliError::usage(message).hint(format!("printf %s \"$SECRET\" | loupe auth login {flag} -"))
            );
        }
    };
    if secret.is_empty() { Err(CliError::usage("the secret is empty")) } else { Ok(secret) }
}

/// Deletes the stored credentials of a context that moves to another server: they belong to the old
/// server.
fn delete_credentials_of_old_server(ctx: &mut Ctx, name: &str, url: &str) -> Result {
    let old = ctx.settings.config.contexts.get(name).and_then(|context| context.url.as_deref());
    if old.is_none_or(|old| old == url) {
        return Ok(());
    }
    let dir = ctx.settings.profile_dir()?.to_owned();
    let mut credentials = Credentials::load(&dir)?;
    if credentials.contexts.remove(name).is_some() {
        credentials.save(&dir)?;
        ctx.out.note(&format!("deleted the stored credentials of {name} for its old address"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credential_kind_follows_from_the_secret_form() {
        assert_eq!(CredentialKind::of("lp_7Qa2f0H3"), Some(CredentialKind::Key));
        assert_eq!(CredentialKind::of("eyJhbGciOiJIUzI1NiJ9.e30.c2ln"), Some(CredentialKind::Session));
        assert_eq!(CredentialKind::of("opaque"), None);
    }
}
