//! Failures of judge providers, classified by their remedy. Pure.
//!
//! Status codes are not sufficient: an unknown model is 404 or 400, an empty account 402, 429 or 400.
//! Known phrases in the providers' messages decide.

use std::time::Duration;

use outbound::{HeaderMap, SendError, StatusCode};
use serde_json::Value;

use super::RequestFeature;
use crate::providers::provider_error::{ProviderError, parse_error, redacted_line, retry_after};

/// Why there is no reply. The messages are suitable for the tenant who configured the provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Permanent: another key, account balance, address or model is required.
    #[error("{why}")]
    Denied {
        /// What happened.
        why: String,
        /// Whether another model of the same provider may work.
        only_model: bool,
    },
    /// Temporary.
    #[error("{why}")]
    Passing {
        /// What happened.
        why: String,
        /// The delay that the provider requires.
        after: Option<Duration>,
        /// Whether an immediate retry may succeed.
        at_once: bool,
    },
    /// The provider rejects this text: it is too long, or violates its policies.
    #[error("{0}")]
    Refused(String),
    /// The provider rejects a feature of the request; it may work without it.
    #[error("{why}")]
    Form {
        /// What happened.
        why: String,
        /// The rejected feature.
        part: RequestFeature,
    },
    /// The response is not a reply in this protocol.
    #[error("{0}")]
    Unusable(String),
}

/// What is wrong with a response of status 200.
#[derive(Clone, Debug, PartialEq)]
pub enum InvalidReply {
    /// It contains an error.
    Failed(Value),
    /// It belongs to another protocol.
    Foreign(&'static str),
}

/// Phrases for an account without credit.
const UNPAID_PHRASES: [&str; 6] = [
    "insufficient_quota",
    "credit balance",
    "insufficient balance",
    "insufficient credit",
    "insufficient_balance",
    "payment required",
];
/// Phrases for an account without credit, except with 429, where they also occur in messages about rate
/// limits.
const BILLING_PHRASES: [&str; 2] = ["exceeded your current quota", "billing"];
/// Phrases for a short delay.
const DELAY_PHRASES: [&str; 2] = ["try again in", "retry in"];
/// Phrases for an invalid key.
const UNKNOWN_KEY_PHRASES: [&str; 6] = [
    "invalid_api_key",
    "invalid api key",
    "incorrect api key",
    "authentication",
    "unauthorized",
    "permission_error",
];
/// Phrases for an unknown model, together with `model`.
const UNKNOWN_MODEL_PHRASES: [&str; 9] = [
    "not found",
    "not_found",
    "does not exist",
    "invalid model",
    "invalid_model",
    "unknown model",
    "decommissioned",
    "deprecated and",
    "no longer",
];
/// Phrases for a text that violates the provider's policies.
const POLICY_PHRASES: [&str; 9] = [
    "content_filter",
    "content filter",
    "content_policy",
    "content management policy",
    "content policy",
    "moderation",
    "flagged",
    "safety",
    "usage policy",
];
/// Phrases for a text that is too long.
const TOO_LONG_PHRASES: [&str; 10] = [
    "context length",
    "context_length",
    "context window",
    "context size",
    "too long",
    "too large",
    "maximum context",
    "string_above_max_length",
    "request_too_large",
    "exceeds the available context",
];
/// Phrases for a token limit with the wrong name or value.
const LIMIT_PHRASES: [&str; 4] = ["max_tokens", "max_completion_tokens", "max tokens", "max_new_tokens"];
/// Phrases for unsupported system messages.
const SYSTEM_PHRASES: [&str; 4] =
    ["system role", "system message", "role 'system'", "user and assistant roles"];
/// Phrases for unsupported structured-output modes.
const OUTPUT_MODE_PHRASES: [&str; 11] = [
    "response_format",
    "response format",
    "json_schema",
    "json schema",
    "json_object",
    "structured output",
    "output_config",
    "grammar",
    "schema",
    "tool",
    "function",
];

impl Failure {
    /// Creates a permanent failure.
    pub fn denied(why: impl Into<String>) -> Self {
        Self::Denied { why: why.into(), only_model: false }
    }

    /// Creates the failure for a request without a response.
    pub fn unreached(error: &SendError) -> Self {
        match error {
            SendError::AddressRejected(_) => Self::denied(error.to_string()),
            _ => Self::Passing { why: error.to_string(), after: None, at_once: error.may_succeed_at_once() },
        }
    }

    /// Classifies an error response, at `now` in microseconds. `secret` is removed from the message,
    /// because some providers repeat the key.
    pub fn of(status: StatusCode, headers: &HeaderMap, body: &[u8], secret: &str, now: i64) -> Self {
        let said = parse_error(body).unwrap_or_default();
        let status = status.as_u16();
        Self::sorted(
            status,
            &said,
            message_without(&format!("it returned status {status}"), &said, secret),
            retry_after(headers, now),
        )
    }

