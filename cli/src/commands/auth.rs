//! `loupe auth`: storing credentials, dropping them, and saying who one is.

use api::{
    client::{Auth, Client, calls},
    profile::{self, Credentials},
    tenant::Me,
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::{
    config::Sourced,
    ctx::Ctx,
    error::{CliError, Result, no_credential},
    exit::Exit,
    prompt,
};

/// Verbs of `auth`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check a credential and store it under the current context
    #[command(
        before_help = "Examples:\n  loupe auth login --url https://loupe.example.internal\n  loupe auth login --session\n  printf %s \"$KEY\" | loupe auth login --key - --context ci\n"
    )]
    Login(LoginArgs),
    /// Delete the stored credentials of the current context
    #[command(before_help = "Examples:\n  loupe auth logout\n  loupe auth logout --session\n")]
    Logout(KindArgs),
    /// Say which credentials there are and what they may do
    #[command(before_help = "Examples:\n  loupe auth status\n  loupe auth status --json --jq .server.ok\n")]
    Status,
    /// Print the credential in use, for other programs
    #[command(
        before_help = "Examples:\n  curl -H \"Authorization: Bearer $(loupe auth token)\" $LOUPE_URL/v1/me\n  loupe auth token --session\n"
    )]
    Token(KindArgs),
}

/// Arguments of `auth login`.
#[derive(Debug, Args)]
pub struct LoginArgs {
    /// Store an API key (the default); `-` reads it from stdin
    #[arg(long, value_name = "-", num_args = 0..=1, default_missing_value = "", conflicts_with = "session")]
    key: Option<String>,
    /// Store a session token; `-` reads it from stdin
    #[arg(long, value_name = "-", num_args = 0..=1, default_missing_value = "")]
    session: Option<String>,
    /// Store without asking the server whether it is valid
    #[arg(long)]
    no_check: bool,
}

/// Which of the two kinds of credential.
#[derive(Debug, Args)]
pub struct KindArgs {
    /// The API key only
    #[arg(long, conflicts_with = "session")]
    key: bool,
    /// The session token only
    #[arg(long)]
    session: bool,
}

/// Runs a verb of `auth`.
pub async fn run(ctx: &mut Ctx, command: Command) -> Result {
    match command {
        Command::Login(args) => login(ctx, args).await,
        Command::Logout(args) => logout(ctx, &args),
        Command::Status => status(ctx).await,
        Command::Token(args) => token(ctx, &args),
    }
}

async fn login(ctx: &mut Ctx, args: LoginArgs) -> Result {
    let is_session = args.session.is_some();
    let (flag, label) = if is_session { ("--session", "Session token") } else { ("--key", "API key") };
    let secret = match args.session.or(args.key).as_deref() {
        Some("-") => prompt::line().await?,
        None | Some("") => prompt::secret(ctx, label, &format!("`{flag} -` and the secret on stdin")).await?,
        Some(_) => {
            let message = format!("{flag} takes no value: a secret on the command line ends up in histories");
            return Err(
                CliError::usage(message).hint(format!("printf %s \"$SECRET\" | loupe auth login {flag} -"))
            );
        }
    };
    if secret.is_empty() {
        return Err(CliError::usage("the secret is empty"));
    }
    let dir = ctx.settings.profile_dir()?.to_owned();
    let name =
        ctx.settings.context_name.as_ref().map_or_else(|| "default".to_owned(), |name| name.value.clone());
    let url = ctx.settings.url.value.clone();
    if !args.no_check {
        let mut options = ctx.settings.client(None);
        (options.api_key, options.session_token) =
            if is_session { (None, Some(secret.clone())) } else { (Some(secret.clone()), None) };
        let me = Client::new(options)?.call(&calls::me()).await?;
        ctx.out.note(&format!("signed in to {} as {}", me.tenant.name, who(&me)));
    }
    let (key, session) =
        if is_session { (None, Some(secret.as_str())) } else { (Some(secret.as_str()), None) };
    profile::write_context(&dir, &name, &url, key, session)?;
    let path = dir.join(profile::CREDENTIALS_FILE);
    ctx.out.note(&format!("stored in {} (context {name})", path.display()));
    Ok(())
}

fn logout(ctx: &mut Ctx, args: &KindArgs) -> Result {
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
    if !args.session {
        secrets.api_key = None;
    }
    if !args.key {
        secrets.session_token = None;
    }
    credentials.save(&dir)?;
    ctx.out.note(&format!("forgot the credentials of {name}; the server was not told"));
    Ok(())
}

fn token(ctx: &mut Ctx, args: &KindArgs) -> Result {
    let (key, session) = (&ctx.settings.api_key, &ctx.settings.session);
    let wanted = match (args.key, args.session) {
        (true, _) => key.as_ref(),
        (_, true) => session.as_ref(),
        _ => key.as_ref().or(session.as_ref()),
    };
    let secret = wanted.ok_or_else(no_credential)?.value.clone();
    ctx.out.write(&(api::text::printable(&secret).into_owned() + "\n"))
}

