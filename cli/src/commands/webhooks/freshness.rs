//! Checks the time of a delivery, so that a recorded request can't be replayed later.

use std::time::Duration;

use super::signature::{Headers, SERVICE_TIMESTAMP_HEADER, TIMESTAMP_HEADER, header};
use crate::config::expiry::approximate_duration;

/// Returns why the time of a request differs from `now` (in seconds since 1970) by more than the tolerance; `None` if it
/// does not.
pub fn staleness(headers: &Headers, tolerance: Duration, now: i64) -> Option<String> {
    let received =
        [TIMESTAMP_HEADER, SERVICE_TIMESTAMP_HEADER].into_iter().find_map(|it| header(headers, it));
    let Some(received) = received else {
        return Some(format!("the header {TIMESTAMP_HEADER} is missing"));
    };
    let Ok(time) = received.trim().parse::<i64>() else {
        return Some(format!("the header {TIMESTAMP_HEADER} is no number of seconds"));
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
    use super::*;

    #[test]
    fn timestamps_outside_the_tolerance_are_refused() {
        let minutes = |it: u64| Duration::from_secs(it * 60);
        let now = 1_700_000_000;
        let check = |value: &str, tolerance| {
            let headers = vec![(TIMESTAMP_HEADER.to_owned(), value.to_owned())];
            staleness(&headers, tolerance, now).unwrap_or_default()
        };
        for fresh in [now, now - 300, now + 300] {
            assert_eq!(check(&fresh.to_string(), minutes(5)), "");
        }
        let old = (now - 720).to_string();
        assert_eq!(check(&old, minutes(5)), "the timestamp is 12m old; the tolerance is 5m");
        assert_eq!(check(&old, minutes(12)), "");
        let early = check(&(now + 301).to_string(), minutes(5));
        assert_eq!(early, "the timestamp is 5m in the future; the tolerance is 5m");
        for text in ["", "soon", "1e9", "99999999999999999999"] {
            assert!(check(text, minutes(5)).contains("no number"), "{text}");
        }
        assert!(!check(&i64::MIN.to_string(), minutes(5)).is_empty());
    }

    #[test]
    fn timestamp_of_the_service_is_used_without_that_of_standard_webhooks() {
        let headers = vec![(SERVICE_TIMESTAMP_HEADER.to_owned(), "1000".to_owned())];
        assert_eq!(staleness(&headers, Duration::from_secs(10), 1_005), None);
        assert!(staleness(&Vec::new(), Duration::MAX, 0).is_some());
    }
}
