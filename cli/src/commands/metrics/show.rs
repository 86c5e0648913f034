//! `loupe metrics show`: shows metrics of traces.

use api::{
    client::{
        Error,
        calls::{self, MetricQuery},
    },
    metrics::{Interval, Metric, Metrics, Window},
};
use clap::Args;
use serde_json::{Value, json};

use super::{
    chart,
    condition::{self, Condition},
    rows,
};
use crate::{
    commands::period::PeriodArgs,
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    format::Format,
    output::{cell::Tone, table},
};

/// Arguments of `metrics show`; `--project` selects the project.
#[derive(Debug, Args)]
pub struct MetricShowArgs {
    /// Metrics to show, in this order (default: all)
    #[arg(value_name = "METRIC")]
    metrics: Vec<Metric>,
    /// Period until now: 1h, 24h, 7d or 30d (default: 24h)
    #[arg(long, conflicts_with_all = ["from", "to"])]
    window: Option<Window>,
    #[command(flatten)]
    period: PeriodArgs,
    /// Show a series with this interval: minute, hour or day
    #[arg(long)]
    interval: Option<Interval>,
    /// Group by model, name or tag:KEY, largest groups first
    #[arg(long, value_name = "GROUP", value_parser = group)]
    group_by: Option<String>,
    /// Only traces of this model
    #[arg(long)]
    model: Option<String>,
    /// Draw charts
    #[arg(long, conflicts_with_all = ["json", "output", "jq", "fields"])]
    chart: bool,
    /// End with code 6 if this condition holds over all traces, such as error_rate>0.05, latency_p95>5s or
    /// trace_count<1; may be repeated: any condition suffices
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Condition>,
}

/// Maximum number of points of a series that is requested only for a chart.
const MAX_CHART_POINTS: i64 = 700;
/// Width of a chart in columns if the terminal's width is unknown.
const DEFAULT_CHART_COLUMNS: usize = 80;

fn group(text: &str) -> std::result::Result<String, String> {
    let is_tag = text.strip_prefix("tag:").is_some_and(|key| !key.is_empty());
    if is_tag || matches!(text, "model" | "name") {
        Ok(text.to_owned())
    } else {
        Err("must be model, name or tag:KEY".to_owned())
    }
}

/// Shows metrics, then checks them against the conditions.
pub async fn run(ctx: &mut Ctx, args: MetricShowArgs) -> Result {
    if args.chart {
        ctx.out.format = Format::Table;
    }
    ctx.out.check(&rows::view(args.interval.is_some(), args.group_by.is_some()))?;
    let (from, to) = args.period.resolve()?;
    let wanted = if args.metrics.is_empty() { Metric::ALL } else { &args.metrics };
    let needs_series =
        args.chart || (ctx.out.format.is_table() && ctx.global.fields.is_empty() && args.group_by.is_none());
    let now = ctx.out.style.now.micros();
    let length = match (from, to) {
        (None, None) => args.window.unwrap_or(Window::Day).micros(),
        // Without a start, the server uses the 24 hours before the end.
        (None, Some(_)) => Window::Day.micros(),
        (Some(from), to) => to.map_or(now, |it| it.micros()).saturating_sub(from.micros()),
    };
    let interval = args.interval.or_else(|| fitting_interval(length).filter(|_| needs_series));
    let (client, project_id) = ctx.client_and_project().await?;
    let MetricShowArgs { window, group_by, model, .. } = args;
    let query = MetricQuery { project_id, model, window, from, to, interval, group_by };
    let document = client.value(&calls::metrics(&query)).await?;
    let metrics: Metrics = serde_json::from_value(document.clone())
        .map_err(|source| CliError::from(Error::Unreadable { source }))?;
    let (notes, checked) = condition::check(&args.fail_if, &metrics.metrics);
    let written = match interval {
        Some(interval) if args.chart => draw(ctx, &metrics, wanted, interval),
        Some(_) if args.interval.is_none() => write_sparklines(ctx, &metrics, wanted),
        _ => write(ctx, document, &metrics, wanted),
    };
    match written {
        // A closed pipe is not an error, but the conditions still decide the exit code.
        Err(closed) if closed.exit == Exit::Success && checked.is_err() => return checked,
        written => written?,
    }
    note_omissions(ctx, &metrics);
    for note in notes {
        ctx.out.note(&note);
    }
    checked
}

