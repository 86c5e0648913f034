//! Lays out the diff of two texts: one below the other, or side by side.

use present::{
    Glyphs, Tone,
    diff::{DiffBlock, DiffLine, DiffSpan, FoldedLines, TextDiff, wrap},
    text::{cut, width},
};

use crate::widgets::table::Pieces;

/// Lines around a change that are shown where common lines are left out.
const CONTEXT_LINES: usize = 2;

/// The layout of a diff.
#[derive(Clone, Copy, Debug)]
pub struct DiffLayout {
    /// The columns.
    pub cols: usize,
    /// Whether the lines of both texts are one below the other.
    pub is_unified: bool,
    /// Whether lines that both texts have are shown in full.
    pub is_whole: bool,
    /// The characters of the terminal.
    pub glyphs: Glyphs,
}

/// Returns the lines of a diff below the titles of the two texts.
pub fn lines(titles: [&str; 2], old: &str, new: &str, layout: &DiffLayout) -> Vec<Pieces> {
    let TextDiff { blocks, is_cut } = TextDiff::new(old, new);
    let mut lines = if layout.is_unified {
        unified(titles, &blocks, layout)
    } else {
        side_by_side(titles, &blocks, layout)
    };
    if blocks.iter().all(|block| matches!(block, DiffBlock::Same(_))) {
        lines.push(Pieces::new().add(Tone::Dim, " (the texts are equal)"));
    }
    if is_cut {
        lines.push(Pieces::new().add(Tone::Warn, " (only the first 256 KiB of the texts are compared)"));
    }
    lines
}

/// Returns the common lines of a block that are shown.
fn common<'lines, 'text>(
    lines: &'lines [&'text str],
    at: usize,
    blocks: &[DiffBlock<'_>],
    is_whole: bool,
) -> FoldedLines<'lines, 'text> {
    match is_whole {
        true => FoldedLines::whole(lines),
        false => FoldedLines::near_changes(lines, at, blocks, CONTEXT_LINES),
    }
}

fn left_out_line(count: usize, layout: &DiffLayout) -> Pieces {
    Pieces::new().add(Tone::Dim, format!(" {} {count} equal lines", layout.glyphs.ellipsis))
}

