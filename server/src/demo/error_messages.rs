//! Error messages of failed calls, as SDKs and providers write them, for every failure type.

use fastrand::Rng;

/// The message of a provider that limits the rate.
pub(super) const RATE_LIMIT_MESSAGE: &str = "openai.RateLimitError: Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-4o in organization org-acme on tokens per min (TPM): Limit 30000, Used 29411, Requested 1530. Please try again in 1.882s.', 'type': 'tokens', 'code': 'rate_limit_exceeded'}}";

/// The share of each failure in percent, and its message.
const WEIGHTED_MESSAGES: &[(u8, &str)] = &[
    (16, "openai.APITimeoutError: Request timed out."),
    (10, "httpx.ReadTimeout: The read operation timed out after 60.0 seconds"),
    (22, RATE_LIMIT_MESSAGE),
    (
        8,
        "anthropic.RateLimitError: 429 Too Many Requests: this request would exceed your organization's rate limit of 50 requests per minute",
    ),
    (10, "json.decoder.JSONDecodeError: Expecting ',' delimiter: line 4 column 12 (char 96)"),
    (
        9,
        "langchain_core.exceptions.OutputParserException: Invalid json output: Sure! Here is the review you asked for:",
    ),
    (
        13,
        "openai.BadRequestError: Error code: 400 - {'error': {'message': \"This model's maximum context length is 128000 tokens. However, your messages resulted in 131502 tokens. Please reduce the length of the messages.\", 'code': 'context_length_exceeded'}}",
    ),
    (7, "ConnectionError: [Errno 111] Connection refused: orders-db:5432"),
    (5, "PermissionError: the tool `refund` needs the approval of a person for amounts above 500 EUR"),
];

/// Returns a random failure.
pub(super) fn draw(rng: &mut Rng) -> &'static str {
    let mut remaining = rng.u8(0..WEIGHTED_MESSAGES.iter().map(|it| it.0).sum());
    for (share, message) in WEIGHTED_MESSAGES {
        match remaining.checked_sub(*share) {
            Some(rest) => remaining = rest,
            None => return message,
        }
    }
    WEIGHTED_MESSAGES[0].1
}

/// Returns a random failure that a retry overcomes.
pub(super) fn draw_temporary(rng: &mut Rng) -> &'static str {
    WEIGHTED_MESSAGES[rng.usize(0..4)].1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_failure_type_has_an_error_message() {
        let types: BTreeSet<_> =
            WEIGHTED_MESSAGES.iter().map(|it| semantics::failure::classify_message(it.1)).collect();
        // No span has a remediation regression.
        let span_failure_types = api::FailureType::ALL.len() - 1;
        assert_eq!(types.len(), span_failure_types, "{types:?}");
        let mut rng = Rng::with_seed(1);
        let drawn: BTreeSet<_> = (0..1_000).map(|_| draw(&mut rng)).collect();
        assert_eq!(drawn.len(), WEIGHTED_MESSAGES.len());
    }
}
