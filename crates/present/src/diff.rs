//! The difference between two texts: by lines, and by words within changed lines.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::text;

/// Maximum number of edits that a comparison searches for. The memory of a comparison grows with its square.
const MAX_EDITS: usize = 1_000;
/// Maximum number of lines and words that the search compares for one diff. The search for the edits of long texts that
/// repeat the same line compares most of them many times.
const MAX_COMPARISONS: usize = 10_000_000;
/// Maximum size in bytes of the part of a text that is compared.
const MAX_TEXT_BYTES: usize = 256 * 1_024;
/// Minimum share of common letters and digits from which words are compared within changed lines. Texts with less in
/// common are different texts, in which equal words are a coincidence.
const MIN_COMMON_SHARE: f64 = 0.3;

/// Consecutive lines of two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffBlock<'a> {
    /// Lines that both texts have.
    Same(Vec<&'a str>),
    /// Lines of the old text that are replaced by lines of the new text; one of them may be empty.
    Changed {
        /// The lines of the old text.
        old: Vec<DiffLine<'a>>,
        /// The lines of the new text.
        new: Vec<DiffLine<'a>>,
    },
}

/// A changed line, in parts.
pub type DiffLine<'a> = Vec<DiffSpan<'a>>;

/// A part of a changed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffSpan<'a> {
    /// The text, as it was compared.
    pub text: &'a str,
    /// Whether the other text lacks it.
    pub is_changed: bool,
}

/// A part of a line that fits into the columns of a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedSpan {
    /// The text without control characters.
    pub text: String,
    /// Whether the other text lacks it.
    pub is_changed: bool,
}

/// The difference between the first 256 KiB of two texts.
#[derive(Clone, Debug)]
pub struct TextDiff<'a> {
    /// The blocks, in order.
    pub blocks: Vec<DiffBlock<'a>>,
    /// Whether a text is longer than the compared part.
    pub is_cut: bool,
}

impl<'a> TextDiff<'a> {
    /// Compares two texts.
    pub fn new(old: &'a str, new: &'a str) -> Self {
        let compared = |text: &'a str| &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        let is_cut = old.len().max(new.len()) > MAX_TEXT_BYTES;
        Self { blocks: diff(compared(old), compared(new)), is_cut }
    }

    /// Returns the numbers of changed lines of both texts.
    pub fn changed_line_counts(&self) -> (usize, usize) {
        self.blocks.iter().fold((0, 0), |counts, block| match block {
            DiffBlock::Same(_) => counts,
            DiffBlock::Changed { old, new } => (counts.0 + old.len(), counts.1 + new.len()),
        })
    }
}

/// Common lines without their middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldedLines<'lines, 'text> {
    /// The first lines that are shown.
    pub before: &'lines [&'text str],
    /// The number of lines that are left out after them.
    pub left_out: usize,
    /// The last lines that are shown.
    pub after: &'lines [&'text str],
}

impl<'lines, 'text> FoldedLines<'lines, 'text> {
    /// Shows all lines.
    pub fn whole(lines: &'lines [&'text str]) -> Self {
        Self { before: lines, left_out: 0, after: &[] }
    }

    /// Leaves out the common lines of block `at` of a diff that are further than `context` lines from a changed one, if
    /// at least two are: a note of a single one is no shorter.
    pub fn near_changes(
        lines: &'lines [&'text str],
        at: usize,
        blocks: &[DiffBlock<'_>],
        context: usize,
    ) -> Self {
        let start = if at == 0 { 0 } else { context };
        let end = if at + 1 == blocks.len() { 0 } else { context };
        let left_out = lines.len().saturating_sub(start + end);
        if left_out < 2 {
            return Self::whole(lines);
        }
        Self { before: &lines[..start], left_out, after: &lines[lines.len() - end..] }
    }
}