/// Returns the lines of one line of text: wrapped, each with a mark, in a tone where the other text differs.
fn wrapped(mark: &str, tone: Tone, line: &[DiffSpan<'_>], cols: usize) -> Vec<Pieces> {
    let room = cols.saturating_sub(width(mark) + 1).max(1);
    let rows = wrap(line, room).into_iter().map(|row| {
        let start = Pieces::new().add(tone, mark.to_owned());
        row.into_iter().fold(start, |pieces, span| {
            pieces.add(if span.is_changed { tone } else { Tone::Plain }, span.text)
        })
    });
    rows.collect()
}

fn whole(text: &str) -> [DiffSpan<'_>; 1] {
    [DiffSpan { text, is_changed: false }]
}

fn unified(titles: [&str; 2], blocks: &[DiffBlock<'_>], layout: &DiffLayout) -> Vec<Pieces> {
    let cols = layout.cols;
    let [old, new] = titles;
    let title = |mark: &str, tone, text: &str| {
        Pieces::new().add(tone, format!("{mark} {}", cut(text, cols.saturating_sub(5), &layout.glyphs)))
    };
    let mut lines = vec![title("---", Tone::Bad, old), title("+++", Tone::Good, new)];
    for (at, block) in blocks.iter().enumerate() {
        match block {
            DiffBlock::Same(same) => {
                let shown = common(same, at, blocks, layout.is_whole);
                let plain = |text: &&str| wrapped(" ", Tone::Plain, &whole(text), cols);
                lines.extend(shown.before.iter().flat_map(plain));
                if shown.left_out > 0 {
                    lines.push(left_out_line(shown.left_out, layout));
                }
                lines.extend(shown.after.iter().flat_map(plain));
            }
            DiffBlock::Changed { old, new } => {
                lines.extend(old.iter().flat_map(|line| wrapped("-", Tone::Bad, line, cols)));
                lines.extend(new.iter().flat_map(|line| wrapped("+", Tone::Good, line, cols)));
            }
        }
    }
    lines
}

fn side_by_side(titles: [&str; 2], blocks: &[DiffBlock<'_>], layout: &DiffLayout) -> Vec<Pieces> {
    let cols = layout.cols.saturating_sub(1) / 2;
    let title = |text: &str| {
        vec![
            Pieces::new()
                .add(Tone::Strong, format!(" {}", cut(text, cols.saturating_sub(2), &layout.glyphs))),
        ]
    };
    let mut lines = joined(title(titles[0]), title(titles[1]), cols, layout);
    for (at, block) in blocks.iter().enumerate() {
        match block {
            DiffBlock::Same(same) => {
                let shown = common(same, at, blocks, layout.is_whole);
                let plain = |text: &&str| {
                    let side = || wrapped(" ", Tone::Plain, &whole(text), cols);
                    joined(side(), side(), cols, layout)
                };
                lines.extend(shown.before.iter().flat_map(plain));
                if shown.left_out > 0 {
                    lines.push(left_out_line(shown.left_out, layout));
                }
                lines.extend(shown.after.iter().flat_map(plain));
            }
            DiffBlock::Changed { old, new } => {
                let side = |mark, tone, line: Option<&DiffLine<'_>>| {
                    line.map(|line| wrapped(mark, tone, line, cols)).unwrap_or_default()
                };
                for at in 0..old.len().max(new.len()) {
                    let left = side("-", Tone::Bad, old.get(at));
                    lines.extend(joined(left, side("+", Tone::Good, new.get(at)), cols, layout));
                }
            }
        }
    }
    lines
}

/// Joins the rows of two sides.
fn joined(left: Vec<Pieces>, right: Vec<Pieces>, cols: usize, layout: &DiffLayout) -> Vec<Pieces> {
    let count = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let row = |_| {
        let start = left.next().unwrap_or_default();
        let gap = cols.saturating_sub(start.width());
        let start = start.plain(" ".repeat(gap)).add(Tone::Dim, layout.glyphs.vertical);
        start.join(right.next().unwrap_or_default())
    };
    (0..count).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(is_unified: bool, is_whole: bool) -> DiffLayout {
        DiffLayout { cols: 41, is_unified, is_whole, glyphs: Glyphs::UNICODE }
    }

    fn text(lines: &[Pieces]) -> Vec<String> {
        lines.iter().map(|line| line.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn unified_diff_leaves_out_distant_common_lines() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\nold\n";
        let new = "a\nb\nc\nd\ne\nf\ng\nh\nnew\nmore\n";
        let lines = lines(["v1", "v2"], old, new, &layout(true, false));
        assert_eq!(
            text(&lines),
            ["--- v1", "+++ v2", " … 6 equal lines", " g", " h", "-old", "+new", "+more"]
        );
        let whole = super::lines(["v1", "v2"], old, new, &layout(true, true));
        assert_eq!(whole.len(), 2 + 8 + 3);
    }

    #[test]
    fn two_sides_are_aligned_and_wrapped() {
        let lines = lines(
            ["v1", "v2"],
            "same\nOffer a refund if the user asks for it.",
            "same\nNever.",
            &layout(false, true),
        );
        assert_eq!(
            text(&lines),
            [
                " v1                 │ v2",
                " same               │ same",
                "-Offer a refund if  │+Never.",
                "-the user asks for  │",
                "-it.                │",
            ]
        );
    }

    #[test]
    fn hostile_text_of_a_diff_has_no_control_characters() {
        for is_unified in [true, false] {
            let lines =
                lines(["v1", "v2"], "a\u{1b}[2J\u{202e}b\rc", "\u{7}d\u{9b}31m", &layout(is_unified, true));
            let all = text(&lines).concat();
            assert!(!all.chars().any(|c| c.is_control() || c == '\u{202e}'), "{all:?}");
            assert!(lines.iter().all(|line| line.width() <= 41), "{all:?}");
        }
    }

    #[test]
    fn equal_texts_are_called_equal() {
        let lines = lines(["v1", "v2"], "a\nb", "a\nb", &layout(true, false));
        assert!(text(&lines).last().is_some_and(|line| line.contains("equal")));
    }
}
