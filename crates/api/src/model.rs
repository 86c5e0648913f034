//! Model prices.

use serde::{Deserialize, Serialize};

/// US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelPrice {
    /// Prompt tokens.
    pub input_per_million: f64,
    /// Completion tokens.
    pub output_per_million: f64,
    /// Prompt tokens read from the provider's cache; default: `input_per_million`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_per_million: Option<f64>,
    /// Prompt tokens written to the provider's cache; default: `input_per_million`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_per_million: Option<f64>,
    /// Reasoning tokens; default: `output_per_million`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_per_million: Option<f64>,
}

/// A model and its price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Model {
    /// Base name, without provider prefix and date.
    pub name: String,
    /// The price.
    #[serde(flatten)]
    pub price: ModelPrice,
    /// Origin of the price: `tenant`, `file` or `builtin`.
    pub source: String,
}

/// A page of model prices, ordered by name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelList {
    /// The models with their prices.
    pub models: Vec<Model>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
    /// Date of the built-in price table.
    pub builtin_updated: String,
}
