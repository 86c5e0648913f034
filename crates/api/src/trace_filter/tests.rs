//! Tests of the table of trace filters.

use std::collections::HashSet;

use super::{FilterDefinition, TERM_ORDER, Term, TraceConditions, TraceFilter, ValueType};

fn definitions() -> impl Iterator<Item = &'static FilterDefinition> {
    TraceFilter::ALL.iter().map(|it| it.definition())
}

#[test]
fn filter_parameters_flags_and_terms_are_unique() {
    let mut names = HashSet::new();
    let parameters = definitions().flat_map(|it| it.parameters).map(|it| ("parameter", it.name));
    let terms = || definitions().filter_map(|it| it.term.as_ref());
    let flags = terms().flat_map(|it| it.flags).map(|it| ("flag", it.name));
    for name in parameters.chain(flags).chain(terms().map(|it| ("term", it.name))) {
        assert!(names.insert(name), "{name:?} is declared twice");
    }
}

#[test]
fn every_filter_with_a_term_is_in_the_order_of_help() {
    let with_term: Vec<_> =
        TraceFilter::ALL.iter().filter(|it| it.definition().term.is_some()).copied().collect();
    let mut ordered = TERM_ORDER.to_vec();
    ordered.sort_unstable();
    assert_eq!(ordered, with_term, "TERM_ORDER lists each filter with a term once");
}

#[test]
fn number_of_parameters_follows_from_value_type() {
    for filter in definitions().filter(|it| !it.parameters.is_empty()) {
        let expected = match filter.value_type {
            ValueType::Duration | ValueType::Count | ValueType::Money => 2,
            ValueType::Tags => 3,
            _ => 1,
        };
        assert_eq!(filter.parameters.len(), expected, "{:?}", filter.parameters[0].name);
        if let Some(Term { name, example, .. }) = &filter.term {
            assert!(example.starts_with(&format!("{name}:")), "{example}");
        }
    }
}

#[test]
fn debug_form_of_conditions_stays_as_cursors_were_signed() {
    let conditions = TraceConditions { model: Some("m".into()), from: Some(1), ..TraceConditions::default() };
    let before_later_filters = "Filter { project_id: None, model: Some(\"m\"), error: None, failure_type: None, from: Some(1), \
         to: None, stored_until: None, latency: (None, None), tokens: (None, None), cost: (None, None), \
         tags: [], session_id: None, user_id: None, name: None, external_id: None, words: []";
    assert!(format!("{conditions:?}").starts_with(before_later_filters), "{conditions:?}");
}
