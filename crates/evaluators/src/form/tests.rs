//! Tests with the data sets under `tests/data`; the `ORIGIN.md` of each folder names the source of its set.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde::Deserialize;

use super::{csv, fence, json, table, xml, yaml};

#[derive(Deserialize)]
struct Yaml {
    id: String,
    yaml: String,
    fails: bool,
}

#[derive(Deserialize)]
struct Xml {
    id: String,
    text: String,
    fails: bool,
    namespaces: bool,
}

#[derive(Deserialize)]
struct Csv {
    text: String,
    good: bool,
    why: String,
}

fn unpacked<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Vec<T> {
    serde_json::from_slice(&zstd::decode_all(bytes).unwrap()).unwrap()
}

/// Compares the cases with a different result with the known differences.
fn compare(differing: impl Iterator<Item = String>, known: &str) {
    let differing: BTreeSet<String> = differing.collect();
    let known = known.lines().filter(|it| !it.is_empty() && !it.starts_with('#'));
    let known: BTreeSet<String> = known.map(|it| it.split(' ').next().unwrap().to_owned()).collect();
    let new: Vec<_> = differing.difference(&known).collect();
    let stale: Vec<_> = known.difference(&differing).collect();
    assert!(new.is_empty() && stale.is_empty(), "not known:\n{new:#?}\nknown, but passing:\n{stale:#?}");
}

#[test]
fn yaml_suite_passes_with_listed_exceptions() {
    let all: Vec<Yaml> = unpacked(include_bytes!("../../tests/data/yaml/suite.json.zst"));
    assert_eq!(all.len(), 402);
    let differing = all.iter().filter(|it| yaml::documents(&it.yaml).is_err() != it.fails);
    compare(differing.map(|it| it.id.clone()), include_str!("../../tests/data/yaml/known.txt"));
}

#[test]
fn xml_suite_passes_with_listed_exceptions() {
    let all: Vec<Xml> = unpacked(include_bytes!("../../tests/data/xml/suite.json.zst"));
    assert_eq!(all.len(), 1960);
    let differing = all.iter().filter(|it| xml::well_formed(&it.text, it.namespaces).is_err() != it.fails);
    compare(differing.map(|it| it.id.clone()), include_str!("../../tests/data/xml/known.txt"));
}

#[test]
fn csv_texts_are_accepted_or_rejected() {
    let cases: Vec<Csv> = include_str!("../../tests/data/csv/cases.jsonl")
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert!(cases.len() > 100);
    for case in cases {
        let outcome = csv::records(&case.text, &csv::CsvShape::default());
        assert_eq!(outcome.is_ok(), case.good, "{}: {:?}: {outcome:?}", case.why, case.text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Every format accepts or rejects any text without a panic.
    #[test]
    fn judge_request_accepts_text_of_any_length(text in r#"([<>/?!&;%'"=\[\](){}|:,\-*#a-c0-9 \n\r\t\u{0}\u{85}é]|<!|<a|&a;|\]\]>|<\?xml|<!DOCTYPE a \[|<!ENTITY a|---|\|-){0,60}"#) {
        let _ = (json::well_formed(&text), xml::well_formed(&text, true), yaml::documents(&text));
        let _ = (csv::records(&text, &csv::CsvShape::default()), table::rows(&text, &table::TableShape::default()));
        let _ = fence::blocks(&text, &["json"]);
    }

    /// CSV written according to the RFC is read as the written records.
    #[test]
    fn written_csv_is_csv(rows in prop::collection::vec(prop::collection::vec("[ -~é\n]{0,6}", 3), 1..6)) {
        let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
        let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(",");
        let text = rows.iter().map(line).collect::<Vec<_>>().join("\r\n");
        let shape = csv::CsvShape { header: Some(rows[0].clone()), columns: Some(3), ..csv::CsvShape::default() };
        prop_assert_eq!(csv::records(&text, &shape), Ok(rows.len()));
        // A missing or additional quotation mark leaves a field open.
        prop_assert!(csv::records(&text[1..], &shape).is_err());
        let longer = text + "\"";
        prop_assert!(csv::records(&longer, &shape).is_err());
    }

    /// A text that is parsed to a value, or that exceeds the limits of the parser, is well-formed.
    #[test]
    fn json_that_has_a_value_is_well_formed(text in r#"([\[\]{},:"]|[0-9eE.+\-]{1,4}|true|null|"a"|\\u[0-9a-d]{4}| ){0,20}"#) {
        match json::value(&text) {
            Ok(_) | Err(json::JsonFault::Reach(_)) => prop_assert!(json::well_formed(&text).is_ok()),
            Err(json::JsonFault::Form(_)) => prop_assert!(json::well_formed(&text).is_err()),
        }
    }
}

#[test]
fn empty_lines_are_not_a_table() {
    for text in ["|\n|", "|\n|\n|", "|\n\n"] {
        let why = table::rows(text, &table::TableShape::default()).unwrap_err();
        assert!(why.starts_with("line 2 is not a row of hyphens"), "{text:?}: {why}");
    }
    assert_eq!(table::rows("|a|\n|-|", &table::TableShape::default()), Ok(0));
}
