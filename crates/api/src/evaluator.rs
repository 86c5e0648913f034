//! Evaluators: built-in and custom.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Timestamp, enums::words, eval::EvaluatorType};

/// Measures one property of traces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Evaluator {
    /// The `metric_name` of its evaluations.
    pub name: String,
    /// The name shown in user interfaces.
    pub display_name: String,
    /// Categories: `quality`, `safety`, `retrieval`, `cost`, `tool-use`, `performance`.
    pub tags: Vec<String>,
    /// The default type.
    pub evaluator_type: EvaluatorType,
    /// All types that it supports.
    pub evaluator_types: Vec<EvaluatorType>,
    /// The measured property, the required data and the meaning of the score.
    pub description: String,
    /// Incremented with every change.
    pub version: i64,
    /// JSON Schema of its `config`.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub config_schema: Value,
    /// Whether the evaluator is built in.
    pub builtin: bool,
    /// Template of the judge's instructions; only for custom evaluators of type `llm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
    /// Scale of the score; only for custom evaluators of type `llm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub scale: Option<Value>,
    /// The checks; only for custom evaluators of type `rule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
    pub checks: Option<Vec<Value>>,
    /// How the results of the checks are combined; only for custom evaluators of type `rule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combine: Option<Combine>,
    /// Creation time; absent for built-in evaluators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// Time of the last change; absent for built-in evaluators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

words! {
    /// How the results of several checks are combined.
    Combine {
        /// Every check must pass; the score is the share of checks that pass.
        All = "all",
        /// One check must pass.
        Any = "any",
    }
}

/// Body of `POST /v1/evaluators`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewEvaluator {
    /// 1 to 100 characters of `a-z`, `0-9`, `_`, `-`, beginning with a letter; not the name of a
    /// built-in evaluator.
    pub name: String,
    /// Default: the name.
    #[serde(default)]
    pub display_name: Option<String>,
    /// At most 20 categories.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// `llm` or `rule`. Required. A string, so that an unknown word is a validation error (422).
    #[cfg_attr(feature = "schema", schema(value_type = EvaluatorType))]
    pub evaluator_type: String,
    /// The measured property.
    #[serde(default)]
    pub description: Option<String>,
    /// JSON Schema of its `config`; default: no option except `threshold`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub config_schema: Option<Map<String, Value>>,
    /// For `llm`: the instructions, a template with `{{input}}`, `{{output}}`, `{{documents}}`,
    /// `{{tools}}`, `{{metadata.key}}` and `{{config.key}}`.
    #[serde(default)]
    pub rubric: Option<String>,
    /// For `llm`: `{"min": 1, "max": 5}` or `{"levels": [{"label": "good", "score": 1.0, "meaning":
    /// "…"}, …]}`; default 0 to 1.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub scale: Option<Value>,
    /// For `rule`: 1 to 50 objects with a `kind`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
    pub checks: Option<Vec<Value>>,
    /// For `rule`: how the results are combined; default `all`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Combine>))]
    pub combine: Option<String>,
}

/// Body of `PATCH /v1/evaluators/{name}`. Absent fields keep their values; the type cannot change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvaluatorChange {
    /// The name shown in user interfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Categories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The measured property.
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
    /// How the results of the checks are combined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Combine>))]
    pub combine: Option<String>,
}

/// A page of evaluators: the built-in ones by name, then the custom ones, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvaluatorList {
    /// The evaluators.
    pub evaluators: Vec<Evaluator>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
