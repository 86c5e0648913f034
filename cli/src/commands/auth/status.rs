//! `loupe auth status`: shows the credentials and checks each of them with the server.

use api::{
    client::{Auth, Client, calls},
    tenant::Me,
};
use present::{Glyphs, format::count};
use serde_json::{Value, json};

use crate::{
    config::{Sourced, expiry::approximate_duration},
    ctx::Ctx,
    error::{CliError, Result, no_credential},
    exit::Exit,
};

/// Asks the server about both credentials. Fails if neither is valid.
pub async fn run(ctx: &mut Ctx) -> Result {
    let settings = &ctx.settings;
    if settings.api_key.is_none() && settings.session.is_none() {
        return Err(no_credential());
    }
    let key = probe(ctx, "api_key", settings.api_key.as_ref()).await?;
    let session = probe(ctx, "session", settings.session.as_ref()).await?;
    let probes = [key.as_ref(), session.as_ref()];
    let me = probes.iter().flatten().find_map(|it| it.me.as_ref().ok());
    let reached =
        probes.iter().flatten().any(|it| !matches!(&it.me, Err(error) if error.exit == Exit::Unreachable));

    if ctx.out.format.is_json() {
        let document = json!({
            "context": settings.context_name.as_ref().map(|name| &name.value),
            "server": { "url": settings.url.value, "source": settings.url.source, "ok": reached },
            "api_key": key.as_ref().map(CredentialProbe::json),
            "session": session.as_ref().map(CredentialProbe::json),
            "limits": me.map(|me| me.limits),
            "usage": me.map(|me| &me.usage),
        });
        ctx.out.json(&document)?;
    } else {
        let mut text = format!("server     {} ({})\n", settings.url.value, settings.url.source);
        if let Some(name) = &settings.context_name {
            text.push_str(&format!("context    {} ({})\n", name.value, name.source));
        }
        for it in probes.into_iter().flatten() {
            text.push_str(&it.text(&ctx.out.style.glyphs, ctx.out.style.now));
        }
        if let Some(me) = me {
            text.push_str(&format!("usage      {}\n", usage(me)));
        }
        let shown: String = text.lines().map(|line| api::text::printable(line).into_owned() + "\n").collect();
        ctx.out.write(&shown)?;
    }
    if me.is_some() {
        return Ok(());
    }
    // If no credential is valid, the command fails with the error of the first one.
    match key.into_iter().chain(session).find_map(|it| it.me.err()) {
        Some(error) => Err(error),
        None => Err(no_credential()),
    }
}

/// Describes the owner and the permissions of a credential.
pub fn describe_caller(me: &Me) -> String {
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

/// Formats the usage of the quotas of the plan.
pub fn usage(me: &Me) -> String {
    let of = |used: i64, limit: Option<u64>, what: &str| match limit {
        Some(limit) => {
            format!("{} of {} {what}", count(used), count(limit))
        }
        None => format!("{} {what}", count(used)),
    };
    let (usage, limits) = (&me.usage, &me.limits);
    format!(
        "{} and {} in {}, {}",
        of(usage.traces, limits.traces_per_month, "traces"),
        of(usage.llm_evaluations, limits.llm_evaluations_per_month, "LLM evaluations"),
        usage.month,
        of(usage.members, limits.members, "seats")
    )
}

/// A credential and the server's response to it.
struct CredentialProbe {
    kind: &'static str,
    source: String,
    prefix: Option<String>,
    me: Result<Me>,
}

async fn probe(
    ctx: &Ctx,
    kind: &'static str,
    secret: Option<&Sourced<String>>,
) -> Result<Option<CredentialProbe>> {
    let Some(secret) = secret else { return Ok(None) };
    let mut options = ctx.settings.client(None);
    if kind == "session" {
        options.api_key = None;
    } else {
        options.session_token = None;
    }
    let me = Client::new(options)?.call(&calls::me().with(Auth::Key)).await.map_err(CliError::from);
    // The prefix of an API key is public; no part of a session token is.
    let prefix = (kind == "api_key").then(|| secret.value.chars().take(11).collect());
    Ok(Some(CredentialProbe { kind, source: secret.source.clone(), prefix, me }))
}

impl CredentialProbe {
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

    fn text(&self, glyphs: &Glyphs, now: api::Timestamp) -> String {
        let name = if self.kind == "session" { "session" } else { "api key" };
        let prefix =
            self.prefix.as_ref().map(|prefix| format!("{prefix}{} ", glyphs.ellipsis)).unwrap_or_default();
        let (mark, description) = match &self.me {
            Ok(me) => {
                let left = |time: api::Timestamp| (time.micros() - now.micros()) / 1_000_000;
                let until = expiry(me).map(|time| format!(", {} left", approximate_duration(left(time))));
                let (tenant, until) = (&me.tenant, until.unwrap_or_default());
                (
                    glyphs.ok,
                    format!("{} in {} (plan {}){until}", describe_caller(me), tenant.name, tenant.plan),
                )
            }
            Err(error) => (glyphs.failed, error.message.clone()),
        };
        format!("{name:<10} {mark} {prefix}from {}\n           {description}\n", self.source)
    }
}

fn expiry(me: &Me) -> Option<api::Timestamp> {
    me.expires_at.or_else(|| me.api_key.as_ref()?.expires_at)
}
