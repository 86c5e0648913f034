//! JSON Schema: compiles the schemas of tenants and validates JSON against them.
//!
//! **Invariants.** Nothing is fetched: the library is built without its resolvers, so a schema with an
//! external reference does not compile. Patterns run in linear time, are interruptible, and have a limit of
//! their total size. Every check of every schema takes at most the number of steps in [`MAX_CHECK_STEPS`].

mod counted;
mod messages;
mod patterns;
mod shape;

use jsonschema::{Draft, Validator};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use self::counted::{CountedJson, CountedNode, within};
pub(crate) use self::messages::Failure;
use self::patterns::NamePatterns;
use crate::config_problem::ConfigProblem;

/// Maximum size of a schema as JSON text, in bytes.
pub(crate) const MAX_SCHEMA_BYTES: usize = 256 * 1024;
/// Maximum nesting of a schema.
const MAX_DEPTH: usize = 100;
/// Maximum number of regular expressions in a schema.
const MAX_PATTERNS: usize = 200;
/// Maximum number of steps of a check: a constant, and an addition for each byte of the JSON text.
const MAX_CHECK_STEPS: (u64, u64) = (1_000_000, 16);
/// Maximum number of steps to find the failures of JSON that is known to be invalid.
const MAX_REPORT_STEPS: u64 = 2_000_000;
/// Approximate memory of a compiled schema for each byte of its text, in bytes.
const MEMORY_PER_TEXT_BYTE: usize = 16;
/// Maximum number of failures that are reported.
const MAX_REPORTED_FAILURES: usize = 10;

/// A compiled schema.
pub(crate) struct Schema {
    validator: Validator<CountedJson>,
    /// Regular expressions that are matched against member names.
    names: NamePatterns,
    bytes: usize,
}

/// The result of validating JSON against a schema.
#[derive(Debug, PartialEq)]
pub(crate) enum SchemaCheck {
    /// The JSON conforms.
    Conforms,
    /// The JSON does not conform: the reported failures and the number of further ones. Both are empty if the
    /// search for failures takes too many steps.
    Fails(Vec<Failure>, usize),
    /// The check took too many steps.
    TooManySteps,
}

impl Schema {
    /// Compiles a schema of `draft`, or of the draft in its `$schema`; the default is 2020-12. `formats`:
    /// whether `format` is asserted.
    ///
    /// # Errors
    /// Returns the problem with its position in the schema, beginning at `field`.
    pub(crate) fn compile(
        schema: &Value,
        draft: Option<Draft>,
        formats: bool,
        field: &str,
    ) -> Result<Self, Vec<ConfigProblem>> {
        let one = |problem| vec![problem];
        if !schema.is_object() && !schema.is_boolean() {
            return Err(one(ConfigProblem::new(field, "must be a JSON Schema: an object or a boolean")));
        }
        within_bounds(schema, field).map_err(one)?;
        shape::bounded(schema).map_err(|why| one(ConfigProblem::new(field, why)))?;
        let (names, patterns) = patterns::measured(schema, field).map_err(one)?;
        let mut options = jsonschema::options_for::<CountedJson>()
            .offline()
            .should_validate_formats(formats)
            .should_ignore_unknown_formats(true)
            .with_keyword("pattern", patterns::keyword)
            .with_pattern_options(names.options());
        if let Some(draft) = draft {
            options = options.with_draft(draft);
        }
        let validator = options.build(schema).map_err(|error| one(messages::uncompiled(&error, field)))?;
        Ok(Self { validator, names, bytes: patterns + MEMORY_PER_TEXT_BYTE * schema.to_string().len() })
    }

