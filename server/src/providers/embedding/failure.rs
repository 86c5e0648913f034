//! Why there are no vectors, sorted by what helps. Pure.

use std::time::Duration;

use chrono::DateTime;
use hyper::{HeaderMap, StatusCode, header};

use super::wire;

/// Characters of a provider's own words that are passed on.
const WORDS: usize = 200;

/// Longest pause that a provider's `Retry-After` makes.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

/// Why there are no vectors. The texts are fit for whoever set the provider up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Nothing helps but another key, model or address.
    #[error("{0}")]
    Denied(String),
    /// These texts are refused; others may not be.
    #[error("{0}")]
    Unfit(String),
    /// Later it may work.
    #[error("{why}")]
    Passing {
        /// What happened.
        why: String,
        /// How long the provider asks to be left alone.
        after: Option<Duration>,
    },
    /// There was an answer, and it can't be used.
    #[error("{0}")]
    Unusable(String),
}

impl Failure {
    /// Something on the way to the provider.
    pub fn passing(why: impl Into<String>) -> Self {
        Self::Passing { why: why.into(), after: None }
    }

    /// An answer that is no success, at `now` in microseconds. `secret` is left out of what is
    /// told: some providers repeat the key.
    pub fn of(status: StatusCode, headers: &HeaderMap, body: &[u8], secret: &str, now: i64) -> Self {
        let words = wire::reason(body).map(|it| without(&it, secret)).unwrap_or_default();
        let said = if words.is_empty() { String::new() } else { format!(": {words}") };
        let why = format!("it answered {}{said}", status.as_u16());
        match status.as_u16() {
            400 | 413 | 422 => Self::Unfit(why),
            408 | 409 | 425 | 429 | 500..=599 => Self::Passing { why, after: pause(headers, now) },
            // Redirects are not followed: they are an address that has to be set anew.
            _ => Self::Denied(why),
        }
    }

    /// The word in the figures.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Denied(_) => "denied",
            Self::Unfit(_) => "unfit",
            Self::Passing { .. } => "failed",
            Self::Unusable(_) => "unusable",
        }
    }
}

/// One line of a provider's words, without the key.
fn without(words: &str, secret: &str) -> String {
    let words = if secret.is_empty() { words.to_owned() } else { words.replace(secret, "…") };
    let line: String = words.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    match line.char_indices().nth(WORDS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// What `Retry-After` asks for: seconds, or a date (RFC 9110, section 10.2.3).
fn pause(headers: &HeaderMap, now: i64) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let pause = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let at = DateTime::parse_from_rfc2822(text).ok()?.timestamp_micros();
            Duration::from_micros(u64::try_from(at.saturating_sub(now)).unwrap_or_default())
        }
    };
    Some(pause.min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, retry_after: &str, body: &str) -> Failure {
        let headers = [(header::RETRY_AFTER, retry_after.parse().unwrap())].into_iter().collect();
        Failure::of(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes(), "sk-1", 1_000_000)
    }

    #[test]
    fn statuses_are_sorted_by_what_helps() {
        for status in [301, 401, 402, 403, 404, 405, 410] {
            assert_eq!(of(status, "", "").word(), "denied", "{status}");
        }
        for status in [400, 413, 422] {
            assert_eq!(of(status, "", "").word(), "unfit", "{status}");
        }
        for status in [408, 429, 500, 502, 503, 529] {
            assert_eq!(of(status, "", "").word(), "failed", "{status}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        for (text, seconds) in [
            ("7", Some(7)),
            ("Thu, 01 Jan 1970 00:00:31 GMT", Some(30)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("999999999999", Some(3_600)),
            ("soon", None),
            ("-1", None),
        ] {
            let Failure::Passing { after, .. } = of(429, text, "") else { panic!("{text}") };
            assert_eq!(after, seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn no_key_and_no_flood_is_told() {
        let said = of(401, "", r#"{"error":{"message":"Incorrect key sk-1\nprovided"}}"#).to_string();
        assert_eq!(said, "it answered 401: Incorrect key … provided");
        let said = of(500, "", &format!(r#"{{"error":"{}"}}"#, "é".repeat(9_000))).to_string();
        assert_eq!(said.chars().count(), "it answered 500: ".len() + WORDS + 1);
    }
}
