//! The regular expressions of a schema.
//!
//! Those of `pattern` are searched by [`Pattern`], which can be interrupted. Those that match names of
//! members (`patternProperties`) stay with the validator, whose search cannot be interrupted; they are
//! bounded beforehand, by their size times the length of a name (see `counted`).

use jsonschema::{
    JsonType, Keyword, ValidationError,
    json::{Json, Node},
    paths::Location,
};
use serde_json::{Map, Value};

use crate::{
    definition::ConfigProblem,
    pattern::{MAX_COMPILED_BYTES, MAX_COMPILED_BYTES_TOGETHER, Pattern},
    sentence::cut,
};

/// Regular expressions for names in a schema.
const MAX_NAME_PATTERNS: usize = 50;
/// Bytes that one of them may take when compiled.
const MAX_NAME_PATTERN_BYTES: usize = 128 * 1024;
/// Bytes of states that the validator keeps for one of them, in each direction.
const NAME_CACHE_BYTES: usize = 64 * 1024;
/// Characters of an expression that are repeated.
const MAX_SHOWN: usize = 200;

/// The regular expressions that names of members are matched with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NamePatterns {
    states: u64,
}

impl NamePatterns {
    /// States of all of them together: what matching a byte of a name may cost.
    pub(super) fn states(self) -> u64 {
        self.states
    }

    /// How the validator compiles them.
    pub(super) fn options(self) -> jsonschema::PatternOptions<jsonschema::Regex> {
        // Compiled for searching forwards and backwards, with places of groups, one takes a few times more.
        jsonschema::PatternOptions::regex()
            .size_limit(4 * MAX_COMPILED_BYTES)
            .dfa_size_limit(NAME_CACHE_BYTES)
    }
}

/// Compiles the regular expressions of a schema to measure them; returns those for names, and the bytes of
/// all. A member named `pattern` that is data (of a `const`, say) counts as well when it is one.
///
/// # Errors
/// With the first that cannot be used for names, or when they are too large together.
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
                    // One that does not compile is named by the validator, with its place.
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
    /// As it stands in the schema.
    shown: String,
}

/// Compiles the keyword `pattern`.
///
/// # Errors
/// When it is no text, or no regular expression that can be used.
pub(super) fn keyword<'a, F: Json>(
    _: &'a Map<String, Value>,
    value: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i, F>>, ValidationError<'a>> {
    let Value::String(expression) = value else {
        return Err(ValidationError::custom("is not of type string"));
    };
    let pattern = Pattern::compile_ecma(expression).map_err(ValidationError::custom)?;
    Ok(Box::new(PatternKeyword { pattern, shown: cut(expression, MAX_SHOWN).into_owned() }))
}

impl PatternKeyword {
    fn holds(&self, text: &str) -> bool {
        // Texts are parts of one that is no longer.
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
