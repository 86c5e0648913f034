//! When a failed call is tried again, and after how long.

use std::time::Duration;

use super::Error;

/// The longest wait between two tries; a server that asks for more gets an error shown instead.
const LONGEST: Duration = Duration::from_secs(120);
/// Code of a request whose `Idempotency-Key` belongs to one that has not been answered yet.
const IN_FLIGHT: &str = "idempotency_in_flight";

/// The code for a request that the tenant's provider did not answer, for example because a credential is
/// missing.
const UPSTREAM_FAILED: &str = "upstream_failed";

/// How often and how patiently a call is tried.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// Tries in all, the first one included; at least 1.
    pub attempts: u32,
    /// The wait before the second try; each further one is twice as long.
    pub base: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, base: Duration::from_millis(500) }
    }
}

impl Retry {
    /// One try only.
    pub const NEVER: Self = Self { attempts: 1, base: Duration::ZERO };

    /// The wait before the next try, or `None` if there is none. `attempt` is the number of
    /// the try that failed, from 1.
    ///
    /// A call that is not repeatable is tried again only if it was surely not taken on: the
    /// connection failed, or the server turned it away because of its rate.
    pub fn after(&self, error: &Error, repeatable: bool, attempt: u32) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        let backoff = self.backoff(attempt);
        match error {
            Error::Unreachable { sent, .. } if repeatable || !sent => Some(backoff),
            Error::Answer(answer) => match answer.status {
                // An earlier try is still at work, and its answer will be this one's.
                409 if repeatable && answer.code == IN_FLIGHT => Some(backoff),
                429 => answer.retry_after.or(Some(backoff)).filter(|delay| *delay <= LONGEST),
                // The server has asked a provider and reports that a retry does not help.
                502 if answer.code == UPSTREAM_FAILED && answer.retry_after.is_none() => None,
                500..=599 if repeatable => {
                    answer.retry_after.or(Some(backoff)).filter(|delay| *delay <= LONGEST)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Half of the doubled wait for certain, the other half at random, so that clients that
    /// failed together do not return together.
    pub fn backoff(&self, attempt: u32) -> Duration {
        let doubled = self.base.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(LONGEST);
        doubled.mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}
