//! Providers that are left alone for a while, because they failed.
//!
//! One that failed is asked again by one job at a time, after pauses that grow, so that a provider
//! that is away or hangs holds up its own tenant's vectors and nobody else's. This is remembered by
//! each process for itself, and of no credential that was changed since.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use uuid::Uuid;

use crate::providers::embedding::Failure;

/// First pause after a failure that passes, doubled each time, microseconds.
const FIRST: i64 = 1_000_000;
/// Longest such pause, microseconds.
const LONGEST: i64 = 300_000_000;
/// Pause after a failure that only another key, model or address mends, microseconds.
const DENIED: i64 = 600_000_000;
/// What is remembered longer than this is forgotten when there is much of it, microseconds.
const STALE: i64 = 3_600_000_000;
/// Providers that are remembered before the stale ones are looked for.
const MANY: usize = 1_000;

/// Who is left alone: the platform's provider, or a tenant's credential as it was stored at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// The operator's.
    Platform,
    /// The tenant, and when its credential last changed, microseconds.
    Tenant(Uuid, i64),
}

#[derive(Clone, Copy, Debug)]
struct Rest {
    failures: u32,
    until: i64,
}

/// Who is left alone until when.
#[derive(Debug, Default)]
pub struct Rests(Mutex<HashMap<Who, Rest>>);

impl Rests {
    /// Whether somebody may be asked at `now`, microseconds.
    ///
    /// # Errors
    /// When to come back, if not. After a failure one may, and who comes while that one waits, for
    /// `patience` at most, may not.
    pub fn admit(&self, who: Who, now: i64, patience: Duration) -> Result<(), i64> {
        let mut rests = self.lock();
        let Some(rest) = rests.get_mut(&who) else { return Ok(()) };
        if now < rest.until {
            return Err(rest.until);
        }
        rest.until = now.saturating_add(i64::try_from(patience.as_micros()).unwrap_or(i64::MAX));
        Ok(())
    }

    /// Somebody failed at `now`: until when it is left alone, and whether it had been well before.
    pub fn failed(&self, who: Who, failure: &Failure, now: i64) -> (i64, bool) {
        let mut rests = self.lock();
        if rests.len() > MANY {
            rests.retain(|_, it| it.until.saturating_add(STALE) > now);
        }
        let rest = rests.entry(who).or_insert(Rest { failures: 0, until: now });
        let doubled = FIRST.saturating_mul(1 << rest.failures.min(20)).min(LONGEST);
        let pause = match failure {
            Failure::Denied(_) | Failure::Unfit(_) => DENIED,
            Failure::Passing { after: Some(after), .. } => {
                doubled.max(i64::try_from(after.as_micros()).unwrap_or(i64::MAX))
            }
            Failure::Passing { after: None, .. } | Failure::Unusable(_) => doubled,
        };
        rest.failures += 1;
        rest.until = now.saturating_add(pause);
        (rest.until, rest.failures == 1)
    }

    /// Somebody answered as it should; true if it had failed before.
    pub fn recovered(&self, who: Who) -> bool {
        self.lock().remove(&who).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Who, Rest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);
    const SECOND: i64 = 1_000_000;

    #[test]
    fn pauses_grow_and_one_probes() {
        let rests = Rests::default();
        let failure = Failure::passing("away");
        assert_eq!(rests.admit(Who::Platform, 0, PATIENCE), Ok(()));
        assert_eq!(rests.failed(Who::Platform, &failure, 0), (SECOND, true));
        assert_eq!(rests.admit(Who::Platform, SECOND - 1, PATIENCE), Err(SECOND));
        assert_eq!(rests.admit(Who::Platform, SECOND, PATIENCE), Ok(()));
        assert_eq!(rests.admit(Who::Platform, SECOND, PATIENCE), Err(21 * SECOND));
        assert_eq!(rests.failed(Who::Platform, &failure, 0), (2 * SECOND, false));
        for _ in 0..40 {
            rests.failed(Who::Platform, &failure, 0);
        }
        assert_eq!(rests.failed(Who::Platform, &failure, 0), (LONGEST, false));
        assert!(rests.recovered(Who::Platform));
        assert_eq!(rests.admit(Who::Platform, 0, PATIENCE), Ok(()));
    }

    #[test]
    fn a_changed_credential_is_another_one() {
        let rests = Rests::default();
        let (before, after) = (Who::Tenant(Uuid::nil(), 1), Who::Tenant(Uuid::nil(), 2));
        assert_eq!(rests.failed(before, &Failure::Denied("401".to_owned()), 0), (DENIED, true));
        assert_eq!(rests.admit(after, 0, PATIENCE), Ok(()));
        assert!(!rests.recovered(after));
    }

    #[test]
    fn a_provider_says_how_long() {
        let after = Some(Duration::from_secs(90));
        let failure = Failure::Passing { why: "429".to_owned(), after };
        assert_eq!(Rests::default().failed(Who::Platform, &failure, 0), (90 * SECOND, true));
    }
}
