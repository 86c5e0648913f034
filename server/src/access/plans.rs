//! Limits of each plan, as data.

use api::{
    Plan,
    tenant::{Limits, RequestLimits},
};
use store::{quotas::Quota, rates::RateBucket};

/// Returns the rate limit of a bucket on a plan, in requests per minute; `None` when there is no limit.
pub const fn requests_per_minute(bucket: RateBucket, plan: Plan) -> Option<u64> {
    let limits = limits(plan).requests_per_minute;
    match bucket {
        RateBucket::Traces => limits.traces,
        RateBucket::Metrics => limits.metrics,
        RateBucket::Feedback => limits.feedback,
        RateBucket::Eval => limits.eval,
        RateBucket::Prompts => limits.prompts,
        RateBucket::Ingest => limits.ingest,
        RateBucket::Other => limits.other,
    }
}

/// Returns the monthly limit of a quota on a plan; `None` when there is no limit.
pub const fn monthly_limit(quota: Quota, plan: Plan) -> Option<u64> {
    match quota {
        Quota::Traces => limits(plan).traces_per_month,
        Quota::LlmEvaluations => limits(plan).llm_evaluations_per_month,
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
        let of = |bucket: RateBucket| {
            Plan::ALL.iter().map(|it| requests_per_minute(bucket, *it)).collect::<Vec<_>>()
        };
        let some = |all: [u64; 4]| all.map(Some).into_iter().chain([None]).collect::<Vec<_>>();
        assert_eq!(of(RateBucket::Traces), some([3_600, 36_000, 72_000, 144_000]));
        assert_eq!(of(RateBucket::Metrics), some([3_600, 36_000, 72_000, 144_000]));
        assert_eq!(of(RateBucket::Feedback), some([300, 3_000, 6_000, 12_000]));
        assert_eq!(of(RateBucket::Eval), some([300, 3_000, 6_000, 12_000]));
        assert_eq!(of(RateBucket::Prompts), some([6_000, 60_000, 120_000, 240_000]));
        assert_eq!(of(RateBucket::Ingest), some([6_000, 60_000, 120_000, 240_000]));
        assert_eq!(of(RateBucket::Other), some([1_200, 12_000, 24_000, 48_000]));
        let of = |quota: Quota| Plan::ALL.iter().map(|it| monthly_limit(quota, *it)).collect::<Vec<_>>();
        assert_eq!(of(Quota::Traces), some([50_000, 1_000_000, 10_000_000, 50_000_000]));
        assert_eq!(of(Quota::LlmEvaluations), some([2_500, 50_000, 250_000, 1_000_000]));
        let members: Vec<_> = Plan::ALL.iter().map(|it| limits(*it).members).collect();
        assert_eq!(members, [Some(3), None, None, None, None]);
    }
}
