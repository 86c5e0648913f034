//! The built-in evaluators, compiled into this program for use without a server.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use serde_json::Value;

use crate::{
    error::{CliError, Result},
    exit::Exit,
};

/// Names of the built-in evaluators, for completions.
const NAMES: &[&str] = include!(concat!(env!("OUT_DIR"), "/names.rs"));
/// The built-in evaluators as JSON, as the server lists them.
const ALL: &str = include_str!(concat!(env!("OUT_DIR"), "/builtin.json"));

/// Returns the built-in evaluators sorted by name, as a server of this version lists them.
pub fn all() -> Result<Vec<Value>> {
    serde_json::from_str(ALL)
        .map_err(|_| CliError::new(Exit::Unexpected, "the built-in list of evaluators can't be read"))
}

/// Returns whether a name is the one of a built-in evaluator.
pub fn is_builtin(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Value parser for evaluator names: offers the built-in names and accepts any name, because a tenant can
/// have custom evaluators.
#[derive(Clone, Debug)]
pub struct Metric;

/// Returns the value parser for evaluator names.
pub fn metric() -> Metric {
    Metric
}

impl TypedValueParser for Metric {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> std::result::Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(NAMES.iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_that_of_the_evaluators() {
        let names: Vec<String> =
            all().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
        assert_eq!(names, NAMES);
        // Specification: Built-in evaluators.
        assert_eq!(names.len(), 25);
    }
}
