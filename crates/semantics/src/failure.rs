//! Classifies errors by their types and messages.
//!
//! **Invariant:** only the error itself is examined, never prompts or outputs: a prompt about "error
//! 429" is not a rate limit.

use api::FailureType;

/// The known properties of an error; each may be empty.
#[derive(Debug, Default, Clone, Copy)]
pub struct Evidence<'a> {
    /// Names of error classes, or the provider's error types.
    pub kinds: &'a [&'a str],
    /// Messages.
    pub messages: &'a [&'a str],
    /// HTTP status of the provider's response.
    pub http_status: Option<i64>,
}

/// Returns the failure type, or [`FailureType::Other`] if the evidence matches none.
///
/// Names of error classes are checked first, because they are identifiers and not prose; then an HTTP
/// status with an unambiguous meaning, which some senders send instead of a class; then the messages.
/// Context length is checked before rate limit, because messages about a prompt that is too long often
/// mention limits too.
pub fn classify(evidence: &Evidence<'_>) -> FailureType {
    let by_kind = FAILURE_PATTERNS
        .into_iter()
        .find(|(_, words, _)| evidence.kinds.iter().any(|it| contains_any(it, words)));
    if let Some((failure, _, _)) = by_kind {
        return failure;
    }
    let as_status = || evidence.kinds.iter().find_map(|it| it.trim().parse().ok());
    match evidence.http_status.or_else(as_status) {
        Some(429) => return FailureType::RateLimit,
        Some(408 | 504) => return FailureType::Timeout,
        _ => {}
    }
    FAILURE_PATTERNS
        .into_iter()
        .find(|(_, kinds, phrases)| {
            evidence.messages.iter().any(|it| contains_any(it, kinds) || contains_any(it, phrases))
        })
        .map_or(FailureType::Other, |(failure, _, _)| failure)
}

/// Classifies an error whose text alone is known.
pub fn classify_message(message: &str) -> FailureType {
    classify(&Evidence { messages: &[message], ..Evidence::default() })
}

/// Number of bytes that are examined at each end of a message. Errors state their cause at the
/// beginning or the end; searching a whole dumped response for every phrase would be slow.
const MAX_EXAMINED_BYTES: usize = 16 * 1024;

/// Returns the beginning and the end of a long text.
fn ends(text: &str) -> [&str; 2] {
    if text.len() <= 2 * MAX_EXAMINED_BYTES {
        return [text, ""];
    }
    let head = text.floor_char_boundary(MAX_EXAMINED_BYTES);
    let tail = text.ceil_char_boundary(text.len() - MAX_EXAMINED_BYTES);
    [&text[..head], &text[tail..]]
}

/// Failure type, names of error classes, phrases in messages; in order of precedence, all lower case.
const FAILURE_PATTERNS: [(FailureType, &[&str], &[&str]); 5] = [
    (
        FailureType::ContextLength,
        &[
            "contextwindowexceeded",
            "contextlengthexceeded",
            "context_length_exceeded",
            "contextoverflow",
            "=context_length=",
        ],
        &[
            "maximum context length",
            "context length exceeded",
            "exceeds the context",
            "exceed context limit",
            "exceeds the model's context",
            "context window",
            "prompt is too long",
            "input is too long",
            "prompt too long",
            "input token count exceeds",
            "exceeds the maximum number of tokens allowed",
            "maximum number of input tokens",
        ],
    ),
    (
        FailureType::RateLimit,
        &[
            "ratelimit",
            "rate_limit",
            "toomanyrequests",
            "too_many_requests",
            "throttlingexception",
            "throttlederror",
            "resourceexhausted",
            "resource_exhausted",
            "insufficient_quota",
        ],
        &[
            "rate limit",
            "too many requests",
            "too many tokens, please wait",
            "too many tokens per ",
            "error code: 429",
            "status code: 429",
            "status_code: 429",
            "status code 429",
            "status=429",
            "http 429",
            "exceeded your current quota",
            "quota exceeded",
        ],
    ),
    (
        FailureType::Timeout,
        &[
            "timeouterror",
            "timeout_error",
            "timeoutexception",
            "timeouterr",
            "apitimeout",
            "readtimeout",
            "connecttimeout",
            "writetimeout",
            "pooltimeout",
            "timedout",
            "deadlineexceeded",
            "deadline_exceeded",
            "litellm.timeout",
            "exceptions.timeout",
            "=timeout=",
        ],
        &[
            "timed out",
            "timed-out",
            "due to timeout",
            "deadline exceeded",
            "request timeout",
            "read timeout",
            "connect timeout",
            "connection timeout",
            "gateway timeout",
            "gateway time-out",
            "timeout exceeded",
            "timeout of ",
            "timeout after",
            "timeout while",
            "timeout waiting",
            "error code: 408",
            "error code: 504",
        ],
    ),
    (
        FailureType::InvalidResponse,
        &[
            "jsondecodeerror",
            "jsonparseerror",
            "ai_noobjectgenerated",
            "ai_jsonparse",
            "ai_typevalidation",
            "noobjectgenerated",
            "outputparser",
            "unexpectedmodelbehavior",
            "modelbehaviorerror",
            "apiresponsevalidationerror",
            "lengthfinishreasonerror",
            "pydantic_core.validationerror",
            "pydantic_core._pydantic_core.validationerror",
            "error_wrappers.validationerror",
            "=validationerror=",
            "zoderror",
            "=invalid_response=",
        ],
        &[
            "unterminated string",
            "invalid json",
            "could not parse",
            "failed to parse",
            "exceeded maximum output retries",
            "exceeded maximum retries",
            "expecting value: line",
            "expecting property name",
            "expecting ',' delimiter",
            "unexpected end of json",
            "unexpected token",
            "no object generated",
            "response did not match schema",
            "output validation",
            "validation error for ",
            "validation errors for ",
            "errors.pydantic.dev",
            "\"code\": \"invalid_type\"",
            "\"code\":\"invalid_type\"",
            "type validation failed",
        ],
    ),
    // Cohere's message for a prompt that is too long contains only this; other providers use it for rate
    // limits.
    (FailureType::ContextLength, &[], &["too many tokens"]),
];

