//! Failures of judge providers, classified by their remedy. Pure.
//!
//! Status codes are not sufficient: an unknown model is 404 or 400, an empty account 402, 429 or 400.
//! Known phrases in the providers' messages decide.

use std::time::Duration;

use outbound::{HeaderMap, SendError, StatusCode};
use serde_json::Value;

use super::{JudgeEndpoint, RequestFeature};
use crate::providers::provider_error::{
    ProviderError, parse_error, redacted_line, retry_after as parse_retry_after,
};

/// Why there is no reply. The messages are suitable for the tenant who configured the provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JudgeProviderFailure {
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
    Temporary {
        /// What happened.
        why: String,
        /// The delay that the provider requires.
        retry_after: Option<Duration>,
        /// Whether an immediate retry may succeed.
        retry_immediately: bool,
    },
    /// The provider rejects this text: it is too long, or violates its policies.
    #[error("{0}")]
    TextRejected(String),
    /// The provider rejects a feature of the request; it may work without it.
    #[error("{why}")]
    UnsupportedFeature {
        /// What happened.
        why: String,
        /// The rejected feature.
        feature: RequestFeature,
    },
    /// The response is not a reply in this protocol.
    #[error("{0}")]
    InvalidResponse(String),
}

/// The defect of a response with status 200.
#[derive(Clone, Debug, PartialEq)]
pub enum InvalidReply {
    /// The response contains an error.
    Error(Value),
    /// The response belongs to another protocol.
    OtherProtocol(&'static str),
}

impl InvalidReply {
    /// Returns the failure of the request.
    pub(in crate::providers) fn into_failure(self, endpoint: &JudgeEndpoint) -> JudgeProviderFailure {
        match self {
            Self::Error(error) => JudgeProviderFailure::of_ok_response(&error, &endpoint.key),
            Self::OtherProtocol(what) => JudgeProviderFailure::InvalidResponse(what.to_owned()),
        }
    }
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

impl JudgeProviderFailure {
    /// Creates a permanent failure.
    pub fn denied(why: impl Into<String>) -> Self {
        Self::Denied { why: why.into(), only_model: false }
    }

    /// Creates the failure for a request without a response.
    pub fn unreached(error: &SendError) -> Self {
        match error {
            SendError::AddressRejected(_) => Self::denied(error.to_string()),
            _ => Self::Temporary {
                why: error.to_string(),
                retry_after: None,
                retry_immediately: error.may_succeed_at_once(),
            },
        }
    }

    /// Classifies an error response, at `now` in microseconds. `secret` is removed from the message,
    /// because some providers repeat the key.
    pub fn of(status: StatusCode, headers: &HeaderMap, body: &[u8], secret: &str, now: i64) -> Self {
        let error = parse_error(body).unwrap_or_default();
        let status = status.as_u16();
        Self::classify(
            status,
            &error,
            error_message(&format!("it returned status {status}"), &error, secret),
            parse_retry_after(headers, now),
        )
    }

    /// Classifies an error in a response of status 200.
    pub fn of_ok_response(error: &Value, secret: &str) -> Self {
        let error = parse_error(error.to_string().as_bytes()).unwrap_or_default();
        let why = error_message("it returned status 200 with an error", &error, secret);
        let error_words = lower_case_words(&error);
        match error.status.filter(|it| (400..600).contains(it)) {
            Some(status) => Self::classify(status, &error, why, None),
            None if is_out_of_credit(&error_words) || contains_any(&error_words, &UNKNOWN_KEY_PHRASES) => {
                Self::denied(why)
            }
            None if contains_any(&error_words, &POLICY_PHRASES) => Self::TextRejected(why),
            None => Self::Temporary { why, retry_after: None, retry_immediately: true },
        }
    }

    fn classify(status: u16, error: &ProviderError, why: String, retry_after: Option<Duration>) -> Self {
        let error_words = lower_case_words(error);
        let is = |some: &[&str]| contains_any(&error_words, some);
        let is_unknown_model = error_words.contains("model") && is(&UNKNOWN_MODEL_PHRASES);
        match status {
            401 | 402 => Self::denied(why),
            403 if is(&POLICY_PHRASES) => Self::TextRejected(why),
            403 => Self::Denied { why, only_model: is_unknown_model },
            429 if is(&UNPAID_PHRASES) && !is_rate_limit(error, &error_words, retry_after) => {
                Self::denied(why)
            }
            408 | 409 | 425 | 429 => Self::Temporary { why, retry_after, retry_immediately: false },
            // Some services crash on schemas that they cannot enforce.
            500..=599 => match blamed_feature(&error_words) {
                Some(feature @ (RequestFeature::OutputMode | RequestFeature::System)) => {
                    Self::UnsupportedFeature { why, feature }
                }
                _ => Self::Temporary {
                    why,
                    retry_immediately: retry_after.is_none() && status != 504,
                    retry_after,
                },
            },
            404 if !is_unknown_model && is(&OUTPUT_MODE_PHRASES) => {
                Self::UnsupportedFeature { why, feature: RequestFeature::OutputMode }
            }
            404 | 410 => Self::Denied { why, only_model: is_unknown_model },
            400 | 413 | 415 | 422 => Self::classify_request_error(status, &error_words, why),
            // Redirects are not followed: the configured address must be changed.
            _ => Self::denied(why),
        }
    }

