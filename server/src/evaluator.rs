//! The evaluators of a tenant: the built-in ones and its own, under one roof.

use std::{sync::Arc, time::Duration};

use api::{
    ErrorCode, EvaluatorType, FieldError,
    evaluator::{Combine, NewEvaluator},
};
use entities::evaluator as table;
use evaluators::{
    ConfigProblem, Definition, Rule, custom,
    judge::{Instructions, Prefers},
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
    /// One that comes with the service.
    Builtin(&'static Definition),
    /// One that the tenant made.
    Own(Arc<Own>),
}

/// An evaluator that a tenant made.
#[derive(Debug)]
pub struct Own {
    /// Its row.
    pub row: table::Model,
    /// What its maker said of it.
    pub said: NewEvaluator,
    kind: EvaluatorType,
}

impl Own {
    /// Reads a stored evaluator.
    ///
    /// # Errors
    /// When the row can't be read.
    pub fn of(row: table::Model) -> anyhow::Result<Self> {
        let said = serde_json::from_str(&row.definition)?;
        let kind = row.evaluator_type.parse()?;
        Ok(Self { row, said, kind })
    }

    /// How checks are combined.
    pub fn combine(&self) -> Combine {
        self.said.combine.as_deref().and_then(|it| it.parse().ok()).unwrap_or(Combine::All)
    }
}

impl Evaluator {
    /// The built-in of this name.
    pub fn builtin(name: &str) -> Option<Self> {
        evaluators::builtin::find(name).map(Self::Builtin)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Builtin(it) => it.name,
            Self::Own(it) => &it.row.name,
        }
    }

    /// What evaluations carry of it: its name and version.
    pub fn version(&self) -> String {
        match self {
            Self::Builtin(it) => it.evaluator_version(),
            Self::Own(it) => format!("{}@{}", it.row.name, it.row.version),
        }
    }

    /// The types that it offers.
    pub fn types(&self) -> &[EvaluatorType] {
        match self {
            Self::Builtin(it) => it.types(),
            Self::Own(it) => std::slice::from_ref(&it.kind),
        }
    }

    /// The type that judges with this config: the one asked for, else what the config calls for.
    ///
    /// # Errors
    /// `validation_failed` when it does not offer the type.
    pub fn chosen(&self, asked: Option<&str>, config: &Config) -> Result<EvaluatorType> {
        let Some(asked) = asked else {
            return Ok(match self {
                Self::Builtin(it) => it.chosen(config),
                Self::Own(it) => it.kind,
            });
        };
        let asked: EvaluatorType = asked
            .parse()
            .map_err(|it: api::enums::UnknownWord| Problem::field("evaluator_type", it.to_string()))?;
        if self.types().contains(&asked) {
            return Ok(asked);
        }
        let offered: Vec<&str> = self.types().iter().map(|it| it.as_str()).collect();
        let message = format!("`{}` is of type {} only", self.name(), offered.join(" and "));
        Err(Problem::field("evaluator_type", message).into())
    }

    /// Returns whether checking a config is quick, because it contains nothing to compile.
    pub fn is_checked_quickly(&self, config: &Config) -> bool {
        let is_plain = |it: &Value| !it.is_object() && !it.is_array();
        match self {
            Self::Builtin(_) => !config.contains_key("pattern") && config.values().all(is_plain),
            Self::Own(it) => it.said.config_schema.is_none(),
        }
    }

    /// Checks a config for a type that it offers, down to patterns and schemas inside. That can take long,
    /// unless it [is checked quickly](Self::is_checked_quickly).
    ///
    /// # Errors
    /// `validation_failed` with everything that is wrong.
    pub fn check(&self, kind: EvaluatorType, config: &Config) -> Result<()> {
        let checked = match self {
            Self::Builtin(it) => it.check_as(kind, config),
            Self::Own(it) => custom::config::check(it.said.config_schema.as_ref(), config),
        };
        // The checks of a tenant's own evaluator do not depend on the config, and were compiled before they
        // were stored.
        checked.map_err(|problems| refused("config", problems))
    }

    /// What its judge is told.
    ///
    /// # Errors
    /// With what is wrong, when it is not judged by a model, or was stored by an older program.
    pub fn instructions(&self) -> Result<Instructions, String> {
        match self {
            Self::Builtin(it) => {
                it.rubric().map(Instructions::from).ok_or_else(|| format!("`{}` is judged by code", it.name))
            }
            Self::Own(it) => {
                custom::llm::compile(it.said.rubric.as_deref().unwrap_or(""), it.said.scale.as_ref())
                    .map_err(|problems| listed(&problems))
            }
        }
    }

    /// The provider whose models judge it best, if one does.
    pub fn prefers(&self) -> Option<Prefers> {
        match self {
            Self::Builtin(it) => it.rubric().map(|it| it.prefers),
            Self::Own(_) => None,
        }
    }

    fn compile(&self, config: &Config) -> Result<Box<dyn Rule>, Vec<ConfigProblem>> {
        match self {
            Self::Builtin(it) => match it.rule() {
                Some(compile) => compile(config),
                None => Err(vec![ConfigProblem::new("", "this evaluator is judged by a model, not by code")]),
            },
            Self::Own(it) => {
                custom::rule::compile(it.said.checks.as_deref().unwrap_or_default(), it.combine(), config)
            }
        }
    }
}

