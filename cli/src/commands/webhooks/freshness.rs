//! Checks the signed time of a delivery, so that a recorded request cannot be sent again later.

use std::time::Duration;

use super::signature::{Headers, TIMESTAMP_HEADER, has_standard_signature, header};
use crate::config::expiry::approximate_duration;

/// Returns why the signed time of a request differs from `now` (in seconds since 1970) by more than the tolerance; `None`
/// if it does not. Only the signature of Standard Webhooks covers the time, so it must be valid.
pub fn staleness(
    headers: &Headers,
    secret: &str,
    body: &[u8],
    tolerance: Duration,
    now: i64,
) -> Option<String> {
    if !has_standard_signature(headers, secret, body) {
        return Some("the timestamp is not signed: webhook-signature is missing or not valid".to_owned());
    }
    let Some(time) = header(headers, TIMESTAMP_HEADER).and_then(|it| it.parse::<i64>().ok()) else {
        return Some(format!("the header {TIMESTAMP_HEADER} is not a number of seconds"));
    };
    let age = now.saturating_sub(time);
    let limit = i64::try_from(tolerance.as_secs()).unwrap_or(i64::MAX);
    let difference = approximate_duration(age.saturating_abs());
    let allowed = approximate_duration(limit);
    match age {
        _ if age.saturating_abs() <= limit => None,
        0.. => Some(format!("the timestamp is {difference} old; the tolerance is {allowed}")),
        _ => Some(format!("the timestamp is {difference} in the future; the tolerance is {allowed}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::signature::{EVENT_ID_HEADER, STANDARD_SIGNATURE_HEADER, standard_signature},
        *,
    };

    const SECRET: &str = "0123456789abcdef";
    const NOW: i64 = 1_700_000_000;

    fn signed(time: &str) -> Headers {
        let signature = standard_signature(SECRET, "event", time, b"{}");
        [(EVENT_ID_HEADER, "event"), (TIMESTAMP_HEADER, time), (STANDARD_SIGNATURE_HEADER, &signature)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    fn check(headers: &Headers, minutes: u64) -> String {
        let tolerance = Duration::from_secs(minutes * 60);
        staleness(headers, SECRET, b"{}", tolerance, NOW).unwrap_or_default()
    }

    #[test]
    fn times_outside_the_tolerance_are_refused() {
        for fresh in [NOW, NOW - 300, NOW + 300] {
            assert_eq!(check(&signed(&fresh.to_string()), 5), "");
        }
        let old = signed(&(NOW - 720).to_string());
        assert_eq!(check(&old, 5), "the timestamp is 12m old; the tolerance is 5m");
        assert_eq!(check(&old, 12), "");
        let early = signed(&(NOW + 301).to_string());
        assert_eq!(check(&early, 5), "the timestamp is 5m in the future; the tolerance is 5m");
        for text in ["", "soon", "1e9", "99999999999999999999"] {
            assert!(check(&signed(text), 5).contains("not a number"), "{text}");
        }
        assert!(!check(&signed(&i64::MIN.to_string()), 5).is_empty());
    }

    #[test]
    fn changed_and_unsigned_times_are_refused() {
        let mut changed = signed(&(NOW - 720).to_string());
        changed[1].1 = NOW.to_string();
        let unsigned = vec![(TIMESTAMP_HEADER.to_owned(), NOW.to_string())];
        for headers in [changed, unsigned, Headers::new()] {
            assert!(check(&headers, 5).contains("not signed"), "{headers:?}");
        }
    }
}
