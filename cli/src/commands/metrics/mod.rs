//! `loupe metrics`: metrics of traces and of projects.

mod chart;
mod condition;
mod rows;
mod show;

use api::{
    client::calls,
    metrics::{ProjectMetric, ProjectWindow},
};
use clap::{Args, Subcommand};

use crate::{
    ctx::Ctx,
    error::{CliError, Result},
    output::{Column, View, cell},
};

/// Verbs of `metrics`.
#[derive(Debug, Subcommand)]
pub enum MetricCommand {
    /// Show metrics of traces, as numbers, series, groups or charts
    #[command(
        before_help = "Examples:\n  loupe metrics show\n  loupe metrics show latency_p95 error_rate --window 7d --chart\n  loupe metrics show --window 1h --fail-if 'error_rate>2%' \\\n    --fail-if 'latency_p95>5s'\n  loupe metrics show total_cost --window 30d --interval day \\\n    --group-by model -o csv\n",
        after_help = "Metrics: error_rate, latency_p50, latency_p95, latency_p99 (milliseconds), total_cost\n(US dollars), trace_count, feedback_good_rate. Default: all of them.\n\nA --fail-if condition on a metric without a value is not met, and stderr says so. To fail\nalso if there are no traces, add --fail-if 'trace_count<1'. Exit code 6: a condition is met.\n"
    )]
    Show(show::MetricShowArgs),
    /// Show a metric of a project
    #[command(
        before_help = "Examples:\n  loupe metrics project -p checkout-bot --metric retry_cap_hit --window 7d\n  loupe metrics project --window 30d --json --jq .value\n"
    )]
    Project(ProjectMetricArgs),
}

/// Arguments of `metrics project`; `--project` selects the project.
#[derive(Debug, Args)]
pub struct ProjectMetricArgs {
    /// Metric: retry_cap_hit
    #[arg(long, default_value_t = ProjectMetric::RetryCapHit)]
    metric: ProjectMetric,
    /// Period until now: 7d or 30d
    #[arg(long, default_value_t = ProjectWindow::Week)]
    window: ProjectWindow,
}

const PROJECT_METRIC_VIEW: View = View {
    plural: "metrics",
    id: "metric",
    columns: &[
        Column::new("METRIC", "metric", |row, style| cell::text(row, "metric", style)),
        Column::new("WINDOW", "window", |row, style| cell::text(row, "window", style)),
        Column::new("VALUE", "value", |row, style| cell::count(row, "value", style)).right(),
    ],
    fields: &["metric", "value", "window"],
};

/// Runs a verb of `metrics`.
pub async fn run(ctx: &mut Ctx, command: MetricCommand) -> Result {
    match command {
        MetricCommand::Show(args) => show::run(ctx, args).await,
        MetricCommand::Project(args) => project(ctx, &args).await,
    }
}

async fn project(ctx: &mut Ctx, args: &ProjectMetricArgs) -> Result {
    ctx.out.check(&PROJECT_METRIC_VIEW)?;
    let (client, Some(project)) = ctx.client_and_project().await? else {
        return Err(
            CliError::usage("the command needs a project").hint("-p PROJECT, or loupe projects use PROJECT")
        );
    };
    let value = client.value(&calls::project_metric(project, args.metric, args.window)).await?;
    ctx.out.item(&PROJECT_METRIC_VIEW, &value)
}
