//! Cells of tables: formatted values with a tone.

use api::{Timestamp, text::printable};
pub use present::Tone;
use present::{
    Glyphs,
    format::{self, Zone},
};
use serde_json::Value;

/// Display settings of this run.
#[derive(Clone)]
pub struct Style {
    /// Whether to use colours.
    pub colour: bool,
    /// The glyphs of marks and frames.
    pub glyphs: Glyphs,
    /// Whether times are in UTC instead of local time.
    pub utc: bool,
    /// The current time, relative to which times are shortened.
    pub now: Timestamp,
}

/// A cell: text without control characters and line breaks, and its tone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The text.
    pub text: String,
    /// The tone.
    pub tone: Tone,
}

impl Cell {
    /// Creates a cell without colour: line breaks and tabs become blanks, other control characters become
    /// visible.
    pub fn plain(text: impl AsRef<str>) -> Self {
        Self::toned(text, Tone::Plain)
    }

    /// Creates a cell with a tone.
    pub fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        let line = text.as_ref().replace(['\n', '\r', '\t'], " ");
        Self { text: printable(&line).into_owned(), tone }
    }
}

impl Style {
    /// Returns text with the escape sequences of a tone, if there is colour: the tone's colour, or the weight of a
    /// tone without one.
    pub fn paint(&self, text: &str, tone: Tone) -> String {
        let look = tone.appearance();
        let code = match look.colour {
            Some(colour) => colour.sgr(),
            None if look.bold => 1,
            None if look.dim => 2,
            None => return text.to_owned(),
        };
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Returns the time zone in which times are shown.
    pub fn zone(&self) -> Zone {
        if self.utc { Zone::Utc } else { Zone::Local }
    }
}

/// Formats a string member without cutting it; a dash if it is absent.
pub fn text(row: &Value, name: &str, style: &Style) -> Cell {
    match row.get(name) {
        None | Some(Value::Null) => none(style),
        Some(value) => Cell::plain(raw(Some(value))),
    }
}

/// Returns a text; a dash if it is empty.
pub fn text_or_none(text: String, style: &Style) -> Cell {
    if text.is_empty() { none(style) } else { Cell::plain(text) }
}

/// Formats a time member: only the time of day for today, with the date for other days.
pub fn time(row: &Value, name: &str, style: &Style) -> Cell {
    match timestamp(row, name) {
        Some(time) => Cell::plain(format::clock(style.zone(), time, style.now)),
        None => none(style),
    }
}

/// Formats a time member with its year.
pub fn date(row: &Value, name: &str, style: &Style) -> Cell {
    match timestamp(row, name) {
        Some(time) => Cell::plain(style.zone().of(time).format("%Y-%m-%d %H:%M").to_string()),
        None => none(style),
    }
}

/// Formats a member that is a number of milliseconds.
pub fn latency(row: &Value, name: &str, style: &Style) -> Cell {
    row.get(name).and_then(Value::as_i64).map_or_else(|| none(style), |ms| Cell::plain(format::latency(ms)))
}

/// Formats a member that is a count.
pub fn count(row: &Value, name: &str, style: &Style) -> Cell {
    row.get(name).and_then(Value::as_i64).map_or_else(|| none(style), |n| Cell::plain(format::count(n)))
}

/// Formats a member that is an amount in US dollars.
pub fn money(row: &Value, name: &str, style: &Style) -> Cell {
    row.get(name).and_then(Value::as_f64).map_or_else(|| none(style), |usd| Cell::plain(format::money(usd)))
}

/// Formats the member `score` with three digits, so that scores just below and above a threshold differ.
pub fn score(row: &Value, style: &Style) -> Cell {
    let score = row.get("score").and_then(Value::as_f64);
    score.map_or_else(|| none(style), |it| Cell::plain(format!("{it:.3}")))
}

/// Returns the last eight characters of an id member; the first characters of ids of the same hour are
/// equal.
pub fn short_id(row: &Value, name: &str, style: &Style) -> Cell {
    let Some(id) = row.get(name).and_then(Value::as_str) else {
        return none(style);
    };
    let skipped = id.chars().count().saturating_sub(8);
    Cell::plain(id.chars().skip(skipped).collect::<String>())
}

/// Returns the mark of a failed or a successful row.
pub fn mark(failed: bool, style: &Style) -> Cell {
    if failed {
        Cell::toned(style.glyphs.failed, Tone::Bad)
    } else {
        Cell::toned(style.glyphs.ok, Tone::Good)
    }
}

/// Returns the mark of a missing value.
pub fn none(style: &Style) -> Cell {
    Cell::toned(style.glyphs.none, Tone::Dim)
}

/// Formats a value for the machine formats: strings unchanged, absent and null as empty text, other values
/// as JSON.
pub fn raw(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Parses a member that is a time.
pub fn timestamp(row: &Value, name: &str) -> Option<Timestamp> {
    row.get(name)?.as_str()?.parse().ok()
}
