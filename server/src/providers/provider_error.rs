//! Parses error responses of model providers, and the delay that they require. Pure.

use std::time::Duration;

use chrono::DateTime;
use outbound::{HeaderMap, header};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Maximum length in characters of a provider's message that is passed on.
pub const MAX_MESSAGE_CHARS: usize = 200;

/// Maximum delay accepted from a provider's `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3_600);

/// A parsed error response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderError {
    /// The message.
    pub message: String,
    /// The machine-readable words `code`, `type` and `param`, separated by spaces.
    pub codes: String,
    /// A numeric `code`: some providers repeat the status there, or use it with status 200.
    pub status: Option<u16>,
}

/// Parses an error response in the usual forms: an object `error` with a `message`, or a text; or
/// `message` or `detail` at the top level.
pub fn parse_error(body: &[u8]) -> Option<ProviderError> {
    #[derive(Deserialize)]
    struct ErrorResponse<'a> {
        #[serde(borrow)]
        error: Option<&'a RawValue>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
        #[serde(borrow)]
        detail: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct ErrorObject<'a> {
        #[serde(borrow)]
        message: Option<&'a RawValue>,
        #[serde(borrow, rename = "type")]
        kind: Option<&'a RawValue>,
        #[serde(borrow)]
        code: Option<&'a RawValue>,
        #[serde(borrow)]
        param: Option<&'a RawValue>,
    }
    let text = |it: &RawValue| serde_json::from_str::<String>(it.get()).ok();
    let body: ErrorResponse<'_> = serde_json::from_slice(body).ok()?;
    let at_top_level = || {
        let message = [body.message, body.detail].into_iter().flatten().find_map(text)?;
        Some(ProviderError { message, ..ProviderError::default() })
    };
    let Some(error) = body.error else { return at_top_level() };
    if let Some(message) = text(error) {
        return Some(ProviderError { message, ..ProviderError::default() });
    }
    let error_object: ErrorObject<'_> = serde_json::from_str(error.get()).ok()?;
    let codes: Vec<String> = [error_object.code, error_object.kind, error_object.param]
        .into_iter()
        .flatten()
        .filter_map(text)
        .collect();
    let status = error_object.code.and_then(|it| it.get().trim_matches('"').parse().ok());
    let message = error_object.message.and_then(text).unwrap_or_default();
    Some(ProviderError { message, codes: codes.join(" "), status })
}

/// Returns one line of a provider's message, without the key, which some providers repeat.
pub fn redacted_line(message: &str, secret: &str) -> String {
    let message = if secret.is_empty() { message.to_owned() } else { message.replace(secret, "…") };
    let line: String = message.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    match line.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Returns the delay in `Retry-After` at `now`, microseconds: seconds, or a date (RFC 9110, section
/// 10.2.3).
pub fn retry_after(headers: &HeaderMap, now: i64) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let delay = match text.parse::<f64>() {
        // Some providers send fractions, which the standard does not allow.
        Ok(seconds) if seconds >= 0.0 => {
            Duration::try_from_secs_f64(seconds.min(MAX_RETRY_AFTER.as_secs_f64())).ok()?
        }
        Ok(_) => return None,
        Err(_) => {
            let at = DateTime::parse_from_rfc2822(text).ok()?.timestamp_micros();
            Duration::from_micros(u64::try_from(at.saturating_sub(now)).unwrap_or_default())
        }
    };
    Some(delay.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(body: &str) -> Option<ProviderError> {
        parse_error(body.as_bytes())
    }

    #[test]
    fn retry_after_is_parsed_as_seconds_or_date() {
        for (text, seconds) in [
            ("7", Some(7.0)),
            ("0.5", Some(0.5)),
            ("Thu, 01 Jan 1970 00:00:31 GMT", Some(30.0)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0.0)),
            ("999999999999", Some(3_600.0)),
            ("inf", Some(3_600.0)),
            ("NaN", None),
            ("soon", None),
            ("-1", None),
        ] {
            let headers = [(header::RETRY_AFTER, text.parse().unwrap())].into_iter().collect();
            assert_eq!(retry_after(&headers, 1_000_000), seconds.map(Duration::from_secs_f64), "{text}");
        }
    }

    #[test]
    fn provider_error_is_parsed_in_usual_forms() {
        let full = r#"{"error":{"message":"no","type":"x","code":"y","param":null}}"#;
        let expected = ProviderError { message: "no".to_owned(), codes: "y x".to_owned(), status: None };
        assert_eq!(parsed(full), Some(expected));
        for body in [r#"{"error":"no"}"#, r#"{"message":"no"}"#, r#"{"detail":"no"}"#] {
            assert_eq!(parsed(body).unwrap().message, "no", "{body}");
        }
        assert_eq!(parsed(r#"{"error":{"code":429,"message":"slow"}}"#).unwrap().status, Some(429));
        assert_eq!(parsed(r#"{"error":{"code":"429"}}"#).unwrap().status, Some(429));
        assert_eq!(parsed(r#"{"error":{"message":{"deep":1}}}"#).unwrap().message, "");
        for body in ["<html>", r#"{"ok":1}"#, "[]", "", r#"{"error":[1]}"#] {
            assert_eq!(parsed(body), None, "{body}");
        }
    }

    #[test]
    fn provider_message_omits_key_and_is_truncated() {
        assert_eq!(redacted_line("Incorrect key sk-1\nprovided", "sk-1"), "Incorrect key … provided");
        assert_eq!(redacted_line(&"é".repeat(9_000), "").chars().count(), MAX_MESSAGE_CHARS + 1);
    }
}
