//! Values that a project with redaction must not store, send or log.

use api::Role;
use serde_json::{Value, json};

use crate::app::TestApp;

/// Kind, text, and the part of the text that must not remain, of 40 values.
const CANARY_LINES: &str = include_str!("../../crates/evaluators/src/redaction/canaries.txt");

/// A value that must not be stored.
#[derive(Clone, Copy, Debug)]
pub struct Canary {
    /// The kind, as in the counts of masked values.
    pub kind: &'static str,
    /// The value, with the words that it needs to be recognized.
    pub text: &'static str,
    /// The part of the text that must not remain.
    pub needle: &'static str,
}

/// Returns the values.
pub fn canaries() -> Vec<Canary> {
    let canary = |line: &'static str| {
        let parts: Vec<&str> = line.split('|').collect();
        Canary { kind: parts[0], text: parts[1], needle: parts[2] }
    };
    CANARY_LINES.lines().map(canary).collect()
}

/// Returns the settings of a project that mask all values.
pub fn redaction_settings() -> Value {
    json!({"detectors": ["all"], "patterns": [{"name": "employee_id", "pattern": r"\bEMP-[0-9]{6}\b"}]})
}

/// Switches redaction on for the project of the test.
pub async fn redact_everything(app: &TestApp) {
    let path = format!("/v1/projects/{}/redaction", app.project);
    let settings = redaction_settings();
    assert_eq!(app.session(Role::Owner).put(&path, &settings).await.ok(), settings);
}

/// Asserts that a text contains no value.
#[track_caller]
pub fn assert_no_canary(what: &str, text: &str) {
    let found: Vec<&str> = canaries().iter().map(|it| it.needle).filter(|it| text.contains(it)).collect();
    assert!(found.is_empty(), "{what} has {found:?}");
}
