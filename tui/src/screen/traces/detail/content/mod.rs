//! The content of the panes: input, output, error, facts and record of a span as lines.

pub mod scores;

use api::{Timestamp, UsageDetails, trace::Event};

use crate::{
    record::Record,
    shell::Reader,
    theme::Tone,
    widgets::json,
    widgets::json::{PaneLine, Piece, Toggled},
};
use present::{
    format::{latency, moment, money, thousands},
    text::{clean, wrap},
};

/// A long text is laid out in pieces of this many bytes.
pub const TEXT_STEP: usize = 64 * 1024;

/// A tab of the lower half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetailTab {
    /// The input.
    #[default]
    Input,
    /// The output.
    Output,
    /// The error.
    Error,
    /// The evaluations.
    Evals,
    /// Facts, free data and events.
    Meta,
    /// The record as the server sent it.
    Json,
}

impl DetailTab {
    /// Every tab, from left to right.
    pub const ALL: [Self; 6] = [Self::Input, Self::Output, Self::Error, Self::Evals, Self::Meta, Self::Json];

    /// Returns the title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Input => "Input",
            Self::Output => "Output",
            Self::Error => "Error",
            Self::Evals => "Evals",
            Self::Meta => "Meta",
            Self::Json => "JSON",
        }
    }
}

/// The settings of a layout.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// Columns.
    pub cols: usize,
    /// Bytes of a plain text that are laid out.
    pub limit: usize,
    /// Whether JSON is shown as the text that was sent.
    pub as_text: bool,
    /// Containers that the user folded or unfolded.
    pub toggled: &'a Toggled,
    /// The reader's settings.
    pub reader: Reader,
}

/// Returns the lines of one tab.
pub fn tab_lines(
    subject: Record<'_>,
    tab: DetailTab,
    events: &[Event],
    setting: &Setting<'_>,
) -> Vec<PaneLine> {
    match tab {
        DetailTab::Input => value(subject.input(), setting),
        DetailTab::Output => value(subject.output(), setting),
        DetailTab::Error => failure(subject, events, setting),
        // Evaluations are not part of the record; the detail lays them out.
        DetailTab::Evals => Vec::new(),
        DetailTab::Meta => facts(subject, events, setting),
        DetailTab::Json => value(Some(&subject.json()), setting),
    }
}

/// Returns the lines of the right pane of the split: the error, if there is one, above the output.
pub fn result_lines(subject: Record<'_>, events: &[Event], setting: &Setting<'_>) -> Vec<PaneLine> {
    let mut lines = Vec::new();
    if subject.error().is_some() {
        lines.extend(failure(subject, events, setting));
        lines.push(PaneLine::default());
        lines.push(PaneLine::of(Tone::Dim, "output"));
    }
    lines.extend(value(subject.output(), setting));
    lines
}

fn value(text: Option<&str>, setting: &Setting<'_>) -> Vec<PaneLine> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return vec![PaneLine::of(Tone::Dim, "(empty)")];
    };
    if !setting.as_text
        && let Some(lines) = json::lines(text, setting.cols, setting.toggled, &setting.reader.glyphs)
    {
        return lines;
    }
    let shown = &text[..text.floor_char_boundary(setting.limit)];
    let mut lines = plain(shown, Tone::Plain, setting.cols);
    if shown.len() < text.len() {
        let more = thousands(text.len() - shown.len());
        lines
            .push(PaneLine::of(Tone::Dim, format!("({more} more bytes; going to the last line loads them)")));
    }
    lines
}

fn plain(text: &str, tone: Tone, cols: usize) -> Vec<PaneLine> {
    let mut lines = Vec::new();
    for line in text.lines() {
        for (at, part) in wrap(&clean(line), cols).into_iter().enumerate() {
            lines.push(PaneLine { continued: at > 0, ..PaneLine::of(tone, part) });
        }
    }
    lines
}

fn failure(subject: Record<'_>, events: &[Event], setting: &Setting<'_>) -> Vec<PaneLine> {
    let Some(error) = subject.error() else {
        return vec![PaneLine::of(Tone::Dim, "(no error)")];
    };
    let mut lines = plain(error, Tone::Bad, setting.cols);
    if let Record::Span(span, _) = subject {
        field(&mut lines, "failure_type", span.failure_type.as_deref(), setting);
        let own = |event: &&Event| event.span_id == Some(span.id) && event.level == "error";
        for event in events.iter().filter(own) {
            lines.push(PaneLine::default());
            lines.extend(plain(&event.message, Tone::Plain, setting.cols));
        }
    }
    lines
}

fn field(lines: &mut Vec<PaneLine>, name: &str, value: Option<&str>, setting: &Setting<'_>) {
    let Some(value) = value else { return };
    let parts = wrap(&clean(value), setting.cols.saturating_sub(15));
    for (at, text) in parts.into_iter().enumerate() {
        let name = if at == 0 { name } else { "" };
        let head = Piece { tone: Tone::Field, text: format!("{name:<14} ") };
        let pieces = vec![head, Piece { tone: Tone::Plain, text }];
        lines.push(PaneLine { continued: at > 0, pieces, node: None });
    }
}

