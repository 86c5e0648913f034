//! The built-in evaluators, compiled into this program for use without a server.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use serde_json::Value;

use crate::{
    error::{CliError, Result},
    exit::Exit,
};

/// Names of the built-in evaluators, for completions.
const BUILTIN_NAMES: &[&str] = include!(concat!(env!("OUT_DIR"), "/names.rs"));
/// The built-in evaluators as JSON, as the server lists them.
const ALL: &str = include_str!(concat!(env!("OUT_DIR"), "/builtin.json"));

/// Returns the built-in evaluators sorted by name, as a server of this version lists them.
pub fn all() -> Result<Vec<Value>> {
    serde_json::from_str(ALL)
        .map_err(|_| CliError::new(Exit::Unexpected, "the built-in list of evaluators can't be read"))
}

/// Returns whether a built-in evaluator has this name.
pub fn is_builtin(name: &str) -> bool {
    BUILTIN_NAMES.contains(&name)
}

/// Value parser for evaluator names: offers the built-in names and accepts any name, because a tenant can
/// have custom evaluators.
#[derive(Clone, Debug)]
pub struct EvaluatorNameParser;

/// Returns the value parser for evaluator names.
pub fn evaluator_name() -> EvaluatorNameParser {
    EvaluatorNameParser
}

impl TypedValueParser for EvaluatorNameParser {
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
        Some(Box::new(BUILTIN_NAMES.iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builtin_list_matches_the_evaluators_crate() {
        let names: Vec<String> =
            all().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
        assert_eq!(names, BUILTIN_NAMES);
        // Specification: Built-in evaluators.
        assert_eq!(names.len(), 25);
    }
}