    /// Classifies an error about the request.
    fn classify_request_error(status: u16, error_words: &str, why: String) -> Self {
        let is = |some: &[&str]| contains_any(error_words, some);
        if is_out_of_credit(error_words) {
            return Self::denied(why);
        }
        if is(&POLICY_PHRASES) {
            return Self::TextRejected(why);
        }
        if is(&TOO_LONG_PHRASES) {
            // Perhaps only together with the maximum length of the reply.
            return Self::UnsupportedFeature { why, feature: RequestFeature::Length };
        }
        if let Some(feature) = blamed_feature(error_words) {
            return Self::UnsupportedFeature { why, feature };
        }
        if error_words.contains("model") && is(&UNKNOWN_MODEL_PHRASES) {
            return Self::Denied { why, only_model: true };
        }
        match status {
            413 => Self::TextRejected(why),
            _ => Self::UnsupportedFeature { why, feature: RequestFeature::Unknown },
        }
    }

    /// Returns the label in metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Denied { .. } => "denied",
            Self::Temporary { .. } => "failed",
            Self::TextRejected(_) => "refused",
            Self::UnsupportedFeature { .. } => "form",
            Self::InvalidResponse(_) => "unusable",
        }
    }
}

/// Returns the feature that these words blame.
fn blamed_feature(error_words: &str) -> Option<RequestFeature> {
    if error_words.contains("temperature") {
        return Some(RequestFeature::Temperature);
    }
    let of = |some: &[&str], feature| contains_any(error_words, some).then_some(feature);
    of(&LIMIT_PHRASES, RequestFeature::Limit)
        .or_else(|| of(&SYSTEM_PHRASES, RequestFeature::System))
        .or_else(|| of(&OUTPUT_MODE_PHRASES, RequestFeature::OutputMode))
}

/// Returns whether these words, with a status other than 429, refer to an account without credit.
fn is_out_of_credit(error_words: &str) -> bool {
    contains_any(error_words, &UNPAID_PHRASES) || contains_any(error_words, &BILLING_PHRASES)
}

/// Returns whether a 429 is about a rate limit, which is temporary. Responses about empty accounts may contain
/// a delay too, so the error code takes precedence over the delay.
fn is_rate_limit(error: &ProviderError, error_words: &str, retry_after: Option<Duration>) -> bool {
    error.codes.to_lowercase().contains("rate_limit")
        || !error_words.contains("insufficient_quota")
            && (retry_after.is_some() || contains_any(error_words, &DELAY_PHRASES))
}

fn lower_case_words(error: &ProviderError) -> String {
    format!("{} {}", error.message, error.codes).to_lowercase()
}

fn contains_any(error_words: &str, some: &[&str]) -> bool {
    some.iter().any(|it| error_words.contains(it))
}

fn error_message(what: &str, error: &ProviderError, secret: &str) -> String {
    let error_words =
        redacted_line(if error.message.is_empty() { &error.codes } else { &error.message }, secret);
    if error_words.is_empty() { what.to_owned() } else { format!("{what}: {error_words}") }
}

#[cfg(test)]
mod tests {
    use hyper::header::RETRY_AFTER;
    use serde_json::json;

    use super::*;

    fn of(status: u16, message: &str, code: &str) -> JudgeProviderFailure {
        let body = json!({"error": {"message": message, "code": code}}).to_string();
        let headers = [(RETRY_AFTER, "7".parse().unwrap())].into_iter().filter(|_| status == 429).collect();
        JudgeProviderFailure::of(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes(), "sk-1", 0)
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
            JudgeProviderFailure::of(StatusCode::TOO_MANY_REQUESTS, &none, body.as_bytes(), "", 0).word()
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
                matches!(failure, JudgeProviderFailure::UnsupportedFeature { feature, .. } if feature == expected),
                "{message}: {failure:?}"
            );
        }
    }

    #[test]
    fn error_with_status_200_is_classified() {
        let of = |error: Value| JudgeProviderFailure::of_ok_response(&json!({"error": error}), "sk-1").word();
        assert_eq!(of(json!({"message": "upstream went away"})), "failed");
        assert_eq!(of(json!("busy")), "failed");
        assert_eq!(of(json!({"message": "slow down", "code": 429})), "failed");
        assert_eq!(of(json!({"message": "no credits", "code": 402})), "denied");
        assert_eq!(of(json!({"message": "invalid api key"})), "denied");
    }

    #[test]
    fn judge_failure_contains_delay_but_not_key() {
        let JudgeProviderFailure::Temporary { retry_after, retry_immediately, .. } = of(429, "wait", "")
        else {
            panic!()
        };
        assert_eq!((retry_after, retry_immediately), (Some(Duration::from_secs(7)), false));
        let error = of(401, "Incorrect key sk-1\nprovided", "").to_string();
        assert_eq!(error, "it returned status 401: Incorrect key … provided");
        assert_eq!(of(500, "", "").to_string(), "it returned status 500");
    }
}