async fn status(ctx: &mut Ctx) -> Result {
    let settings = &ctx.settings;
    if settings.api_key.is_none() && settings.session.is_none() {
        return Err(no_credential());
    }
    let key = probe(ctx, "api_key", settings.api_key.as_ref()).await?;
    let session = probe(ctx, "session", settings.session.as_ref()).await?;
    let found = [key.as_ref(), session.as_ref()];
    let valid = found.iter().flatten().any(|it| it.me.is_ok());
    let reached =
        found.iter().flatten().any(|it| !matches!(&it.me, Err(error) if error.exit == Exit::Unreachable));

    let document = json!({
        "context": settings.context_name.as_ref().map(|name| &name.value),
        "server": { "url": settings.url.value, "source": settings.url.source, "ok": reached },
        "api_key": key.as_ref().map(Probe::json),
        "session": session.as_ref().map(Probe::json),
    });
    if ctx.out.format.is_json() {
        ctx.out.json(&document)?;
    } else {
        let style = ctx.out.style.clone();
        let mut text = format!("server     {} ({})\n", settings.url.value, settings.url.source);
        if let Some(name) = &settings.context_name {
            text.push_str(&format!("context    {} ({})\n", name.value, name.source));
        }
        for it in found.into_iter().flatten() {
            text.push_str(&it.text(&style.glyphs));
        }
        let shown: String = text.lines().map(|line| api::text::printable(line).into_owned() + "\n").collect();
        ctx.out.write(&shown)?;
    }
    if valid {
        return Ok(());
    }
    // What went wrong with the first one is what to mend.
    match key.into_iter().chain(session).find_map(|it| it.me.err()) {
        Some(error) => Err(error),
        None => Err(no_credential()),
    }
}

/// A credential, and what the server says of it.
struct Probe {
    kind: &'static str,
    source: String,
    prefix: Option<String>,
    me: Result<Me>,
}

async fn probe(ctx: &Ctx, kind: &'static str, secret: Option<&Sourced<String>>) -> Result<Option<Probe>> {
    let Some(secret) = secret else { return Ok(None) };
    let mut options = ctx.settings.client(None);
    if kind == "session" {
        options.api_key = None;
    } else {
        options.session_token = None;
    }
    let me = Client::new(options)?.call(&calls::me().with(Auth::Key)).await.map_err(CliError::from);
    // The prefix of a key is public; of a session token nothing is.
    let prefix = (kind == "api_key").then(|| secret.value.chars().take(11).collect());
    Ok(Some(Probe { kind, source: secret.source.clone(), prefix, me }))
}

impl Probe {
    fn json(&self) -> Value {
        let mut value = json!({ "source": self.source, "prefix": self.prefix, "valid": self.me.is_ok() });
        match &self.me {
            Ok(me) => {
                value["tenant"] = json!(me.tenant.name);
                value["tenant_id"] = json!(me.tenant.id);
                value["plan"] = json!(me.tenant.plan);
                value["role"] = json!(me.role);
                value["subject"] = json!(me.subject);
                value["scopes"] = json!(me.api_key.as_ref().map(|key| &key.scopes));
                value["expires_at"] = json!(expiry(me));
            }
            Err(error) => value["error"] = json!(error.message),
        }
        value
    }

    fn text(&self, glyphs: &tui::theme::Glyphs) -> String {
        let name = if self.kind == "session" { "session" } else { "api key" };
        let prefix =
            self.prefix.as_ref().map(|prefix| format!("{prefix}{} ", glyphs.ellipsis)).unwrap_or_default();
        match &self.me {
            Ok(me) => {
                let expiry = expiry(me).map(|time| format!(", until {time}")).unwrap_or_default();
                let tenant = &me.tenant;
                format!(
                    "{name:<10} {} {prefix}from {}\n           {} in {} (plan {}){expiry}\n",
                    glyphs.ok,
                    self.source,
                    who(me),
                    tenant.name,
                    tenant.plan
                )
            }
            Err(error) => {
                format!(
                    "{name:<10} {} {prefix}from {}\n           {}\n",
                    glyphs.failed, self.source, error.message
                )
            }
        }
    }
}

fn expiry(me: &Me) -> Option<api::Timestamp> {
    me.expires_at.or_else(|| me.api_key.as_ref()?.expires_at)
}

fn who(me: &Me) -> String {
    match (&me.api_key, &me.subject) {
        (Some(key), _) => {
            let scopes: Vec<_> = key.scopes.iter().map(|scope| scope.as_str()).collect();
            let reach = if scopes.is_empty() { "full access".to_owned() } else { scopes.join(", ") };
            format!("key {} ({reach}, role {})", key.name, me.role)
        }
        (None, Some(subject)) => format!("{subject} (role {})", me.role),
        (None, None) => format!("role {}", me.role),
    }
}
