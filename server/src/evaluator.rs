//! The evaluators of a tenant: built-in and custom ones.

use std::{sync::Arc, time::Duration};

use api::{
    ErrorCode, EvaluatorType, FieldError,
    evaluator::{Combine, NewEvaluator},
};
use entities::evaluator as table;
use evaluators::{
    CompiledEvaluator, ConfigProblem, Definition, custom,
    judge::{Instructions, PreferredProvider},
};
use moka::sync::Cache;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::{Error, Problem, Result};

/// Options of an evaluator.
pub type Config = Map<String, Value>;

/// An evaluator as a tenant sees it.
#[derive(Clone)]
pub enum Evaluator {
    /// A built-in evaluator.
    Builtin(&'static Definition),
    /// A custom evaluator.
    Custom(Arc<CustomEvaluator>),
}

/// A custom evaluator.
#[derive(Debug)]
pub struct CustomEvaluator {
    /// The evaluator's row.
    pub row: table::Model,
    /// The evaluator's definition.
    pub definition: NewEvaluator,
    kind: EvaluatorType,
}

impl CustomEvaluator {
    /// Parses a stored evaluator.
    ///
    /// # Errors
    ///
    /// Fails when the row is invalid.
    pub fn parse(row: table::Model) -> anyhow::Result<Self> {
        let definition = serde_json::from_str(&row.definition)?;
        let kind = row.evaluator_type.parse()?;
        Ok(Self { row, definition, kind })
    }

    /// Returns how the results of checks are combined.
    pub fn combine(&self) -> Combine {
        self.definition.combine.as_deref().and_then(|it| it.parse().ok()).unwrap_or(Combine::All)
    }
}

impl Evaluator {
    /// Returns the built-in evaluator with this name.
    pub fn builtin(name: &str) -> Option<Self> {
        evaluators::builtin::find(name).map(Self::Builtin)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        match self {
            Self::Builtin(it) => it.name,
            Self::Custom(it) => &it.row.name,
        }
    }

    /// Returns the name and version that evaluations contain, such as `faithfulness@1`.
    pub fn version(&self) -> String {
        match self {
            Self::Builtin(it) => it.evaluator_version(),
            Self::Custom(it) => format!("{}@{}", it.row.name, it.row.version),
        }
    }

    /// Returns the supported types.
    pub fn types(&self) -> &[EvaluatorType] {
        match self {
            Self::Builtin(it) => it.types(),
            Self::Custom(it) => std::slice::from_ref(&it.kind),
        }
    }

    /// Returns the type to use with this configuration: the requested one, else the one that the
    /// configuration implies.
    ///
    /// # Errors
    ///
    /// Fails with `validation_failed` when the type is not supported.
    pub fn select_type(&self, requested: Option<&str>, config: &Config) -> Result<EvaluatorType> {
        let Some(requested) = requested else {
            return Ok(match self {
                Self::Builtin(it) => it.selected_type(config),
                Self::Custom(it) => it.kind,
            });
        };
        let requested: EvaluatorType = requested
            .parse()
            .map_err(|it: api::enums::UnknownWord| Problem::field("evaluator_type", it.to_string()))?;
        if self.types().contains(&requested) {
            return Ok(requested);
        }
        let offered: Vec<&str> = self.types().iter().map(|it| it.as_str()).collect();
        let message = format!("`{}` is of type {} only", self.name(), offered.join(" and "));
        Err(Problem::field("evaluator_type", message).into())
    }

    /// Returns whether validating a configuration is quick, because it contains nothing to compile.
    pub fn is_quick_to_check(&self, config: &Config) -> bool {
        let is_plain = |it: &Value| !it.is_object() && !it.is_array();
        match self {
            Self::Builtin(_) => !config.contains_key("pattern") && config.values().all(is_plain),
            Self::Custom(it) => it.definition.config_schema.is_none(),
        }
    }

    /// Validates a configuration for a supported type, including patterns and schemas in it. This can
    /// take long, unless it [is quick to check](Self::is_quick_to_check).
    ///
    /// # Errors
    ///
    /// Fails with `validation_failed` and all invalid options.
    pub fn check(&self, kind: EvaluatorType, config: &Config) -> Result<()> {
        let checked = match self {
            Self::Builtin(it) => it.check_as(kind, config),
            Self::Custom(it) => custom::config::check(it.definition.config_schema.as_ref(), config),
        };
        // The checks of a custom evaluator do not depend on the configuration, and were compiled before
        // they were stored.
        checked.map_err(|problems| config_error("config", problems))
    }

