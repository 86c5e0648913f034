//! Display of the difference between two texts, unified or side by side.

use present::{
    diff::{DiffBlock, DiffLine, DiffSpan, FoldedLines, TextDiff, WrappedSpan, wrap},
    text::width,
};

use super::cell::{Style, Tone};

/// Number of common lines that are shown before and after changed ones.
const CONTEXT_LINES: usize = 3;
/// Minimum width in columns to which texts are wrapped.
const MIN_TEXT_COLUMNS: usize = 20;
/// Width in columns where there is no terminal.
const DEFAULT_COLUMNS: usize = 120;
/// Width in columns of the signs and the line between the two sides.
const SIDE_BY_SIDE_FRAME_COLUMNS: usize = 5;

/// The names of the two texts, for the head of a diff.
#[derive(Clone, Copy, Debug)]
pub struct DiffNames<'a> {
    /// The name of the old text.
    pub old: &'a str,
    /// The name of the new text.
    pub new: &'a str,
}

/// Note of a diff that does not compare the ends of its texts.
const CUT_NOTE: &str = "only the first 256 KiB of the texts are compared";

/// A row of a diff: a line, the number of lines that are left out, or changed lines.
enum DiffRow<'diff, 'text> {
    Same(&'text str),
    Hidden(usize),
    Changed(&'diff [DiffLine<'text>], &'diff [DiffLine<'text>]),
}

/// Formats a diff with the old lines above the new ones, wrapped and never cut.
pub fn unified(names: DiffNames<'_>, diff: &TextDiff<'_>, style: &Style, columns: Option<usize>) -> String {
    let room = columns.unwrap_or(DEFAULT_COLUMNS * 100).saturating_sub(2).max(MIN_TEXT_COLUMNS);
    let head = |sign: &str, name: &str| style.paint(&format!("{sign} {}", clean(name)), Tone::Strong) + "\n";
    let mut text = head("---", names.old) + &head("+++", names.new);
    for row in rows(&diff.blocks) {
        match row {
            DiffRow::Hidden(lines) => text.push_str(&note(&format!("{lines} common lines"), style)),
            DiffRow::Same(line) => push_line(&mut text, ' ', &plain(line), room, style),
            DiffRow::Changed(old, new) => {
                old.iter().for_each(|line| push_line(&mut text, '-', line, room, style));
                new.iter().for_each(|line| push_line(&mut text, '+', line, room, style));
            }
        }
    }
    if diff.is_cut {
        text.push_str(&note(CUT_NOTE, style));
    }
    text
}

/// Formats a diff with the old text on the left and the new one on the right. A narrow terminal gets
/// [`unified`].
pub fn side_by_side(
    names: DiffNames<'_>,
    diff: &TextDiff<'_>,
    style: &Style,
    columns: Option<usize>,
) -> String {
    let room = columns.unwrap_or(DEFAULT_COLUMNS).saturating_sub(SIDE_BY_SIDE_FRAME_COLUMNS) / 2;
    if room < MIN_TEXT_COLUMNS {
        return unified(names, diff, style, columns);
    }
    let mut text = String::new();
    let mut push = |old: Option<(char, &DiffLine<'_>)>, new: Option<(char, &DiffLine<'_>)>| {
        let wrapped =
            |side: Option<(char, &DiffLine<'_>)>| side.map(|(_, line)| wrap(line, room)).unwrap_or_default();
        let (left, right) = (wrapped(old), wrapped(new));
        for at in 0..left.len().max(right.len()) {
            let left = half(old.map(|it| it.0), left.get(at), style);
            let right = half(new.map(|it| it.0), right.get(at), style);
            let fill = " ".repeat((room + 1).saturating_sub(left.1));
            let line = format!("{}{fill} {} {}", left.0, style.glyphs.vertical, right.0);
            text.push_str(line.trim_end());
            text.push('\n');
        }
    };
    push(Some((' ', &plain(names.old))), Some((' ', &plain(names.new))));
    let left_out = |lines: usize| format!("{} {lines} common lines", style.glyphs.ellipsis);
    for row in rows(&diff.blocks) {
        match row {
            DiffRow::Hidden(lines) => push(Some((' ', &plain(&left_out(lines)))), None),
            DiffRow::Same(line) => push(Some((' ', &plain(line))), Some((' ', &plain(line)))),
            DiffRow::Changed(old, new) => {
                for at in 0..old.len().max(new.len()) {
                    push(old.get(at).map(|it| ('-', it)), new.get(at).map(|it| ('+', it)));
                }
            }
        }
    }
    if diff.is_cut {
        text.push_str(&note(CUT_NOTE, style));
    }
    text
}

/// Returns the rows of a diff, without the common lines that are far from changed ones.
fn rows<'diff, 'text>(blocks: &'diff [DiffBlock<'text>]) -> Vec<DiffRow<'diff, 'text>> {
    let mut rows = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let lines = match block {
            DiffBlock::Changed { old, new } => {
                rows.push(DiffRow::Changed(old, new));
                continue;
            }
            DiffBlock::Same(lines) => FoldedLines::near_changes(lines, at, blocks, CONTEXT_LINES),
        };
        rows.extend(lines.before.iter().map(|line| DiffRow::Same(line)));
        rows.extend((lines.left_out > 0).then_some(DiffRow::Hidden(lines.left_out)));
        rows.extend(lines.after.iter().map(|line| DiffRow::Same(line)));
    }
    rows
}

