//! JSON Schema: compiling what tenants write, and holding JSON to it.
//!
//! **Invariants.** Nothing is fetched: the library is built without its resolvers, so a schema that
//! refers outside of itself does not compile. Patterns run in linear time, can be interrupted, and are
//! bounded in size together. A check takes at most so many steps as [`STEPS`] says, however the schema
//! is written.

mod counted;
mod patterns;
mod said;
mod shape;

use jsonschema::{Draft, Validator};
use serde_json::{Map, Value};

use self::counted::{Counted, Counting, within};
use self::patterns::NamePatterns;
pub(crate) use self::said::Failure;
use crate::definition::ConfigProblem;

/// Bytes that a schema may have as text.
pub(crate) const MAX_TEXT: usize = 256 * 1024;
/// Levels that a schema may nest.
const MAX_DEPTH: usize = 100;
/// Regular expressions in a schema.
const MAX_PATTERNS: usize = 200;
/// Steps of a check: so many, and so many for each byte of the JSON text.
const STEPS: (u64, u64) = (1_000_000, 16);
/// Steps for finding out what is wrong, once it is known that something is.
const SAYING: u64 = 2_000_000;
/// Approximate memory of a compiled schema for each byte of its text, in bytes.
const MEMORY_PER_TEXT_BYTE: usize = 16;
/// Failures that are told apart.
const TOLD: usize = 10;

/// A compiled schema.
pub(crate) struct Schema {
    validator: Validator<Counted>,
    /// Regular expressions that are matched against member names.
    names: NamePatterns,
    bytes: usize,
}

/// What a schema says of JSON.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// It conforms.
    Conforms,
    /// It doesn't, for these reasons and so many more; none and 0 when they are too many to look for.
    Fails(Vec<Failure>, usize),
    /// The schema takes too many steps on it.
    Unfinished,
}

impl Schema {
    /// Compiles a schema, of `draft` unless it names one by `$schema`; 2020-12 when neither does.
    /// `formats`: whether `format` is asserted.
    ///
    /// # Errors
    /// With the place in the schema, beginning at `field`.
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
        let mut options = jsonschema::options_for::<Counted>()
            .offline()
            .should_validate_formats(formats)
            .should_ignore_unknown_formats(true)
            .with_keyword("pattern", patterns::keyword)
            .with_pattern_options(names.options());
        if let Some(draft) = draft {
            options = options.with_draft(draft);
        }
        let validator = options.build(schema).map_err(|error| one(said::uncompiled(&error, field)))?;
        Ok(Self { validator, names, bytes: patterns + MEMORY_PER_TEXT_BYTE * schema.to_string().len() })
    }

    /// Returns the approximate memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds `value`, which was `bytes` long as text, to the schema.
    pub(crate) fn check(&self, value: &Value, bytes: usize) -> Outcome {
        let node = Counting(value);
        let per_name_byte = self.names.states();
        match within(STEPS.0 + STEPS.1 * bytes as u64, per_name_byte, || self.validator.is_valid(node)) {
            Ok(true) => return Outcome::Conforms,
            Ok(false) => {}
            Err(_) => return Outcome::Unfinished,
        }
        let all = within(SAYING, per_name_byte, || {
            let mut errors = self.validator.iter_errors(node);
            let told: Vec<Failure> = errors.by_ref().take(TOLD).map(|it| Failure::of(&it)).collect();
            (told, errors.count())
        });
        let first = || {
            within(SAYING, per_name_byte, || self.validator.validate(node).err().map(|it| Failure::of(&it)))
        };
        match all {
            Ok((told, more)) => Outcome::Fails(told, more),
            Err(_) => Outcome::Fails(first().ok().flatten().into_iter().collect(), 0),
        }
    }
}

/// What is wrong with a config, held to the schema that its evaluator declares.
///
/// # Errors
/// With every problem, up to a few; also when the schema itself is none.
pub(crate) fn check_config(schema: &Value, config: &Map<String, Value>) -> Result<(), Vec<ConfigProblem>> {
    let compiled = Schema::compile(schema, None, false, "config_schema")?;
    let config = Value::Object(config.clone());
    let known: Vec<String> = match schema.get("properties") {
        Some(Value::Object(properties)) => properties.keys().cloned().collect(),
        _ => Vec::new(),
    };
    let found = within(SAYING, compiled.names.states(), || {
        let errors = compiled.validator.iter_errors(Counting(&config)).take(TOLD);
        errors.flat_map(|it| said::problems(&it, &known)).collect::<Vec<_>>()
    });
    match found {
        Ok(problems) if problems.is_empty() => Ok(()),
        Ok(problems) => Err(problems),
        Err(_) => Err(vec![ConfigProblem::new("", "is too large to be checked")]),
    }
}

/// Returns the draft of this name: `draft4`, `draft6`, `draft7`, `2019-09` or `2020-12`.
pub(crate) fn draft(name: &str) -> Option<Draft> {
    match name {
        "draft4" => Some(Draft::Draft4),
        "draft6" => Some(Draft::Draft6),
        "draft7" => Some(Draft::Draft7),
        "2019-09" => Some(Draft::Draft201909),
        "2020-12" => Some(Draft::Draft202012),
        _ => None,
    }
}

/// Names of drafts, as [`draft`] knows them.
pub(crate) const DRAFTS: [&str; 5] = ["draft4", "draft6", "draft7", "2019-09", "2020-12"];

/// Checks whether a schema is small enough to be compiled in reasonable time.
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
        if bytes > MAX_TEXT {
            return Err(ConfigProblem::new(field, format!("is longer than {} KiB", MAX_TEXT / 1024)));
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