/// Compares two texts. Line breaks at their ends are not compared.
fn diff<'a>(old: &'a str, new: &'a str) -> Vec<DiffBlock<'a>> {
    let mut comparisons = MAX_COMPARISONS;
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut blocks = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    let mut same: Vec<&str> = Vec::new();
    let ends = std::iter::once((old.len(), new.len()));
    for (old_end, new_end) in common_pairs(&old, &new, &mut comparisons).into_iter().chain(ends) {
        if old_at < old_end || new_at < new_end {
            if !same.is_empty() {
                blocks.push(DiffBlock::Same(std::mem::take(&mut same)));
            }
            let (old, new) = changed_lines(&old[old_at..old_end], &new[new_at..new_end], &mut comparisons);
            blocks.push(DiffBlock::Changed { old, new });
        }
        same.extend(old.get(old_end));
        (old_at, new_at) = (old_end + 1, new_end + 1);
    }
    if !same.is_empty() {
        blocks.push(DiffBlock::Same(same));
    }
    blocks
}

/// Breaks a line into lines of at most `cols` columns without control characters. Returns at least one line.
pub fn wrap(line: &[DiffSpan<'_>], cols: usize) -> Vec<Vec<WrappedSpan>> {
    let mut clean = String::new();
    let mut parts: Vec<(Range<usize>, bool)> = Vec::new();
    for span in line {
        let start = clean.len();
        clean.push_str(&text::clean(span.text));
        parts.push((start..clean.len(), span.is_changed));
    }
    let mut at = 0;
    let mut wrapped = Vec::new();
    for row in text::wrap(&clean, cols) {
        // Blanks at which a line is broken are on neither of the two lines.
        while at < clean.len() && !clean[at..].starts_with(&row) {
            at += clean[at..].chars().next().map_or(1, char::len_utf8);
        }
        let end = at + row.len();
        let within = |(part, is_changed): &(Range<usize>, bool)| {
            let text = clean.get(part.start.max(at)..part.end.min(end))?;
            (!text.is_empty()).then(|| WrappedSpan { text: text.to_owned(), is_changed: *is_changed })
        };
        wrapped.push(parts.iter().filter_map(within).collect());
        at = end;
    }
    wrapped
}

/// Returns the lines of a changed block, with the words that the other text lacks.
fn changed_lines<'a>(
    old: &[&'a str],
    new: &[&'a str],
    comparisons: &mut usize,
) -> (Vec<DiffLine<'a>>, Vec<DiffLine<'a>>) {
    let (old_words, new_words) = (words(old), words(new));
    let (mut in_new, mut in_old) = (vec![false; old_words.len()], vec![false; new_words.len()]);
    let pairs = common_pairs(&old_words, &new_words, comparisons);
    let letters = |words: &[&str]| words.iter().map(|it| significant(it)).sum::<usize>();
    let common: usize = pairs.iter().map(|(at, _)| significant(old_words[*at])).sum();
    let shorter = letters(&old_words).min(letters(&new_words));
    if common as f64 >= shorter as f64 * MIN_COMMON_SHARE {
        for (old_at, new_at) in pairs {
            (in_new[old_at], in_old[new_at]) = (true, true);
        }
    }
    for (words, is_common) in [(&old_words, &mut in_new), (&new_words, &mut in_old)] {
        join_changed_words(words, is_common);
    }
    (spans(old, &old_words, &in_new), spans(new, &new_words, &in_old))
}

/// Counts blanks between changed words as changed, so that these words are one part.
fn join_changed_words(words: &[&str], is_common: &mut [bool]) {
    for at in 1..words.len().saturating_sub(1) {
        let is_blank = words[at] != "\n" && words[at].trim().is_empty();
        if is_blank && !is_common[at - 1] && !is_common[at + 1] {
            is_common[at] = false;
        }
    }
}

/// Returns the number of letters and digits of a word.
fn significant(word: &str) -> usize {
    word.chars().filter(|it| it.is_alphanumeric()).count()
}

/// Returns the words of lines, with a line break after each line.
fn words<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    lines.iter().flat_map(|line| line.split_word_bounds().chain(std::iter::once("\n"))).collect()
}

/// Joins the words of lines to parts that are entirely common or changed.
fn spans<'a>(lines: &[&'a str], words: &[&str], is_common: &[bool]) -> Vec<DiffLine<'a>> {
    let mut flagged = words.iter().zip(is_common);
    let of_line = |line: &&'a str| {
        let mut spans: DiffLine<'a> = Vec::new();
        let (mut start, mut at) = (0, 0);
        let mut current = None;
        for (word, is_common) in flagged.by_ref().take_while(|(word, _)| **word != "\n") {
            if current.is_some_and(|it| it == *is_common) {
                at += word.len();
                continue;
            }
            if let Some(was_common) = current.replace(*is_common) {
                spans.push(DiffSpan { text: &line[start..at], is_changed: !was_common });
            }
            (start, at) = (at, at + word.len());
        }
        if let Some(was_common) = current {
            spans.push(DiffSpan { text: &line[start..at], is_changed: !was_common });
        }
        spans
    };
    lines.iter().map(of_line).collect()
}

