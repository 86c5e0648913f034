//! Rows of comma-separated values (RFC 4180) that are safe to open in a spreadsheet.

use api::text::printable;

/// Returns a row with its line end.
pub fn row<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|it| cell(it.as_ref())).collect();
    cells.join(",") + "\r\n"
}

/// Returns a cell: quoted where needed, with line ends kept and other control characters visible. A text that a
/// spreadsheet would run as a formula gets a leading apostrophe; a number may begin with a sign.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err();
    let lines: Vec<_> = text.split('\n').map(|line| printable(line.trim_end_matches('\r'))).collect();
    let text = format!("{}{}", if is_formula { "'" } else { "" }, lines.join("\n"));
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_formulas_disarmed() {
        for (text, shown) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=1+1", "'=1+1"),
            ("@sum", "'@sum"),
            ("-5.5", "-5.5"),
            ("-x", "'-x"),
            ("two\r\nlines", "\"two\nlines\""),
            ("\u{1b}[31m", "⟦ESC⟧[31m"),
        ] {
            assert_eq!(cell(text), shown, "{text}");
        }
        assert_eq!(row(["a", "b,c", ""]), "a,\"b,c\",\r\n");
    }
}
