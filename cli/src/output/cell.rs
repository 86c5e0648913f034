//! Cells: what a table shows of a value.

use api::{Timestamp, text::printable};
pub use present::Tone;
use present::{
    Glyphs,
    format::{self, Zone},
};
use serde_json::Value;

/// How cells look in this run.
#[derive(Clone)]
pub struct Style {
    /// Whether to colour.
    pub colour: bool,
    /// Marks.
    pub glyphs: Glyphs,
    /// UTC in place of local time.
    pub utc: bool,
    /// The present, against which times are shortened.
    pub now: Timestamp,
}

/// A cell: text without controls and line ends, and its colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// Its colour.
    pub tone: Tone,
}

impl Cell {
    /// A cell of any text: line ends and tabs become blanks, other controls visible.
    pub fn plain(text: impl AsRef<str>) -> Self {
        Self::toned(text, Tone::Plain)
    }

    /// A coloured cell.
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

    /// The zone of times.
    pub fn zone(&self) -> Zone {
        if self.utc { Zone::Utc } else { Zone::Local }
    }
}

/// A string member, cut at nothing; a dash where it is absent.
pub fn text(row: &Value, name: &str, style: &Style) -> Cell {
    match row.get(name) {
        None | Some(Value::Null) => none(style),
        Some(value) => Cell::plain(raw(Some(value))),
    }
}

/// A time member: the clock for today, the date with it for other days.
pub fn time(row: &Value, name: &str, style: &Style) -> Cell {
    match timestamp(row, name) {
        Some(time) => Cell::plain(format::clock(style.zone(), time, style.now)),
        None => none(style),
    }
}

/// A time member with its year.
pub fn date(row: &Value, name: &str, style: &Style) -> Cell {
    match timestamp(row, name) {
        Some(time) => Cell::plain(style.zone().of(time).format("%Y-%m-%d %H:%M").to_string()),
        None => none(style),
    }
}

/// A member with milliseconds.
pub fn latency(row: &Value, name: &str, style: &Style) -> Cell {
    row.get(name).and_then(Value::as_i64).map_or_else(|| none(style), |ms| Cell::plain(format::latency(ms)))
}

/// A member with a count.
pub fn count(row: &Value, name: &str, style: &Style) -> Cell {
    row.get(name).and_then(Value::as_i64).map_or_else(|| none(style), |n| Cell::plain(format::count(n)))
}

/// A member with US dollars.
pub fn money(row: &Value, name: &str, style: &Style) -> Cell {
    row.get(name).and_then(Value::as_f64).map_or_else(|| none(style), |usd| Cell::plain(format::money(usd)))
}

/// The member `score` with three digits, so that scores just below and above a threshold differ.
pub fn score(row: &Value, style: &Style) -> Cell {
    let score = row.get("score").and_then(Value::as_f64);
    score.map_or_else(|| none(style), |it| Cell::plain(format!("{it:.3}")))
}

/// The last eight characters of the member `id`: ids of the same hour begin alike.
pub fn short_id(row: &Value, name: &str, style: &Style) -> Cell {
    let Some(id) = row.get(name).and_then(Value::as_str) else {
        return none(style);
    };
    let skipped = id.chars().count().saturating_sub(8);
    Cell::plain(id.chars().skip(skipped).collect::<String>())
}

/// The mark of a failed or a good row.
pub fn mark(failed: bool, style: &Style) -> Cell {
    if failed {
        Cell::toned(style.glyphs.failed, Tone::Bad)
    } else {
        Cell::toned(style.glyphs.ok, Tone::Good)
    }
}

/// The mark of no value.
pub fn none(style: &Style) -> Cell {
    Cell::toned(style.glyphs.none, Tone::Dim)
}

/// A value for the machine formats: strings as they are, absent and null empty, the rest as JSON.
pub fn raw(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A member that is a time.
pub fn timestamp(row: &Value, name: &str) -> Option<Timestamp> {
    row.get(name)?.as_str()?.parse().ok()
}
