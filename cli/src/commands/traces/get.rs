//! `loupe traces get`: shows a trace.

use api::{
    TraceState,
    client::{
        Client,
        calls::{self, Page},
    },
    eval::EvaluationFilter,
};
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::{TRACE_VIEW, failed, texts, tree};
use crate::{
    args::positive,
    commands::evals::view::TRACE_EVALUATIONS_VIEW,
    ctx::Ctx,
    error::Result,
    find,
    output::{
        Column, View,
        cell::{self, Style, Tone},
        table,
    },
    pages::{all, next_cursor},
};

/// Arguments of `traces get`.
#[derive(Debug, Args)]
pub struct TraceGetArgs {
    /// Id, the last characters of a recent id, or an OpenTelemetry trace id
    id: String,
    /// How to show the spans
    #[arg(long, value_enum, default_value_t = SpanLayout::Tree)]
    spans: SpanLayout,
    /// Show the evaluations of the trace
    #[arg(long)]
    evals: bool,
    /// Show the complete input and output instead of their beginnings
    #[arg(long)]
    full: bool,
    /// Width in columns (default: the terminal's width)
    #[arg(long, value_name = "N", value_parser = positive::<usize>)]
    width: Option<usize>,
}

/// Values of `--spans`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SpanLayout {
    /// As a tree with a waterfall.
    Tree,
    /// One line per span, sorted by start.
    Flat,
    /// No spans.
    None,
}

