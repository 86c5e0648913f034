//! Colours and characters: what a state looks like, never what it means.
//!
//! Code asks for a [`Tone`]; the theme answers with a style. Colours are the terminal's own
//! sixteen, so a light or a dark background both work. Without colour every tone that
//! carries meaning has a mark or a modifier as well.

use ratatui::style::{Color, Modifier, Style};

/// What a piece of text stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    #[default]
    Plain,
    /// Secondary text: heads, hints, numbers of lines.
    Dim,
    /// Something to read first.
    Strong,
    /// It went well.
    Good,
    /// It deserves a look.
    Warn,
    /// It failed.
    Bad,
    /// A bar over the whole width: the records are not current.
    Alarm,
    /// A field's name.
    Field,
    /// A string value.
    Text,
    /// A number, a boolean or null.
    Number,
    /// The name of the context.
    Badge,
    /// The name of a protected context.
    Protected,
    /// The row under the cursor.
    Selected,
    /// A hit of find.
    Hit,
}

/// Characters that differ between Unicode and plain ASCII terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each field is named after the thing it draws")]
pub struct Glyphs {
    pub ascii: bool,
    pub ellipsis: &'static str,
    pub cursor: &'static str,
    pub ok: &'static str,
    /// A row that is neither slow nor failed.
    pub healthy: &'static str,
    pub failed: &'static str,
    pub slow: &'static str,
    pub unfinished: &'static str,
    pub arrow: &'static str,
    pub none: &'static str,
    pub bar: &'static str,
    /// Eight heights of a cell, the lowest first.
    pub ramp: [&'static str; 8],
    /// Three densities of a cell, the thickest first.
    pub shades: [&'static str; 3],
    /// The vertical axis of a chart: beside a label, and where the axes meet.
    pub axis: (&'static str, &'static str),
    pub worse: &'static str,
    pub bad: &'static str,
    pub rise: &'static str,
    pub fall: &'static str,
    pub open: &'static str,
    pub closed: &'static str,
    pub leaf: &'static str,
    pub rule: &'static str,
    pub vertical: &'static str,
    pub badge: (&'static str, &'static str),
    pub live: &'static str,
    pub polling: &'static str,
    pub offline: &'static str,
    pub paused: &'static str,
    pub following: &'static str,
    pub back: &'static str,
    pub continued: &'static str,
    pub down: &'static str,
    pub dot: &'static str,
    pub caret: &'static str,
    pub quotes: (&'static str, &'static str),
    pub archived: &'static str,
    pub here: &'static str,
    pub masked: &'static str,
    pub marked: &'static str,
    pub corners: [&'static str; 4],
}

impl Glyphs {
    /// For terminals that show Unicode.
    pub const UNICODE: Self = Self {
        ascii: false,
        ellipsis: "…",
        cursor: "▸",
        ok: "✓",
        healthy: "·",
        failed: "✗",
        slow: "!",
        unfinished: "…",
        arrow: "→",
        none: "—",
        bar: "█",
        ramp: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
        shades: ["█", "▒", "░"],
        axis: ("┤", "┼"),
        worse: "!",
        bad: "✗",
        rise: "▲",
        fall: "▼",
        open: "▾",
        closed: "▸",
        leaf: "·",
        rule: "─",
        vertical: "│",
        badge: ("▐", "▌"),
        live: "●",
        polling: "●",
        offline: "○",
        paused: "‖",
        following: "▸",
        back: "‹",
        continued: "↳",
        down: "↓",
        dot: "·",
        caret: "^",
        quotes: ("⟨", "⟩"),
        archived: "◌",
        here: "◀",
        masked: "●",
        marked: "★",
        corners: ["┌", "┐", "└", "┘"],
    };

    /// Nothing above 0x7e.
    pub const ASCII: Self = Self {
        ascii: true,
        ellipsis: "~",
        cursor: ">",
        ok: "ok",
        healthy: ".",
        failed: "ERR",
        slow: "SLO",
        unfinished: "...",
        arrow: "to",
        none: "-",
        bar: "#",
        ramp: ["_", ".", "-", "=", "+", "*", "%", "#"],
        shades: ["#", "=", "."],
        axis: ("|", "+"),
        worse: "!",
        bad: "!!",
        rise: "^",
        fall: "v",
        open: "v",
        closed: "+",
        leaf: "-",
        rule: "-",
        vertical: "|",
        badge: ("[", "]"),
        live: "*",
        polling: "*",
        offline: "o",
        paused: "=",
        following: ">",
        back: "<",
        continued: "\\",
        down: "v",
        dot: "|",
        caret: "^",
        quotes: ("<", ">"),
        archived: "o",
        here: "<",
        masked: "*",
        marked: "*",
        corners: ["+", "+", "+", "+"],
    };

    /// Columns of the widest of the marks for fine, slow and failed.
    pub const fn mark_width(&self) -> usize {
        if self.ascii { 3 } else { 1 }
    }
}

/// Colours and characters together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Whether colours may be used.
    pub colour: bool,
    /// The characters.
    pub glyphs: Glyphs,
}

impl Theme {
    /// The theme that environment variables ask for: `NO_COLOR` and `LOUPE_THEME=mono` take
    /// the colours away, `LOUPE_ASCII=1` everything that is not ASCII.
    pub fn of_environment(read: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| read(name).is_some_and(|value| !value.is_empty());
        let mono = set("NO_COLOR") || read("LOUPE_THEME").as_deref() == Some("mono");
        let ascii = read("LOUPE_ASCII").is_some_and(|value| matches!(value.as_str(), "1" | "true" | "yes"));
        Self { colour: !mono, glyphs: if ascii { Glyphs::ASCII } else { Glyphs::UNICODE } }
    }

    /// The style of a tone.
    pub fn style(&self, tone: Tone) -> Style {
        let plain = Style::new();
        let modifier = match tone {
            Tone::Plain | Tone::Good | Tone::Field | Tone::Text | Tone::Number => plain,
            Tone::Dim => plain.add_modifier(Modifier::DIM),
            Tone::Strong | Tone::Warn | Tone::Bad => plain.add_modifier(Modifier::BOLD),
            Tone::Alarm => plain.add_modifier(Modifier::REVERSED.union(Modifier::BOLD)),
            Tone::Badge | Tone::Protected | Tone::Selected => plain.add_modifier(Modifier::REVERSED),
            Tone::Hit => plain.add_modifier(Modifier::UNDERLINED.union(Modifier::BOLD)),
        };
        if !self.colour {
            return modifier;
        }
        match tone {
            Tone::Good => modifier.fg(Color::Green),
            Tone::Warn | Tone::Hit => modifier.fg(Color::Yellow),
            Tone::Bad | Tone::Alarm => modifier.fg(Color::Red),
            Tone::Field => modifier.fg(Color::Cyan),
            Tone::Text => modifier.fg(Color::Green),
            Tone::Number => modifier.fg(Color::Magenta),
            Tone::Badge => modifier.fg(Color::Cyan),
            Tone::Protected => modifier.fg(Color::Red),
            Tone::Plain | Tone::Dim | Tone::Strong | Tone::Selected => modifier,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_colour_means_no_colour_in_any_tone() {
        let theme = Theme::of_environment(|name| (name == "NO_COLOR").then(|| "1".to_owned()));
        for tone in [
            Tone::Plain,
            Tone::Good,
            Tone::Bad,
            Tone::Alarm,
            Tone::Badge,
            Tone::Protected,
            Tone::Hit,
            Tone::Number,
        ] {
            assert_eq!(theme.style(tone).fg, None);
            assert_eq!(theme.style(tone).bg, None);
        }
    }

    #[test]
    fn empty_no_color_variable_is_ignored() {
        assert!(Theme::of_environment(|name| (name == "NO_COLOR").then(String::new)).colour);
        assert!(Theme::of_environment(|_| None).colour);
    }
}