fn plain(line: &str) -> DiffLine<'_> {
    vec![DiffSpan { text: line, is_changed: false }]
}

fn clean(text: &str) -> String {
    present::text::clean(&text.replace('\n', " ")).into_owned()
}

/// Formats a line about the diff itself.
fn note(text: &str, style: &Style) -> String {
    style.paint(&format!("  {} {text}", style.glyphs.ellipsis), Tone::Dim) + "\n"
}

fn push_line(text: &mut String, sign: char, line: &DiffLine<'_>, room: usize, style: &Style) {
    for row in wrap(line, room) {
        let (row, _) = half(Some(sign), Some(&row), style);
        text.push_str(row.trim_end());
        text.push('\n');
    }
}

/// Formats one wrapped line after its sign. Returns it with its width in columns.
fn half(sign: Option<char>, row: Option<&Vec<WrappedSpan>>, style: &Style) -> (String, usize) {
    let (Some(sign), Some(row)) = (sign, row) else { return (" ".to_owned(), 1) };
    let tone = match sign {
        '-' => Tone::Bad,
        '+' => Tone::Good,
        _ => Tone::Plain,
    };
    let mut text = style.paint(&sign.to_string(), tone);
    for span in row {
        text.push_str(&style.paint(&span.text, if span.is_changed { tone } else { Tone::Plain }));
    }
    (text, 1 + row.iter().map(|it| width(&it.text)).sum::<usize>())
}

#[cfg(test)]
mod tests {
    use present::Glyphs;

    use super::*;

    const NAMES: DiffNames<'_> = DiffNames { old: "original", new: "remediated" };

    fn style(colour: bool) -> Style {
        Style { colour, glyphs: Glyphs::UNICODE, utc: true, now: Default::default() }
    }

    #[test]
    fn unified_diff_leaves_out_distant_common_lines() {
        let lines = |changed: &str| {
            (1..=20)
                .map(|n| if n == 10 { changed.to_owned() } else { format!("line {n}") })
                .collect::<Vec<_>>()
                .join("\n")
        };
        let text =
            unified(NAMES, &TextDiff::new(&lines("one two"), &lines("one three")), &style(false), Some(80));
        let wanted = "--- original\n+++ remediated\n  … 6 common lines\n line 7\n line 8\n line 9\n-one two\n+one three\n line 11\n line 12\n line 13\n  … 7 common lines\n";
        assert_eq!(text, wanted);
        let coloured = unified(NAMES, &TextDiff::new("one two", "one three"), &style(true), Some(80));
        assert!(coloured.contains("one \u{1b}[31mtwo\u{1b}[0m\n"), "{coloured:?}");
    }

    #[test]
    fn diff_of_hostile_text_has_no_control_characters_and_fits() {
        let (old, new) = ("a\u{1b}[2J b\u{202e}c\r\tレポート ".repeat(9), "a\u{1b}]0;x\u{7} d ".repeat(9));
        let diff = TextDiff::new(&old, &new);
        for columns in [25, 40, 46, 80, 120] {
            for text in [
                unified(NAMES, &diff, &style(false), Some(columns)),
                side_by_side(NAMES, &diff, &style(false), Some(columns)),
            ] {
                assert!(!text.chars().any(|c| c != '\n' && c.is_control()), "{text:?}");
                assert!(!text.contains('\u{202e}'), "{text:?}");
                assert!(text.lines().all(|line| width(line) <= columns), "{columns}: {text}");
            }
        }
    }

    #[test]
    fn sides_are_paired_line_by_line() {
        let text = side_by_side(
            NAMES,
            &TextDiff::new("same\nold word\n", "same\nnew word\nmore\n"),
            &style(false),
            Some(45),
        );
        let wanted = " original             │  remediated\n same                 │  same\n-old word             │ +new word\n                      │ +more\n";
        assert_eq!(text, wanted);
    }
}
