//! Circuit breakers of providers.
//!
//! After failures a circuit breaker opens for a cool-down that grows, and then allows one probe at a
//! time, so that an unreachable or hanging provider delays only requests that need it. Each process has
//! its own circuit breakers. `K` identifies the account; a changed credential has a new circuit breaker
//! if the key contains the time of its last change.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// First cool-down after a temporary failure in microseconds, doubled each time.
const FIRST_COOL_DOWN_MICROS: i64 = 1_000_000;
/// Maximum cool-down in microseconds.
const MAX_COOL_DOWN_MICROS: i64 = 300_000_000;
/// Age in microseconds at which a circuit breaker may be dropped.
const STALE_AFTER_MICROS: i64 = 3_600_000_000;
/// Number of circuit breakers above which old ones are dropped.
const MAX_BREAKERS: usize = 1_000;

/// The cool-down after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoolDown {
    /// Temporary: a growing cool-down, or the one that the provider requires.
    Growing(Option<Duration>),
    /// Permanent until a person changes something: a fixed cool-down.
    Fixed(Duration),
}

/// An open circuit breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCircuitBreaker {
    /// End of the cool-down, microseconds.
    pub until: i64,
    /// The failure.
    pub why: String,
    /// The kind of cool-down.
    pub cool_down: CoolDown,
    /// Time of the first failure since the last success, microseconds.
    pub since: i64,
}

#[derive(Debug)]
struct BreakerState {
    failures: u32,
    until: i64,
    /// A probe is in progress, until then at most.
    probed_until: i64,
    why: String,
    cool_down: CoolDown,
    since: i64,
}

impl BreakerState {
    fn check(&self, now: i64) -> Result<(), OpenCircuitBreaker> {
        let until = self.until.max(self.probed_until);
        if now < until {
            return Err(OpenCircuitBreaker {
                until,
                why: self.why.clone(),
                cool_down: self.cool_down,
                since: self.since,
            });
        }
        Ok(())
    }
}

/// The circuit breakers of a process.
#[derive(Debug)]
pub struct CircuitBreakers<K> {
    /// Consecutive temporary failures that are tolerated before the first cool-down.
    tolerated_failures: u32,
    states: Mutex<HashMap<K, BreakerState>>,
}

impl<K: Hash + Eq> CircuitBreakers<K> {
    /// Creates circuit breakers that tolerate `tolerated_failures` consecutive failures; a failure with a required
    /// delay opens the circuit breaker immediately.
    pub fn new(tolerated_failures: u32) -> Self {
        Self { tolerated_failures, states: Mutex::default() }
    }

    /// Whether a request is allowed at `now`, microseconds.
    ///
    /// # Errors
    ///
    /// Returns the open circuit breaker if not. After the cool-down one request is allowed as a probe,
    /// and others are rejected while it runs, for at most `probe_timeout`.
    pub fn admit(&self, key: &K, now: i64, probe_timeout: Duration) -> Result<(), OpenCircuitBreaker> {
        let mut breakers = self.lock();
        let Some(breaker) = breakers.get_mut(key).filter(|it| it.until > 0) else { return Ok(()) };
        breaker.check(now)?;
        breaker.probed_until = now.saturating_add(micros(probe_timeout));
        Ok(())
    }

    /// Like [`Self::admit`], without starting a probe.
    ///
    /// # Errors
    ///
    /// Returns the open circuit breaker if a request would be rejected now.
    pub fn would_admit(&self, key: &K, now: i64) -> Result<(), OpenCircuitBreaker> {
        self.lock().get(key).filter(|it| it.until > 0).map_or(Ok(()), |it| it.check(now))
    }

    /// Records a failure at `now`: returns the end of the cool-down, if the circuit breaker opens, and
    /// whether it was closed before.
    pub fn record_failure(&self, key: K, cool_down: CoolDown, why: &str, now: i64) -> Option<(i64, bool)> {
        let mut breakers = self.lock();
        if breakers.len() > MAX_BREAKERS {
            breakers.retain(|_, it| it.until.saturating_add(STALE_AFTER_MICROS) > now);
        }
        let new = || BreakerState {
            failures: 0,
            until: 0,
            probed_until: 0,
            why: String::new(),
            cool_down,
            since: now,
        };
        let breaker = breakers.entry(key).or_insert_with(new);
        let was_closed = breaker.until == 0;
        breaker.probed_until = 0;
        why.clone_into(&mut breaker.why);
        breaker.cool_down = cool_down;
        breaker.failures += 1;
        let grown = |from: u32| {
            let doublings = breaker.failures.saturating_sub(from + 1).min(20);
            FIRST_COOL_DOWN_MICROS.saturating_mul(1 << doublings).min(MAX_COOL_DOWN_MICROS)
        };
        let length = match cool_down {
            CoolDown::Fixed(length) => micros(length),
            CoolDown::Growing(Some(least)) => grown(0).max(micros(least)),
            CoolDown::Growing(None) if breaker.failures <= self.tolerated_failures => return None,
            CoolDown::Growing(None) => grown(self.tolerated_failures),
        };
        // A concurrent failure may have set a longer cool-down.
        breaker.until = breaker.until.max(now.saturating_add(length));
        Some((breaker.until, was_closed))
    }

