//! What an evaluator is: its names, what its config may hold, and how it judges.

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
    /// The metric's name (specification: Built-in evaluators).
    pub name: &'static str,
    /// The name shown.
    pub display_name: &'static str,
    /// Categories.
    pub tags: &'static [&'static str],
    /// What it checks, what it needs of a trace and what its score means, in a few sentences.
    pub description: &'static str,
    /// Goes up with every change that can change a score.
    pub version: u32,
    /// JSON Schema (2020-12) of its config.
    pub config_schema: fn() -> Value,
    /// How it judges.
    pub method: Method,
}

/// How a built-in judges.
pub enum Method {
    /// By code.
    Rule(Compile),
    /// By a judge model.
    Llm(&'static Rubric),
    /// By code when the config names what is expected, else by a judge model.
    Both {
        /// Whether this config names what is expected.
        names: fn(&Map<String, Value>) -> bool,
        /// By code.
        rule: Compile,
        /// By a judge model.
        rubric: &'static Rubric,
    },
}

/// Makes a rule of a config, once for many traces: patterns and schemas are compiled here.
pub type Compile = fn(&Map<String, Value>) -> Result<Box<dyn Rule>, Vec<ConfigProblem>>;

/// Evaluation by code: deterministic, without input or output, in time linear in the text. Long loops can
/// be interrupted (see [`crate::budget`]).
pub trait Rule: Send + Sync {
    /// Judges.
    ///
    /// # Errors
    /// When the trace lacks what the rule needs; it never guesses.
    fn judge(&self, subject: &Subject) -> Result<Verdict, Unjudged>;

    /// Returns the approximate memory of the compiled rule in bytes, without its config.
    fn bytes(&self) -> usize {
        0
    }
}

/// What is wrong with a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Dotted path below `config`, such as `schema.type`; empty for the config itself.
    pub field: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl ConfigProblem {
    /// A problem of one field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// The schema of a config with `threshold` among its properties.
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
    /// JSON Schema (2020-12) of its config, complete: `threshold`, which all have, is in it, and what
    /// it does not name is refused.
    pub fn options(&self) -> Value {
        let mut schema = with_threshold((self.config_schema)());
        if let Value::Object(schema) = &mut schema {
            schema.entry("additionalProperties").or_insert(Value::Bool(false));
        }
        schema
    }

    /// Whether this config can be used, by code or by a judge as it chooses.
    ///
    /// # Errors
    /// With what is wrong and where.
    pub fn check(&self, config: &Map<String, Value>) -> Result<(), Vec<ConfigProblem>> {
        self.check_as(self.chosen(config), config)
    }

    /// Whether this config can be used by this type of evaluation.
    ///
    /// # Errors
    /// With what is wrong and where. Whether the type is offered is the caller's question.
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

    /// The types offered, the usual one first.
    pub fn types(&self) -> &'static [EvaluatorType] {
        match self.method {
            Method::Rule(_) => &[EvaluatorType::Rule],
            Method::Llm(_) => &[EvaluatorType::Llm],
            Method::Both { .. } => &[EvaluatorType::Llm, EvaluatorType::Rule],
        }
    }

    /// The type that judges with this config when none is asked for.
    pub fn chosen(&self, config: &Map<String, Value>) -> EvaluatorType {
        match self.method {
            Method::Rule(_) => EvaluatorType::Rule,
            Method::Llm(_) => EvaluatorType::Llm,
            Method::Both { names, .. } if names(config) => EvaluatorType::Rule,
            Method::Both { .. } => EvaluatorType::Llm,
        }
    }

    /// How it judges by code, if it does.
    pub fn rule(&self) -> Option<Compile> {
        match self.method {
            Method::Rule(rule) | Method::Both { rule, .. } => Some(rule),
            Method::Llm(_) => None,
        }
    }

    /// How a judge model is asked, if one is.
    pub fn rubric(&self) -> Option<&'static Rubric> {
        match self.method {
            Method::Llm(rubric) | Method::Both { rubric, .. } => Some(rubric),
            Method::Rule(_) => None,
        }
    }

    /// What evaluations carry as `evaluator_version`, such as `faithfulness@1`.
    pub fn evaluator_version(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}
