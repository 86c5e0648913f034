//! Tab-separated and comma-separated rows.

use api::text::printable;
use serde_json::Value;

use super::{Format, cell, pick};

/// The header row.
pub fn header(format: Format, names: &[&str]) -> String {
    line(format, names.iter().map(|name| (*name).to_owned()))
}

/// A row: the fields in the order of the header, nothing padded or cut.
pub fn row(format: Format, names: &[&str], row: &Value) -> String {
    line(format, names.iter().map(|name| cell::raw(pick::at(row, name))))
}

fn line(format: Format, cells: impl Iterator<Item = String>) -> String {
    let (separator, end) = if format == Format::Csv { (",", "\r\n") } else { ("\t", "\n") };
    let cells: Vec<_> =
        cells.map(|cell| if format == Format::Csv { comma(&cell) } else { tab(&cell) }).collect();
    cells.join(separator) + end
}

/// Backslash, tab and line ends escaped, other controls visible.
fn tab(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r");
    printable(&escaped).into_owned()
}

/// RFC 4180. A cell that a spreadsheet would run as a formula gets a leading apostrophe;
/// numbers, which may begin with a sign, stay numbers.
fn comma(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err();
    // Line ends stay: quotes carry them.
    let lines: Vec<_> = text.split('\n').map(|line| printable(line.trim_end_matches('\r'))).collect();
    let text = format!("{}{}", if formula { "'" } else { "" }, lines.join("\n"));
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tsv_escapes_what_would_break_a_row() {
        let value = json!({ "a": "x\ty\nz\\", "b": null, "c": 1.5, "d": ["t"], "e": "\u{1b}[31m" });
        assert_eq!(
            row(Format::Tsv, &["a", "b", "c", "d", "e"], &value),
            "x\\ty\\nz\\\\\t\t1.5\t[\"t\"]\t⟦ESC⟧[31m\n"
        );
    }

    #[test]
    fn csv_quotes_and_defuses_formulas() {
        for (text, cell) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=1+1", "'=1+1"),
            ("@sum", "'@sum"),
            ("-5.5", "-5.5"),
            ("-x", "'-x"),
            ("two\nlines", "\"two\nlines\""),
        ] {
            assert_eq!(comma(text), cell, "{text}");
        }
    }
}
