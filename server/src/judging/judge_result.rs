//! Results of calling a judge.

use std::time::Duration;

use evaluators::Verdict;
use semantics::{cost, usage::Usage};
use store::evaluations::JudgeUsage;

use crate::{ingest::prices::PriceBook, providers::judge::JudgeProviderFailure};

/// A verdict, and the usage of the judge.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgeResult {
    /// The verdict.
    pub verdict: Verdict,
    /// The usage of all requests to the judge.
    pub usage: JudgeUsage,
}

/// Adds the usage of one reply of the judge.
pub(super) fn add_reply(total: &mut JudgeUsage, reply: &Usage, model: &str, prices: &PriceBook) {
    if !reply.is_reported() {
        return;
    }
    let buckets = reply.buckets();
    let prompt = buckets.input + buckets.cached_input + buckets.cache_write;
    let completion = buckets.output + buckets.reasoning;
    let sum = |to: &mut Option<i64>, more: i64| *to = Some(to.unwrap_or(0).saturating_add(more));
    sum(&mut total.prompt_tokens, prompt);
    sum(&mut total.completion_tokens, completion);
    if let Some(rate) = prices.find(model) {
        sum(&mut total.cost, cost::total(&buckets, &rate.price));
    }
}

/// The kind of a judge's failure, which determines the reaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JudgeFailureKind {
    /// Not called: the circuit breaker is open, or too many requests wait. Not counted as an attempt.
    Waiting,
    /// Temporary.
    Later,
    /// Permanent until a person changes the credential, the account or the model; eval rules that need
    /// it are paused.
    Broken,
    /// The provider rejects this trace; others may be accepted.
    Refused,
    /// Two replies could not be parsed.
    Unreadable,
}

impl JudgeFailureKind {
    /// Returns the label in metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Later => "failed",
            Self::Broken => "broken",
            Self::Refused => "refused",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JudgeFailure {
    /// The kind of the failure.
    pub kind: JudgeFailureKind,
    /// A sentence with the model's name and what to do, suitable for the tenant.
    pub message: String,
    /// The delay before the next attempt, if the provider or the circuit breaker requires one.
    pub retry_after: Option<Duration>,
    /// Start of the provider's uninterrupted failure in microseconds, if its circuit breaker is open.
    pub failing_since: Option<i64>,
    /// The usage of the failed requests. Boxed, because every call returns this type as its error.
    pub usage: Box<JudgeUsage>,
}

impl From<&JudgeProviderFailure> for JudgeFailureKind {
    fn from(failure: &JudgeProviderFailure) -> Self {
        match failure {
            JudgeProviderFailure::Denied { .. } => Self::Broken,
            JudgeProviderFailure::Temporary { .. } => Self::Later,
            JudgeProviderFailure::TextRejected(_) | JudgeProviderFailure::UnsupportedFeature { .. } => {
                Self::Refused
            }
            JudgeProviderFailure::InvalidResponse(_) => Self::Unreadable,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use semantics::prices::{Overrides, PriceTable};

    use super::*;

    #[test]
    fn judge_usage_sums_all_requests() {
        let prices = PriceBook::new(Arc::new(PriceTable::builtin()), Overrides::default());
        let mut total = JudgeUsage::default();
        add_reply(&mut total, &Usage::default(), "gpt-4o", &prices);
        assert_eq!(total, JudgeUsage::default());
        let usage = Usage {
            prompt: Some(1_000),
            completion: Some(100),
            cached: Some(200),
            reasoning: Some(60),
            cached_in_prompt: true,
            ..Usage::default()
        };
        add_reply(&mut total, &usage, "gpt-4o", &prices);
        add_reply(&mut total, &usage, "gpt-4o", &prices);
        assert_eq!((total.prompt_tokens, total.completion_tokens), (Some(2_000), Some(200)));
        // Twice the cost of 800 tokens at 2.5, 200 at 1.25 and 100 at 10 dollars per million.
        assert_eq!(total.cost, Some(6_500_000_000));
        let mut unknown = JudgeUsage::default();
        add_reply(&mut unknown, &usage, "a model without price", &prices);
        assert_eq!((unknown.prompt_tokens, unknown.cost), (Some(1_000), None));
    }
}
