//! `loupe credentials`: a tenant's own API keys for model providers. Every command requires a session
//! token.

use std::path::PathBuf;

use api::{
    client::{Client, calls},
    credential::{NewProviderCredential, Provider, ProviderCredential},
};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::{
    commands::{
        listing::{PageArgs, list},
        report,
    },
    ctx::Ctx,
    error::{CliError, Result},
    output::{Column, View, cell},
    prompt,
};

/// Verbs of `credentials`.
#[derive(Debug, Subcommand)]
pub enum CredentialCommand {
    /// List the credentials, with the last 4 characters of each key
    #[command(before_help = "Examples:\n  loupe credentials list\n  loupe credentials list -o id\n")]
    List,
    /// Store a credential, or change the given fields of one
    #[command(
        before_help = "Examples:\n  loupe credentials set openai\n  printf %s \"$KEY\" | loupe credentials set anthropic --key -\n  loupe credentials set openai_compatible --key-file key.txt \\\n    --base-url https://llm.example/v1\n  loupe credentials set openai --embedding-model text-embedding-3-small\n  loupe credentials set openai --judge-model-premium none\n"
    )]
    Set(CredentialSetArgs),
    /// Delete a credential
    #[command(before_help = "Examples:\n  loupe credentials delete openai --yes\n")]
    Delete(ProviderArgs),
}

/// Argument that names a provider.
#[derive(Debug, Args)]
pub struct ProviderArgs {
    /// openai, anthropic or openai_compatible
    provider: Provider,
}

/// Arguments of `credentials set`. Fields that are not given keep their values.
#[derive(Debug, Args)]
pub struct CredentialSetArgs {
    /// openai, anthropic or openai_compatible
    provider: Provider,
    /// Prompt for the provider's key; `-` reads it from stdin
    #[arg(long, value_name = "-", num_args = 0..=1, default_missing_value = "")]
    key: Option<String>,
    /// Read the provider's key from a file
    #[arg(long, value_name = "PATH", conflicts_with = "key")]
    key_file: Option<PathBuf>,
    /// Base URL of the provider; `none` for its public address
    #[arg(long, value_name = "ADDRESS")]
    base_url: Option<String>,
    /// Judge model of the tier cheap; `none` for the default
    #[arg(long, value_name = "MODEL")]
    judge_model_cheap: Option<String>,
    /// Judge model of the tier premium; `none` for the default
    #[arg(long, value_name = "MODEL")]
    judge_model_premium: Option<String>,
    /// Embedding model; `none` to not use the provider for embeddings
    #[arg(long, value_name = "MODEL")]
    embedding_model: Option<String>,
}

const CREDENTIAL_VIEW: View = View {
    plural: "provider_credentials",
    id: "provider",
    columns: &[
        Column::new("PROVIDER", "provider", |row, style| cell::text(row, "provider", style)),
        Column::new("KEY", "api_key_last4", |row, style| {
            let last = cell::text(row, "api_key_last4", style);
            cell::Cell::plain(format!("{}{}", style.glyphs.ellipsis, last.text))
        }),
        Column::new("BASE URL", "base_url", |row, style| cell::text(row, "base_url", style)).elastic(),
        Column::new("CHEAP", "judge_model_cheap", |row, style| cell::text(row, "judge_model_cheap", style))
            .elastic()
            .optional(),
        Column::new("PREMIUM", "judge_model_premium", |row, style| {
            cell::text(row, "judge_model_premium", style)
        })
        .elastic()
        .optional(),
        Column::new("EMBEDDING", "embedding_model", |row, style| cell::text(row, "embedding_model", style))
            .elastic()
            .optional(),
        Column::new("CHANGED", "updated_at", |row, style| cell::date(row, "updated_at", style)),
        Column::new("CREATED", "created_at", |row, style| cell::date(row, "created_at", style)).wide(),
    ],
    fields: &[
        "provider",
        "api_key_last4",
        "base_url",
        "judge_model_cheap",
        "judge_model_premium",
        "embedding_model",
        "created_at",
        "updated_at",
    ],
};

