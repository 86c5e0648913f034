//! Expected results for the captured payloads under `tests/fixtures/otlp`, and the report of differences.
//!
//! The suite that posts the payloads shares this file, by its path, with the tests of the conversion, so that
//! both use the same expectations and the same list of deviations.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test whose data can't be read fails")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// Returns the folder of the captured payloads.
pub fn root() -> PathBuf {
    let ancestors = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    ancestors.map(|it| it.join("tests/fixtures/otlp")).find(|it| it.is_dir()).unwrap()
}

/// Returns every folder with an `expect.json`, sorted.
pub fn scenarios_of(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .flat_map(|sdk| fs::read_dir(sdk).unwrap().map(|entry| entry.unwrap().path()))
        .filter(|path| path.join("expect.json").exists())
        .collect();
    found.sort();
    found
}

/// Returns a scenario's name: the SDK and its operation.
pub fn name_of(scenario: &Path) -> String {
    scenario.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()
}

/// Reads a JSON file of a scenario.
pub fn read_json(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Panics on a difference that `deviations.json` does not explain, and on an entry of that file that no
/// longer applies. A difference is a scenario's name and a description.
pub fn assert_only_deviations(differences: &[(String, String)]) {
    let deviations = read_json(&root().join("deviations.json"));
    let deviations: Vec<(&str, &str)> = deviations
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            assert!(it["why"].as_str().is_some_and(|why| !why.is_empty()), "not argued: {it}");
            (it["scenario"].as_str().unwrap(), it["difference"].as_str().unwrap())
        })
        .collect();
    let found = |at: &str, what: &str| differences.iter().any(|(a, w)| a == at && w == what);
    let unknown: Vec<_> =
        differences.iter().filter(|(at, what)| !deviations.contains(&(at.as_str(), what.as_str()))).collect();
    let stale: Vec<_> = deviations.iter().filter(|(at, what)| !found(at, what)).collect();
    assert!(unknown.is_empty(), "{} differences: {unknown:#?}", unknown.len());
    assert!(stale.is_empty(), "deviations that no longer apply: {stale:#?}");
}

/// Returns the expected session, or else the conversation or thread. The placeholder of a scrubber and the
/// word "null" count as absent.
pub fn session(expected: &Value) -> Value {
    [&expected["session_id"], &expected["session_id_fallback"]]
        .into_iter()
        .find(|it| it.as_str().is_some_and(|it| !it.starts_with("[Scrubbed") && it != "null"))
        .cloned()
        .unwrap_or_default()
}

/// Returns the tags as one text; null without tags.
pub fn joined(tags: &Value) -> Value {
    match tags.as_array() {
        Some(tags) => Value::from(tags.iter().map(text).collect::<Vec<_>>().join(",")),
        None => Value::Null,
    }
}

/// Returns a text; empty if the value is not a text.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The differences found, without duplicates.
#[derive(Debug, Default)]
pub struct Differences(pub Vec<String>);

impl Differences {
    /// Adds a difference.
    pub fn note(&mut self, difference: String) {
        if !self.0.contains(&difference) {
            self.0.push(difference);
        }
    }

    /// Adds a difference if the two values differ.
    pub fn equal(&mut self, what: &str, found: impl Into<Value>, expected: &Value) {
        let found = found.into();
        if found != *expected && !same_number(&found, expected) {
            self.note(format!("{what}: {found} instead of {expected}"));
        }
    }

    /// Adds a difference if the found value is not in the list.
    pub fn one_of(&mut self, what: &str, found: impl Into<Value>, expected: &Value) {
        let found = found.into();
        if !expected.as_array().unwrap().contains(&found) {
            self.note(format!("{what}: {found}, none of {expected}"));
        }
    }

    /// Adds a difference if the text does not contain `part`.
    pub fn contains(&mut self, what: &str, found: Option<&str>, part: &str) {
        if !found.is_some_and(|found| found.contains(part)) {
            let found: String = found.unwrap_or("nothing").chars().take(160).collect();
            self.note(format!("{what}: no {part:?} in {found}"));
        }
    }
}

/// Compares numbers, ignoring the last digit, because the order of additions changes it.
fn same_number(left: &Value, right: &Value) -> bool {
    matches!((left.as_f64(), right.as_f64()), (Some(left), Some(right)) if (left - right).abs() < 1e-12)
}