    /// Returns the instructions for its judge.
    ///
    /// # Errors
    ///
    /// Fails when it is a code evaluator, or was stored by an incompatible version.
    pub fn instructions(&self) -> Result<Instructions, String> {
        match self {
            Self::Builtin(it) => it
                .rubric()
                .map(Instructions::from)
                .ok_or_else(|| format!("`{}` is a code evaluator", it.name)),
            Self::Custom(it) => custom::llm::compile(
                it.definition.rubric.as_deref().unwrap_or(""),
                it.definition.scale.as_ref(),
            )
            .map_err(|problems| join_problems(&problems)),
        }
    }

    /// Returns the preferred provider of its judge, if any.
    pub fn preferred_provider(&self) -> Option<PreferredProvider> {
        match self {
            Self::Builtin(it) => it.rubric().map(|it| it.prefers),
            Self::Custom(_) => None,
        }
    }

    fn compile(&self, config: &Config) -> Result<CompiledEvaluator, Vec<ConfigProblem>> {
        match self {
            Self::Builtin(it) => it.compile(config),
            Self::Custom(it) => custom::rule::compile(
                it.definition.checks.as_deref().unwrap_or_default(),
                it.combine(),
                config,
            ),
        }
    }
}

/// A cache of compiled code evaluators: compiling a schema takes longer than evaluating it.
pub struct CompiledEvaluators(Cache<(Uuid, String, String), Arc<CompiledEvaluator>>);

/// Approximate memory in bytes of the compiled evaluators and their configurations.
const MAX_CACHE_BYTES: u64 = 256 * 1024 * 1024;
/// Bytes of a compiled evaluator besides its config and its reported size.
const ENTRY_BASE_BYTES: usize = 64 * 1024;
/// Time after which an unused entry is dropped.
const UNUSED_TTL: Duration = Duration::from_secs(900);

impl Default for CompiledEvaluators {
    fn default() -> Self {
        let weight = |key: &(Uuid, String, String), evaluator: &Arc<CompiledEvaluator>| {
            let bytes = key
                .2
                .len()
                .saturating_mul(8)
                .saturating_add(ENTRY_BASE_BYTES)
                .saturating_add(evaluator.bytes());
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        Self(Cache::builder().weigher(weight).max_capacity(MAX_CACHE_BYTES).time_to_idle(UNUSED_TTL).build())
    }
}

impl CompiledEvaluators {
    /// Returns the compiled evaluator for a configuration, which is also given as text. Compiling can
    /// take long: this is called on a thread of the [`CodeRunner`](crate::code_runner::CodeRunner).
    ///
    /// # Errors
    ///
    /// Fails when the configuration is invalid.
    pub fn get(
        &self,
        tenant: Uuid,
        evaluator: &Evaluator,
        text: &str,
    ) -> Result<Arc<CompiledEvaluator>, String> {
        let owner = if matches!(evaluator, Evaluator::Custom(_)) { tenant } else { Uuid::nil() };
        let key = (owner, evaluator.version(), text.to_owned());
        if let Some(compiled) = self.0.get(&key) {
            return Ok(compiled);
        }
        let config: Config =
            serde_json::from_str(text).map_err(|it| format!("its configuration can't be parsed: {it}"))?;
        let compiled = Arc::new(evaluator.compile(&config).map_err(|it| join_problems(&it))?);
        self.0.insert(key, Arc::clone(&compiled));
        Ok(compiled)
    }
}

/// Converts the problems of an object below `within` to an error.
pub fn config_error(within: &str, problems: Vec<ConfigProblem>) -> Error {
    let fields: Vec<FieldError> = problems
        .into_iter()
        .map(|it| FieldError { field: path(within, &it.field), message: it.message })
        .collect();
    let message = match fields.as_slice() {
        [] => format!("{within} is not valid"),
        [first, ..] => format!("{}: {}", first.field, first.message),
    };
    let mut problem = Problem::new(ErrorCode::ValidationFailed, message);
    problem.fields = fields;
    problem.into()
}

/// Returns the path of a field below `within` in the API's notation: `checks[0].pattern`.
fn path(within: &str, field: &str) -> String {
    let mut path = within.to_owned();
    for step in field.split('.').filter(|it| !it.is_empty()) {
        if step.bytes().all(|it| it.is_ascii_digit()) {
            path.push_str(&format!("[{step}]"));
        } else {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(step);
        }
    }
    path
}

fn join_problems(problems: &[ConfigProblem]) -> String {
    let lines: Vec<String> =
        problems
            .iter()
            .map(|it| {
                if it.field.is_empty() { it.message.clone() } else { format!("{}: {}", it.field, it.message) }
            })
            .collect();
    format!("its configuration is invalid: {}", lines.join("; "))
}
