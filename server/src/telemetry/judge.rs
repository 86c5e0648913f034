//! Metrics of judges.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Upper bounds of the duration buckets, in seconds.
const DURATION_BUCKETS: [f64; 7] = [0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct JudgeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TokenLabels {
    direction: &'static str,
}

/// Metrics of judges.
#[derive(Debug)]
pub struct JudgeMetrics {
    /// Replies that could not be parsed and were requested again.
    pub repairs: Counter,
    verdicts: Family<JudgeLabels, Counter>,
    requests: Family<JudgeLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
    seconds: Histogram,
}

impl JudgeMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let judge = Self {
            repairs: Counter::default(),
            verdicts: Family::default(),
            requests: Family::default(),
            tokens: Family::default(),
            seconds: Histogram::new(DURATION_BUCKETS),
        };
        let text = "Verdicts requested from judges, by outcome";
        registry.register("loupe_judge_verdicts", text, judge.verdicts.clone());
        let text = "Requests to judge providers";
        registry.register("loupe_judge_requests", text, judge.requests.clone());
        let text = "Replies of judges that could not be parsed and were requested once more";
        registry.register("loupe_judge_repairs", text, judge.repairs.clone());
        let text = "Tokens of judges: prompts (input) and replies (output)";
        registry.register("loupe_judge_tokens", text, judge.tokens.clone());
        let text = "Duration of requests to judge providers";
        let seconds = judge.seconds.clone();
        registry.register_with_unit("loupe_judge_request_duration", text, Unit::Seconds, seconds);
        judge
    }

    /// Counts a request with its outcome and duration.
    pub fn count_request(&self, outcome: &'static str, took: Duration) {
        self.requests.get_or_create_owned(&JudgeLabels { outcome }).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// Counts a requested verdict and its usage.
    pub fn count_verdict(&self, outcome: &'static str, prompt: Option<i64>, completion: Option<i64>) {
        self.verdicts.get_or_create_owned(&JudgeLabels { outcome }).inc();
        for (direction, tokens) in [("input", prompt), ("output", completion)] {
            let tokens = tokens.and_then(|it| u64::try_from(it).ok()).unwrap_or_default();
            self.tokens.get_or_create_owned(&TokenLabels { direction }).inc_by(tokens);
        }
    }
}