    /// Records a success; returns true if the circuit breaker was open.
    pub fn record_success(&self, key: &K) -> bool {
        self.lock().remove(key).is_some_and(|it| it.until > 0)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, BreakerState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
    const SECOND: i64 = 1_000_000;
    const GROWING: CoolDown = CoolDown::Growing(None);

    fn until(breakers: &CircuitBreakers<u8>, now: i64) -> i64 {
        breakers.admit(&1, now, PROBE_TIMEOUT).unwrap_err().until
    }

    #[test]
    fn circuit_breaker_cool_down_grows_and_allows_one_probe() {
        let breakers = CircuitBreakers::new(0);
        assert_eq!(breakers.admit(&1, 0, PROBE_TIMEOUT), Ok(()));
        assert_eq!(breakers.record_failure(1, GROWING, "away", 0), Some((SECOND, true)));
        let open = OpenCircuitBreaker { until: SECOND, why: "away".to_owned(), cool_down: GROWING, since: 0 };
        assert_eq!(breakers.would_admit(&1, SECOND - 1), Err(open.clone()));
        assert_eq!(breakers.admit(&1, SECOND - 1, PROBE_TIMEOUT), Err(open));
        assert_eq!((breakers.would_admit(&1, SECOND), breakers.would_admit(&2, 0)), (Ok(()), Ok(())));
        assert_eq!(breakers.admit(&1, SECOND, PROBE_TIMEOUT), Ok(()));
        assert_eq!(until(&breakers, SECOND), 21 * SECOND);
        // The probe fails at the end of its time.
        let now = 21 * SECOND;
        assert_eq!(breakers.record_failure(1, GROWING, "away", now), Some((now + 2 * SECOND, false)));
        for _ in 0..40 {
            breakers.record_failure(1, GROWING, "away", now);
        }
        assert_eq!(until(&breakers, now), now + MAX_COOL_DOWN_MICROS);
        assert_eq!(breakers.admit(&2, 0, PROBE_TIMEOUT), Ok(()));
        assert!(breakers.record_success(&1) && !breakers.record_success(&1));
        assert_eq!(breakers.admit(&1, 0, PROBE_TIMEOUT), Ok(()));
    }

    #[test]
    fn circuit_breaker_tolerates_first_failures() {
        let breakers = CircuitBreakers::new(2);
        assert_eq!(
            (breakers.record_failure(1, GROWING, "", 0), breakers.record_failure(1, GROWING, "", 0)),
            (None, None)
        );
        // No probe is needed until then.
        assert_eq!(
            (breakers.admit(&1, 0, PROBE_TIMEOUT), breakers.admit(&1, 0, PROBE_TIMEOUT)),
            (Ok(()), Ok(()))
        );
        assert_eq!(breakers.record_failure(1, GROWING, "", 0), Some((SECOND, true)));
        assert!(breakers.record_success(&1));
        assert_eq!((breakers.record_failure(1, GROWING, "", 0), breakers.record_success(&1)), (None, false));
    }

    #[test]
    fn circuit_breaker_follows_delay_of_provider() {
        let breakers = CircuitBreakers::new(2);
        let required = CoolDown::Growing(Some(Duration::from_secs(90)));
        assert_eq!(breakers.record_failure(1, required, "429", 0), Some((90 * SECOND, true)));
        // A concurrent failure does not shorten the cool-down.
        assert_eq!(
            breakers.record_failure(1, CoolDown::Growing(Some(Duration::ZERO)), "429", 0).unwrap().0,
            90 * SECOND
        );
        let fixed = CoolDown::Fixed(Duration::from_secs(600));
        assert_eq!(breakers.record_failure(2, fixed, "401", 0), Some((600 * SECOND, true)));
        assert_eq!(breakers.admit(&2, 0, PROBE_TIMEOUT).unwrap_err().cool_down, fixed);
    }
}
