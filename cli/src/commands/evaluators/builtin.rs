//! The built-in evaluators as this program knows them without a server.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use serde_json::Value;

use crate::{
    error::{CliError, Result},
    exit::Exit,
};

/// Their names; completions offer them.
const NAMES: &[&str] = include!(concat!(env!("OUT_DIR"), "/names.rs"));
/// They themselves, as the server lists them.
const ALL: &str = include_str!(concat!(env!("OUT_DIR"), "/builtin.json"));

/// The built-ins by name, as the server of this version lists them.
pub fn all() -> Result<Vec<Value>> {
    serde_json::from_str(ALL)
        .map_err(|_| CliError::new(Exit::Unexpected, "the built-in list of evaluators can't be read"))
}

/// Whether a name is one of them.
pub fn is_builtin(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Takes any name, because a tenant has evaluators of its own, and offers those of the built-ins.
#[derive(Clone, Debug)]
pub struct Metric;

/// Reads the name of an evaluator.
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
