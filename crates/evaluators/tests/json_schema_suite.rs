//! The official JSON Schema test suite, run through the evaluator. `data/json-schema/ORIGIN.md` names its
//! source, `data/json-schema/known.txt` lists the known differences with their reasons.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use evaluators::{Subject, builtin};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Group {
    description: String,
    schema: Value,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    description: String,
    data: Value,
    valid: bool,
}

/// Groups by draft and file.
type Suite = BTreeMap<String, BTreeMap<String, Vec<Group>>>;

#[test]
fn official_suite_passes_with_listed_exceptions() {
    let bytes = zstd::decode_all(&include_bytes!("data/json-schema/suite.json.zst")[..]).unwrap();
    let suite: Suite = serde_json::from_slice(&bytes).unwrap();
    let (mut tests, mut differing) = (0, BTreeSet::new());
    for (draft, files) in &suite {
        for (file, groups) in files {
            for group in groups {
                tests += group.tests.len();
                run(draft, file, group, &mut differing);
            }
        }
    }
    assert_eq!(tests, 7247, "tests in the suite");

    let known: BTreeSet<String> = include_str!("data/json-schema/known.txt")
        .lines()
        .filter(|it| !it.is_empty() && !it.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let new: Vec<_> = differing.difference(&known).collect();
    let stale: Vec<_> = known.difference(&differing).collect();
    assert!(new.is_empty() && stale.is_empty(), "not known:\n{new:#?}\nknown, but passing:\n{stale:#?}");
}

/// Adds the tests with a different result. A schema that does not compile counts with each of its tests.
fn run(draft: &str, file: &str, group: &Group, differing: &mut BTreeSet<String>) {
    let config =
        json!({"schema": group.schema, "draft": draft, "formats": file.starts_with("optional/format")});
    let evaluator = builtin::find("json_schema_conformance").unwrap();
    let compiled = evaluator.compile(config.as_object().unwrap());
    for test in &group.tests {
        let subject = Subject { output: Some(test.data.to_string()), ..Subject::default() };
        let passes = match &compiled {
            Ok(rule) => rule.evaluate(&subject).is_ok_and(|it| (it.score == 1.0) == test.valid),
            Err(problems) => {
                let said = &problems[0].message;
                // References to a document or a dialect from another source.
                let is_remote =
                    said.contains("nothing is fetched") || said.contains("$schema, which is not known");
                assert!(is_remote, "{draft} {file}: {}: {said}", group.description);
                assert!(group.schema.to_string().contains("//localhost:1234/"), "{draft} {file}");
                false
            }
        };
        if !passes {
            differing.insert(format!("{draft} {file}: {}: {}", group.description, test.description));
        }
    }
}
