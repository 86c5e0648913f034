//! Evaluators: the built-in ones and a tenant's own.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Timestamp, enums::words, eval::EvaluatorType};

/// An evaluator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Evaluator {
    /// The `metric_name` of its evaluations.
    pub name: String,
    /// The name shown.
    pub display_name: String,
    /// Categories: `quality`, `safety`, `retrieval`, `cost`, `tool-use`, `performance`.
    pub tags: Vec<String>,
    /// The usual type.
    pub evaluator_type: EvaluatorType,
    /// All types offered.
    pub evaluator_types: Vec<EvaluatorType>,
    /// What it checks, what it needs and what its score means.
    pub description: String,
    /// Goes up with every change.
    pub version: i64,
    /// JSON Schema of its `config`.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub config_schema: Value,
    /// It comes with the service.
    pub builtin: bool,
    /// Template of the judge's instructions; only on a tenant's own of type `llm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
    /// Scale of the judge's answer; only on a tenant's own of type `llm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub scale: Option<Value>,
    /// What is checked; only on a tenant's own of type `rule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
    pub checks: Option<Vec<Value>>,
    /// How checks are combined; only on a tenant's own of type `rule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combine: Option<Combine>,
    /// When it was made; absent on built-ins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// When it last changed; absent on built-ins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

words! {
    /// How several checks make one verdict.
    Combine {
        /// Each has to hold; the score is the share of those that do.
        All = "all",
        /// One has to hold.
        Any = "any",
    }
}

/// Body of `POST /v1/evaluators`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewEvaluator {
    /// 1 to 100 of `a-z`, `0-9`, `_`, `-`, beginning with a letter; no built-in's name.
    pub name: String,
    /// Default: the name.
    #[serde(default)]
    pub display_name: Option<String>,
    /// At most 20.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// `llm` or `rule`. Required. A text, so that an unknown word is a value not allowed.
    #[cfg_attr(feature = "schema", schema(value_type = EvaluatorType))]
    pub evaluator_type: String,
    /// What it checks.
    #[serde(default)]
    pub description: Option<String>,
    /// JSON Schema of its `config`; default: no options but `threshold`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub config_schema: Option<Map<String, Value>>,
    /// For `llm`: the instructions, a template over `{{input}}`, `{{output}}`, `{{documents}}`,
    /// `{{tools}}`, `{{metadata.key}}` and `{{config.key}}`.
    #[serde(default)]
    pub rubric: Option<String>,
    /// For `llm`: `{"min": 1, "max": 5}` or `{"levels": [{"label": "good", "score": 1.0, "meaning": "…"}, …]}`;
    /// default 0 to 1.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub scale: Option<Value>,
    /// For `rule`: 1 to 50 objects with a `kind`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
    pub checks: Option<Vec<Value>>,
    /// For `rule`: default `all`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Combine>))]
    pub combine: Option<String>,
}

/// Body of `PATCH /v1/evaluators/{name}`: what is absent stays. The type can't change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvaluatorChange {
    /// The name shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Categories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// What it checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its `config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub config_schema: Option<Map<String, Value>>,
    /// The instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
    /// The scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub scale: Option<Value>,
    /// The checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
    pub checks: Option<Vec<Value>>,
    /// How they are combined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Combine>))]
    pub combine: Option<String>,
}

/// The evaluators: the built-in ones by name, then the tenant's own, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvaluatorList {
    /// The evaluators.
    pub evaluators: Vec<Evaluator>,
    /// More rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
