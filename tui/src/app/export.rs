//! The text of an exported file: NDJSON or CSV for rows, JSON for a record.

use present::csv;
use serde_json::Value;

use crate::shell::Export;

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
    let mut text = csv::row(first.keys());
    for row in rows {
        text.push_str(&csv::row(first.keys().map(|name| match &row[name.as_str()] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_cells_are_quoted_and_formulas_disarmed() {
        let rows = [
            serde_json::json!({"name": "=1+1", "note": "a,\"b\"\nc", "tags": ["x"], "n": null}),
            serde_json::json!({"name": "ok", "note": "", "tags": [], "n": -2.5}),
        ];
        assert_eq!(
            to_csv(&rows),
            "n,name,note,tags\r\n,'=1+1,\"a,\"\"b\"\"\nc\",\"[\"\"x\"\"]\"\r\n-2.5,ok,,[]\r\n"
        );
        assert_eq!(to_csv(&[]), "");
    }
}
