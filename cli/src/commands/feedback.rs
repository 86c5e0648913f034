//! `loupe feedback`: feedback of end users and reviewers on traces.

use api::{
    client::{
        Client,
        calls::{self, FeedbackFilter},
    },
    feedback::{FeedbackLabel, NewFeedback},
    trace::RawObject,
};
use clap::{Args, Subcommand};
use serde_json::Value;

use super::period::PeriodArgs;
use crate::{
    commands::listing::{PageArgs, list},
    ctx::Ctx,
    error::{CliError, Result},
    find,
    output::{
        Column, View,
        cell::{self, Cell, Style, Tone},
    },
};

/// Verbs of `feedback`.
#[derive(Debug, Subcommand)]
pub enum FeedbackCommand {
    /// Add feedback to a trace
    #[command(
        before_help = "Examples:\n  loupe feedback add c07b44d1 --label bad --comment 'refunded without looking'\n  loupe feedback add order-7 --external --label good --user u-42 --source thumbs\n  loupe feedback add 0af7651916cd43dd8448eb211c80319c \\\n    --label neutral --metadata '{\"ticket\":7}'\n"
    )]
    Add(FeedbackAddArgs),
    /// List feedback, newest first
    #[command(
        before_help = "Examples:\n  loupe feedback list --label bad --from -24h\n  loupe feedback list --trace c07b44d1\n  loupe feedback list --all -o csv > feedback.csv\n"
    )]
    List(FeedbackListArgs),
}

/// Arguments of `feedback add`.
#[derive(Debug, Args)]
pub struct FeedbackAddArgs {
    /// Id, the last characters of a recent id, or an OpenTelemetry trace id
    trace: String,
    /// TRACE is the external id that the application set; selects the newest trace with it
    #[arg(long)]
    external: bool,
    /// good, bad or neutral
    #[arg(long)]
    label: FeedbackLabel,
    /// Comment
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// Author; feedback of the same author and source replaces the earlier one
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Source of the feedback, such as thumbs or review
    #[arg(long)]
    source: Option<String>,
    /// Span that the feedback is about: its id, or the last characters of the id
    #[arg(long, value_name = "ID")]
    span: Option<String>,
    /// Additional data, a JSON object
    #[arg(long, value_name = "JSON", value_parser = object)]
    metadata: Option<RawObject>,
}

/// Arguments of `feedback list`.
#[derive(Debug, Args)]
pub struct FeedbackListArgs {
    /// Only of this trace: id, the last characters of a recent id, or an OpenTelemetry trace id
    #[arg(long, value_name = "ID")]
    trace: Option<String>,
    /// Only with this label: good, bad or neutral
    #[arg(long)]
    label: Option<FeedbackLabel>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    page: PageArgs,
}

const FEEDBACK_VIEW: View = View {
    plural: "feedback",
    id: "id",
    columns: &[
        Column::new("TIME", "created_at", |row, style| cell::time(row, "created_at", style)),
        Column::new("LABEL", "label", label),
        Column::new("USER", "user_id", |row, style| cell::text(row, "user_id", style)).elastic(),
        Column::new("SOURCE", "source", |row, style| cell::text(row, "source", style)).elastic().optional(),
        Column::new("COMMENT", "comment", |row, style| cell::text(row, "comment", style)).elastic(),
        Column::new("UPDATED", "updated_at", |row, style| cell::time(row, "updated_at", style)).wide(),
        Column::new("SPAN", "span_id", |row, style| cell::short_id(row, "span_id", style)).wide(),
        Column::new("METADATA", "metadata", |row, style| cell::text(row, "metadata", style)).elastic().wide(),
        Column::new("TRACE", "trace_id", |row, style| cell::short_id(row, "trace_id", style)),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)).wide(),
    ],
    fields: &[
        "id",
        "trace_id",
        "project_id",
        "span_id",
        "label",
        "comment",
        "user_id",
        "source",
        "metadata",
        "created_at",
        "updated_at",
    ],
};

fn label(row: &Value, style: &Style) -> Cell {
    let tone = match row.get("label").and_then(Value::as_str) {
        Some("good") => Tone::Good,
        Some("bad") => Tone::Bad,
        _ => Tone::Plain,
    };
    Cell { tone, ..cell::text(row, "label", style) }
}

/// Parses `--metadata`.
fn object(text: &str) -> std::result::Result<RawObject, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(_)) => serde_json::from_str(text).map_err(|error| api::plain::json_error(&error)),
        Ok(_) => Err("must be a JSON object".to_owned()),
        Err(error) => Err(api::plain::json_error(&error)),
    }
}

/// Runs a verb of `feedback`.
pub async fn run(ctx: &mut Ctx, command: FeedbackCommand) -> Result {
    ctx.out.check(&FEEDBACK_VIEW)?;
    let client = ctx.client()?;
    match command {
        FeedbackCommand::Add(args) => add(ctx, &client, args).await,
        FeedbackCommand::List(args) => {
            let (from, to) = args.period.resolve()?;
            let trace_id = match &args.trace {
                Some(wanted) => Some(find::trace(&client, &ctx.settings, wanted).await?),
                None => None,
            };
            let project_id = find::current_project(&client, &ctx.settings).await?;
            let filter = FeedbackFilter { project_id, trace_id, label: args.label, from, to };
            list(ctx, &client, &FEEDBACK_VIEW, args.page, "no feedback", |page| {
                calls::feedback(&filter, page)
            })
            .await
        }
    }
}

async fn add(ctx: &mut Ctx, client: &Client, args: FeedbackAddArgs) -> Result {
    let FeedbackAddArgs { trace: wanted, external, label, comment, user, source, span, metadata } = args;
    let trace_id = if external { None } else { Some(find::trace(client, &ctx.settings, &wanted).await?) };
    let span_id = match (span, trace_id) {
        (None, _) => None,
        (Some(span), Some(trace)) => Some(find::span_id(client, trace, &span).await?),
        (Some(span), None) => Some(span.parse().map_err(|_| {
            CliError::usage(format!("--span: `{span}` is not a complete id, which --external requires"))
        })?),
    };
    let new = NewFeedback {
        trace_id,
        external_id: external.then(|| wanted.clone()),
        label: label.as_str().to_owned(),
        comment,
        user_id: user,
        source,
        span_id,
        metadata,
        ..NewFeedback::default()
    };
    let Some(feedback) = ctx.write(client, &calls::add_feedback(&new)).await? else {
        return Ok(());
    };
    let is_replacement = feedback.get("created_at") != feedback.get("updated_at");
    let verb = if is_replacement { "Replaced the" } else { "Added" };
    ctx.out.note(&format!("{} {verb} feedback on {wanted}: {label}", ctx.out.style.glyphs.ok));
    ctx.out.item(&FEEDBACK_VIEW, &feedback)
}
