//! The text of an exported file: NDJSON or CSV for rows, JSON for a record.

use serde_json::Value;

use crate::{shell::Export, text::clean};

/// Returns the number of records and the text of the file: CSV if the path ends in `.csv`, else a line of
/// JSON for each row.
pub fn text(export: Export, path: &str) -> (usize, String) {
    let rows = match export {
        Export::Record(record) => return (1, record + "\n"),
        Export::Rows(rows) => rows,
    };
    let csv = path.to_ascii_lowercase().ends_with(".csv");
    let text = if csv { to_csv(&rows) } else { rows.iter().map(|row| format!("{row}\n")).collect() };
    (rows.len(), text)
}

/// Formats rows as RFC 4180. The fields of the first row are the header; objects and arrays are JSON.
fn to_csv(rows: &[Value]) -> String {
    let Some(first) = rows.first().and_then(Value::as_object) else { return String::new() };
    let mut text = line(first.keys().cloned());
    for row in rows {
        text.push_str(&line(first.keys().map(|name| match &row[name.as_str()] {
            Value::Null => String::new(),
            // Lines stay lines; nothing else that steers a terminal does.
            Value::String(text) => text.lines().map(clean).collect::<Vec<_>>().join("\n"),
            other => other.to_string(),
        })));
    }
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.map(cell).collect();
    cells.join(",") + "\r\n"
}

fn cell(text: String) -> String {
    // A spreadsheet would take it for a formula.
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_quotes_and_disarms() {
        let rows = [
            serde_json::json!({"name": "=1+1", "note": "a,\"b\"\nc", "tags": ["x"], "n": null}),
            serde_json::json!({"name": "ok", "note": "", "tags": [], "n": 2}),
        ];
        assert_eq!(
            to_csv(&rows),
            "n,name,note,tags\r\n,'=1+1,\"a,\"\"b\"\"\nc\",\"[\"\"x\"\"]\"\r\n2,ok,,[]\r\n"
        );
        assert_eq!(to_csv(&[]), "");
    }
}
