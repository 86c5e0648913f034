//! A trace's spans as a tree beside a waterfall, all bars on one scale.

use std::collections::{HashMap, HashSet};

use api::Timestamp;
use serde_json::Value;
use tui::{
    format,
    text::{cut, fit, fit_right, width},
};

use super::failed;
use crate::output::cell::{self, Style, Tone};

/// The largest part of the line that names may take.
const NAMES: usize = 40;

/// A line of the tree.
struct Line<'a> {
    span: &'a Value,
    branches: String,
}

/// Draws the tree in a number of columns. Spans whose parent never arrived stand at the top,
/// and those that are each other's parents are shown once.
pub fn render(spans: &[Value], style: &Style, columns: usize) -> String {
    if spans.is_empty() {
        return String::new();
    }
    let lines = arrange(spans, style.glyphs.ascii);
    let (start, end) = extent(spans);
    let named = |line: &Line| width(&line.branches) + width(&cell::text(line.span, "name", style).text) + 2;
    let names = lines.iter().map(named).max().unwrap_or_default().clamp(4, NAMES.min(columns / 2).max(4));
    let kinds = 10;
    let bars = columns.saturating_sub(2 + names + 2 + kinds + 2 + 7 + 2);

    let mut text = String::from("  ");
    text.push_str(&style.paint(&fit("SPAN", names, &style.glyphs), Tone::Bold));
    text.push_str(&style.paint(&format!("  {:<kinds$}  LATENCY", "KIND"), Tone::Bold));
    if bars >= 12 {
        let scale = scale(end - start, bars, if style.glyphs.ascii { "." } else { "·" });
        text.push_str(&format!("  {scale}"));
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
        let tone = if is_failed { Tone::Red } else { Tone::Plain };
        let mut row = format!("  {}  {kind}  {latency}", style.paint(&label, tone));
        if bars >= 12 {
            let bar = bar(line.span, start, end, bars, if style.glyphs.ascii { '#' } else { '█' });
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

/// Spans in the order of the tree, without recursion: a trace may be a chain of thousands.
fn arrange(spans: &[Value], ascii: bool) -> Vec<Line<'_>> {
    let known: HashSet<&str> = spans.iter().filter_map(|span| id(span, "id")).collect();
    let mut children: HashMap<&str, Vec<&Value>> = HashMap::new();
    let mut roots = Vec::new();
    for span in spans {
        match id(span, "parent_span_id")
            .filter(|parent| known.contains(parent) && Some(*parent) != id(span, "id"))
        {
            Some(parent) => children.entry(parent).or_default().push(span),
            None => roots.push(span),
        }
    }
    let (tee, corner, pipe) = if ascii { ("|- ", "`- ", "|  ") } else { ("├─ ", "└─ ", "│  ") };
    let mut lines = Vec::new();
    let mut seen: HashSet<*const Value> = HashSet::new();
    // What a cycle hides from the roots is started from its first span.
    for top in roots.into_iter().chain(spans) {
        let mut stack = vec![(top, String::new(), String::new())];
        while let Some((span, own, below)) = stack.pop() {
            if !seen.insert(std::ptr::from_ref(span)) {
                continue;
            }
            lines.push(Line { span, branches: own });
            let nested =
                id(span, "id").and_then(|id| children.get(id)).map(Vec::as_slice).unwrap_or_default();
            // Beyond this depth further indentation says nothing, and would grow without end.
            let deep = below.chars().count() >= 60;
            for (index, child) in nested.iter().enumerate().rev() {
                let is_last = index + 1 == nested.len();
                let own = format!("{below}{}", if is_last { corner } else { tee });
                let next = if deep {
                    below.clone()
                } else {
                    format!("{below}{}", if is_last { "   " } else { pipe })
                };
                stack.push((child, own, next));
            }
        }
    }
    lines
}

fn begin(span: &Value) -> Option<i64> {
    cell::timestamp(span, "start_time").map(Timestamp::micros)
}

fn finish(span: &Value) -> Option<i64> {
    let latency = span.get("latency_ms").and_then(Value::as_i64).map(|ms| ms.saturating_mul(1_000));
    let end = cell::timestamp(span, "end_time").map(Timestamp::micros);
    end.or_else(|| Some(begin(span)?.saturating_add(latency?))).or_else(|| begin(span))
}

/// The time that all spans take together, in microseconds; never empty.
fn extent(spans: &[Value]) -> (i64, i64) {
    let start = spans.iter().filter_map(begin).min().unwrap_or_default();
    let end = spans.iter().filter_map(finish).max().unwrap_or_default();
    (start, end.max(start.saturating_add(1)))
}

/// `0s ····· 30s` in the bars' columns.
fn scale(micros: i64, columns: usize, dot: &str) -> String {
    let end = format::latency(micros / 1_000);
    let dots = columns.saturating_sub(4 + end.len());
    format!("0s {} {end}", dot.repeat(dots))
}

/// The bar of a span; the shortest takes one cell.
fn bar(span: &Value, start: i64, end: i64, columns: usize, block: char) -> String {
    let (Some(from), Some(to)) = (begin(span), finish(span)) else {
        return String::new();
    };
    let at = |time: i64| {
        ((time - start) as f64 / (end - start) as f64 * columns as f64).clamp(0.0, columns as f64)
    };
    let first = (at(from) as usize).min(columns - 1);
    let cells = (at(to).round() as usize).saturating_sub(first).clamp(1, columns - first);
    format!("{}{}", " ".repeat(first), block.to_string().repeat(cells))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tui::theme::Glyphs;

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
    fn spans_stand_under_their_parents_on_one_scale() {
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
    fn a_chain_of_thousands_ends_and_fits() {
        let spans: Vec<Value> = (0..5_000)
            .map(|n| span(&n.to_string(), (n > 0).then(|| (n - 1).to_string()).as_deref(), 0, 1))
            .collect();
        let text = render(&spans, &style(), 60);
        assert_eq!(text.lines().count(), 5_001);
        assert!(text.lines().all(|line| width(line) <= 60));
    }
}
