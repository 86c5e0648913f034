//! `loupe auth`: stores, deletes and shows credentials.

mod login;
mod status;

use api::profile::Credentials;
use clap::{Args, Subcommand};

use crate::{
    ctx::Ctx,
    error::{Result, no_credential},
};
pub use status::usage;

/// Verbs of `auth`.
#[derive(Debug, Subcommand)]
pub enum AuthCommand {
    /// Check a credential and store it under the current context
    #[command(
        before_help = "Examples:\n  loupe auth login --url https://loupe.example.internal\n  loupe auth login --session -c prod\n  loupe-server admin issue-token --tenant ID --role owner |\n    loupe auth login --session -\n  printf %s \"$KEY\" | loupe auth login --key - --context ci\n"
    )]
    Login(login::LoginArgs),
    /// Delete the stored credentials of the current context
    #[command(before_help = "Examples:\n  loupe auth logout\n  loupe auth logout --session\n")]
    Logout(CredentialKindArgs),
    /// Show the credentials in use and what they may do
    #[command(before_help = "Examples:\n  loupe auth status\n  loupe auth status --json --jq .server.ok\n")]
    Status,
    /// Print the credential in use, for other programs
    #[command(
        before_help = "Examples:\n  curl -H \"Authorization: Bearer $(loupe auth token)\" $LOUPE_URL/v1/me\n  loupe auth token --session\n"
    )]
    Token(CredentialKindArgs),
}

/// Flags that select one kind of credential.
#[derive(Debug, Args)]
pub struct CredentialKindArgs {
    /// The API key only
    #[arg(long, conflicts_with = "session")]
    key: bool,
    /// The session token only
    #[arg(long)]
    session: bool,
}

/// Runs a verb of `auth`.
pub async fn run(ctx: &mut Ctx, command: AuthCommand) -> Result {
    match command {
        AuthCommand::Login(args) => login::run(ctx, args).await,
        AuthCommand::Logout(args) => logout(ctx, &args),
        AuthCommand::Status => status::run(ctx).await,
        AuthCommand::Token(args) => token(ctx, &args),
    }
}

/// Asks for a credential, verifies it and stores it, like `loupe auth login` without flags.
pub async fn sign_in(ctx: &mut Ctx) -> Result {
    login::run(ctx, login::LoginArgs::default()).await
}

fn logout(ctx: &mut Ctx, args: &CredentialKindArgs) -> Result {
    let Some(name) = ctx.settings.context_name.as_ref().map(|name| name.value.clone()) else {
        ctx.out.note("nothing is stored: there is no context");
        return Ok(());
    };
    let dir = ctx.settings.profile_dir()?.to_owned();
    let mut credentials = Credentials::load(&dir)?;
    let Some(secrets) = credentials.contexts.get_mut(&name) else {
        ctx.out.note(&format!("nothing is stored for {name}"));
        return Ok(());
    };
    if !ctx.changes_files(&format!("delete the stored credentials of {name}")) {
        return Ok(());
    }
    if !args.session {
        secrets.api_key = None;
    }
    if !args.key {
        secrets.session_token = None;
    }
    credentials.save(&dir)?;
    ctx.out.note(&format!("deleted the stored credentials of {name}; they are not revoked on the server"));
    Ok(())
}

fn token(ctx: &mut Ctx, args: &CredentialKindArgs) -> Result {
    let (key, session) = (&ctx.settings.api_key, &ctx.settings.session);
    let wanted = match (args.key, args.session) {
        (true, _) => key.as_ref(),
        (_, true) => session.as_ref(),
        _ => key.as_ref().or(session.as_ref()),
    };
    let secret = wanted.ok_or_else(no_credential)?.value.clone();
    ctx.out.write(&(api::text::printable(&secret).into_owned() + "\n"))
}
