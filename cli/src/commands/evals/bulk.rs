//! `loupe evals bulk` and `progress`: evaluations of all traces that a filter selects.

use api::{
    client::{Client, calls},
    eval::NewBulk,
    trace_filter::{TraceFilter, ValueType},
};
use clap::Args;
use present::format;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    poller::Poller,
    run::EvaluatorArgs,
    view::text_member,
    wait::{WaitArgs, combine_results},
};
use crate::{
    commands::{evaluators::with_evaluator_hint, flag_value, traces::filter_args::TraceFilterArgs},
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    output::{
        Column, View,
        cell::{self},
    },
    prompt,
};

/// Arguments of `evals bulk`; `--project` selects the project.
#[derive(Debug, Args)]
pub struct BulkArgs {
    #[command(flatten)]
    evaluator: EvaluatorArgs,
    /// Flags for waiting.
    #[command(flatten)]
    pub wait: WaitArgs,
    #[command(flatten)]
    filter: TraceFilterArgs,
}

/// Arguments of `evals progress`.
#[derive(Debug, Args)]
pub struct ProgressArgs {
    /// Id of a bulk evaluation or a backfill
    id: Uuid,
    /// Flags for waiting.
    #[command(flatten)]
    pub wait: WaitArgs,
}

/// Table of a bulk evaluation.
const BULK_VIEW: View = View {
    plural: "bulks",
    id: "bulk_id",
    columns: &[
        Column::new("STATUS", "status", |row, style| cell::text(row, "status", style)),
        Column::new("METRIC", "metric_name", |row, style| cell::text(row, "metric_name", style)).elastic(),
        Column::new("MATCHED", "matched", |row, style| cell::count(row, "matched", style)).right(),
        Column::new("QUEUED", "queued", |row, style| cell::count(row, "queued", style)).right(),
        Column::new("PENDING", "pending", |row, style| cell::count(row, "pending", style)).right(),
        Column::new("RUNNING", "running", |row, style| cell::count(row, "running", style)).right(),
        Column::new("COMPLETE", "complete", |row, style| cell::count(row, "complete", style)).right(),
        Column::new("FAILED", "failed", |row, style| cell::count(row, "failed", style)).right(),
        Column::new("DETAIL", "detail", |row, style| cell::text(row, "detail", style)).elastic().wide(),
        Column::new("RULE", "rule_id", |row, style| cell::short_id(row, "rule_id", style)).wide(),
        Column::new("ID", "bulk_id", |row, style| cell::text(row, "bulk_id", style)),
    ],
    fields: &[
        "bulk_id",
        "metric_name",
        "rule_id",
        "status",
        "matched",
        "queued",
        "pending",
        "running",
        "complete",
        "failed",
        "detail",
        "created_at",
    ],
};

/// Table of a bulk evaluation that was just started and has no progress yet.
const STARTED_BULK_VIEW: View = View {
    columns: &[
        Column::new("MATCHED", "matched", |row, style| cell::count(row, "matched", style)).right(),
        Column::new("QUEUED", "queued", |row, style| cell::count(row, "queued", style)).right(),
        Column::new("ID", "bulk_id", |row, style| cell::text(row, "bulk_id", style)),
    ],
    fields: &["matched", "queued", "bulk_id"],
    ..BULK_VIEW
};

/// Refuses fields that the output of [`follow`] does not have; called before the evaluations are
/// requested.
pub fn check(ctx: &Ctx, until: Option<Instant>) -> Result {
    ctx.out.check(if until.is_some() { &BULK_VIEW } else { &STARTED_BULK_VIEW })
}

/// Requests evaluations of many traces; with `--wait`, waits for them and shows the results.
pub async fn run(ctx: &mut Ctx, args: BulkArgs) -> Result {
    let until = args.wait.until()?;
    check(ctx, until)?;
    let config = args.evaluator.config.as_deref().map(|it| flag_value::object("--config", it)).transpose()?;
    let filter = args.filter.resolve(ctx)?;
    if filter.is_empty() {
        prompt::require_answer(ctx)?;
    }
    let (client, project) = ctx.client_and_project().await?;
    if filter.is_empty() {
        let place = project.map_or_else(String::new, |id| format!(" of the project {id}"));
        let what =
            format!("Without a filter, this evaluates {} of every trace{place}.", args.evaluator.metric);
        prompt::confirm(ctx, &what, &args.evaluator.metric).await?;
    }
    let mut selected: Map<String, Value> =
        filter.params().iter().map(|(name, value)| ((*name).to_owned(), typed_value(name, value))).collect();
    if let Some(project) = project {
        selected.insert("project_id".into(), json!(project));
    }
    let new = NewBulk {
        metric_name: args.evaluator.metric,
        evaluator_type: args.evaluator.kind.map(|it| it.to_string()),
        filter: Some(selected),
        config,
        model_tier: args.evaluator.tier.map(|it| it.to_string()),
    };
    let started = ctx.write(&client, &calls::evaluate_all(&new)).await;
    let Some(started) = started.map_err(|error| with_evaluator_hint(error, &new.metric_name))? else {
        return Ok(());
    };
    follow(ctx, &client, &started, until).await
}

