//! When the next attempt of a delivery is made. Pure functions.

use chrono::DateTime;
use uuid::Uuid;

/// Delay before each attempt in seconds.
const ATTEMPT_DELAY_SECONDS: [i64; 9] =
    [0, 5, 60, 5 * 60, 30 * 60, 2 * 3_600, 6 * 3_600, 12 * 3_600, 24 * 3_600];

/// Maximum delay that a receiver can demand, in microseconds.
const MAX_RETRY_AFTER_MICROS: i64 = 86_400_000_000;

/// Maximum jitter: a delay becomes longer by at most this fraction of itself, in thousandths.
const MAX_JITTER: i64 = 200;

/// Returns the time of the next attempt after `attempts` failed ones, in microseconds; none after the last.
///
/// `retry_after` is the delay that the receiver demands. It can lengthen a delay and not shorten it. The jitter
/// follows from the delivery and the attempt, so that it can be repeated.
pub fn next_attempt(delivery: Uuid, attempts: i32, now: i64, retry_after: Option<i64>) -> Option<i64> {
    let delay = ATTEMPT_DELAY_SECONDS.get(usize::try_from(attempts).ok()?)? * 1_000_000;
    let jitter = store::text_hash(&format!("{delivery}/{attempts}")).rem_euclid(MAX_JITTER + 1);
    let delay = delay + delay / 1_000 * jitter;
    Some(now + delay.max(retry_after.unwrap_or(0).min(MAX_RETRY_AFTER_MICROS)))
}

/// Returns the delay of a `Retry-After` header in microseconds: seconds, or a date.
pub fn retry_after(value: &str, now: i64) -> Option<i64> {
    let value = value.trim();
    let delay = match value.parse::<u32>() {
        Ok(seconds) => i64::from(seconds) * 1_000_000,
        Err(_) => DateTime::parse_from_rfc2822(value).ok()?.timestamp_micros().saturating_sub(now),
    };
    Some(delay.clamp(0, MAX_RETRY_AFTER_MICROS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELIVERY: Uuid = Uuid::from_u128(7);

    #[test]
    fn delays_grow_to_a_day_with_jitter_of_a_fifth() {
        let mut total = 0;
        for (attempts, delay) in ATTEMPT_DELAY_SECONDS.iter().enumerate().skip(1) {
            let mut seen = std::collections::BTreeSet::new();
            for delivery in 0..200 {
                let delivery = Uuid::from_u128(delivery);
                let at = next_attempt(delivery, i32::try_from(attempts).unwrap(), 0, None).unwrap();
                assert!((delay * 1_000_000..=delay * 1_200_000).contains(&at), "{attempts}: {at}");
                seen.insert(at);
            }
            assert!(seen.len() > 50, "{} delays", seen.len());
            total += delay;
        }
        assert!(total > 86_400);
        assert_eq!(next_attempt(DELIVERY, 0, 11, None), Some(11));
        assert_eq!(next_attempt(DELIVERY, 9, 0, None), None);
    }

    #[test]
    fn retry_after_lengthens_a_delay_up_to_a_day() {
        let minute = 60_000_000;
        assert_eq!(next_attempt(DELIVERY, 1, 0, Some(minute)), Some(minute));
        assert!(next_attempt(DELIVERY, 3, 0, Some(minute)) > Some(4 * minute));
        assert_eq!(next_attempt(DELIVERY, 1, 0, Some(i64::MAX)), Some(86_400_000_000));
        assert_eq!(next_attempt(DELIVERY, 9, 0, Some(minute)), None);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = DateTime::parse_from_rfc3339("2026-06-15T12:00:00Z").unwrap().timestamp_micros();
        assert_eq!(retry_after("120", now), Some(120_000_000));
        assert_eq!(retry_after(" 0 ", now), Some(0));
        assert_eq!(retry_after("Mon, 15 Jun 2026 12:01:00 GMT", now), Some(60_000_000));
        assert_eq!(retry_after("Mon, 15 Jun 2026 11:00:00 GMT", now), Some(0));
        assert_eq!(retry_after("Fri, 01 Jan 2100 00:00:00 GMT", now), Some(MAX_RETRY_AFTER_MICROS));
        for wrong in ["", "-5", "1.5", "soon", "99999999999999", "2026-06-15"] {
            assert_eq!(retry_after(wrong, now), None, "{wrong}");
        }
    }
}