/// Table of spans.
pub const SPAN_VIEW: View = View {
    plural: "spans",
    id: "id",
    columns: &[
        Column::new("TIME", "start_time", |row, style| cell::time(row, "start_time", style)),
        Column::new("S", "error", |row, style| cell::mark(failed(row), style)),
        Column::new("SPAN", "name", |row, style| cell::text(row, "name", style)).elastic(),
        Column::new("KIND", "type", |row, style| cell::text(row, "type", style)),
        Column::new("MODEL", "model", |row, style| cell::text(row, "model", style)).elastic(),
        Column::new("LATENCY", "latency_ms", |row, style| cell::latency(row, "latency_ms", style)).right(),
        Column::new("COST", "cost", |row, style| cell::money(row, "cost", style)).right(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &[],
};

/// Shows a trace.
pub async fn run(ctx: &mut Ctx, args: TraceGetArgs) -> Result {
    ctx.out.check(&TRACE_VIEW)?;
    let client = ctx.client()?;
    let id = find::trace_id(&client, &ctx.settings, &args.id).await?;
    let mut trace = client.value(&calls::trace(&id)).await?;
    if args.evals {
        trace["evaluations"] = evaluations(&client, &trace).await?;
    }
    if !ctx.out.format.is_table() || !ctx.global.fields.is_empty() {
        return ctx.out.item(&TRACE_VIEW, &trace);
    }
    let mut spans = match trace.get_mut("spans").map(Value::take) {
        Some(Value::Array(spans)) => spans,
        _ => Vec::new(),
    };
    let mut cursor = trace.get("spans_next_cursor").and_then(Value::as_str).map(str::to_owned);
    while cursor.is_some() && args.spans != SpanLayout::None {
        let mut page = client.value(&calls::spans(&id, &Page { limit: Some(200), cursor })).await?;
        if let Some(Value::Array(more)) = page.get_mut("spans").map(Value::take) {
            spans.extend(more);
        }
        cursor = next_cursor(&page);
    }

    let style = ctx.out.style.clone();
    let width = args.width.or(ctx.out.columns);
    let mut text = head(&trace, &style, width);
    text.push_str(&texts::render(&trace, &style, width, args.full));
    match args.spans {
        SpanLayout::Tree => text.push_str(&tree::render(&spans, &style, width.unwrap_or(120))),
        SpanLayout::Flat => {
            let wide = ctx.out.format == crate::format::Format::Wide;
            text.push_str(&table::render(&SPAN_VIEW.select_columns(&[], wide), &spans, &style, width));
        }
        SpanLayout::None => {}
    }
    text.push_str(&events(&trace, &style));
    let evaluations = trace.get("evaluations").and_then(Value::as_array).map(Vec::as_slice);
    match evaluations {
        Some([]) => text.push_str("  no evaluations\n"),
        Some(rows) => text.push_str(&table::render(
            &TRACE_EVALUATIONS_VIEW.select_columns(&[], false),
            rows,
            &style,
            width,
        )),
        None => {}
    }
    ctx.out.show(&text)
}

/// Returns every evaluation of a trace, newest first.
async fn evaluations(client: &Client, trace: &Value) -> Result<Value> {
    let trace_id = trace.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
    let filter = EvaluationFilter { trace_id, ..EvaluationFilter::default() };
    all(client, TRACE_EVALUATIONS_VIEW.plural, |page| calls::evaluations(&filter, page))
        .await
        .map(Value::Array)
}

/// Formats the first line and the most important values of a trace.
fn head(trace: &Value, style: &Style, width: Option<usize>) -> String {
    let mark = super::mark(trace, style);
    let narrow = width.is_some_and(|width| width < 100);
    let id = cell::raw(trace.get("id"));
    let shown = [
        cell::text(trace, "name", style).text,
        if narrow { String::new() } else { id },
        cell::text(trace, "model", style).text,
        cell::latency(trace, "latency_ms", style).text,
        format!("{} tokens", cell::count(trace, "total_token_count", style).text),
        cell::money(trace, "cost", style).text,
    ];
    let shown: Vec<&str> = shown.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    let first = cell::Cell::plain(shown.join("  ")).text;
    // On a narrow terminal the first line is cut. The id has its own line.
    let room = width.map_or(usize::MAX / 4, |width| width.saturating_sub(2));
    let first = present::text::cut(&first, room, &style.glyphs);
    let mut text = format!("{} {first}\n", style.paint(&mark.text, mark.tone));
    let lines = [
        ("id", trace.get("id").filter(|_| narrow)),
        ("state", trace.get("state").filter(|state| *state != TraceState::Complete.as_str())),
        ("started", None),
        ("error", trace.get("error")),
        ("usage", trace.get("usage_details")),
        ("session", trace.get("session_id")),
        ("user", trace.get("user_id")),
        ("external", trace.get("external_id")),
        ("tags", trace.get("tags").filter(|tags| tags.as_array().is_some_and(|tags| !tags.is_empty()))),
    ];
    for (name, value) in lines {
        let value = match (name, value) {
            ("started", _) => cell::date(trace, "started_at", style).text,
            (_, None | Some(Value::Null)) => continue,
            ("usage", Some(details)) => usage(details, style),
            ("tags", Some(Value::Array(tags))) => {
                tags.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
            }
            (_, value) => cell::raw(value),
        };
        let tone = if name == "error" { Tone::Bad } else { Tone::Plain };
        let value = cell::Cell::plain(value).text;
        let room = width.map_or(usize::MAX / 4, |width| width.saturating_sub(12)).max(20);
        // Error messages are wrapped and never cut.
        for (index, line) in present::text::wrap(&value, room).into_iter().enumerate() {
            let label = if index == 0 { name } else { "" };
            text.push_str(&format!("  {label:<9} {}\n", style.paint(&line, tone)));
        }
    }
    text
}

/// Formats the tokens that are billed separately: `1.2k cached, 64 reasoning`.
fn usage(details: &Value, style: &Style) -> String {
    [
        ("cached_input_tokens", "cached"),
        ("cache_write_tokens", "written to cache"),
        ("reasoning_tokens", "reasoning"),
    ]
    .into_iter()
    .filter(|(name, _)| details.get(name).is_some_and(|it| !it.is_null()))
    .map(|(name, word)| format!("{} {word}", cell::count(details, name, style).text))
    .collect::<Vec<_>>()
    .join(", ")
}

fn events(trace: &Value, style: &Style) -> String {
    let events = trace.get("events").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut text = String::new();
    for event in events {
        let time = cell::time(event, "created_at", style).text;
        let level = cell::text(event, "level", style).text;
        let message = cell::text(event, "message", style).text;
        text.push_str(&format!("  event     {time}  {level}  {message}\n"));
    }
    text
}
