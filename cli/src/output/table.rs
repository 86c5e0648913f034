//! Tables for a terminal, cut to its width.

use present::text::{fit, fit_right, width};
use serde_json::Value;

use super::{
    cell::{Cell, Style, Tone},
    view::SelectedColumn,
};

/// Blanks between columns.
const COLUMN_GAP: &str = "  ";
/// Minimum width of a column that is cut, as long as the terminal is wide enough.
const MIN_CUT_WIDTH: usize = 4;
/// Width to which no column is cut while an optional column can still be left out.
const MIN_READABLE_WIDTH: usize = 10;

/// Renders a complete table with its heading; empty without rows.
pub fn render(columns: &[SelectedColumn<'_>], rows: &[Value], style: &Style, limit: Option<usize>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let cells: Vec<Vec<Cell>> =
        rows.iter().map(|row| columns.iter().map(|column| column.show(row, style)).collect()).collect();
    let mut widths: Vec<usize> = columns.iter().map(|column| width(&column.head())).collect();
    for row in &cells {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(&cell.text));
        }
    }
    shrink(columns, &mut widths, limit);
    let mut text = line(columns, &head(columns), &widths, style, limit);
    for row in &cells {
        text.push_str(&line(columns, row, &widths, style, limit));
    }
    text
}

/// Renders the heading of a table whose rows arrive one by one.
pub fn fixed_head(columns: &[SelectedColumn<'_>], style: &Style, limit: Option<usize>) -> String {
    line(columns, &head(columns), &fixed_widths(columns, limit), style, limit)
}

/// Renders a row of a table whose rows arrive one by one.
pub fn fixed_row(columns: &[SelectedColumn<'_>], row: &Value, style: &Style, limit: Option<usize>) -> String {
    let cells: Vec<Cell> = columns.iter().map(|column| column.show(row, style)).collect();
    line(columns, &cells, &fixed_widths(columns, limit), style, limit)
}

fn head(columns: &[SelectedColumn<'_>]) -> Vec<Cell> {
    columns.iter().map(|column| Cell::toned(column.head(), Tone::Strong)).collect()
}

fn fixed_widths(columns: &[SelectedColumn<'_>], limit: Option<usize>) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(SelectedColumn::width).collect();
    shrink(columns, &mut widths, limit);
    widths
}

/// Leaves out optional columns (their width becomes 0) while the others would be unreadable, then narrows
/// the widest elastic column until the table fits.
fn shrink(columns: &[SelectedColumn<'_>], widths: &mut [usize], limit: Option<usize>) {
    let Some(limit) = limit else { return };
    let readable = |width: usize, column: &SelectedColumn<'_>| {
        if column.elastic() { width.min(MIN_READABLE_WIDTH) } else { width }
    };
    loop {
        let least: Vec<usize> =
            widths.iter().zip(columns).map(|(width, column)| readable(*width, column)).collect();
        if total(&least) <= limit {
            break;
        }
        let left =
            widths.iter_mut().zip(columns).rev().find(|(width, column)| column.optional() && **width > 0);
        let Some((dropped, _)) = left else { break };
        *dropped = 0;
    }
    let mut excess = total(widths).saturating_sub(limit);
    while excess > 0 {
        let elastic = widths
            .iter_mut()
            .zip(columns)
            .filter(|(width, column)| column.elastic() && **width > MIN_CUT_WIDTH);
        let Some((widest, _)) = elastic.max_by_key(|(width, _)| **width) else {
            return;
        };
        *widest -= 1;
        excess -= 1;
    }
}

fn total(widths: &[usize]) -> usize {
    let shown = widths.iter().filter(|width| **width > 0).count();
    widths.iter().sum::<usize>() + COLUMN_GAP.len() * shown.saturating_sub(1)
}

/// Renders one line. The last column that fits in part is cut; columns after it are left out.
fn line(
    columns: &[SelectedColumn<'_>],
    cells: &[Cell],
    widths: &[usize],
    style: &Style,
    limit: Option<usize>,
) -> String {
    let mut text = String::new();
    let mut used = 0;
    let last = cells.len().saturating_sub(1);
    let shown = cells.iter().zip(widths).zip(columns).enumerate().filter(|(_, ((_, width), _))| **width > 0);
    for (index, ((cell, width), column)) in shown {
        let gap = if used == 0 { "" } else { COLUMN_GAP };
        let room = limit.map_or(*width, |limit| limit.saturating_sub(used + gap.len()).min(*width));
        if room == 0 {
            break;
        }
        let fitted = if column.right() {
            fit_right(&cell.text, room, &style.glyphs)
        } else {
            fit(&cell.text, room, &style.glyphs)
        };
        let fitted = if index == last { fitted.trim_end() } else { &fitted };
        text.push_str(gap);
        text.push_str(&style.paint(fitted, cell.tone));
        used += gap.len() + room;
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use present::Glyphs;
    use serde_json::json;

    use super::*;

    fn style() -> Style {
        Style { colour: false, glyphs: Glyphs::UNICODE, utc: true, now: Default::default() }
    }

    #[test]
    fn cells_are_aligned_by_display_width() {
        let rows = [json!({ "a": "レポート", "b": "x" }), json!({ "a": "ascii", "b": "y" })];
        let columns = [SelectedColumn::Field("a"), SelectedColumn::Field("b")];
        assert_eq!(render(&columns, &rows, &style(), None), "A         B\nレポート  x\nascii     y\n");
    }

    #[test]
    fn table_lines_fit_the_terminal() {
        let rows =
            [json!({ "a": "a long name that does not fit", "b": "レポートの要約\u{1b}[2J", "c": "short" })];
        let columns = [SelectedColumn::Field("a"), SelectedColumn::Field("b"), SelectedColumn::Field("c")];
        for limit in 1..60 {
            let text = render(&columns, &rows, &style(), Some(limit));
            assert!(text.lines().all(|line| width(line) <= limit), "{limit}: {text}");
            assert!(!text.contains('\u{1b}'));
        }
        assert!(render(&columns, &rows, &style(), Some(30)).contains('…'));
    }
}