/// Whether the text contains one of the words, ignoring case. `=word=` matches only the whole text.
fn contains_any(text: &str, words: &[&str]) -> bool {
    ends(text).into_iter().filter(|it| !it.is_empty()).any(|text| {
        let text = text.to_ascii_lowercase();
        words.iter().any(|word| match word.strip_prefix('=').and_then(|it| it.strip_suffix('=')) {
            Some(whole) => text == whole,
            None => text.contains(word),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &str, message: &str, http_status: Option<i64>, expected: FailureType) {
        let found = classify(&Evidence { kinds: &[kind], messages: &[message], http_status });
        assert_eq!(found, expected, "{kind}: {message} ({http_status:?})");
    }

    #[test]
    fn error_class_takes_precedence() {
        for (kind, expected) in [
            ("openai.APITimeoutError", FailureType::Timeout),
            ("client_timeout_error", FailureType::Timeout),
            ("Timeout", FailureType::Timeout),
            ("OpenAIRateLimitError", FailureType::RateLimit),
            ("rate_limit_error", FailureType::RateLimit),
            ("litellm.exceptions.ContextWindowExceededError", FailureType::ContextLength),
            ("json.decoder.JSONDecodeError", FailureType::InvalidResponse),
            ("AI_NoObjectGeneratedError", FailureType::InvalidResponse),
            ("invalid_response", FailureType::InvalidResponse),
            ("context_length", FailureType::ContextLength),
            ("pydantic_core._pydantic_core.ValidationError", FailureType::InvalidResponse),
            ("pydantic.error_wrappers.ValidationError", FailureType::InvalidResponse),
            ("ValidationError", FailureType::InvalidResponse),
            ("ZodError", FailureType::InvalidResponse),
            ("HTTPValidationError", FailureType::Other),
            ("ValidationException", FailureType::Other),
            ("ValueError", FailureType::Other),
        ] {
            check(kind, "", None, expected);
        }
        check("RateLimitError", "the call before timed out", Some(504), FailureType::RateLimit);
    }

    #[test]
    fn http_status_takes_precedence_over_message() {
        check("APIStatusError", "please wait", Some(429), FailureType::RateLimit);
        check("APIStatusError", "", Some(504), FailureType::Timeout);
        check("invalid_request_error", "", Some(400), FailureType::Other);
    }

    #[test]
    fn status_sent_as_error_class_is_used() {
        check("429", "", None, FailureType::RateLimit);
        check("504", "", None, FailureType::Timeout);
        check("400", "prompt is too long", None, FailureType::ContextLength);
        check("500", "", Some(429), FailureType::RateLimit);
    }

    #[test]
    fn error_message_is_classified_last() {
        for (message, expected) in [
            (
                "Error code: 400 - This model's maximum context length is 128000 tokens",
                FailureType::ContextLength,
            ),
            ("prompt is too long: 210000 tokens > 200000 maximum", FailureType::ContextLength),
            ("Error code: 429 - Rate limit reached for gpt-4o", FailureType::RateLimit),
            ("status_code: 429, model_name: gpt-4o", FailureType::RateLimit),
            ("The operation was aborted due to timeout", FailureType::Timeout),
            ("Request timed out.", FailureType::Timeout),
            ("Unterminated string starting at: line 1 column 10", FailureType::InvalidResponse),
            ("Invalid JSON response", FailureType::InvalidResponse),
            (
                "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292",
                FailureType::ContextLength,
            ),
            ("Too many tokens, please wait before trying again.", FailureType::RateLimit),
            ("Rate limit reached: too many tokens", FailureType::RateLimit),
            (
                "2 validation errors for Weather\ncity\n  Field required [type=missing, input_value={}]",
                FailureType::InvalidResponse,
            ),
            (
                r#"[{"code": "invalid_type", "expected": "string", "path": ["city"], "message": "Required"}]"#,
                FailureType::InvalidResponse,
            ),
            ("timeout must be a positive number", FailureType::Other),
            ("got 429 documents", FailureType::Other),
            ("", FailureType::Other),
        ] {
            assert_eq!(classify_message(message), expected, "{message}");
        }
    }
}