    /// Returns the approximate memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Validates `value`, whose JSON text had `bytes` bytes.
    pub(crate) fn check(&self, value: &Value, bytes: usize) -> SchemaCheck {
        let node = CountedNode(value);
        let per_name_byte = self.names.states();
        match within(MAX_CHECK_STEPS.0 + MAX_CHECK_STEPS.1 * bytes as u64, per_name_byte, || {
            self.validator.is_valid(node)
        }) {
            Ok(true) => return SchemaCheck::Conforms,
            Ok(false) => {}
            Err(_) => return SchemaCheck::TooManySteps,
        }
        let all = within(MAX_REPORT_STEPS, per_name_byte, || {
            let mut errors = self.validator.iter_errors(node);
            let reported: Vec<Failure> =
                errors.by_ref().take(MAX_REPORTED_FAILURES).map(|it| Failure::of(&it)).collect();
            (reported, errors.count())
        });
        let first = || {
            within(MAX_REPORT_STEPS, per_name_byte, || {
                self.validator.validate(node).err().map(|it| Failure::of(&it))
            })
        };
        match all {
            Ok((reported, more)) => SchemaCheck::Fails(reported, more),
            Err(_) => SchemaCheck::Fails(first().ok().flatten().into_iter().collect(), 0),
        }
    }
}

/// Validates a config against the schema of its evaluator. `variant` is the kind of config that the schema
/// describes, for messages.
///
/// # Errors
/// Returns the problems, up to a maximum number; also if the schema itself is invalid.
pub(crate) fn check_config(
    schema: &Value,
    config: &Map<String, Value>,
    variant: Option<&str>,
) -> Result<(), Vec<ConfigProblem>> {
    let compiled = Schema::compile(schema, None, false, "config_schema")?;
    let config = Value::Object(config.clone());
    let options: Vec<String> = match schema.get("properties") {
        Some(Value::Object(properties)) => properties.keys().cloned().collect(),
        _ => Vec::new(),
    };
    let found = within(MAX_REPORT_STEPS, compiled.names.states(), || {
        let errors = compiled.validator.iter_errors(CountedNode(&config)).take(MAX_REPORTED_FAILURES);
        errors.flat_map(|it| messages::problems(&it, &options, variant)).collect::<Vec<_>>()
    });
    match found {
        Ok(problems) if problems.is_empty() => Ok(()),
        Ok(problems) => Err(problems),
        Err(_) => Err(vec![ConfigProblem::new("", "is too large to be checked")]),
    }
}

/// The drafts of JSON Schema, by their names in options.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(crate) enum DraftName {
    #[serde(rename = "draft4")]
    Draft4,
    #[serde(rename = "draft6")]
    Draft6,
    #[serde(rename = "draft7")]
    Draft7,
    #[serde(rename = "2019-09")]
    Draft201909,
    #[serde(rename = "2020-12")]
    Draft202012,
}

impl From<DraftName> for Draft {
    fn from(name: DraftName) -> Self {
        match name {
            DraftName::Draft4 => Self::Draft4,
            DraftName::Draft6 => Self::Draft6,
            DraftName::Draft7 => Self::Draft7,
            DraftName::Draft201909 => Self::Draft201909,
            DraftName::Draft202012 => Self::Draft202012,
        }
    }
}

/// Checks that a schema is small enough to be compiled in reasonable time.
fn within_bounds(schema: &Value, field: &str) -> Result<(), ConfigProblem> {
    let (mut bytes, mut patterns) = (0, 0);
    let mut open = vec![(schema, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return Err(ConfigProblem::new(
                field,
                format!("nests more than {MAX_DEPTH} levels; move parts to `$defs` and refer to them"),
            ));
        }
        bytes += 4;
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => open.extend(items.iter().map(|it| (it, depth + 1))),
            Value::Object(members) => {
                for (name, value) in members {
                    bytes += name.len();
                    patterns += match (name.as_str(), value) {
                        ("pattern", Value::String(_)) => 1,
                        ("patternProperties", Value::Object(patterns)) => patterns.len(),
                        _ => 0,
                    };
                    open.push((value, depth + 1));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if bytes > MAX_SCHEMA_BYTES {
            return Err(ConfigProblem::new(field, format!("is longer than {} KiB", MAX_SCHEMA_BYTES / 1024)));
        }
        if patterns > MAX_PATTERNS {
            return Err(ConfigProblem::new(
                field,
                format!("has more than {MAX_PATTERNS} regular expressions"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
