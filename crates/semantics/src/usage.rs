//! Token counts of one span, and the disjoint buckets that prices apply to.
//!
//! The conventions under `otlp` extract the counts from attributes; [`crate::cost`] prices the buckets;
//! [`crate::rollup`] decides which spans of a trace count.

use api::UsageDetails;
use serde::Serialize;

/// Token counts as sent.
///
/// Providers define the prompt count differently. OpenAI and Gemini include tokens read from the cache,
/// Anthropic excludes cache reads and writes, and instrumentations convert in different ways; hence the
/// flag.
#[derive(Default, Clone, Debug, PartialEq)]
pub struct Usage {
    /// Prompt (input) tokens.
    pub prompt: Option<i64>,
    /// Completion (output) tokens, reasoning tokens included.
    pub completion: Option<i64>,
    /// Prompt tokens read from the provider's cache.
    pub cached: Option<i64>,
    /// Prompt tokens written to the provider's cache.
    pub cache_write: Option<i64>,
    /// Completion tokens spent on reasoning.
    pub reasoning: Option<i64>,
    /// Whether `prompt` includes `cached` and `cache_write`.
    pub cached_in_prompt: bool,
}

/// The same tokens, each in exactly one bucket.
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Buckets {
    /// Prompt tokens at the full price.
    #[serde(skip_serializing_if = "is_zero")]
    pub input: i64,
    /// Prompt tokens read from the cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_input: i64,
    /// Prompt tokens written to the cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: i64,
    /// Completion tokens other than reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub output: i64,
    /// Completion tokens spent on reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning: i64,
}

impl Usage {
    /// Whether any count was sent, including zero.
    pub fn is_reported(&self) -> bool {
        [self.prompt, self.completion, self.cached, self.cache_write, self.reasoning]
            .into_iter()
            .flatten()
            .any(|count| count >= 0)
    }

    /// Returns the counts of the tokens that are billed separately, as sent.
    pub fn details(&self) -> UsageDetails {
        UsageDetails {
            cached_input_tokens: self.cached,
            cache_write_tokens: self.cache_write,
            reasoning_tokens: self.reasoning,
        }
    }

    /// Splits the counts into disjoint buckets. Negative counts are treated as zero.
    ///
    /// If a part is larger than the count that is supposed to include it, the two are treated as
    /// separate.
    pub fn buckets(&self) -> Buckets {
        let count = |it: Option<i64>| it.unwrap_or(0).max(0);
        let prompt = count(self.prompt);
        let cached_input = count(self.cached);
        let cache_write = count(self.cache_write);
        let reasoning = count(self.reasoning);
        let in_prompt = if self.cached_in_prompt { cached_input.saturating_add(cache_write) } else { 0 };
        Buckets {
            input: without_part(prompt, in_prompt),
            cached_input,
            cache_write,
            output: without_part(count(self.completion), reasoning),
            reasoning,
        }
    }
}

fn without_part(whole: i64, part: i64) -> i64 {
    if part > whole { whole } else { whole - part }
}

fn is_zero(count: &i64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(usage: Usage, expected: [i64; 5]) {
        let Buckets { input, cached_input, cache_write, output, reasoning } = usage.buckets();
        assert_eq!([input, cached_input, cache_write, output, reasoning], expected, "{usage:?}");
    }

    #[test]
    fn cached_tokens_included_in_prompt_are_subtracted() {
        check(
            Usage {
                prompt: Some(1493),
                completion: Some(80),
                cached: Some(1408),
                reasoning: Some(64),
                cached_in_prompt: true,
                ..Usage::default()
            },
            [85, 1408, 0, 16, 64],
        );
    }

    #[test]
    fn cached_tokens_excluded_from_prompt_are_not_subtracted() {
        check(
            Usage {
                prompt: Some(612),
                completion: Some(11),
                cached: Some(2048),
                cache_write: Some(256),
                ..Usage::default()
            },
            [612, 2048, 256, 11, 0],
        );
    }

    #[test]
    fn inclusive_and_exclusive_prompt_counts_give_same_buckets() {
        let exclusive =
            Usage { prompt: Some(612), cached: Some(2048), cache_write: Some(256), ..Usage::default() };
        let inclusive = Usage { prompt: Some(2916), cached_in_prompt: true, ..exclusive.clone() };
        assert_eq!(inclusive.buckets(), exclusive.buckets());
    }

    #[test]
    fn cached_tokens_larger_than_prompt_are_separate() {
        check(
            Usage { prompt: Some(10), cached: Some(90), cached_in_prompt: true, ..Usage::default() },
            [10, 90, 0, 0, 0],
        );
        check(Usage { completion: Some(10), reasoning: Some(90), ..Usage::default() }, [0, 0, 0, 10, 90]);
    }

    #[test]
    fn absent_and_negative_token_counts_are_zero() {
        check(Usage::default(), [0; 5]);
        check(Usage { prompt: Some(-4), cached: Some(-1), ..Usage::default() }, [0; 5]);
        check(
            Usage {
                prompt: Some(i64::MAX),
                cached: Some(i64::MAX),
                cache_write: Some(i64::MAX),
                cached_in_prompt: true,
                ..Usage::default()
            },
            [0, i64::MAX, i64::MAX, 0, 0],
        );
    }

    #[test]
    fn token_count_of_zero_is_reported() {
        assert!(!Usage::default().is_reported());
        assert!(!Usage { prompt: Some(-1), ..Usage::default() }.is_reported());
        assert!(Usage { completion: Some(0), ..Usage::default() }.is_reported());
        assert!(Usage { reasoning: Some(3), ..Usage::default() }.is_reported());
    }
}