/// Rules made of configs, kept: compiling a schema costs more than judging by it.
pub struct Compiled(Cache<(Uuid, String, String), Arc<dyn Rule>>);

/// Bytes that compiled rules and the configs they were made of take up, about.
const KEPT: u64 = 256 * 1024 * 1024;
/// Bytes of a compiled evaluator besides its config and its reported size.
const BASE_BYTES: usize = 64 * 1024;
/// How long one is kept that nobody uses.
const UNUSED: Duration = Duration::from_secs(900);

impl Default for Compiled {
    fn default() -> Self {
        let weight = |key: &(Uuid, String, String), rule: &Arc<dyn Rule>| {
            let bytes = key.2.len().saturating_mul(8).saturating_add(BASE_BYTES).saturating_add(rule.bytes());
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        Self(Cache::builder().weigher(weight).max_capacity(KEPT).time_to_idle(UNUSED).build())
    }
}

impl Compiled {
    /// The rule of an evaluator with a config, which is given as text too. Compiling can take long: this
    /// is called on a thread of the [`CodeRunner`](crate::code_runner::CodeRunner).
    ///
    /// # Errors
    /// With what is wrong with the config.
    pub fn get(&self, tenant: Uuid, evaluator: &Evaluator, text: &str) -> Result<Arc<dyn Rule>, String> {
        let owner = if matches!(evaluator, Evaluator::Own(_)) { tenant } else { Uuid::nil() };
        let key = (owner, evaluator.version(), text.to_owned());
        if let Some(rule) = self.0.get(&key) {
            return Ok(rule);
        }
        let config: Config =
            serde_json::from_str(text).map_err(|it| format!("its config can't be read: {it}"))?;
        let rule: Arc<dyn Rule> = evaluator.compile(&config).map_err(|it| listed(&it))?.into();
        self.0.insert(key, Arc::clone(&rule));
        Ok(rule)
    }
}

/// The problems of an object below `within`, as a refusal.
pub fn refused(within: &str, problems: Vec<ConfigProblem>) -> Error {
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

/// The path of a field below `within` as the API writes paths: `checks[0].pattern`.
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

fn listed(problems: &[ConfigProblem]) -> String {
    let lines: Vec<String> =
        problems
            .iter()
            .map(|it| {
                if it.field.is_empty() { it.message.clone() } else { format!("{}: {}", it.field, it.message) }
            })
            .collect();
    format!("its config is not valid: {}", lines.join("; "))
}
