//! Makes text of unknown origin safe to show on a terminal.
//!
//! Traces contain arbitrary text of models and users, including escape sequences. All text that reaches
//! a screen, a table or a log line passes through [`printable`].

use std::{borrow::Cow, fmt::Write as _};

/// Replaces every control character by a visible mark: `⟦ESC⟧` for escape, `⟦07⟧`, `⟦9B⟧`, `⟦202E⟧` for
/// others (the code point in hexadecimal).
///
/// Control characters are C0 (line feed and tab included), DEL, C1, the bidirectional controls and the
/// line and paragraph separators. A caller that wants to keep lines or tabs splits or expands them
/// first. Text without control characters is borrowed.
pub fn printable(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(is_control) else {
        return Cow::Borrowed(text);
    };
    let (clean, rest) = text.split_at(first);
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(clean);
    for c in rest.chars() {
        match c {
            '\u{1b}' => shown.push_str("⟦ESC⟧"),
            // Writing to a String cannot fail.
            _ if is_control(c) => _ = write!(shown, "⟦{:02X}⟧", u32::from(c)),
            _ => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Returns whether a character controls a terminal or the reading order instead of being displayed.
pub fn is_control(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_characters_become_marks() {
        for (text, shown) in [
            ("plain, häßlich, 日本 🙏", "plain, häßlich, 日本 🙏"),
            ("\u{1b}[31mred", "⟦ESC⟧[31mred"),
            ("bell\u{7}", "bell⟦07⟧"),
            ("a\r\nb", "a⟦0D⟧⟦0A⟧b"),
            ("\u{9b}2J\u{7f}", "⟦9B⟧2J⟦7F⟧"),
            ("\u{202e}txt.exe", "⟦202E⟧txt.exe"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }

    #[test]
    fn text_without_controls_is_borrowed() {
        assert!(matches!(printable("refund_agent"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn printable_text_contains_no_controls(text in any::<String>()) {
            let shown = printable(&text);
            prop_assert!(!shown.chars().any(|c| c.is_control() || is_control(c)));
        }

        #[test]
        fn printable_text_keeps_other_characters_in_order(text in any::<String>()) {
            let kept: String = text.chars().filter(|c| !is_control(*c) && !"⟦⟧".contains(*c)).collect();
            let shown = printable(&text);
            let mut outside = String::new();
            let mut inside = false;
            for c in shown.chars() {
                match c {
                    '⟦' => inside = true,
                    '⟧' => inside = false,
                    _ if !inside => outside.push(c),
                    _ => {}
                }
            }
            // Brackets in the text itself would look like marks here.
            prop_assume!(!text.contains(['⟦', '⟧']));
            prop_assert_eq!(outside, kept);
        }
    }
}