/// Shows a bulk evaluation that was started; with a limit, waits for its end first.
pub async fn follow(ctx: &mut Ctx, client: &Client, started: &Value, until: Option<Instant>) -> Result {
    let number = |name: &str| started.get(name).and_then(Value::as_i64).unwrap_or_default();
    let id = text_member(started, "bulk_id");
    ctx.out.note(&format!(
        "{} traces match, {} evaluations requested",
        format::thousands(number("matched")),
        format::thousands(number("queued"))
    ));
    // Printed before waiting, because a user who interrupts the command needs it.
    ctx.out.note(&format!("show its progress: loupe evals progress {id}"));
    let Some(until) = until else { return ctx.out.item(&STARTED_BULK_VIEW, started) };
    let id = id.parse().map_err(|_| CliError::new(Exit::Unexpected, "the response has no bulk_id"))?;
    wait(ctx, client, id, until).await
}

/// Shows the progress of a bulk evaluation.
pub async fn progress(ctx: &mut Ctx, args: ProgressArgs) -> Result {
    ctx.out.check(&BULK_VIEW)?;
    let client = ctx.client()?;
    match args.wait.until()? {
        Some(until) => wait(ctx, &client, args.id, until).await,
        None => {
            let bulk = client.value(&calls::bulk(args.id)).await?;
            note_detail(ctx, &bulk);
            ctx.out.item(&BULK_VIEW, &bulk)
        }
    }
}

async fn wait(ctx: &mut Ctx, client: &Client, id: Uuid, until: Instant) -> Result {
    let again = format!("the evaluations continue; wait again: loupe evals progress {id} --wait");
    let mut poller = Poller::until(until);
    let mut progress = ctx.out.waiting("evaluations");
    let mut last = None;
    while let Some(seen) = poller.poll(client.value(&calls::bulk(id))).await {
        let bulk = &*last.insert(seen.map_err(|error| CliError::from(error).hint(&again))?);
        if text_member(bulk, "status") == "complete" {
            break;
        }
        let number = |name: &str| bulk.get(name).and_then(Value::as_i64).unwrap_or_default().max(0);
        let (queued, failed) = (number("queued"), number("failed"));
        let done = number("complete") + failed;
        progress.report(Some((done.unsigned_abs(), queued.unsigned_abs())), |elapsed| {
            let percent = if queued > 0 { done * 100 / queued } else { 100 };
            let failed =
                if failed > 0 { format!(", {} failed", format::thousands(failed)) } else { String::new() };
            let elapsed = format::elapsed(elapsed.as_secs());
            format!(
                "{percent} %: {} of {}{failed}, {elapsed}",
                format::thousands(done),
                format::thousands(queued)
            )
        });
        if !poller.pause_before_next_poll(1).await {
            break;
        }
    }
    drop(progress);
    let Some(bulk) = last else {
        return Err(
            CliError::new(Exit::TimedOut, "the server did not report the progress in time").hint(again)
        );
    };
    note_detail(ctx, &bulk);
    combine_results(ctx.out.item(&BULK_VIEW, &bulk), check_result(&bulk, again))
}

/// Prints the reason why fewer evaluations were queued than traces matched.
fn note_detail(ctx: &mut Ctx, bulk: &Value) {
    let detail = text_member(bulk, "detail");
    if !detail.is_empty() {
        ctx.out.note(detail);
    }
}

/// Fails unless all evaluations have ended and have scores.
fn check_result(bulk: &Value, again: String) -> Result {
    let number = |name: &str| bulk.get(name).and_then(Value::as_i64).unwrap_or_default();
    if text_member(bulk, "status") != "complete" {
        let left = number("pending") + number("running");
        let message = format!("{} of {} evaluations have not finished yet", left, number("queued"));
        return Err(CliError::new(Exit::TimedOut, message).hint(again));
    }
    match number("failed") {
        0 => Ok(()),
        failed => {
            let message = format!("{failed} of {} evaluations have no score", number("queued"));
            let metric = text_member(bulk, "metric_name");
            Err(CliError::new(Exit::EvaluationFailed, message)
                .hint(format!("show the reasons: loupe evals list --metric {metric} --status failed")))
        }
    }
}

/// Converts a query parameter to the JSON value that it represents.
fn typed_value(name: &str, value: &str) -> Value {
    match TraceFilter::with_parameter(name).map(|it| it.definition().value_type) {
        Some(ValueType::Switch) => value.parse::<bool>().map_or_else(|_| json!(value), |it| json!(it)),
        Some(ValueType::Duration | ValueType::Count) => {
            value.parse::<i64>().map_or_else(|_| json!(value), |it| json!(it))
        }
        _ => json!(value),
    }
}