    /// Classifies an error in a response of status 200.
    pub fn in_answer(error: &Value, secret: &str) -> Self {
        let said = parse_error(error.to_string().as_bytes()).unwrap_or_default();
        let why = message_without("it returned status 200 with an error", &said, secret);
        let words = words(&said);
        match said.status.filter(|it| (400..600).contains(it)) {
            Some(status) => Self::sorted(status, &said, why, None),
            None if is_unpaid(&words) || any(&words, &UNKNOWN_KEY_PHRASES) => Self::denied(why),
            None if any(&words, &POLICY_PHRASES) => Self::Refused(why),
            None => Self::Passing { why, after: None, at_once: true },
        }
    }

    fn sorted(status: u16, said: &ProviderError, why: String, after: Option<Duration>) -> Self {
        let words = words(said);
        let is = |some: &[&str]| any(&words, some);
        let is_gone = words.contains("model") && is(&UNKNOWN_MODEL_PHRASES);
        match status {
            401 | 402 => Self::denied(why),
            403 if is(&POLICY_PHRASES) => Self::Refused(why),
            403 => Self::Denied { why, only_model: is_gone },
            429 if is(&UNPAID_PHRASES) && !is_rate(said, &words, after) => Self::denied(why),
            408 | 409 | 425 | 429 => Self::Passing { why, after, at_once: false },
            // Some services crash on schemas that they can't enforce.
            500..=599 => match part(&words) {
                Some(part @ (RequestFeature::OutputMode | RequestFeature::System)) => {
                    Self::Form { why, part }
                }
                _ => Self::Passing { why, at_once: after.is_none() && status != 504, after },
            },
            404 if !is_gone && is(&OUTPUT_MODE_PHRASES) => {
                Self::Form { why, part: RequestFeature::OutputMode }
            }
            404 | 410 => Self::Denied { why, only_model: is_gone },
            400 | 413 | 415 | 422 => Self::of_request(status, &words, why),
            // Redirects are not followed: the configured address must be changed.
            _ => Self::denied(why),
        }
    }

    /// Classifies an error about the request.
    fn of_request(status: u16, words: &str, why: String) -> Self {
        let is = |some: &[&str]| any(words, some);
        if is_unpaid(words) {
            return Self::denied(why);
        }
        if is(&POLICY_PHRASES) {
            return Self::Refused(why);
        }
        if is(&TOO_LONG_PHRASES) {
            // Perhaps only together with the maximum length of the reply.
            return Self::Form { why, part: RequestFeature::Length };
        }
        if let Some(part) = part(words) {
            return Self::Form { why, part };
        }
        if words.contains("model") && is(&UNKNOWN_MODEL_PHRASES) {
            return Self::Denied { why, only_model: true };
        }
        match status {
            413 => Self::Refused(why),
            _ => Self::Form { why, part: RequestFeature::Unknown },
        }
    }

    /// Returns the label in metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Denied { .. } => "denied",
            Self::Passing { .. } => "failed",
            Self::Refused(_) => "refused",
            Self::Form { .. } => "form",
            Self::Unusable(_) => "unusable",
        }
    }
}

/// Returns the feature that these words blame.
fn part(words: &str) -> Option<RequestFeature> {
    if words.contains("temperature") {
        return Some(RequestFeature::Temperature);
    }
    let of = |some: &[&str], part| any(words, some).then_some(part);
    of(&LIMIT_PHRASES, RequestFeature::Limit)
        .or_else(|| of(&SYSTEM_PHRASES, RequestFeature::System))
        .or_else(|| of(&OUTPUT_MODE_PHRASES, RequestFeature::OutputMode))
}

/// Whether these words, with a status other than 429, refer to an account without credit.
fn is_unpaid(words: &str) -> bool {
    any(words, &UNPAID_PHRASES) || any(words, &BILLING_PHRASES)
}

/// Whether a 429 is about a rate limit, which is temporary. Responses about empty accounts may contain
/// a delay too, so the error code takes precedence over the delay.
fn is_rate(said: &ProviderError, words: &str, after: Option<Duration>) -> bool {
    said.codes.to_lowercase().contains("rate_limit")
        || !words.contains("insufficient_quota") && (after.is_some() || any(words, &DELAY_PHRASES))
}

fn words(said: &ProviderError) -> String {
    format!("{} {}", said.message, said.codes).to_lowercase()
}

fn any(words: &str, some: &[&str]) -> bool {
    some.iter().any(|it| words.contains(it))
}

fn message_without(what: &str, said: &ProviderError, secret: &str) -> String {
    let words = redacted_line(if said.message.is_empty() { &said.codes } else { &said.message }, secret);
    if words.is_empty() { what.to_owned() } else { format!("{what}: {words}") }
}

#[cfg(test)]
mod tests {
    use hyper::header::RETRY_AFTER;
    use serde_json::json;

    use super::*;

    fn of(status: u16, message: &str, code: &str) -> Failure {
        let body = json!({"error": {"message": message, "code": code}}).to_string();
        let headers = [(RETRY_AFTER, "7".parse().unwrap())].into_iter().filter(|_| status == 429).collect();
        Failure::of(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes(), "sk-1", 0)
    }

