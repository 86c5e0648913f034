//! Definitions of evaluators: their names, the schemas of their configs, and their methods.

use api::EvaluatorType;
use serde_json::{Map, Value};

use crate::{
    code::{CompiledEvaluator, EvaluatorCode},
    config::{ConfigProblem, SharedOptions, object_schema, one_problem, schema_of},
    judge::{JudgeOptions, Rubric},
    schema,
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
    /// The method of evaluation.
    pub method: Method,
}

/// The method of a built-in evaluator.
pub enum Method {
    /// A code evaluator.
    Code(EvaluatorCode),
    /// An LLM evaluator.
    Llm(&'static Rubric),
    /// A code evaluator if the config states the expected result, else an LLM evaluator.
    CodeOrLlm {
        /// Returns whether a config states the expected result.
        has_expectation: fn(&Map<String, Value>) -> bool,
        /// The code evaluator.
        code: EvaluatorCode,
        /// The rubric of the LLM evaluator.
        rubric: &'static Rubric,
    },
}

impl Definition {
    /// Returns the JSON Schema (2020-12) of the config: the options of every evaluator, those of a judge if the
    /// evaluator has a rubric, and its own. Other options are rejected.
    pub fn config_schema(&self) -> Value {
        let judge = self.rubric().map(|_| schema_of::<JudgeOptions>());
        let own = self.code().map(EvaluatorCode::schema);
        object_schema([Some(schema_of::<SharedOptions>()), judge, own].into_iter().flatten())
    }

    /// Checks that a config is valid for the type that the config selects (see [`Self::selected_type`]).
    ///
    /// # Errors
    /// Returns the problems, with their paths.
    pub fn check(&self, config: &Map<String, Value>) -> Result<(), Vec<ConfigProblem>> {
        self.check_as(self.selected_type(config), config)
    }

    /// Checks that a config is valid for one type of evaluator.
    ///
    /// # Errors
    /// Returns the problems, with their paths. The caller checks whether the type is offered.
    pub fn check_as(
        &self,
        kind: EvaluatorType,
        config: &Map<String, Value>,
    ) -> Result<(), Vec<ConfigProblem>> {
        match self.code() {
            Some(_) if kind == EvaluatorType::Rule => self.compile(config).map(drop),
            _ => schema::check_config(&self.config_schema(), config, None),
        }
    }

    /// Compiles the code evaluator with a config, once for many traces.
    ///
    /// # Errors
    /// Returns the problems of the config, with their paths; also if the evaluator has no code.
    pub fn compile(&self, config: &Map<String, Value>) -> Result<CompiledEvaluator, Vec<ConfigProblem>> {
        let Some(code) = self.code() else {
            return Err(one_problem("", "this evaluator is an LLM evaluator, not a code evaluator"));
        };
        schema::check_config(&self.config_schema(), config, None)?;
        code.compile(config)
    }

    /// Returns the offered types, the default first.
    pub fn types(&self) -> &'static [EvaluatorType] {
        match self.method {
            Method::Code(_) => &[EvaluatorType::Rule],
            Method::Llm(_) => &[EvaluatorType::Llm],
            Method::CodeOrLlm { .. } => &[EvaluatorType::Llm, EvaluatorType::Rule],
        }
    }

    /// Returns the type that evaluates with this config if the caller requests no type.
    pub fn selected_type(&self, config: &Map<String, Value>) -> EvaluatorType {
        match self.method {
            Method::Code(_) => EvaluatorType::Rule,
            Method::Llm(_) => EvaluatorType::Llm,
            Method::CodeOrLlm { has_expectation, .. } if has_expectation(config) => EvaluatorType::Rule,
            Method::CodeOrLlm { .. } => EvaluatorType::Llm,
        }
    }

    /// Returns the rubric of the LLM evaluator, if there is one.
    pub fn rubric(&self) -> Option<&'static Rubric> {
        match self.method {
            Method::Llm(rubric) | Method::CodeOrLlm { rubric, .. } => Some(rubric),
            Method::Code(_) => None,
        }
    }

    /// Returns the `evaluator_version` of evaluations, such as `faithfulness@1`.
    pub fn evaluator_version(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    fn code(&self) -> Option<&EvaluatorCode> {
        match &self.method {
            Method::Code(code) | Method::CodeOrLlm { code, .. } => Some(code),
            Method::Llm(_) => None,
        }
    }
}
