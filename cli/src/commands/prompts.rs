//! `loupe prompts`: prompts as applications get them.

use api::client::calls;
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::{
    commands::evals::view::text_member,
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    output::{
        Column, View,
        cell::{self, Cell, Style},
        sheet::Sheet,
    },
};

/// Verbs of `prompts`.
#[derive(Debug, Subcommand)]
pub enum PromptCommand {
    /// Show the version of a prompt that an application gets
    #[command(
        before_help = "Examples:\n  loupe prompts get support-tone -p shop\n  loupe prompts get support-tone -p shop --subject user-42 --json\n  loupe prompts get support-tone -p shop --raw > prompt.txt\n"
    )]
    Get(PromptGetArgs),
}

/// Arguments of `prompts get`.
#[derive(Debug, Args)]
#[command(
    after_help = "During a live test, --subject decides which version it is. --raw prints only the template.\n"
)]
pub struct PromptGetArgs {
    /// The name of the prompt
    name: String,
    /// The user or the conversation for which an application asks; the same subject always gets the
    /// same version
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,
}

impl PromptCommand {
    /// Returns whether `--raw` has a meaning for the command without `--jq`.
    pub fn accepts_raw(&self) -> bool {
        matches!(self, Self::Get(_))
    }
}

const PROMPT_VIEW: View = View {
    plural: "prompts",
    id: "deployment_id",
    columns: &[
        Column::new("PROMPT", "prompt_name", |row, style| cell::text(row, "prompt_name", style)).elastic(),
        Column::new("V", "version", |row, style| cell::text(row, "version", style)).right(),
        Column::new("ARM", "arm", |row, style| cell::text(row, "arm", style)),
        Column::new("MODEL", "model", |row, style| cell::text(row, "model", style)).elastic(),
        Column::new("TEMPLATE", "template", |row, style| cell::text(row, "template", style)).elastic(),
        Column::new("DEPLOYMENT", "deployment_id", |row, style| cell::short_id(row, "deployment_id", style)),
    ],
    fields: &["prompt_name", "project_id", "deployment_id", "version", "template", "model", "arm", "tags"],
};

/// Runs a verb of `prompts`.
pub async fn run(ctx: &mut Ctx, command: PromptCommand) -> Result {
    let PromptCommand::Get(args) = command;
    ctx.out.check(&PROMPT_VIEW)?;
    let (client, project) = ctx.client_and_project().await?;
    let call = calls::prompt(&args.name, project, args.subject.as_deref());
    let prompt = client.value(&call).await.map_err(|error| with_list_hint(error.into(), &args.name))?;
    if ctx.global.raw && ctx.global.jq.is_none() {
        return ctx.out.exact_text(text_member(&prompt, "template"));
    }
    ctx.out.whole(&PROMPT_VIEW, &prompt, sheet)
}

/// Adds the command that shows why there is no shipped version.
fn with_list_hint(error: CliError, name: &str) -> CliError {
    match error.exit {
        Exit::NotFound => {
            error.hint(format!("applications get shipped versions: loupe deployments list --prompt '{name}'"))
        }
        _ => error,
    }
}

/// Formats one prompt in full.
fn sheet(row: &Value, style: &Style, columns: Option<usize>) -> String {
    let version = row.get("version").and_then(Value::as_i64).map(|it| format!("v{it}")).unwrap_or_default();
    let tags = row.get("tags").and_then(Value::as_object).into_iter().flatten();
    let tags: Vec<String> = tags.map(|(name, value)| format!("{name}={}", cell::raw(Some(value)))).collect();
    Sheet::new(style, columns)
        .head(&Cell::plain(""), &[text_member(row, "prompt_name"), &version])
        .line("deployment", text_member(row, "deployment_id"))
        .line("project", text_member(row, "project_id"))
        .line("model", text_member(row, "model"))
        .line("arm", text_member(row, "arm"))
        .line("tags", tags.join(" "))
        .line("template", text_member(row, "template"))
        .text()
}
