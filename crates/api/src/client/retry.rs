//! Retry policy: which failed calls are repeated, and after which delay.

use std::time::Duration;

use super::Error;

/// The longest delay between two attempts; if the server requires more, the call fails.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(120);
/// Error code of a request whose `Idempotency-Key` belongs to a request still in progress.
const IDEMPOTENCY_IN_FLIGHT_CODE: &str = "idempotency_in_flight";

/// Error code of a request that a provider of the tenant failed, for example because of a missing
/// credential.
const UPSTREAM_FAILED_CODE: &str = "upstream_failed";

/// Number and delay of attempts.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// Maximum number of attempts, including the first; at least 1.
    pub attempts: u32,
    /// Delay before the second attempt; doubled for each further one.
    pub base: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, base: Duration::from_millis(500) }
    }
}

impl Retry {
    /// A single attempt.
    pub const NEVER: Self = Self { attempts: 1, base: Duration::ZERO };

    /// Returns the delay before the next attempt, or `None` if there is none. `attempt` is the number
    /// of the failed attempt, from 1.
    ///
    /// A call that is not repeatable is retried only if the server certainly did not execute it: the
    /// connection failed, or the server rejected it because of a rate limit.
    pub fn after(&self, error: &Error, repeatable: bool, attempt: u32) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        let backoff = self.backoff(attempt);
        match error {
            Error::Unreachable { sent, .. } if repeatable || !sent => Some(backoff),
            Error::Response(response) => match response.status {
                // An earlier attempt is still in progress; its response will be returned.
                409 if repeatable && response.code == IDEMPOTENCY_IN_FLIGHT_CODE => Some(backoff),
                429 => response.retry_after.or(Some(backoff)).filter(|delay| *delay <= MAX_RETRY_DELAY),
                // The server has called a provider and reports that a retry does not help.
                502 if response.code == UPSTREAM_FAILED_CODE && response.retry_after.is_none() => None,
                500..=599 if repeatable => {
                    response.retry_after.or(Some(backoff)).filter(|delay| *delay <= MAX_RETRY_DELAY)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the doubled delay with jitter: between half of it and all of it, so that clients that
    /// failed together do not return together.
    pub fn backoff(&self, attempt: u32) -> Duration {
        let doubled = self.base.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(MAX_RETRY_DELAY);
        doubled.mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}
