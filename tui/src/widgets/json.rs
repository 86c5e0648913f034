//! A JSON text as foldable lines.
//!
//! Values are parsed lazily from their text, so the order of fields and every digit of a
//! number stay as they were sent. Lines are wrapped here too, because a string value can have
//! many lines.

use std::{collections::HashSet, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::theme::{Glyphs, Tone};
use present::text::{clean, wrap};

/// Maximum depth of containers that can be unfolded; deeper ones are shown as text.
const MAX_DEPTH: usize = 40;
/// Containers of more bytes than this start folded, unless they are near the top.
const FOLD_OVER: usize = 1_200;

/// A run of text in one tone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The tone.
    pub tone: Tone,
    /// Clean text.
    pub text: String,
}

/// One line of a pane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PaneLine {
    /// Whether this line continues the one before.
    pub continued: bool,
    /// The pieces of the line.
    pub pieces: Vec<Piece>,
    /// The container that begins here, and whether it is folded.
    pub node: Option<(String, bool)>,
}

impl PaneLine {
    /// Returns a line in one tone.
    pub fn of(tone: Tone, text: impl Into<String>) -> Self {
        Self { pieces: vec![Piece { tone, text: text.into() }], ..Self::default() }
    }

    /// Returns the text without tones.
    pub fn plain(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }
}

/// The containers that the user folded or unfolded, by path: their default is inverted.
pub type Toggled = HashSet<String>;

/// Lays out a JSON text in lines of `cols` columns. Returns none if the text is neither an object nor
/// an array.
pub fn lines(text: &str, cols: usize, toggled: &Toggled, glyphs: &Glyphs) -> Option<Vec<PaneLine>> {
    let trimmed = text.trim_start();
    if !trimmed.starts_with(['{', '[']) {
        return None;
    }
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    let mut writer = Writer { cols: cols.max(8), toggled, glyphs, lines: Vec::new() };
    writer.value("$", None, raw.get(), 0, "", true);
    Some(writer.lines)
}

struct Writer<'a> {
    cols: usize,
    toggled: &'a Toggled,
    glyphs: &'a Glyphs,
    lines: Vec<PaneLine>,
}

impl Writer<'_> {
    /// Writes one value. `tail` is the comma after it; with `keep`, the value is not folded by default.
    fn value(&mut self, path: &str, key: Option<&str>, raw: &str, depth: usize, tail: &str, keep: bool) {
        let raw = raw.trim();
        let mut head = Vec::new();
        if let Some(key) = key {
            head.push(Piece { tone: Tone::Field, text: clean(&quoted(key)).into_owned() });
            head.push(Piece { tone: Tone::Dim, text: ": ".to_owned() });
        }
        let (brackets, children) = match raw.as_bytes().first() {
            Some(b'{') if depth < MAX_DEPTH => (("{", "}"), members(raw)),
            Some(b'[') if depth < MAX_DEPTH => (("[", "]"), elements(raw)),
            _ => return self.scalar(head, raw, depth, tail),
        };
        if children.is_empty() {
            head.push(Piece { tone: Tone::Plain, text: format!("{}{}{tail}", brackets.0, brackets.1) });
            return self.push(depth, head, None);
        }
        let by_itself = depth >= 2 && raw.len() > FOLD_OVER && !keep;
        let folded = by_itself != self.toggled.contains(path);
        if folded {
            head.push(Piece { tone: Tone::Dim, text: summary(brackets, &children, raw, self.glyphs) + tail });
            return self.push(depth, head, Some((path.to_owned(), true)));
        }
        head.push(Piece { tone: Tone::Plain, text: brackets.0.to_owned() });
        self.push(depth, head, Some((path.to_owned(), false)));
        let last = children.len() - 1;
        for (at, (name, child)) in children.iter().enumerate() {
            let path = format!("{path}/{at}");
            // In a conversation the last message matters most, so the others are folded.
            let keep = at == last && name.is_none();
            self.value(
                &path,
                name.as_deref(),
                child.get(),
                depth + 1,
                if at == last { "" } else { "," },
                keep,
            );
        }
        self.push(depth, vec![Piece { tone: Tone::Plain, text: format!("{}{tail}", brackets.1) }], None);
    }

    fn scalar(&mut self, mut head: Vec<Piece>, raw: &str, depth: usize, tail: &str) {
        if !raw.starts_with('"') {
            head.push(Piece { tone: Tone::Number, text: format!("{}{tail}", clean(raw)) });
            return self.push(depth, head, None);
        }
        let text: String = serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned());
        head.push(Piece { tone: Tone::Text, text: format!("\"{text}\"{tail}") });
        self.push(depth, head, None);
    }

    /// Adds one logical line, wrapped. Line breaks within a string start a new line.
    fn push(&mut self, depth: usize, pieces: Vec<Piece>, node: Option<(String, bool)>) {
        let margin = (2 * depth).min(self.cols / 2);
        let room = self.cols - margin;
        let indent = Piece { tone: Tone::Plain, text: " ".repeat(margin) };
        let whole: usize = pieces.iter().map(|piece| present::text::width(&clean(&piece.text))).sum();
        let breaks = pieces.iter().any(|piece| piece.text.contains('\n'));
        if whole <= room && !breaks {
            let shown =
                pieces.into_iter().map(|piece| Piece { text: clean(&piece.text).into_owned(), ..piece });
            self.lines.push(PaneLine {
                continued: false,
                pieces: std::iter::once(indent).chain(shown).collect(),
                node,
            });
            return;
        }
        // Only the last piece can be long; the pieces before it stay on the first line.
        let Some((last, before)) = pieces.split_last() else { return };
        let used: usize = before.iter().map(|piece| present::text::width(&piece.text)).sum();
        let mut first: Vec<Piece> = std::iter::once(indent.clone()).chain(before.iter().cloned()).collect();
        let mut room_here = room.saturating_sub(used).max(8);
        let mut node = node;
        let mut continued = false;
        for part in last.text.split('\n') {
            for text in wrap(&clean(part), room_here) {
                let mut pieces = std::mem::take(&mut first);
                pieces.push(Piece { tone: last.tone, text });
                self.lines.push(PaneLine { continued, pieces, node: node.take() });
                continued = true;
                first = vec![indent.clone()];
                room_here = room;
            }
        }
    }
}

