//! Semantic search over spans.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{Timestamp, trace::Span};

/// Number of dimensions of every vector.
pub const DIMENSIONS: usize = 1536;

/// Body of `POST /v1/search/spans`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct VectorSearch {
    /// 1536 finite numbers, not all zero. Required unless `near` is given.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<f32>, min_items = 1536, max_items = 1536))]
    #[serde(default, deserialize_with = "some_numbers", skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vec<f32>>,
    /// A stored span whose vector is the query vector, instead of `vector`.
    #[serde(default)]
    pub near: Option<NearSpan>,
    /// Only spans of this project.
    #[serde(default)]
    pub project_id: Option<Uuid>,
    /// Only spans that started at this time or later.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// Only spans that started at this time or earlier.
    #[serde(default)]
    pub to: Option<Timestamp>,
    /// Only spans of this type.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// Only spans of this model.
    #[serde(default)]
    pub model: Option<String>,
    /// Only vectors of this embedding model; default: all.
    #[serde(default)]
    pub embedding_model: Option<String>,
    /// The `next_cursor` of the previous page, with the same vector and filters.
    #[serde(default)]
    pub cursor: Option<String>,
    /// 1 to 200, default 50.
    #[cfg_attr(feature = "schema", schema(value_type = Option<u32>, minimum = 1, maximum = 200))]
    #[serde(default)]
    pub limit: Option<i64>,
}

/// The span whose similar spans are searched. A span ID is unique only within its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NearSpan {
    /// The ID of the trace.
    pub trace_id: Uuid,
    /// The ID of the span.
    pub span_id: Uuid,
}

/// A span and its similarity to the query.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SearchResult {
    /// The span.
    pub span: Span,
    /// Cosine similarity, 0 (unrelated or opposite) to 1 (same direction).
    pub score: f64,
    /// Cosine distance, 0 to 2.
    pub distance: f64,
}

/// A page of spans, nearest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SearchResults {
    /// The spans.
    pub results: Vec<SearchResult>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
    /// Number of spans within the filters that the query was compared with. On PostgreSQL counted up to
    /// 200,000, including those not searched.
    pub searched: i64,
    /// Number of spans within the filters whose vectors come from another embedding model.
    pub not_searched: i64,
}

/// For `deserialize_with`: a list of numbers. An element that is not a number, or is too large, becomes
/// a non-finite value, so that validation can name its field. At most one element beyond the expected
/// number of dimensions is kept.
///
/// # Errors
///
/// Fails when the value is not a list.
fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f32>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let list = raw.get().strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let list = list.ok_or_else(|| de::Error::custom("must be a list of numbers"))?;
    if list.trim().is_empty() {
        return Ok(Vec::new());
    }
    // Splitting a nested list or object yields parts that are not numbers.
    let numbers = list.split(',').take(DIMENSIONS + 1);
    Ok(numbers.map(|it| it.trim().parse().unwrap_or(f32::NAN)).collect())
}

/// Like [`numbers`], for a field that may be absent but not null. Use it with `default`.
///
/// # Errors
///
/// Fails when the value is not a list.
fn some_numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<f32>>, D::Error> {
    numbers(deserializer).map(Some)
}

/// Like [`numbers`], for a field that may be null. Use it with `default`.
///
/// # Errors
///
/// Fails when the value is neither a list nor null.
pub(crate) fn maybe_numbers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<f32>>, D::Error> {
    #[derive(Deserialize)]
    struct Numbers(#[serde(deserialize_with = "numbers")] Vec<f32>);
    Ok(Option::<Numbers>::deserialize(deserializer)?.map(|it| it.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_element_that_is_not_a_number_becomes_non_finite() {
        let read = |vector: &str| {
            let body = format!(r#"{{"vector": {vector}}}"#);
            serde_json::from_str::<VectorSearch>(&body).map(|it| it.vector.unwrap_or_default())
        };
        assert_eq!(read("[1, -2.5e-1 ,\n0]").unwrap(), [1.0, -0.25, 0.0]);
        assert_eq!(read("[]").unwrap(), [0.0_f32; 0]);
        for hostile in
            ["[1e999]", "[-1e39]", "[null]", r#"["inf"]"#, r#"["1,2"]"#, "[[1]]", r#"[{"a":1}]"#, "[true]"]
        {
            assert!(read(hostile).unwrap().iter().any(|it| !it.is_finite()), "{hostile}");
        }
        for wrong in ["null", "1", r#""[1]""#, r#"{"0":1}"#] {
            assert!(read(wrong).is_err_and(|it| it.is_data()), "{wrong}");
        }
        for broken in ["[1,]", "[NaN]", "[1"] {
            assert!(read(broken).is_err(), "{broken}");
        }
    }
}
