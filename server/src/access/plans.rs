//! Limits of each plan, as data.

use api::{
    Plan,
    tenant::{Limits, RequestLimits},
};

/// Routes that share a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bucket {
    /// `GET /v1/traces`.
    Traces,
    /// `GET /v1/metrics`.
    Metrics,
    /// `POST /v1/feedback`.
    Feedback,
    /// `POST /v1/eval`.
    Eval,
    /// `GET /v1/prompts/{name}`.
    Prompts,
    /// The ingest endpoints.
    Ingest,
    /// All other routes.
    Other,
}

impl Bucket {
    /// Every bucket; its position here is its number.
    pub const ALL: [Self; 7] =
        [Self::Traces, Self::Metrics, Self::Feedback, Self::Eval, Self::Prompts, Self::Ingest, Self::Other];

    /// Returns the name in the database and the documentation.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Feedback => "feedback",
            Self::Eval => "eval",
            Self::Prompts => "prompts",
            Self::Ingest => "ingest",
            Self::Other => "other",
        }
    }

    /// Returns the requests per minute on a plan; `None` means no limit.
    pub const fn limit(self, plan: Plan) -> Option<u64> {
        let limits = limits(plan).requests_per_minute;
        match self {
            Self::Traces => limits.traces,
            Self::Metrics => limits.metrics,
            Self::Feedback => limits.feedback,
            Self::Eval => limits.eval,
            Self::Prompts => limits.prompts,
            Self::Ingest => limits.ingest,
            Self::Other => limits.other,
        }
    }
}

/// Resources with a monthly quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quota {
    /// Traces stored.
    Traces,
    /// LLM evaluations.
    LlmEvaluations,
}

impl Quota {
    /// Returns the name in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::LlmEvaluations => "llm_evaluations",
        }
    }

    /// Returns the monthly quota on a plan; `None` means no limit.
    pub const fn limit(self, plan: Plan) -> Option<u64> {
        match self {
            Self::Traces => limits(plan).traces_per_month,
            Self::LlmEvaluations => limits(plan).llm_evaluations_per_month,
        }
    }
}

/// Returns all limits of a plan.
pub const fn limits(plan: Plan) -> Limits {
    // Each plan's requests are a multiple of the smallest plan's; traces and metrics have the same
    // limits.
    let (requests, traces, evaluations, members) = match plan {
        Plan::Starter => (per_minute(1), Some(50_000), Some(2_500), Some(3)),
        Plan::Pro => (per_minute(10), Some(1_000_000), Some(50_000), None),
        Plan::Team => (per_minute(20), Some(10_000_000), Some(250_000), None),
        Plan::Business => (per_minute(40), Some(50_000_000), Some(1_000_000), None),
        Plan::Enterprise => (UNLIMITED, None, None, None),
    };
    Limits {
        requests_per_minute: requests,
        traces_per_month: traces,
        llm_evaluations_per_month: evaluations,
        members,
    }
}

const UNLIMITED: RequestLimits = RequestLimits {
    traces: None,
    metrics: None,
    feedback: None,
    eval: None,
    prompts: None,
    ingest: None,
    other: None,
};

const fn per_minute(times: u64) -> RequestLimits {
    RequestLimits {
        traces: Some(3_600 * times),
        metrics: Some(3_600 * times),
        feedback: Some(300 * times),
        eval: Some(300 * times),
        prompts: Some(6_000 * times),
        ingest: Some(6_000 * times),
        other: Some(1_200 * times),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_limits_match_the_contract() {
        let of = |bucket: Bucket| Plan::ALL.iter().map(|it| bucket.limit(*it)).collect::<Vec<_>>();
        let some = |all: [u64; 4]| all.map(Some).into_iter().chain([None]).collect::<Vec<_>>();
        assert_eq!(of(Bucket::Traces), some([3_600, 36_000, 72_000, 144_000]));
        assert_eq!(of(Bucket::Metrics), some([3_600, 36_000, 72_000, 144_000]));
        assert_eq!(of(Bucket::Feedback), some([300, 3_000, 6_000, 12_000]));
        assert_eq!(of(Bucket::Eval), some([300, 3_000, 6_000, 12_000]));
        assert_eq!(of(Bucket::Prompts), some([6_000, 60_000, 120_000, 240_000]));
        assert_eq!(of(Bucket::Ingest), some([6_000, 60_000, 120_000, 240_000]));
        assert_eq!(of(Bucket::Other), some([1_200, 12_000, 24_000, 48_000]));
        let of = |quota: Quota| Plan::ALL.iter().map(|it| quota.limit(*it)).collect::<Vec<_>>();
        assert_eq!(of(Quota::Traces), some([50_000, 1_000_000, 10_000_000, 50_000_000]));
        assert_eq!(of(Quota::LlmEvaluations), some([2_500, 50_000, 250_000, 1_000_000]));
        let members: Vec<_> = Plan::ALL.iter().map(|it| limits(*it).members).collect();
        assert_eq!(members, [Some(3), None, None, None, None]);
    }
}