fn quoted(key: &str) -> String {
    format!("\"{key}\"")
}

/// Returns the summary of a folded container.
fn summary(
    brackets: (&str, &str),
    children: &[(Option<String>, &RawValue)],
    raw: &str,
    glyphs: &Glyphs,
) -> String {
    let size = present::format::thousands(raw.len());
    if brackets.0 == "[" {
        let items = if children.len() == 1 { "item" } else { "items" };
        return format!("[ {} {items}, {size} bytes ]", children.len());
    }
    let role = children.iter().find(|(name, _)| name.as_deref() == Some("role"));
    let role = role.and_then(|(_, value)| serde_json::from_str::<String>(value.get()).ok());
    let fields = role.unwrap_or_else(|| format!("{} fields", children.len()));
    format!("{{{}}} {fields}, {size} bytes", glyphs.ellipsis)
}

/// Returns the members of an object in their original order, with repeated names.
fn members(raw: &str) -> Vec<(Option<String>, &RawValue)> {
    struct Members<'a>(Vec<(Option<String>, &'a RawValue)>);
    struct JsonReader;
    impl<'de> Visitor<'de> for JsonReader {
        type Value = Members<'de>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
            let mut members = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                members.push((Some(name), value));
            }
            Ok(Members(members))
        }
    }
    impl<'de> Deserialize<'de> for Members<'de> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(JsonReader)
        }
    }
    serde_json::from_str::<Members<'_>>(raw).map(|it| it.0).unwrap_or_default()
}

fn elements(raw: &str) -> Vec<(Option<String>, &RawValue)> {
    let elements: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
    elements.into_iter().map(|value| (None, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, cols: usize, toggled: &[&str]) -> Vec<String> {
        let toggled = toggled.iter().map(|path| (*path).to_owned()).collect();
        lines(text, cols, &toggled, &Glyphs::UNICODE)
            .unwrap_or_default()
            .iter()
            .map(PaneLine::plain)
            .collect()
    }

    #[test]
    fn order_and_digits_are_kept() {
        let shown = plain(r#"{"z": 12345678901234567890123, "a": 1.50, "a": {}}"#, 60, &[]);
        assert_eq!(shown, ["{", "  \"z\": 12345678901234567890123,", "  \"a\": 1.50,", "  \"a\": {}", "}"]);
    }

    #[test]
    fn json_container_folds_to_a_summary() {
        assert_eq!(plain(r#"{"tools": [1, 2, 3]}"#, 60, &["$/0"])[1], "  \"tools\": [ 3 items, 9 bytes ]");
        assert_eq!(
            plain(r#"[{"role": "system", "content": "x"}]"#, 60, &["$/0"])[1],
            "  {…} system, 34 bytes"
        );
    }

    #[test]
    fn long_strings_wrap_and_line_breaks_break() {
        let text = r#"{"content": "one two three four five six seven\nНовая строка \u001b[31m"}"#;
        let all = lines(text, 30, &Toggled::new(), &Glyphs::UNICODE).unwrap_or_default();
        assert!(all.iter().all(|line| present::text::width(&line.plain()) <= 30), "{all:?}");
        assert!(all.iter().any(|line| line.continued && line.plain().contains("Новая")));
        assert!(all.iter().any(|line| line.plain().contains("⟦ESC⟧[31m")));
    }

    #[test]
    fn scalar_json_is_shown_as_plain_text() {
        for text in ["plain", "12", "\"text\"", "{broken", ""] {
            assert!(lines(text, 40, &Toggled::new(), &Glyphs::UNICODE).is_none(), "{text}");
        }
    }

    #[test]
    fn json_depth_is_bounded_by_a_limit() {
        let text = "[".repeat(3_000) + &"]".repeat(3_000);
        assert!(lines(&text, 40, &Toggled::new(), &Glyphs::UNICODE).is_some_and(|it| it.len() < 2_000));
    }
}
