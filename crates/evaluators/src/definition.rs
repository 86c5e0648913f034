//! Definitions of evaluators: their names, the schemas of their configs, and their methods.

use api::EvaluatorType;
use serde_json::{Map, Value, json};

use crate::{
    judge::Rubric,
    schema,
    subject::Subject,
    verdict::{Unjudged, Verdict},
};

/// A built-in evaluator.
pub struct Definition {
    /// The metric name (specification: Built-in evaluators).
    pub name: &'static str,
    /// The name that the console and documentation show.
    pub display_name: &'static str,
    /// The categories of the evaluator.
    pub tags: &'static [&'static str],
    /// A few sentences on what the evaluator checks, which data it needs and what its score means.
    pub description: &'static str,
    /// The version, which increases with every change that can change a score.
    pub version: u32,
    /// Returns the JSON Schema (2020-12) of the config.
    pub config_schema: fn() -> Value,
    /// The method of evaluation.
    pub method: Method,
}

/// The method of a built-in evaluator.
pub enum Method {
    /// A code evaluator.
    Rule(Compile),
    /// An LLM evaluator.
    Llm(&'static Rubric),
    /// A code evaluator if the config names the expected result, else an LLM evaluator.
    Both {
        /// Returns whether a config names the expected result.
        names: fn(&Map<String, Value>) -> bool,
        /// The code evaluator.
        rule: Compile,
        /// The rubric of the LLM evaluator.
        rubric: &'static Rubric,
    },
}

/// Compiles a code evaluator from a config, once for many traces: patterns and schemas are compiled here.
pub type Compile = fn(&Map<String, Value>) -> Result<Box<dyn Rule>, Vec<ConfigProblem>>;

/// Evaluation by code: deterministic, without input or output, in time linear in the text. Long loops can
/// be interrupted (see [`crate::budget`]).
pub trait Rule: Send + Sync {
    /// Evaluates a subject.
    ///
    /// # Errors
    /// When the trace lacks data that the evaluator needs; it never guesses.
    fn judge(&self, subject: &Subject) -> Result<Verdict, Unjudged>;

    /// Returns the approximate memory of the compiled evaluator in bytes, without its config.
    fn bytes(&self) -> usize {
        0
    }
}

/// A problem of a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Dotted path below `config`, such as `schema.type`; empty for the config itself.
    pub field: String,
    /// The problem and the way to correct it.
    pub message: String,
}

impl ConfigProblem {
    /// Creates a problem of one field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// Returns the schema with `threshold` added to its properties.
pub(crate) fn with_threshold(mut schema: Value) -> Value {
    if let Value::Object(schema) = &mut schema {
        schema.entry("type").or_insert_with(|| "object".into());
        let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(properties) = properties {
            properties.entry("threshold").or_insert_with(|| {
                json!({
                    "type": "number", "minimum": 0, "maximum": 1, "default": 0.7,
                    "description": "From this score up the label is `pass`, within 0.2 below it `warn`, else `fail`."
                })
            });
        }
    }
    schema
}

impl Definition {
    /// Returns the complete JSON Schema (2020-12) of the config. It contains `threshold`, which every
    /// evaluator has, and rejects unknown options.
    pub fn options(&self) -> Value {
        let mut schema = with_threshold((self.config_schema)());
        if let Value::Object(schema) = &mut schema {
            schema.entry("additionalProperties").or_insert(Value::Bool(false));
        }
        schema
    }

    /// Checks that a config is valid for the type that the config selects (see [`Self::chosen`]).
    ///
    /// # Errors
    /// The problems, with their paths.
    pub fn check(&self, config: &Map<String, Value>) -> Result<(), Vec<ConfigProblem>> {
        self.check_as(self.chosen(config), config)
    }

    /// Checks that a config is valid for one type of evaluator.
    ///
    /// # Errors
    /// The problems, with their paths. The caller checks whether the type is offered.
    pub fn check_as(
        &self,
        kind: EvaluatorType,
        config: &Map<String, Value>,
    ) -> Result<(), Vec<ConfigProblem>> {
        schema::check_config(&self.options(), config)?;
        match self.rule() {
            Some(compile) if kind == EvaluatorType::Rule => compile(config).map(drop),
            _ => Ok(()),
        }
    }

    /// Returns the offered types, the default first.
    pub fn types(&self) -> &'static [EvaluatorType] {
        match self.method {
            Method::Rule(_) => &[EvaluatorType::Rule],
            Method::Llm(_) => &[EvaluatorType::Llm],
            Method::Both { .. } => &[EvaluatorType::Llm, EvaluatorType::Rule],
        }
    }

    /// Returns the type that evaluates with this config if the caller requests no type.
    pub fn chosen(&self, config: &Map<String, Value>) -> EvaluatorType {
        match self.method {
            Method::Rule(_) => EvaluatorType::Rule,
            Method::Llm(_) => EvaluatorType::Llm,
            Method::Both { names, .. } if names(config) => EvaluatorType::Rule,
            Method::Both { .. } => EvaluatorType::Llm,
        }
    }

    /// Returns the compile function of the code evaluator, if there is one.
    pub fn rule(&self) -> Option<Compile> {
        match self.method {
            Method::Rule(rule) | Method::Both { rule, .. } => Some(rule),
            Method::Llm(_) => None,
        }
    }

    /// Returns the rubric of the LLM evaluator, if there is one.
    pub fn rubric(&self) -> Option<&'static Rubric> {
        match self.method {
            Method::Llm(rubric) | Method::Both { rubric, .. } => Some(rubric),
            Method::Rule(_) => None,
        }
    }

    /// Returns the `evaluator_version` of evaluations, such as `faithfulness@1`.
    pub fn evaluator_version(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}
