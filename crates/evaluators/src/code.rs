//! Code evaluators: how one is compiled from its config and evaluates traces.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{
    config::{self, ConfigProblem, SharedOptions},
    subject::Subject,
    verdict::{Measurement, NotEvaluated, Threshold, Verdict},
};

/// Evaluation by code: deterministic, without input or output, in time linear in the text. Long loops can
/// be interrupted (see [`crate::budget`]).
pub(crate) trait CodeEvaluator: Send + Sync {
    /// Evaluates a subject.
    ///
    /// # Errors
    /// Fails when the trace lacks data that the evaluator needs; it never guesses.
    fn evaluate(&self, subject: &Subject) -> Result<Measurement, NotEvaluated>;

    /// Returns the approximate memory of the compiled evaluator in bytes, without its config.
    fn bytes(&self) -> usize {
        0
    }

    /// Returns whether every score below 1.0 has the label `fail` if the config sets no threshold.
    fn needs_full_score(&self) -> bool {
        false
    }
}

/// The options of a code evaluator. The type states them once: its fields with their comments are the JSON
/// Schema, by which a config is validated before it is parsed.
pub(crate) trait CodeConfig: DeserializeOwned + JsonSchema {
    /// Compiles the evaluator, once for many traces. Patterns and schemas are compiled here.
    ///
    /// # Errors
    /// All problems that the JSON Schema cannot express.
    fn compile(self) -> Result<impl CodeEvaluator + 'static, Vec<ConfigProblem>>;
}

/// Compiles a code evaluator from a valid config.
type Compiler = fn(&Map<String, Value>) -> Result<Box<dyn CodeEvaluator>, Vec<ConfigProblem>>;

/// The code of a built-in evaluator: the schema of its options, and its compiler.
pub struct EvaluatorCode {
    schema: fn() -> Map<String, Value>,
    compile: Compiler,
}

impl EvaluatorCode {
    /// Returns the code of the evaluator with this config.
    pub(crate) const fn of<C: CodeConfig>() -> Self {
        Self { schema: config::schema_of::<C>, compile: parse_and_compile::<C> }
    }

    /// Returns the schema of the evaluator's own options.
    pub(crate) fn schema(&self) -> Map<String, Value> {
        (self.schema)()
    }

    /// Compiles a valid config.
    pub(crate) fn compile(
        &self,
        config: &Map<String, Value>,
    ) -> Result<CompiledEvaluator, Vec<ConfigProblem>> {
        CompiledEvaluator::new((self.compile)(config)?, config)
    }
}

fn parse_and_compile<C: CodeConfig>(
    config: &Map<String, Value>,
) -> Result<Box<dyn CodeEvaluator>, Vec<ConfigProblem>> {
    Ok(Box::new(config::parse::<C>(config)?.compile()?))
}

/// A code evaluator with a config.
pub struct CompiledEvaluator {
    evaluator: Box<dyn CodeEvaluator>,
    threshold: Option<f64>,
}

impl CompiledEvaluator {
    /// Adds the options of every evaluator.
    pub(crate) fn new(
        evaluator: Box<dyn CodeEvaluator>,
        config: &Map<String, Value>,
    ) -> Result<Self, Vec<ConfigProblem>> {
        let SharedOptions { threshold } = config::parse(config)?;
        Ok(Self { evaluator, threshold })
    }

    /// Evaluates a subject.
    ///
    /// # Errors
    /// Fails when the trace lacks data that the evaluator needs.
    pub fn evaluate(&self, subject: &Subject) -> Result<Verdict, NotEvaluated> {
        let measurement = self.evaluator.evaluate(subject)?;
        let is_failure =
            self.threshold.is_none() && self.evaluator.needs_full_score() && measurement.score < 1.0;
        let label = if is_failure { "fail" } else { Threshold::new(self.threshold).label(measurement.score) };
        Ok(measurement.into_verdict(label))
    }

    /// Returns the approximate memory in bytes, without the config.
    pub fn bytes(&self) -> usize {
        self.evaluator.bytes()
    }
}
