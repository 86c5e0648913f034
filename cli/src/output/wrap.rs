//! Wraps long lines for a terminal between words, indented to the start of their text.

use std::io::IsTerminal;

use present::text::wrap;

/// Minimum width in columns at which lines are wrapped. A narrower terminal wraps lines itself.
const MIN_WRAP_COLUMNS: usize = 40;

/// Wraps the lines that are wider than the terminal. A line with a caret below it stays unchanged.
pub fn wrap_lines(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns.filter(|columns| *columns >= MIN_WRAP_COLUMNS) else {
        return text.to_owned();
    };
    let mut wrapped = String::with_capacity(text.len() + 16);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_pointed_at = lines.peek().is_some_and(|next| next.trim() == "^");
        let (label, rest) = line.split_at(label(line));
        let room = columns.saturating_sub(label.len());
        if is_pointed_at || rest.is_empty() || room < MIN_WRAP_COLUMNS / 2 {
            wrapped.push_str(&format!("{line}\n"));
            continue;
        }
        for (index, part) in wrap(rest, room).into_iter().enumerate() {
            let label = if index == 0 { label.to_owned() } else { " ".repeat(label.len()) };
            wrapped.push_str(&format!("{label}{}\n", part.trim_end()));
        }
    }
    wrapped
}

/// Returns the width of the terminal of stderr, if stderr is a terminal.
pub fn columns_of_stderr() -> Option<usize> {
    std::io::stderr()
        .is_terminal()
        .then(crossterm::terminal::size)
        .and_then(Result::ok)
        .map(|(columns, _)| columns.into())
}

/// Returns the column at which the text of a line begins: after an indented label, if there is one.
fn label(line: &str) -> usize {
    if !line.starts_with("  ") {
        return 0;
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let after = line[indent..].find("  ").map_or(indent, |gap| {
        let at = indent + gap;
        at + line[at..].len() - line[at..].trim_start_matches(' ').len()
    });
    if after <= 16 && line[..after].is_ascii() { after } else { indent }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_are_indented_to_their_text() {
        let text = "error: short\n  hint        one two three four five six seven eight nine ten\n";
        let wrapped =
            "error: short\n  hint        one two three four five\n              six seven eight nine ten\n";
        assert_eq!(wrap_lines(text, Some(40)), wrapped);
        assert_eq!(wrap_lines(text, None), text);
        assert_eq!(wrap_lines(text, Some(20)), text);
    }

    #[test]
    fn line_above_a_caret_is_not_wrapped() {
        let long = "x".repeat(60);
        let text = format!("error: no\n  {long}\n    ^\n");
        assert_eq!(wrap_lines(&text, Some(40)), text);
    }
}
