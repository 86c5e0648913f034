//! The console's theme: tones as styles of ratatui, and the glyphs.

use present::tone::Colour;
pub use present::{Glyphs, Tone};
use ratatui::style::{Color, Modifier, Style};

/// Colours and characters together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Whether colours are used.
    pub colour: bool,
    /// The characters.
    pub glyphs: Glyphs,
}

impl Theme {
    /// Returns the theme that environment variables select: `NO_COLOR` and `LOUPE_THEME=mono` turn
    /// colours off, `LOUPE_ASCII=1` restricts glyphs to ASCII.
    pub fn of_environment(read: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| read(name).is_some_and(|value| !value.is_empty());
        let mono = set("NO_COLOR") || read("LOUPE_THEME").as_deref() == Some("mono");
        let ascii = read("LOUPE_ASCII").is_some_and(|value| matches!(value.as_str(), "1" | "true" | "yes"));
        Self { colour: !mono, glyphs: if ascii { Glyphs::ASCII } else { Glyphs::UNICODE } }
    }

    /// Returns the style of a tone.
    pub fn style(&self, tone: Tone) -> Style {
        let look = tone.appearance();
        let modifiers = [
            (look.bold, Modifier::BOLD),
            (look.dim, Modifier::DIM),
            (look.reversed, Modifier::REVERSED),
            (look.underlined, Modifier::UNDERLINED),
        ];
        let modifiers = modifiers.into_iter().filter(|(is_set, _)| *is_set).map(|(_, it)| it);
        let style = Style::new().add_modifier(modifiers.collect());
        match look.colour.filter(|_| self.colour) {
            Some(Colour::Red) => style.fg(Color::Red),
            Some(Colour::Green) => style.fg(Color::Green),
            Some(Colour::Yellow) => style.fg(Color::Yellow),
            Some(Colour::Magenta) => style.fg(Color::Magenta),
            Some(Colour::Cyan) => style.fg(Color::Cyan),
            None => style,
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
