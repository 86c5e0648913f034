//! Detailed token counts.

use serde::{Deserialize, Serialize};

/// Token counts that are billed separately. Counts that the sender did not report are omitted.
///
/// Reasoning tokens are part of the completion tokens. Whether the prompt tokens include cache reads
/// and cache writes depends on the sender; `metadata.cost_details.buckets` of a priced span shows how
/// they were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UsageDetails {
    /// Input tokens read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<i64>,
    /// Input tokens written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<i64>,
    /// Output tokens spent on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<i64>,
}

impl UsageDetails {
    /// Returns the counts with their names in JSON.
    pub fn counts(&self) -> [(&'static str, Option<i64>); 3] {
        let Self { cached_input_tokens, cache_write_tokens, reasoning_tokens } = *self;
        [
            ("cached_input_tokens", cached_input_tokens),
            ("cache_write_tokens", cache_write_tokens),
            ("reasoning_tokens", reasoning_tokens),
        ]
    }

    /// Returns the details if at least one count was reported.
    pub fn reported(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    /// Adds the counts of two spans; a missing count is treated as zero.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |left: Option<i64>, right: Option<i64>| match (left, right) {
            (Some(left), Some(right)) => Some(left.saturating_add(right)),
            (left, right) => left.or(right),
        };
        Self {
            cached_input_tokens: sum(self.cached_input_tokens, other.cached_input_tokens),
            cache_write_tokens: sum(self.cache_write_tokens, other.cache_write_tokens),
            reasoning_tokens: sum(self.reasoning_tokens, other.reasoning_tokens),
        }
    }
}