/// Returns the positions of equal elements in both lists, in order: a longest common subsequence. If the lists differ
/// by more than [`MAX_EDITS`] edits, or no comparisons are left, only their equal ends are common.
fn common_pairs<T: PartialEq>(old: &[T], new: &[T], comparisons: &mut usize) -> Vec<(usize, usize)> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - end, new.len() - end);
    let middle = shortest_edit(&old[start..old_end], &new[start..new_end], comparisons);
    let mut pairs: Vec<(usize, usize)> = (0..start).map(|at| (at, at)).collect();
    pairs.extend(middle.into_iter().map(|(a, b)| (start + a, start + b)));
    pairs.extend((0..end).map(|at| (old_end + at, new_end + at)));
    pairs
}

/// The furthest position in the old list that a number of edits reaches on each diagonal.
struct Frontier {
    /// The position on diagonal `k` is at `k + edits`.
    positions: Vec<isize>,
    edits: isize,
}

impl Frontier {
    fn at(&self, diagonal: isize) -> isize {
        usize::try_from(diagonal + self.edits)
            .ok()
            .and_then(|it| self.positions.get(it))
            .copied()
            .unwrap_or(-1)
    }

    /// Returns the diagonal from which one more edit reaches `diagonal`.
    fn previous(&self, diagonal: isize) -> isize {
        let (insert, delete) = (self.at(diagonal + 1), self.at(diagonal - 1));
        if diagonal == -self.edits - 1 || (diagonal != self.edits + 1 && delete < insert) {
            diagonal + 1
        } else {
            diagonal - 1
        }
    }
}

