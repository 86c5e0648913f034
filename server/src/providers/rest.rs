//! Providers that are left alone for a while, because they failed.
//!
//! One that failed is asked again by one caller at a time, after pauses that grow, so that a provider
//! that is away or hangs holds up whoever needs it and nobody else. This is remembered by each
//! process for itself. `K` says who is left alone; of a credential that was changed nothing is
//! remembered if its key holds when it last changed.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// First pause after a failure that passes, doubled each time, microseconds.
const FIRST: i64 = 1_000_000;
/// Longest such pause, microseconds.
const LONGEST: i64 = 300_000_000;
/// What is remembered longer than this is forgotten when there is much of it, microseconds.
const STALE: i64 = 3_600_000_000;
/// Providers that are remembered before the stale ones are looked for.
const MANY: usize = 1_000;

/// How a failure passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// By itself, sooner or later; not before this, if the provider says so.
    Growing(Option<Duration>),
    /// Not by itself: it is tried again after this.
    Fixed(Duration),
}

/// Somebody is to be left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resting {
    /// Until then, microseconds.
    pub until: i64,
    /// What happened.
    pub why: String,
    /// How it passes.
    pub pause: Pause,
    /// When it failed first, microseconds; it has not done what it should since.
    pub since: i64,
}

#[derive(Debug)]
struct Rest {
    failures: u32,
    until: i64,
    /// Somebody asks how it fares, until then at most.
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

/// Who is left alone until when.
#[derive(Debug)]
pub struct Rests<K> {
    /// Failures in a row that pass by themselves and are borne before the first pause.
    borne: u32,
    resting: Mutex<HashMap<K, Rest>>,
}

impl<K: Hash + Eq> Rests<K> {
    /// Nobody yet. So many failures in a row are `borne` before somebody is left alone; a failure
    /// that says how long counts at once.
    pub fn new(borne: u32) -> Self {
        Self { borne, resting: Mutex::default() }
    }

    /// Whether somebody may be asked at `now`, microseconds.
    ///
    /// # Errors
    /// When to come back, if not. After a pause one may, and who comes while that one waits, for
    /// `patience` at most, may not.
    pub fn admit(&self, who: &K, now: i64, patience: Duration) -> Result<(), Resting> {
        let mut rests = self.lock();
        let Some(rest) = rests.get_mut(who).filter(|it| it.until > 0) else { return Ok(()) };
        rest.admits(now)?;
        rest.probed_until = now.saturating_add(micros(patience));
        Ok(())
    }

    /// The same for a caller that does not ask yet: it takes nobody's place.
    ///
    /// # Errors
    /// When to come back, if it would not be admitted now.
    pub fn would_admit(&self, who: &K, now: i64) -> Result<(), Resting> {
        self.lock().get(who).filter(|it| it.until > 0).map_or(Ok(()), |it| it.admits(now))
    }

    /// Somebody failed at `now`: until when it is left alone, if it is, and whether that is new.
    pub fn failed(&self, who: K, pause: Pause, why: &str, now: i64) -> Option<(i64, bool)> {
        let mut rests = self.lock();
        if rests.len() > MANY {
            rests.retain(|_, it| it.until.saturating_add(STALE) > now);
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
            FIRST.saturating_mul(1 << doublings).min(LONGEST)
        };
        let length = match pause {
            Pause::Fixed(length) => micros(length),
            Pause::Growing(Some(least)) => grown(0).max(micros(least)),
            Pause::Growing(None) if rest.failures <= self.borne => return None,
            Pause::Growing(None) => grown(self.borne),
        };
        // Another that was under way may have been told to stay away for longer.
        rest.until = rest.until.max(now.saturating_add(length));
        Some((rest.until, was_well))
    }

    /// Somebody answered as it should; true if it had been left alone before.
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
    fn pauses_grow_and_one_probes() {
        let rests = Rests::new(0);
        assert_eq!(rests.admit(&1, 0, PATIENCE), Ok(()));
        assert_eq!(rests.failed(1, AWAY, "away", 0), Some((SECOND, true)));
        let resting = Resting { until: SECOND, why: "away".to_owned(), pause: AWAY, since: 0 };
        assert_eq!(rests.would_admit(&1, SECOND - 1), Err(resting.clone()));
        assert_eq!(rests.admit(&1, SECOND - 1, PATIENCE), Err(resting));
        assert_eq!((rests.would_admit(&1, SECOND), rests.would_admit(&2, 0)), (Ok(()), Ok(())));
        assert_eq!(rests.admit(&1, SECOND, PATIENCE), Ok(()));
        assert_eq!(until(&rests, SECOND), 21 * SECOND);
        // The one that probed fails, at the end of its patience.
        let now = 21 * SECOND;
        assert_eq!(rests.failed(1, AWAY, "away", now), Some((now + 2 * SECOND, false)));
        for _ in 0..40 {
            rests.failed(1, AWAY, "away", now);
        }
        assert_eq!(until(&rests, now), now + LONGEST);
        assert_eq!(rests.admit(&2, 0, PATIENCE), Ok(()));
        assert!(rests.recovered(&1) && !rests.recovered(&1));
        assert_eq!(rests.admit(&1, 0, PATIENCE), Ok(()));
    }

    #[test]
    fn some_failures_are_borne() {
        let rests = Rests::new(2);
        assert_eq!((rests.failed(1, AWAY, "", 0), rests.failed(1, AWAY, "", 0)), (None, None));
        // Nobody has to probe until then.
        assert_eq!((rests.admit(&1, 0, PATIENCE), rests.admit(&1, 0, PATIENCE)), (Ok(()), Ok(())));
        assert_eq!(rests.failed(1, AWAY, "", 0), Some((SECOND, true)));
        assert!(rests.recovered(&1));
        assert_eq!((rests.failed(1, AWAY, "", 0), rests.recovered(&1)), (None, false));
    }

    #[test]
    fn a_provider_says_how_long() {
        let rests = Rests::new(2);
        let told = Pause::Growing(Some(Duration::from_secs(90)));
        assert_eq!(rests.failed(1, told, "429", 0), Some((90 * SECOND, true)));
        // What was under way meanwhile shortens nothing.
        assert_eq!(rests.failed(1, Pause::Growing(Some(Duration::ZERO)), "429", 0).unwrap().0, 90 * SECOND);
        let fixed = Pause::Fixed(Duration::from_secs(600));
        assert_eq!(rests.failed(2, fixed, "401", 0), Some((600 * SECOND, true)));
        assert_eq!(rests.admit(&2, 0, PATIENCE).unwrap_err().pause, fixed);
    }
}
