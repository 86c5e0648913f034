//! What the captured payloads under `tests/fixtures/otlp` should become, and how a difference
//! from it is reported and excused.
//!
//! Shared by the suite that posts them and, by its path, by the tests of the conversion alone,
//! so that both are held to the same words and the same list of deviations.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test whose data can't be read fails")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// The folder of the captured payloads.
pub fn root() -> PathBuf {
    let ancestors = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    ancestors.map(|it| it.join("tests/fixtures/otlp")).find(|it| it.is_dir()).unwrap()
}

/// Every folder with an `expect.json`, sorted.
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

/// A scenario's name: the SDK and what it did.
pub fn name_of(scenario: &Path) -> String {
    scenario.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()
}

/// A JSON file of a scenario.
pub fn read_json(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Fails on a difference that `deviations.json` does not argue for, and on an entry of that
/// file that no longer applies. A difference is a scenario's name and what was reported.
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

/// The session, else the conversation or thread; a scrubber's note and the word null are none.
pub fn session(expected: &Value) -> Value {
    [&expected["session_id"], &expected["session_id_fallback"]]
        .into_iter()
        .find(|it| it.as_str().is_some_and(|it| !it.starts_with("[Scrubbed") && it != "null"))
        .cloned()
        .unwrap_or_default()
}

/// The tags as one text; null without tags.
pub fn joined(tags: &Value) -> Value {
    match tags.as_array() {
        Some(tags) => Value::from(tags.iter().map(text).collect::<Vec<_>>().join(",")),
        None => Value::Null,
    }
}

/// A text, empty where it is none.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What differs, each thing once.
#[derive(Debug, Default)]
pub struct Differences(pub Vec<String>);

impl Differences {
    /// Notes a difference.
    pub fn note(&mut self, difference: String) {
        if !self.0.contains(&difference) {
            self.0.push(difference);
        }
    }

    /// Notes it when the two differ.
    pub fn equal(&mut self, what: &str, found: impl Into<Value>, expected: &Value) {
        let found = found.into();
        if found != *expected && !same_number(&found, expected) {
            self.note(format!("{what}: {found} instead of {expected}"));
        }
    }

    /// Notes it when what was found is not in the list.
    pub fn one_of(&mut self, what: &str, found: impl Into<Value>, expected: &Value) {
        let found = found.into();
        if !expected.as_array().unwrap().contains(&found) {
            self.note(format!("{what}: {found}, none of {expected}"));
        }
    }

    /// Notes it when the text has no such part.
    pub fn contains(&mut self, what: &str, found: Option<&str>, part: &str) {
        if !found.is_some_and(|found| found.contains(part)) {
            let found: String = found.unwrap_or("nothing").chars().take(160).collect();
            self.note(format!("{what}: no {part:?} in {found}"));
        }
    }
}

/// Sums made in another order may differ in the last digit.
fn same_number(left: &Value, right: &Value) -> bool {
    matches!((left.as_f64(), right.as_f64()), (Some(left), Some(right)) if (left - right).abs() < 1e-12)
}
