//! Draws the spans of a trace as a tree beside a waterfall, with all bars on one time scale.

use api::Timestamp;
use present::{
    format,
    text::{cut, fit, fit_right, width},
    tree::{TreeNode, flatten},
    waterfall::{Interval, TimeScale},
};
use serde_json::Value;

use super::failed;
use crate::output::cell::{self, Style, Tone};

/// Maximum width of the names in columns.
const MAX_NAME_COLUMNS: usize = 40;
/// Limits the depth that is drawn: further indentation would only take the room of the names.
const MAX_DRAWN_DEPTH: usize = 21;

/// A line of the tree.
struct TreeLine<'a> {
    span: &'a Value,
    branches: String,
}

/// Draws the tree in a number of columns. Spans whose parent never arrived are roots, and spans in a cycle
/// of parents are shown once.
pub fn render(spans: &[Value], style: &Style, columns: usize) -> String {
    if spans.is_empty() {
        return String::new();
    }
    let lines = arrange(spans, style.glyphs.ascii);
    let scale = TimeScale::of(spans.iter().filter_map(interval));
    let named =
        |line: &TreeLine| width(&line.branches) + width(&cell::text(line.span, "name", style).text) + 2;
    let names =
        lines.iter().map(named).max().unwrap_or_default().clamp(4, MAX_NAME_COLUMNS.min(columns / 2).max(4));
    let kinds = 10;
    let bars = columns.saturating_sub(2 + names + 2 + kinds + 2 + 7 + 2);

    let mut text = String::from("  ");
    text.push_str(&style.paint(&fit("SPAN", names, &style.glyphs), Tone::Strong));
    text.push_str(&style.paint(&format!("  {:<kinds$}  LATENCY", "KIND"), Tone::Strong));
    if bars >= 12 {
        let length = scale.map_or(1, |scale| scale.length());
        text.push_str(&format!("  {}", ruler(length, bars, if style.glyphs.ascii { "." } else { "·" })));
    }
    text.push('\n');
    for line in &lines {
        let is_failed = failed(line.span);
        let mark = if is_failed { format!(" {}", style.glyphs.failed) } else { String::new() };
        let room = names.saturating_sub(width(&line.branches) + width(&mark));
        let name = cut(&cell::text(line.span, "name", style).text, room, &style.glyphs);
        let label = fit(&format!("{}{name}{mark}", line.branches), names, &style.glyphs);
        let kind = fit(&cell::text(line.span, "type", style).text, kinds, &style.glyphs);
        let latency = fit_right(&cell::latency(line.span, "latency_ms", style).text, 7, &style.glyphs);
        let tone = if is_failed { Tone::Bad } else { Tone::Plain };
        let mut row = format!("  {}  {kind}  {latency}", style.paint(&label, tone));
        if bars >= 12 {
            let bar = bar(line.span, scale, bars, style.glyphs.bar);
            row.push_str(&format!("  {}", style.paint(&bar, tone)));
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

fn id<'a>(span: &'a Value, name: &str) -> Option<&'a str> {
    span.get(name).and_then(Value::as_str)
}

/// Returns the spans in the order of the tree, with the branches that lead to them.
fn arrange(spans: &[Value], ascii: bool) -> Vec<TreeLine<'_>> {
    let (tee, corner, pipe) = if ascii { ("|- ", "`- ", "|  ") } else { ("├─ ", "└─ ", "│  ") };
    // Whether the last node at each depth was the last child of its parent.
    let mut is_last_at: Vec<bool> = Vec::new();
    let nodes = flatten(spans.iter().map(|span| (id(span, "id"), id(span, "parent_span_id"))));
    let line = |node: TreeNode| {
        is_last_at.truncate(node.depth);
        is_last_at.push(node.is_last);
        let mut branches = String::new();
        if node.depth > 0 {
            let above = &is_last_at[1..node.depth.min(MAX_DRAWN_DEPTH)];
            branches.extend(above.iter().map(|is_last| if *is_last { "   " } else { pipe }));
            branches.push_str(if node.is_last { corner } else { tee });
        }
        TreeLine { span: &spans[node.index], branches }
    };
    nodes.into_iter().map(line).collect()
}

/// Returns the start and end of a span; `None` without a start.
fn interval(span: &Value) -> Option<Interval> {
    let begin = cell::timestamp(span, "start_time").map(Timestamp::micros)?;
    let end = cell::timestamp(span, "end_time").map(Timestamp::micros);
    let latency = span.get("latency_ms").and_then(Value::as_i64).unwrap_or_default();
    Some((begin, end.unwrap_or_else(|| begin.saturating_add(latency.saturating_mul(1_000)))))
}

/// Returns the time scale above the bars, such as `0s ····· 30s`.
fn ruler(micros: i64, columns: usize, dot: &str) -> String {
    let end = format::latency(micros / 1_000);
    let dots = columns.saturating_sub(4 + end.len());
    format!("0s {} {end}", dot.repeat(dots))
}

/// Returns the bar of a span; empty for a span without a start.
fn bar(span: &Value, scale: Option<TimeScale>, columns: usize, block: &str) -> String {
    let (Some(interval), Some(scale)) = (interval(span), scale) else {
        return String::new();
    };
    let (first, cells) = scale.bar(interval, columns);
    format!("{}{}", " ".repeat(first), block.repeat(cells))
}

#[cfg(test)]
mod tests {
    use present::Glyphs;
    use serde_json::json;

    use super::*;

    fn style() -> Style {
        Style { colour: false, glyphs: Glyphs::UNICODE, utc: true, now: Timestamp::default() }
    }

    fn span(id: &str, parent: Option<&str>, start: u32, ms: i64) -> Value {
        json!({
            "id": id, "parent_span_id": parent, "name": id, "type": "llm", "latency_ms": ms, "error": null,
            "start_time": format!("2026-11-21T14:00:{start:02}Z"),
        })
    }

    #[test]
    fn spans_are_drawn_below_their_parents_on_one_scale() {
        let mut failing = span("decide", Some("agent"), 5, 5_000);
        failing["error"] = json!("timeout");
        let spans = [
            span("agent", None, 0, 10_000),
            span("plan", Some("agent"), 0, 1_000),
            span("step", Some("plan"), 0, 10),
            failing,
        ];
        insta::assert_snapshot!(render(&spans, &style(), 70), @r"
          SPAN          KIND        LATENCY  0s ························ 10.0s
          agent         llm           10.0s  █████████████████████████████████
          ├─ plan       llm           1.00s  ███
          │  └─ step    llm            10ms  █
          └─ decide ✗   llm           5.00s                  █████████████████
        ");
    }

    #[test]
    fn cycles_and_missing_parents_show_every_span_once() {
        let spans = [
            span("a", Some("b"), 0, 1),
            span("b", Some("a"), 0, 1),
            span("self", Some("self"), 0, 1),
            span("orphan", Some("never"), 0, 1),
        ];
        let text = render(&spans, &style(), 80);
        for name in ["a", "b", "self", "orphan"] {
            assert_eq!(
                text.lines().filter(|line| line.split_whitespace().any(|word| word == name)).count(),
                1,
                "{text}"
            );
        }
    }

    #[test]
    fn chain_of_thousands_of_spans_fits_the_width() {
        let spans: Vec<Value> = (0..5_000)
            .map(|n| span(&n.to_string(), (n > 0).then(|| (n - 1).to_string()).as_deref(), 0, 1))
            .collect();
        let text = render(&spans, &style(), 60);
        assert_eq!(text.lines().count(), 5_001);
        assert!(text.lines().all(|line| width(line) <= 60));
    }
}
