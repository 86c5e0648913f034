//! What comes of asking a judge.

use std::time::Duration;

use evaluators::Verdict;
use semantics::{cost, money::Pico, usage::Usage};

use crate::{ingest::prices::PriceBook, providers::judge::Failure};

/// A verdict, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The model that was asked.
    pub model: String,
    /// What it took.
    pub spent: Spent,
}

/// What judging took, of all requests together. It is never estimated: what a provider does not
/// tell, or has no known price, is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens that the judge was shown.
    pub prompt_tokens: Option<i64>,
    /// Tokens that it answered, its thinking included.
    pub completion_tokens: Option<i64>,
    /// What these cost, in pico-dollars.
    pub cost: Option<Pico>,
}

impl Spent {
    /// Adds what one answer of this model took.
    pub fn add(&mut self, usage: &Usage, model: &str, prices: &PriceBook) {
        if !usage.is_reported() {
            return;
        }
        let buckets = usage.buckets();
        let prompt = buckets.input + buckets.cached_input + buckets.cache_write;
        let completion = buckets.output + buckets.reasoning;
        let sum = |to: &mut Option<i64>, more: i64| *to = Some(to.unwrap_or(0).saturating_add(more));
        sum(&mut self.prompt_tokens, prompt);
        sum(&mut self.completion_tokens, completion);
        if let Some(rate) = prices.find(model) {
            sum(&mut self.cost, cost::total(&buckets, &rate.price));
        }
    }
}

/// What to do about a judge that did not judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It was not asked: it rests after failures, or others wait for it already. This is no attempt.
    Waiting,
    /// It may work later.
    Later,
    /// It works when somebody has changed the credential, the account or the model: until then
    /// rules that need it are paused.
    Broken,
    /// The provider does not let this trace be judged; others may be.
    Refused,
    /// It answered, twice, and no verdict could be read.
    Unreadable,
}

impl Kind {
    /// The word in the figures.
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
    /// What to do about it.
    pub kind: Kind,
    /// In a sentence, with the model's name, and what to do. It is fit for the tenant.
    pub message: String,
    /// How long to wait before asking again, if the provider or its rest says so.
    pub retry_after: Option<Duration>,
    /// Since when the provider has failed without a pause, microseconds, if it is left alone for it.
    pub failing_since: Option<i64>,
    /// What was spent for nothing.
    pub spent: Spent,
}

impl From<&Failure> for Kind {
    fn from(failure: &Failure) -> Self {
        match failure {
            Failure::Denied { .. } => Self::Broken,
            Failure::Passing { .. } => Self::Later,
            Failure::Refused(_) | Failure::Form { .. } => Self::Refused,
            Failure::Unusable(_) => Self::Unreadable,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use semantics::prices::{Overrides, PriceTable};

    use super::*;

    #[test]
    fn all_requests_count() {
        let prices = PriceBook::new(Arc::new(PriceTable::builtin()), Overrides::default());
        let mut spent = Spent::default();
        spent.add(&Usage::default(), "gpt-4o", &prices);
        assert_eq!(spent, Spent::default());
        let usage = Usage {
            prompt: Some(1_000),
            completion: Some(100),
            cached: Some(200),
            reasoning: Some(60),
            cached_in_prompt: true,
            ..Usage::default()
        };
        spent.add(&usage, "gpt-4o", &prices);
        spent.add(&usage, "gpt-4o", &prices);
        assert_eq!((spent.prompt_tokens, spent.completion_tokens), (Some(2_000), Some(200)));
        // 800 at 2.5, 200 at 1.25 and 100 at 10 dollars a million, twice.
        assert_eq!(spent.cost, Some(6_500_000_000));
        let mut unknown = Spent::default();
        unknown.add(&usage, "a model of nobody", &prices);
        assert_eq!((unknown.prompt_tokens, unknown.cost), (Some(1_000), None));
    }
}
