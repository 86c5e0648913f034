//! The regular expressions of a schema.
//!
//! Expressions in `pattern` are searched by [`Pattern`], which can be interrupted. Expressions for member
//! names (`patternProperties`) are searched by the validator, which cannot be interrupted; their size times
//! the length of a name is bounded in advance (see `counted`).

use jsonschema::{
    JsonType, Keyword, ValidationError,
    json::{Json, Node},
    paths::Location,
};
use serde_json::{Map, Value};

use crate::{
    config_problem::ConfigProblem,
    pattern::{MAX_COMPILED_BYTES, MAX_COMPILED_BYTES_TOGETHER, Pattern},
    sentence::cut,
};

/// Maximum number of regular expressions for names in a schema.
const MAX_NAME_PATTERNS: usize = 50;
/// Maximum memory of one compiled expression for names, in bytes.
const MAX_NAME_PATTERN_BYTES: usize = 128 * 1024;
/// Maximum size of the states that the validator caches for each expression and direction, in bytes.
const NAME_CACHE_BYTES: usize = 64 * 1024;
/// Number of characters of an expression that messages show.
const MAX_SHOWN_CHARS: usize = 200;

/// The regular expressions that are matched against member names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NamePatterns {
    states: u64,
}

impl NamePatterns {
    /// Returns the total number of states, which bounds the cost of matching a byte of a name.
    pub(super) fn states(self) -> u64 {
        self.states
    }

    /// Returns the validator's options for compiling the expressions.
    pub(super) fn options(self) -> jsonschema::PatternOptions<jsonschema::Regex> {
        // The validator compiles each one for both directions and with groups, which takes a few times more
        // memory.
        jsonschema::PatternOptions::regex()
            .size_limit(4 * MAX_COMPILED_BYTES)
            .dfa_size_limit(NAME_CACHE_BYTES)
    }
}

/// Compiles the regular expressions of a schema to measure them. Returns those for names, and the total
/// memory in bytes. A member named `pattern` that is data (of a `const`, say) counts as well if it is a
/// valid expression.
///
/// # Errors
/// Returns a message about the first expression that cannot be used for names, or when they are too large in
/// total.
pub(super) fn measured(schema: &Value, field: &str) -> Result<(NamePatterns, usize), ConfigProblem> {
    let (mut names, mut count, mut bytes) = (NamePatterns::default(), 0, 0);
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                if let Some(pattern) = members.get("pattern").and_then(Value::as_str)
                    && let Ok(pattern) = Pattern::compile_ecma(pattern)
                {
                    bytes += pattern.bytes();
                }
                for pattern in members
                    .get("patternProperties")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flat_map(Map::keys)
                {
                    // The validator reports an invalid expression, with its position.
                    let Ok(pattern) = Pattern::compile_ecma(pattern) else { continue };
                    if pattern.bytes() > MAX_NAME_PATTERN_BYTES {
                        let message = "has an expression in patternProperties that grows too large when it is compiled: \
                                       repeat less, or use smaller classes";
                        return Err(ConfigProblem::new(field, message));
                    }
                    count += 1;
                    bytes += pattern.bytes();
                    names.states += pattern.states() as u64;
                }
                open.extend(members.values());
            }
            _ => {}
        }
        if count > MAX_NAME_PATTERNS {
            let message = format!("has more than {MAX_NAME_PATTERNS} expressions in patternProperties");
            return Err(ConfigProblem::new(field, message));
        }
        if bytes > MAX_COMPILED_BYTES_TOGETHER {
            let message = "has regular expressions that grow too large together when they are compiled: use fewer, \
                           or repeat less";
            return Err(ConfigProblem::new(field, message));
        }
    }
    Ok((names, bytes))
}

/// The keyword `pattern`.
struct PatternKeyword {
    pattern: Pattern,
    /// The expression as written in the schema.
    shown: String,
}

/// Compiles the keyword `pattern`.
///
/// # Errors
/// Fails when the value is not a string or not a usable regular expression.
pub(super) fn keyword<'a, F: Json>(
    _: &'a Map<String, Value>,
    value: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i, F>>, ValidationError<'a>> {
    let Value::String(expression) = value else {
        return Err(ValidationError::custom("is not of type string"));
    };
    let pattern = Pattern::compile_ecma(expression).map_err(ValidationError::custom)?;
    Ok(Box::new(PatternKeyword { pattern, shown: cut(expression, MAX_SHOWN_CHARS).into_owned() }))
}

impl PatternKeyword {
    fn holds(&self, text: &str) -> bool {
        // The text is part of a text that is not too long.
        self.pattern.is_match(text).unwrap_or(false)
    }
}

impl<'i, F: Json> Keyword<'i, F> for PatternKeyword {
    fn validate(&self, instance: F::Node<'i>) -> Result<(), ValidationError<'i>> {
        match Keyword::<F>::is_valid(self, instance) {
            true => Ok(()),
            false => Err(ValidationError::custom(format!("does not match {}", self.shown))),
        }
    }

    fn is_valid(&self, instance: F::Node<'i>) -> bool {
        match instance.json_type() {
            JsonType::String => instance.as_string().is_none_or(|it| self.holds(&it)),
            _ => true,
        }
    }
}