    #[test]
    fn judge_failure_is_classified_by_status_and_message() {
        for (status, message, code, expected) in [
            (401, "Incorrect API key provided: sk-1", "invalid_api_key", "denied"),
            (402, "Insufficient Balance", "", "denied"),
            (403, "Country, region, or territory not supported", "", "denied"),
            (403, "Your chosen model requires moderation and your input was flagged", "", "refused"),
            (429, "You exceeded your current quota, please check your plan", "insufficient_quota", "denied"),
            (429, "Rate limit reached for requests", "rate_limit_exceeded", "failed"),
            (400, "Your credit balance is too low to access the API", "invalid_request_error", "denied"),
            (
                404,
                "The model `x` does not exist or you do not have access to it",
                "model_not_found",
                "denied",
            ),
            (404, "model \"x\" not found, try pulling it first", "", "denied"),
            (404, "No endpoints found that support tool use", "", "form"),
            (404, "", "", "denied"),
            (400, "Invalid model: x", "invalid_model", "denied"),
            (
                400,
                "The response was filtered due to the content management policy",
                "content_filter",
                "refused",
            ),
            (413, "", "", "refused"),
            (307, "", "", "denied"),
            (405, "", "", "denied"),
            (500, "The server had an error", "", "failed"),
            (529, "Overloaded", "overloaded_error", "failed"),
            (408, "", "", "failed"),
        ] {
            assert_eq!(of(status, message, code).word(), expected, "{status} {message} {code}");
        }
    }

    #[test]
    fn rate_limit_message_about_billing_is_temporary() {
        let of = |message: &str, code: &str| {
            let body = json!({"error": {"message": message, "code": code}}).to_string();
            let none = HeaderMap::new();
            Failure::of(StatusCode::TOO_MANY_REQUESTS, &none, body.as_bytes(), "", 0).word()
        };
        let small = "Rate limit reached for x. Please try again in 20s. You can increase it by adding a \
                     payment method to your account at https://platform.openai.com/account/billing";
        assert_eq!(of(small, "rate_limit_exceeded"), "failed");
        assert_eq!(of(small, ""), "failed");
        let gemini = "You exceeded your current quota, please check your plan and billing details.";
        assert_eq!(of(gemini, ""), "failed");
        assert_eq!(of("Insufficient balance. Retry in 9s.", ""), "failed");
        assert_eq!(of("Insufficient balance", "rate_limit_error"), "failed");
        assert_eq!(of("Insufficient balance", ""), "denied");
        assert_eq!(of(gemini, "insufficient_quota"), "denied");
    }

    #[test]
    fn rejected_request_feature_is_identified() {
        for (status, message, expected) in [
            (
                400,
                "Unsupported value: 'temperature' does not support 0 with this model.",
                RequestFeature::Temperature,
            ),
            (400, "`temperature` is deprecated for this model.", RequestFeature::Temperature),
            (
                400,
                "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                RequestFeature::Limit,
            ),
            (
                400,
                "This model's maximum context length is 4096 tokens. However, you requested 5000",
                RequestFeature::Length,
            ),
            (400, "prompt is too long: 210000 tokens > 200000 maximum", RequestFeature::Length),
            (400, "This response_format type is unavailable now", RequestFeature::OutputMode),
            (400, "output_config: Extra inputs are not permitted", RequestFeature::OutputMode),
            (
                400,
                "For 'number' type, property 'minimum' is not supported in the schema",
                RequestFeature::OutputMode,
            ),
            (422, "tool_choice is not supported by this model", RequestFeature::OutputMode),
            (500, "failed to parse grammar", RequestFeature::OutputMode),
            (400, "System role not supported", RequestFeature::System),
            (400, "Invalid request data", RequestFeature::Unknown),
            (422, "", RequestFeature::Unknown),
        ] {
            let failure = of(status, message, "");
            assert!(
                matches!(failure, Failure::Form { part, .. } if part == expected),
                "{message}: {failure:?}"
            );
        }
    }

    #[test]
    fn error_with_status_200_is_classified() {
        let of = |error: Value| Failure::in_answer(&json!({"error": error}), "sk-1").word();
        assert_eq!(of(json!({"message": "upstream went away"})), "failed");
        assert_eq!(of(json!("busy")), "failed");
        assert_eq!(of(json!({"message": "slow down", "code": 429})), "failed");
        assert_eq!(of(json!({"message": "no credits", "code": 402})), "denied");
        assert_eq!(of(json!({"message": "invalid api key"})), "denied");
    }

    #[test]
    fn judge_failure_contains_delay_but_not_key() {
        let Failure::Passing { after, at_once, .. } = of(429, "wait", "") else { panic!() };
        assert_eq!((after, at_once), (Some(Duration::from_secs(7)), false));
        let said = of(401, "Incorrect key sk-1\nprovided", "").to_string();
        assert_eq!(said, "it returned status 401: Incorrect key … provided");
        assert_eq!(of(500, "", "").to_string(), "it returned status 500");
    }
}
