//! Markdown tables as in GitHub Flavored Markdown: a header, a delimiter row with as many cells, and any
//! number of further rows, which end at an empty line or another block.

use crate::sentence::counted;

/// The required structure of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableShape {
    /// The required names in the header, in order, without surrounding blanks.
    pub header: Option<Vec<String>>,
    /// The required number of columns.
    pub columns: Option<usize>,
    /// Whether rows may have more or fewer cells than the header, as GFM allows.
    pub ragged: bool,
}

fn counted_cells(count: usize) -> String {
    counted(count, "cell", "cells")
}

/// Returns the number of rows, without the header, of a text that is a table and nothing else.
///
/// # Errors
/// Returns the reason with its line.
pub(crate) fn rows(text: &str, shape: &TableShape) -> Result<usize, String> {
    let mut lines = text.lines().enumerate();
    let (Some((_, header)), Some((_, hyphens))) = (lines.next(), lines.next()) else {
        return Err("it has fewer than two lines: a header and a row of hyphens".into());
    };
    if !header.contains('|') {
        return Err("line 1: the header has no |".into());
    }
    if let Some(block) = other_block(header) {
        return Err(format!("line 1: {block} instead of a header"));
    }
    let cells = cells(header);
    let marks = self::cells(hyphens);
    // `- | -` is a list, which may begin where a table could begin.
    if let Some(block) = other_block(hyphens) {
        return Err(format!("line 2: {block} instead of a row of hyphens"));
    }
    if marks.is_empty() || !marks.iter().all(|it| is_mark(it)) {
        return Err("line 2 is not a row of hyphens such as |---|:-:|".into());
    }
    if marks.len() != cells.len() {
        return Err(format!(
            "line 2: the row of hyphens has {}; the header has {}",
            counted_cells(marks.len()),
            cells.len()
        ));
    }
    if let Some(columns) = shape.columns
        && columns != cells.len()
    {
        return Err(format!(
            "line 1: the header has {}; {columns} are required",
            counted(cells.len(), "column", "columns")
        ));
    }
    if let Some(required_header) = &shape.header
        && required_header.iter().map(|it| it.trim()).ne(cells.iter().copied())
    {
        return Err(format!("line 1: the header is not {}", required_header.join(" | ")));
    }
    let mut count = 0;
    for (index, line) in lines {
        let number = index + 1;
        if line.trim().is_empty() {
            return Err(format!("line {number}: an empty line ends the table"));
        }
        if let Some(block) = other_block(line) {
            return Err(format!("line {number}: {block} ends the table"));
        }
        if !line.contains('|') {
            return Err(format!("line {number}: a line without a | within the table"));
        }
        let found = self::cells(line).len();
        if !shape.ragged && found != cells.len() {
            return Err(format!(
                "line {number}: the row has {}; the header has {}",
                counted_cells(found),
                cells.len()
            ));
        }
        count += 1;
    }
    Ok(count)
}

/// Returns the cells of a row without surrounding blanks.
fn cells(line: &str) -> Vec<&str> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut found = Vec::new();
    let (mut from, mut escaped) = (0, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'|' if !escaped => {
                found.push(line[from..at].trim());
                from = at + 1;
                escaped = false;
            }
            // A backslash before a bar always escapes the bar, even after another backslash.
            _ => escaped = byte == b'\\',
        }
    }
    if from < line.len() {
        found.push(line[from..].trim());
    }
    found
}

/// Returns whether a cell is a delimiter: `---`, `:--`, `--:` or `:-:`.
fn is_mark(cell: &str) -> bool {
    let hyphens = cell.strip_prefix(':').unwrap_or(cell);
    let hyphens = hyphens.strip_suffix(':').unwrap_or(hyphens);
    !hyphens.is_empty() && hyphens.bytes().all(|it| it == b'-')
}

fn indent(line: &str) -> usize {
    line.chars().take_while(|it| it.is_whitespace()).map(|it| if it == '\t' { 4 } else { 1 }).sum()
}

/// Returns the kind of block that a line begins, if it is not part of a table.
fn other_block(line: &str) -> Option<&'static str> {
    if indent(line) > 3 {
        return Some("indented code");
    }
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let marks = line.bytes().take_while(|it| *it == b'#').count();
    let after = |at: usize, signs: &str| {
        line[at..].starts_with(|it| signs.contains(it)) && line[at + 1..].starts_with([' ', '\t'])
    };
    if line.starts_with('>') {
        Some("a quotation")
    } else if line.starts_with("```") || line.starts_with("~~~") {
        Some("a fence")
    } else if (1..=6).contains(&marks) && line[marks..].starts_with([' ', '\t']) {
        Some("a heading")
    } else if after(0, "-*+") || ((1..=9).contains(&digits) && after(digits, ".)")) {
        Some("a list")
    } else {
        None
    }
}