/// Returns the lines of the reported token counts that are billed separately.
fn usage(details: Option<UsageDetails>, add: &mut impl FnMut(&str, Option<String>)) {
    let UsageDetails { cached_input_tokens, cache_write_tokens, reasoning_tokens } =
        details.unwrap_or_default();
    add("cached in", cached_input_tokens.map(thousands));
    add("cache write", cache_write_tokens.map(thousands));
    add("reasoning", reasoning_tokens.map(thousands));
}

fn facts(subject: Record<'_>, events: &[Event], setting: &Setting<'_>) -> Vec<PaneLine> {
    let mut lines = Vec::new();
    let time = |time: Timestamp| moment(setting.reader.zone, time, setting.reader.now);
    let mut add = |name: &str, value: Option<String>| field(&mut lines, name, value.as_deref(), setting);
    let metadata = match subject {
        Record::Span(span, _) => {
            add("span", Some(span.id.to_string()));
            add("parent", span.parent_span_id.map(|id| id.to_string()));
            add("type", Some(span.kind.to_string()));
            add("model", span.model.clone());
            add("started", Some(time(span.start_time)));
            add("ended", span.end_time.map(time));
            add("latency", span.latency_ms.map(latency));
            add("tokens in", span.prompt_tokens.map(thousands));
            add("tokens out", span.completion_tokens.map(thousands));
            usage(span.usage_details, &mut add);
            add("cost", span.cost.map(money));
            add("otel trace", span.otel_trace_id.clone());
            add("otel span", span.otel_span_id.clone());
            span.metadata.as_deref()
        }
        Record::Trace(trace) => {
            add("trace", Some(trace.id.to_string()));
            add("external_id", trace.external_id.clone());
            add("session", trace.session_id.clone());
            add("user", trace.user_id.clone());
            add("started", Some(time(trace.started_at)));
            add("tokens in", trace.prompt_tokens_total.map(thousands));
            add("tokens out", trace.completion_tokens_total.map(thousands));
            usage(trace.usage_details, &mut add);
            add("tags", (!trace.tags.is_empty()).then(|| trace.tags.join(", ")));
            trace.metadata.as_deref()
        }
    };
    if let Some(metadata) = metadata {
        lines.push(PaneLine::of(Tone::Dim, "metadata"));
        lines.extend(value(Some(metadata.get()), setting));
    }
    let own = |event: &&Event| match subject {
        Record::Span(span, _) => event.span_id == Some(span.id),
        Record::Trace(_) => true,
    };
    let mut titled = false;
    for event in events.iter().filter(own) {
        if !std::mem::replace(&mut titled, true) {
            lines.push(PaneLine::of(Tone::Dim, "events"));
        }
        let tone = if event.level == "error" { Tone::Bad } else { Tone::Plain };
        let text = format!("{} {} {}", time(event.created_at), event.level, event.message);
        lines.extend(plain(&text, tone, setting.cols));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixture, theme::Glyphs};
    use present::format::Zone;

    /// Returns the facts of a subject, one a line.
    fn shown(subject: Record<'_>) -> Vec<String> {
        let toggled = Toggled::default();
        let reader = Reader {
            glyphs: Glyphs::UNICODE,
            zone: Zone::Utc,
            now: Timestamp::from_micros(fixture::BASE_MICROS),
        };
        let setting = Setting { cols: 80, limit: TEXT_STEP, as_text: false, toggled: &toggled, reader };
        let lines = tab_lines(subject, DetailTab::Meta, &[], &setting);
        lines.iter().map(|it| it.pieces.iter().map(|it| it.text.as_str()).collect()).collect()
    }

    #[test]
    fn facts_show_usage_details_where_they_were_reported() {
        let usage_details = Some(UsageDetails {
            cached_input_tokens: Some(1_408),
            cache_write_tokens: None,
            reasoning_tokens: Some(64),
        });
        let expected = ["cached in      1,408", "reasoning      64"];
        let details = |lines: &[String]| lines.iter().filter(|it| expected.contains(&it.trim_end())).count();
        let written = |lines: &[String]| lines.iter().any(|it| it.starts_with("cache write"));
        let (mut span, mut trace) = (fixture::span(1, None), fixture::trace(0));
        for lines in [shown(Record::Span(&span, None)), shown(Record::Trace(&trace))] {
            assert_eq!((details(&lines), written(&lines)), (0, false), "{lines:?}");
        }
        (span.usage_details, trace.usage_details) = (usage_details, usage_details);
        for lines in [shown(Record::Span(&span, None)), shown(Record::Trace(&trace))] {
            assert_eq!((details(&lines), written(&lines)), (2, false), "{lines:?}");
        }
    }
}