/// Returns the interval that divides a period into a readable number of points.
fn fitting_interval(micros: i64) -> Option<Interval> {
    let points = |interval: Interval| micros / interval.micros();
    match micros {
        _ if points(Interval::Minute) <= 180 => Some(Interval::Minute),
        _ if points(Interval::Hour) <= 200 => Some(Interval::Hour),
        _ if points(Interval::Day) <= MAX_CHART_POINTS => Some(Interval::Day),
        _ => None,
    }
}

fn draw(ctx: &mut Ctx, metrics: &Metrics, wanted: &[Metric], interval: Interval) -> Result {
    let (style, limit) = (ctx.out.style.clone(), ctx.out.columns.unwrap_or(DEFAULT_CHART_COLUMNS));
    let mut text = period_line(ctx, metrics);
    if metrics.groups.is_some() {
        text.push_str(&chart::groups(metrics, wanted, &style, limit));
    } else {
        let blocks: Vec<String> =
            wanted.iter().map(|metric| chart::block(*metric, metrics, interval, &style, limit)).collect();
        text.push_str(&blocks.join("\n"));
    }
    ctx.out.show(&text)
}

fn write_sparklines(ctx: &mut Ctx, metrics: &Metrics, wanted: &[Metric]) -> Result {
    let limit = ctx.out.columns.unwrap_or(DEFAULT_CHART_COLUMNS);
    let text = period_line(ctx, metrics) + &chart::lines(metrics, wanted, &ctx.out.style, limit);
    ctx.out.show(&text)
}

/// Formats the period of the metrics, as the first line.
fn period_line(ctx: &Ctx, metrics: &Metrics) -> String {
    let style = &ctx.out.style;
    let date = |time: api::Timestamp| style.zone().of(time).format("%Y-%m-%d %H:%M").to_string();
    let line = format!("{} to {}", date(metrics.from), date(metrics.to));
    chart::heading(&[(&line, Tone::Dim)], style, ctx.out.columns.unwrap_or(DEFAULT_CHART_COLUMNS))
}

fn write(ctx: &mut Ctx, document: Value, metrics: &Metrics, wanted: &[Metric]) -> Result {
    let picked = !ctx.global.fields.is_empty();
    if ctx.out.format == Format::Json && !picked {
        return ctx.out.json(&rows::keep_metrics(document, wanted));
    }
    let rows::MetricRows { view, rows } = rows::rows(metrics, wanted);
    if ctx.out.format.is_table() && !picked {
        let text = table::render(&rows::columns(&view, wanted), &rows, &ctx.out.style, ctx.out.columns);
        return ctx.out.show(&text);
    }
    ctx.out.set_default_fields(rows::names(&view, wanted));
    match rows.as_slice() {
        [row] if metrics.series.is_none() && metrics.groups.is_none() => ctx.out.item(&view, row),
        _ => ctx.out.list(&view, json!({ "from": metrics.from, "to": metrics.to, view.plural: rows })),
    }
}

/// Prints which traces and groups the metrics do not include.
fn note_omissions(ctx: &mut Ctx, metrics: &Metrics) {
    if metrics.metrics.trace_count == 0 {
        ctx.out.note("no traces");
    }
    if metrics.groups_truncated == Some(true) {
        ctx.out.note("only the largest groups are shown");
    }
    if let Some(from) = metrics.groups_from {
        ctx.out.note(&format!("groups contain only the traces since {from}: the period has too many"));
    }
}
