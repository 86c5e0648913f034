//! The sets under `tests/data`; each folder says in ORIGIN.md where its set comes from.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{csv, xml, yaml};

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

/// Compares what comes out different with what is known to.
fn compare(differing: impl Iterator<Item = String>, known: &str) {
    let differing: BTreeSet<String> = differing.collect();
    let known = known.lines().filter(|it| !it.is_empty() && !it.starts_with('#'));
    let known: BTreeSet<String> = known.map(|it| it.split(' ').next().unwrap().to_owned()).collect();
    let new: Vec<_> = differing.difference(&known).collect();
    let stale: Vec<_> = known.difference(&differing).collect();
    assert!(new.is_empty() && stale.is_empty(), "not known:\n{new:#?}\nknown, but passing:\n{stale:#?}");
}

#[test]
fn the_yaml_suite_passes_but_for_what_is_known() {
    let all: Vec<Yaml> = unpacked(include_bytes!("../../tests/data/yaml/suite.json.zst"));
    assert_eq!(all.len(), 402);
    let differing = all.iter().filter(|it| yaml::documents(&it.yaml).is_err() != it.fails);
    compare(differing.map(|it| it.id.clone()), include_str!("../../tests/data/yaml/known.txt"));
}

#[test]
fn the_xml_suite_passes_but_for_what_is_known() {
    let all: Vec<Xml> = unpacked(include_bytes!("../../tests/data/xml/suite.json.zst"));
    assert_eq!(all.len(), 1960);
    let differing = all.iter().filter(|it| xml::well_formed(&it.text, it.namespaces).is_err() != it.fails);
    compare(differing.map(|it| it.id.clone()), include_str!("../../tests/data/xml/known.txt"));
}

#[test]
fn every_csv_is_told_right() {
    let cases: Vec<Csv> = include_str!("../../tests/data/csv/cases.jsonl")
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert!(cases.len() > 100);
    for case in cases {
        let outcome = csv::records(&case.text, &csv::Shape::default());
        assert_eq!(outcome.is_ok(), case.good, "{}: {:?}: {outcome:?}", case.why, case.text);
    }
}
