//! Configs of evaluators: a type states the options once. From it follow the JSON Schema, the validation and
//! the parsed value.
//!
//! A config is first validated against the schema, which finds all problems with their fields, and then parsed
//! as the types whose options it contains: [`SharedOptions`], the options of a judge, those of the evaluator.
//! Each of these types ignores the options of the others; the schema rejects unknown ones.

mod count;
mod schema;
mod tagged;

use schemars::JsonSchema;
use serde::{
    Deserialize,
    de::{DeserializeOwned, IntoDeserializer},
};
use serde_json::{Map, Value};

pub(crate) use self::{
    count::Count,
    schema::{object_schema, schema_of},
    tagged::TaggedOptions,
};
pub use crate::config_problem::ConfigProblem;
pub(crate) use crate::config_problem::one_problem;
use crate::verdict::Threshold;

/// The options that every evaluator has.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct SharedOptions {
    /// From this score up the label is `pass`, within 0.2 below it `warn`, else `fail`.
    #[schemars(range(min = 0, max = 1), extend("default" = Threshold::DEFAULT_SCORE))]
    pub threshold: Option<f64>,
}

/// Adds the options that every evaluator has to a schema of an object.
pub(crate) fn with_shared_options(mut schema: Value) -> Value {
    if let Value::Object(schema) = &mut schema {
        schema.entry("type").or_insert_with(|| "object".into());
        let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let (Value::Object(properties), Some(Value::Object(shared))) =
            (properties, schema_of::<SharedOptions>().remove("properties"))
        {
            for (name, option) in shared {
                properties.entry(name).or_insert(option);
            }
        }
    }
    schema
}

/// Parses the options of one type from a config that its schema accepts.
///
/// # Errors
/// Fails when the schema accepts a value that the type does not have, which is a fault of this crate.
pub(crate) fn parse<T: DeserializeOwned>(config: &Map<String, Value>) -> Result<T, Vec<ConfigProblem>> {
    T::deserialize(config.into_deserializer())
        .map_err(|_| vec![ConfigProblem::new("", "has options that can't be parsed")])
}

/// Returns the problems of an object as problems of the object that contains it at `path`.
pub(crate) fn below(path: &str, problems: Vec<ConfigProblem>) -> Vec<ConfigProblem> {
    let below = |it: ConfigProblem| {
        let field = format!("{path}.{}", it.field);
        ConfigProblem::new(field.trim_end_matches('.'), it.message)
    };
    problems.into_iter().map(below).collect()
}
