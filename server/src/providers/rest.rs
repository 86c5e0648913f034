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
pub enum Pause {
    /// Temporary: a growing cool-down, or the one that the provider requires.
    Growing(Option<Duration>),
    /// Permanent until a person changes something: a fixed cool-down.
    Fixed(Duration),
}

/// An open circuit breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resting {
    /// End of the cool-down, microseconds.
    pub until: i64,
    /// The failure.
    pub why: String,
    /// The kind of cool-down.
    pub pause: Pause,
    /// Time of the first failure since the last success, microseconds.
    pub since: i64,
}

#[derive(Debug)]
struct Rest {
    failures: u32,
    until: i64,
    /// A probe is in progress, until then at most.
    probed_until: i64,
    why: String,
    pause: Pause,
    since: i64,
}

impl Rest {
    fn admits(&self, now: i64) -> Result<(), Resting> {
        let until = self.until.max(self.probed_until);
        if now < until {
            return Err(Resting { until, why: self.why.clone(), pause: self.pause, since: self.since });
        }
        Ok(())
    }
}

/// The circuit breakers of a process.
#[derive(Debug)]
pub struct Rests<K> {
    /// Consecutive temporary failures that are tolerated before the first cool-down.
    borne: u32,
    resting: Mutex<HashMap<K, Rest>>,
}

impl<K: Hash + Eq> Rests<K> {
    /// Creates circuit breakers that tolerate `borne` consecutive failures; a failure with a required
    /// delay opens the circuit breaker immediately.
    pub fn new(borne: u32) -> Self {
        Self { borne, resting: Mutex::default() }
    }

    /// Whether a request is allowed at `now`, microseconds.
    ///
    /// # Errors
    ///
    /// Returns the open circuit breaker if not. After the cool-down one request is allowed as a probe,
    /// and others are rejected while it runs, for at most `patience`.
    pub fn admit(&self, who: &K, now: i64, patience: Duration) -> Result<(), Resting> {
        let mut rests = self.lock();
        let Some(rest) = rests.get_mut(who).filter(|it| it.until > 0) else { return Ok(()) };
        rest.admits(now)?;
        rest.probed_until = now.saturating_add(micros(patience));
        Ok(())
    }

    /// Like [`Self::admit`], without starting a probe.
    ///
    /// # Errors
    ///
    /// Returns the open circuit breaker if a request would be rejected now.
    pub fn would_admit(&self, who: &K, now: i64) -> Result<(), Resting> {
        self.lock().get(who).filter(|it| it.until > 0).map_or(Ok(()), |it| it.admits(now))
    }

    /// Records a failure at `now`: returns the end of the cool-down, if the circuit breaker opens, and
    /// whether it was closed before.
    pub fn failed(&self, who: K, pause: Pause, why: &str, now: i64) -> Option<(i64, bool)> {
        let mut rests = self.lock();
        if rests.len() > MAX_BREAKERS {
            rests.retain(|_, it| it.until.saturating_add(STALE_AFTER_MICROS) > now);
        }
        let new = || Rest { failures: 0, until: 0, probed_until: 0, why: String::new(), pause, since: now };
        let rest = rests.entry(who).or_insert_with(new);
        let was_well = rest.until == 0;
        rest.probed_until = 0;
        why.clone_into(&mut rest.why);
        rest.pause = pause;
        rest.failures += 1;
        let grown = |from: u32| {
            let doublings = rest.failures.saturating_sub(from + 1).min(20);
            FIRST_COOL_DOWN_MICROS.saturating_mul(1 << doublings).min(MAX_COOL_DOWN_MICROS)
        };
        let length = match pause {
            Pause::Fixed(length) => micros(length),
            Pause::Growing(Some(least)) => grown(0).max(micros(least)),
            Pause::Growing(None) if rest.failures <= self.borne => return None,
            Pause::Growing(None) => grown(self.borne),
        };
        // A concurrent failure may have set a longer cool-down.
        rest.until = rest.until.max(now.saturating_add(length));
        Some((rest.until, was_well))
    }

    /// Records a success; returns true if the circuit breaker was open.
    pub fn recovered(&self, who: &K) -> bool {
        self.lock().remove(who).is_some_and(|it| it.until > 0)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Rest>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);
    const SECOND: i64 = 1_000_000;
    const AWAY: Pause = Pause::Growing(None);

    fn until(rests: &Rests<u8>, now: i64) -> i64 {
        rests.admit(&1, now, PATIENCE).unwrap_err().until
    }

    #[test]
    fn circuit_breaker_cool_down_grows_and_allows_one_probe() {
        let rests = Rests::new(0);
        assert_eq!(rests.admit(&1, 0, PATIENCE), Ok(()));
        assert_eq!(rests.failed(1, AWAY, "away", 0), Some((SECOND, true)));
        let resting = Resting { until: SECOND, why: "away".to_owned(), pause: AWAY, since: 0 };
        assert_eq!(rests.would_admit(&1, SECOND - 1), Err(resting.clone()));
        assert_eq!(rests.admit(&1, SECOND - 1, PATIENCE), Err(resting));
        assert_eq!((rests.would_admit(&1, SECOND), rests.would_admit(&2, 0)), (Ok(()), Ok(())));
        assert_eq!(rests.admit(&1, SECOND, PATIENCE), Ok(()));
        assert_eq!(until(&rests, SECOND), 21 * SECOND);
        // The probe fails at the end of its time.
        let now = 21 * SECOND;
        assert_eq!(rests.failed(1, AWAY, "away", now), Some((now + 2 * SECOND, false)));
        for _ in 0..40 {
            rests.failed(1, AWAY, "away", now);
        }
        assert_eq!(until(&rests, now), now + MAX_COOL_DOWN_MICROS);
        assert_eq!(rests.admit(&2, 0, PATIENCE), Ok(()));
        assert!(rests.recovered(&1) && !rests.recovered(&1));
        assert_eq!(rests.admit(&1, 0, PATIENCE), Ok(()));
    }

    #[test]
    fn circuit_breaker_tolerates_first_failures() {
        let rests = Rests::new(2);
        assert_eq!((rests.failed(1, AWAY, "", 0), rests.failed(1, AWAY, "", 0)), (None, None));
        // No probe is needed until then.
        assert_eq!((rests.admit(&1, 0, PATIENCE), rests.admit(&1, 0, PATIENCE)), (Ok(()), Ok(())));
        assert_eq!(rests.failed(1, AWAY, "", 0), Some((SECOND, true)));
        assert!(rests.recovered(&1));
        assert_eq!((rests.failed(1, AWAY, "", 0), rests.recovered(&1)), (None, false));
    }

    #[test]
    fn circuit_breaker_follows_delay_of_provider() {
        let rests = Rests::new(2);
        let told = Pause::Growing(Some(Duration::from_secs(90)));
        assert_eq!(rests.failed(1, told, "429", 0), Some((90 * SECOND, true)));
        // A concurrent failure does not shorten the cool-down.
        assert_eq!(rests.failed(1, Pause::Growing(Some(Duration::ZERO)), "429", 0).unwrap().0, 90 * SECOND);
        let fixed = Pause::Fixed(Duration::from_secs(600));
        assert_eq!(rests.failed(2, fixed, "401", 0), Some((600 * SECOND, true)));
        assert_eq!(rests.admit(&2, 0, PATIENCE).unwrap_err().pause, fixed);
    }
}
