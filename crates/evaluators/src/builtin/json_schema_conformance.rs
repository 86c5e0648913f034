//! Evaluates whether a text is JSON that conforms to a schema.

use jsonschema::Draft;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    code::{CodeConfig, CodeEvaluator, EvaluatorCode},
    config::ConfigProblem,
    definition::{Definition, Method},
    form::{
        WHITESPACE_CHARS, fence,
        json::{self, JsonFault},
    },
    schema::{DraftName, Schema, SchemaCheck},
    sentence::counted,
    subject::Subject,
    target::Target,
    verdict::{Measurement, NotEvaluated},
};

/// The definition of the evaluator `json_schema_conformance`.
pub static DEFINITION: Definition = Definition {
    name: "json_schema_conformance",
    display_name: "JSON Schema",
    tags: &["tool-use"],
    description: "Whether the output, as a whole, is JSON that conforms to `schema`: 1.0 if it is, 0.0 if \
                  not. Drafts 4, 6, 7, 2019-09 and 2020-12; nothing outside of the schema is fetched, \
                  patterns have no look-around. The reasoning names the places that fail, never their values.",
    version: 2,
    method: Method::Code(EvaluatorCode::of::<JsonSchemaConfig>()),
};

/// The options of the evaluator, and of the check `json_schema` of custom evaluators.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct JsonSchemaConfig {
    /// The JSON Schema.
    schema: schemars::Schema,
    /// How the schema is read when it has no `$schema`; default 2020-12.
    draft: Option<DraftName>,
    /// Whether `format` is checked.
    #[serde(default)]
    formats: bool,
    /// Whether the JSON may be in a fenced block with other text around it; there must be exactly one block.
    #[serde(default)]
    extract: bool,
    #[serde(default)]
    target: Target,
}

impl JsonSchemaConfig {
    /// Compiles the schema.
    ///
    /// # Errors
    /// Fails when the schema is invalid or too large.
    pub(crate) fn conformance(self) -> Result<SchemaConformance, Vec<ConfigProblem>> {
        let Self { schema, draft, formats, extract, target } = self;
        let schema = schema.as_value();
        // The library would prefer the option to the schema's own `$schema`; here `$schema` wins.
        let draft = draft.map(Draft::from).filter(|_| schema.get("$schema").is_none());
        Ok(SchemaConformance { schema: Schema::compile(schema, draft, formats, "schema")?, extract, target })
    }
}

impl CodeConfig for JsonSchemaConfig {
    fn compile(self) -> Result<impl CodeEvaluator + 'static, Vec<ConfigProblem>> {
        self.conformance()
    }
}

/// Whether a text is JSON that conforms to a schema.
pub(crate) struct SchemaConformance {
    schema: Schema,
    extract: bool,
    target: Target,
}

impl CodeEvaluator for SchemaConformance {
    fn evaluate(&self, subject: &Subject) -> Result<Measurement, NotEvaluated> {
        let text = self.target.bounded_text(subject)?.trim_matches(WHITESPACE_CHARS);
        let (value, read) = match json::value(text) {
            Ok(value) => (value, text),
            Err(fault) if self.extract => match fence::blocks(text, &["json"]) {
                [Some(block), None] => match json::value(block) {
                    Ok(value) => (value, block),
                    Err(fault) => return no_json("the fenced block", &fault),
                },
                [Some(_), Some(_)] => {
                    return Ok(Measurement::bad(
                        "the text has more than one fenced block; there must be exactly one",
                    ));
                }
                _ => return no_json("the text", &fault),
            },
            Err(fault) => return no_json("the text", &fault),
        };
        measurement(self.schema.check(&value, read.len()))
    }

    fn bytes(&self) -> usize {
        self.schema.bytes()
    }
}

fn no_json(what: &str, fault: &JsonFault) -> Result<Measurement, NotEvaluated> {
    match fault {
        JsonFault::Form(why) => Ok(Measurement::bad(format!("{what} is not JSON: {why}"))),
        JsonFault::Reach(why) => Err(NotEvaluated::new(format!("{what} is JSON, but {why}"))),
    }
}

/// Returns the measurement for a result of schema validation.
fn measurement(outcome: SchemaCheck) -> Result<Measurement, NotEvaluated> {
    match outcome {
        SchemaCheck::Conforms => Ok(Measurement::good("the JSON conforms to the schema")),
        SchemaCheck::Fails(reported, _) if reported.is_empty() => Ok(Measurement::bad(
            "the JSON does not conform to the schema; finding the failures takes too many steps",
        )),
        SchemaCheck::Fails(reported, more) => {
            let mut failures: Vec<String> = reported.iter().map(|it| it.sentence()).collect();
            if more > 0 {
                failures.push(format!("and {}", counted(more, "more failure", "more failures")));
            }
            Ok(Measurement::bad(format!("the JSON does not conform to the schema: {}", failures.join("; "))))
        }
        SchemaCheck::TooManySteps => Err(NotEvaluated::new(
            "the schema takes too many steps on this JSON: let fewer alternatives lead to one another, or name \
             the alternative by a constant member",
        )),
    }
}

#[cfg(test)]
mod tests;