/// Runs a verb of `credentials`.
pub async fn run(ctx: &mut Ctx, command: CredentialCommand) -> Result {
    ctx.out.check(&CREDENTIAL_VIEW)?;
    let client = ctx.session_client("managing provider credentials")?;
    match command {
        CredentialCommand::List => {
            let page = |_: &_| calls::provider_credentials();
            list(ctx, &client, &CREDENTIAL_VIEW, PageArgs::whole(), "no provider credentials", page).await
        }
        CredentialCommand::Set(args) => set(ctx, &client, args).await,
        CredentialCommand::Delete(args) => delete(ctx, &client, args.provider).await,
    }
}

async fn set(ctx: &mut Ctx, client: &Client, args: CredentialSetArgs) -> Result {
    // The request replaces the whole credential, so fields that are not given are copied from the old one.
    let old = if client.has_session() { stored(client, args.provider).await? } else { None };
    let address_changes = args.base_url.is_some()
        && old.as_ref().and_then(|it| it.base_url.as_ref()) != value_unless_none(&args.base_url).as_ref();
    let api_key = match (&args.key, &args.key_file) {
        (None, None) if old.is_some() && !address_changes => None,
        _ => Some(key(ctx, &args).await?),
    };
    let keep = |new: &Option<String>, old: Option<&Option<String>>| match new {
        Some(_) => value_unless_none(new),
        None => old.cloned().flatten(),
    };
    let old = old.as_ref();
    let credential = NewProviderCredential {
        api_key,
        base_url: keep(&args.base_url, old.map(|it| &it.base_url)),
        judge_model_cheap: keep(&args.judge_model_cheap, old.map(|it| &it.judge_model_cheap)),
        judge_model_premium: keep(&args.judge_model_premium, old.map(|it| &it.judge_model_premium)),
        embedding_model: keep(&args.embedding_model, old.map(|it| &it.embedding_model)),
    };
    let call = calls::put_provider_credential(args.provider, &credential);
    let Some(credential) = ctx.write(client, &call).await? else { return Ok(()) };
    ctx.out.note(&format!("stored the credential for {}", args.provider));
    ctx.out.item(&CREDENTIAL_VIEW, &credential)
}

async fn stored(client: &Client, provider: Provider) -> Result<Option<ProviderCredential>> {
    let list = client.call(&calls::provider_credentials()).await?;
    Ok(list.provider_credentials.into_iter().find(|it| it.provider == provider))
}

/// Returns the value of a flag, in which `none` stands for no value.
fn value_unless_none(value: &Option<String>) -> Option<String> {
    value.clone().filter(|value| value != "none")
}

/// Reads the provider's key from the source that the flags name. A dry run needs no key.
async fn key(ctx: &mut Ctx, args: &CredentialSetArgs) -> Result<String> {
    let secret = match (args.key.as_deref(), &args.key_file) {
        (_, Some(path)) => {
            std::fs::read_to_string(path).map(|text| text.trim().to_owned()).map_err(|error| {
                CliError::usage(format!("{}: {}", path.display(), api::plain::io_error(&error)))
            })?
        }
        (Some("-"), _) => prompt::line().await?,
        (Some(""), _) | (None, _) if ctx.global.dry_run => "from the prompt".to_owned(),
        (Some("") | None, None) => {
            let label = format!("Key for {}", args.provider);
            prompt::secret(ctx, &label, "`--key -` and the key on stdin, or --key-file").await?
        }
        (Some(_), None) => {
            let message =
                "--key takes no value: a secret on the command line is kept in the history of the shell";
            return Err(CliError::usage(message)
                .hint(format!("printf %s \"$KEY\" | loupe credentials set {} --key -", args.provider)));
        }
    };
    if secret.is_empty() { Err(CliError::usage("the key is empty")) } else { Ok(secret) }
}

async fn delete(ctx: &mut Ctx, client: &Client, provider: Provider) -> Result {
    let what =
        format!("This deletes the key for {provider}. Evaluations and searches that need it will fail.");
    prompt::confirm(ctx, &what, provider.as_str()).await?;
    if ctx.write(client, &calls::delete_provider_credential(provider)).await?.is_none() {
        return Ok(());
    }
    let document = json!({ "provider": provider, "deleted": true });
    report(ctx, &format!("deleted the credential for {provider}"), provider.as_str(), document)
}
