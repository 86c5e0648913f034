//! What `e` writes to a file: the loaded rows as NDJSON or CSV, or the opened record as JSON.

use present::csv;
use serde::Serialize;
use serde_json::Value;

use crate::{
    evals::Part,
    manage::Tab,
    state::{EVALS, MANAGE, METRICS, SEARCH, State},
};

/// The name that is suggested for the file; nothing where there is nothing to write.
pub fn suggested(state: &State) -> Option<String> {
    match (&state.detail, state.screen, state.manage.tab) {
        (Some(open), 1, _) => Some(format!("trace-{}.json", crate::format::short_id(open.id))),
        (None, 1, _) => Some("traces.ndjson".to_owned()),
        (_, EVALS, _) if state.evals.part == Part::Rules => Some("rules.ndjson".to_owned()),
        (_, EVALS, _) if !state.evals.rows.is_empty() => Some("evaluations.ndjson".to_owned()),
        (_, METRICS, _) if !state.metrics.points().is_empty() => {
            Some(format!("metrics-{}.csv", state.metrics.stretch.label()))
        }
        (_, SEARCH, _) if !state.search.rows.is_empty() => Some("spans.ndjson".to_owned()),
        (_, MANAGE, Tab::Keys) => Some("keys.ndjson".to_owned()),
        (_, MANAGE, Tab::Projects) => Some("projects.ndjson".to_owned()),
        _ => None,
    }
}

/// What is shown, in the form that the file's name asks for: CSV for `.csv`, else a line of
/// JSON for each row. With it the number of rows.
pub fn content(state: &State, path: &str) -> Option<(usize, String)> {
    let rows: Vec<Value> = match (&state.detail, state.screen, state.manage.tab) {
        (Some(open), 1, _) => return Some((1, open.subject()?.record() + "\n")),
        (None, 1, _) => {
            values((0..state.list.len()).filter_map(|at| state.list.get(at)).map(|row| row.as_ref()))
        }
        (_, EVALS, _) if state.evals.part == Part::Rules => values(&state.evals.rules.list.items),
        (_, EVALS, _) => values(&state.evals.rows),
        (_, METRICS, _) => values(state.metrics.points()),
        (_, SEARCH, _) => values(state.search.rows.iter().map(|row| &row.result)),
        (_, MANAGE, Tab::Keys) => values(&state.manage.keys.items),
        (_, MANAGE, Tab::Projects) => values(state.manage.shown()),
        _ => return None,
    };
    let csv = path.to_ascii_lowercase().ends_with(".csv");
    let text = if csv { to_csv(&rows) } else { rows.iter().map(|row| format!("{row}\n")).collect() };
    Some((rows.len(), text))
}

fn values<'a, T: Serialize + 'a>(rows: impl IntoIterator<Item = &'a T>) -> Vec<Value> {
    rows.into_iter().filter_map(|row| serde_json::to_value(row).ok()).collect()
}

/// Rows as RFC 4180, with the fields of the first one as the head. Fields that are no single
/// value are JSON.
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
    fn csv_quotes_and_disarms() {
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
