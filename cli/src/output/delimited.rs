//! Rows in the formats TSV and CSV.

use api::text::printable;
use present::csv;
use serde_json::Value;

use super::{cell, fields};
use crate::format::Format;

/// Returns the header row.
pub fn header(format: Format, names: &[&str]) -> String {
    line(format, names.iter().map(|name| (*name).to_owned()))
}

/// Formats a row: the fields in the order of the header, neither padded nor cut.
pub fn row(format: Format, names: &[&str], row: &Value) -> String {
    line(format, names.iter().map(|name| cell::raw(fields::at(row, name))))
}

fn line(format: Format, cells: impl Iterator<Item = String>) -> String {
    if format == Format::Csv {
        return csv::row(cells);
    }
    let cells: Vec<_> = cells.map(|cell| tab(&cell)).collect();
    cells.join("\t") + "\n"
}

/// Escapes backslashes, tabs and line breaks, and makes other control characters visible.
fn tab(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r");
    printable(&escaped).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tsv_escapes_tabs_line_breaks_and_controls() {
        let value = json!({ "a": "x\ty\nz\\", "b": null, "c": 1.5, "d": ["t"], "e": "\u{1b}[31m" });
        assert_eq!(
            row(Format::Tsv, &["a", "b", "c", "d", "e"], &value),
            "x\\ty\\nz\\\\\t\t1.5\t[\"t\"]\t⟦ESC⟧[31m\n"
        );
    }
}