/// Finds a shortest edit (E. W. Myers, "An O(ND) Difference Algorithm", 1986) and returns the pairs that it keeps;
/// none if it has more than [`MAX_EDITS`] edits, or if it is not found with the comparisons that are left.
fn shortest_edit<T: PartialEq>(old: &[T], new: &[T], comparisons: &mut usize) -> Vec<(usize, usize)> {
    let (old_len, new_len) = (old.len() as isize, new.len() as isize);
    let is_equal = |x: isize, y: isize| {
        let (x, y) = (usize::try_from(x).ok(), usize::try_from(y).ok());
        matches!((x.and_then(|it| old.get(it)), y.and_then(|it| new.get(it))), (Some(a), Some(b)) if a == b)
    };
    let follow = |mut x: isize, diagonal: isize, comparisons: &mut usize| {
        while *comparisons > 0 {
            *comparisons -= 1;
            if !is_equal(x, x - diagonal) {
                break;
            }
            x += 1;
        }
        x
    };
    let mut frontiers = vec![Frontier { positions: vec![follow(0, 0, comparisons)], edits: 0 }];
    loop {
        // Without comparisons, the last frontier may be too short.
        let Some(last) = frontiers.last().filter(|_| *comparisons > 0) else { return Vec::new() };
        let end = old_len - new_len;
        if end.abs() <= last.edits && (end + last.edits) % 2 == 0 && last.at(end) >= old_len {
            break;
        }
        if frontiers.len() > MAX_EDITS {
            return Vec::new();
        }
        let edits = last.edits + 1;
        let reach = |diagonal: isize| {
            if (diagonal + edits) % 2 != 0 {
                return -1;
            }
            let previous = last.previous(diagonal);
            // A deletion moves forward in the old list, an insertion only in the new one.
            let x = last.at(previous) + isize::from(previous < diagonal);
            follow(x, diagonal, comparisons)
        };
        frontiers.push(Frontier { positions: (-edits..=edits).map(reach).collect(), edits });
    }
    let mut pairs = Vec::new();
    let (mut x, mut y) = (old_len, new_len);
    frontiers.pop();
    let mut keep = |x: isize, y: isize| {
        pairs.extend(usize::try_from(x).ok().zip(usize::try_from(y).ok()));
    };
    for frontier in frontiers.iter().rev() {
        let previous = frontier.previous(x - y);
        let (previous_x, previous_y) = (frontier.at(previous), frontier.at(previous) - previous);
        while x > previous_x && y > previous_y {
            (x, y) = (x - 1, y - 1);
            keep(x, y);
        }
        (x, y) = (previous_x, previous_y);
    }
    while x > 0 && y > 0 {
        (x, y) = (x - 1, y - 1);
        keep(x, y);
    }
    pairs.reverse();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a diff as text: `=` before common lines, `-` and `+` before others, changed words in brackets.
    fn shown(old: &str, new: &str) -> String {
        let line = |sign: char, line: &DiffLine<'_>| {
            let part =
                |it: &DiffSpan<'_>| if it.is_changed { format!("[{}]", it.text) } else { it.text.to_owned() };
            format!("{sign}{}\n", line.iter().map(part).collect::<String>())
        };
        let block = |block: &DiffBlock<'_>| match block {
            DiffBlock::Same(lines) => lines.iter().map(|it| format!("={it}\n")).collect::<String>(),
            DiffBlock::Changed { old, new } => {
                old.iter().map(|it| line('-', it)).chain(new.iter().map(|it| line('+', it))).collect()
            }
        };
        diff(old, new).iter().map(block).collect()
    }

    #[test]
    fn changed_words_are_marked_within_changed_lines() {
        let old = "You are a support agent.\nOffer a refund if the user asks.\nCite the policy.\n";
        let new = "You are a support agent.\nOffer a refund after lookup_order.\nCite the policy.\n";
        let wanted = "=You are a support agent.\n-Offer a refund [if the user asks].\n+Offer a refund [after lookup_order].\n=Cite the policy.\n";
        assert_eq!(shown(old, new), wanted);
        assert_eq!(shown("a\nb", "b\nc"), "-[a]\n=b\n+[c]\n");
        assert_eq!(shown("", "x"), "+[x]\n");
        assert_eq!(shown("same\n", "same"), "=same\n");
        assert_eq!(shown("", ""), "");
    }

    #[test]
    fn lines_without_common_words_are_changed_as_a_whole() {
        assert_eq!(
            shown("Where is my order?", "No, I can not."),
            "-[Where is my order?]\n+[No, I can not.]\n"
        );
    }

    #[test]
    fn any_diff_restores_both_texts() {
        // Small texts of few different lines, in every combination.
        let texts: Vec<String> = (0..64_u32)
            .map(|n| {
                (0..3)
                    .map(|at| ["", "a b", "b", "c a"][(n >> (2 * at)) as usize % 4])
                    .collect::<Vec<_>>()
                    .join("\n")
            })
            .collect();
        for (old, new) in texts.iter().flat_map(|old| texts.iter().map(move |new| (old, new))) {
            let (mut was, mut is) = (Vec::new(), Vec::new());
            for block in diff(old, new) {
                match block {
                    DiffBlock::Same(lines) => {
                        was.extend(lines.iter().map(|it| (*it).to_owned()));
                        is.extend(lines.iter().map(|it| (*it).to_owned()));
                    }
                    DiffBlock::Changed { old, new } => {
                        let joined = |line: &DiffLine<'_>| line.iter().map(|it| it.text).collect::<String>();
                        was.extend(old.iter().map(joined));
                        is.extend(new.iter().map(joined));
                    }
                }
            }
            assert!(was.iter().map(String::as_str).eq(old.lines()), "{old:?} {new:?}");
            assert!(is.iter().map(String::as_str).eq(new.lines()), "{old:?} {new:?}");
        }
    }

    #[test]
    fn shortest_edit_keeps_a_longest_common_subsequence() {
        fn longest(old: &[u32], new: &[u32]) -> usize {
            match (old, new) {
                ([a, old @ ..], [b, new @ ..]) if a == b => 1 + longest(old, new),
                ([_, rest @ ..], [_, others @ ..]) => longest(rest, new).max(longest(old, others)),
                _ => 0,
            }
        }
        let lists: Vec<Vec<u32>> =
            (0..243_u32).map(|n| (0..5).map(|at| n / 3_u32.pow(at) % 3).collect()).collect();
        for (old, new) in lists.iter().flat_map(|old| lists.iter().step_by(7).map(move |new| (old, new))) {
            let mut comparisons = MAX_COMPARISONS;
            let pairs = common_pairs(old, &new[..4], &mut comparisons);
            assert!(pairs.iter().all(|(a, b)| old[*a] == new[*b]), "{old:?} {new:?}");
            assert!(pairs.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1), "{old:?} {new:?}");
            assert_eq!(pairs.len(), longest(old, &new[..4]), "{old:?} {new:?}");
        }
    }

    #[test]
    fn texts_with_too_many_edits_are_compared_at_their_ends() {
        let text = |word: &str| {
            let lines = (0..MAX_EDITS).map(|n| format!("{word} {n}"));
            std::iter::once("first".to_owned())
                .chain(lines)
                .chain(["last".to_owned()])
                .collect::<Vec<_>>()
                .join("\n")
        };
        let (old, new) = (text("old"), text("new"));
        let blocks = diff(&old, &new);
        assert!(
            matches!(&blocks[..], [DiffBlock::Same(first), DiffBlock::Changed { .. }, DiffBlock::Same(last)]
            if *first == ["first"] && *last == ["last"])
        );
    }

    #[test]
    fn number_of_comparisons_is_bounded() {
        // Every line of the one text is equal to every line of the other one.
        let (old, new) = ("a\n".repeat(30_000) + "b", "c\n".to_owned() + &"a\n".repeat(29_000));
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let mut left = 100_000;
        assert_eq!((common_pairs(&old, &new, &mut left), left), (Vec::new(), 0));
        let mut left = MAX_COMPARISONS;
        assert_eq!(common_pairs(&old[..100], &new[..100], &mut left).len(), 99);
        assert!(left > MAX_COMPARISONS - 1_000, "{left}");
    }

    #[test]
    fn long_texts_are_compared_at_their_start() {
        let old = "é".repeat(MAX_TEXT_BYTES / 2 + 1);
        let texts = TextDiff::new(&old, "");
        assert!(texts.is_cut && texts.changed_line_counts() == (1, 0));
        let same = TextDiff::new("a\nb", "a\nc");
        assert!(!same.is_cut && same.changed_line_counts() == (1, 1));
    }

    #[test]
    fn common_lines_far_from_changes_are_left_out() {
        let blocks = vec![DiffBlock::Same(Vec::new()); 3];
        let lines = ["1", "2", "3", "4", "5", "6"];
        let folded = |at: usize, context: usize| {
            let folded = FoldedLines::near_changes(&lines, at, &blocks, context);
            (folded.before.len(), folded.left_out, folded.after.len())
        };
        assert_eq!([folded(0, 2), folded(1, 2), folded(2, 2)], [(0, 4, 2), (2, 2, 2), (2, 4, 0)]);
        assert_eq!(folded(1, 3), (6, 0, 0));
    }

    #[test]
    fn wrapped_line_fits_its_columns_and_has_no_control_characters() {
        let line = [
            DiffSpan { text: "one two ", is_changed: false },
            DiffSpan { text: "thr\u{1b}ee four", is_changed: true },
            DiffSpan { text: " five", is_changed: false },
        ];
        for cols in 1..40 {
            let rows = wrap(&line, cols);
            let texts: Vec<String> =
                rows.iter().map(|row| row.iter().map(|it| it.text.as_str()).collect()).collect();
            assert!(texts.iter().all(|it| text::width(it) <= cols), "{cols}: {texts:?}");
            let (joined, whole) = (texts.concat().replace(' ', ""), "onetwothr⟦ESC⟧eefourfive");
            assert_eq!(joined, whole, "{cols}");
            let changed: String =
                rows.iter().flatten().filter(|it| it.is_changed).map(|it| it.text.as_str()).collect();
            assert_eq!(changed.replace(' ', ""), "thr⟦ESC⟧eefour", "{cols}");
        }
        assert_eq!(wrap(&[], 10), [Vec::new()]);
    }
}
