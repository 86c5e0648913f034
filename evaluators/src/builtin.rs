//! The built-in evaluators, one file each (specification: Built-in evaluators).

use crate::definition::Definition;

mod cost_threshold;
mod json_schema_conformance;
mod latency_threshold;

/// All of them, by name.
pub static ALL: &[&Definition] =
    &[&cost_threshold::DEFINITION, &json_schema_conformance::DEFINITION, &latency_threshold::DEFINITION];

/// The built-in of this name.
pub fn find(name: &str) -> Option<&'static Definition> {
    ALL.iter().copied().find(|it| it.name == name)
}
