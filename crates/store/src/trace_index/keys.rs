//! Keys of traces, runs and rows of the tail: integers that increase with the time of their creation.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::ids::new_id;

/// Number of processes that can take keys at the same time without a conflict. Each has a slot.
const PROCESS_SLOTS: i64 = 512;

/// Generates the keys of a process: the time in microseconds, or the number after the last one if that is greater. If
/// several processes share the database, a random slot of the process follows, so that they rarely take the same keys.
#[derive(Debug)]
pub struct KeySource {
    /// Number of slots: 1 if no other process stores traces.
    slots: i64,
    slot: AtomicI64,
    last: AtomicI64,
}

impl KeySource {
    /// Returns the source of a process that stores traces alone.
    pub fn alone() -> Self {
        Self { slots: 1, slot: AtomicI64::new(0), last: AtomicI64::new(0) }
    }

    /// Returns the source of a process that may share the database.
    pub fn shared() -> Self {
        Self { slots: PROCESS_SLOTS, slot: AtomicI64::new(random_slot()), last: AtomicI64::new(0) }
    }

    /// Returns `count` new keys in ascending order, which are greater than all that were returned before. `now` is in
    /// microseconds.
    pub fn take(&self, count: usize, now: i64) -> impl Iterator<Item = i64> + use<> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let first = |last: i64| last.saturating_add(1).max(now);
        let next = |last: i64| Some(first(last).saturating_add(count - 1));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let first = first(last.unwrap_or_else(|it| it));
        let (slots, slot) = (self.slots, self.slot.load(Ordering::Relaxed));
        (0..count).map(move |it| first.saturating_add(it).saturating_mul(slots).saturating_add(slot))
    }

    /// Returns one new key, like [`Self::take`].
    pub fn take_one(&self, now: i64) -> i64 {
        self.take(1, now).next().unwrap_or(i64::MAX)
    }

    /// Avoids further conflicts after a key was in use; `greatest` is the greatest stored key.
    pub fn avoid_conflicts(&self, greatest: i64) {
        if self.slots > 1 {
            self.slot.store(random_slot(), Ordering::Relaxed);
        }
        self.last.fetch_max(greatest / self.slots, Ordering::Relaxed);
    }
}

fn random_slot() -> i64 {
    // The last bits of an ID are random.
    let [.., high, low] = *new_id().as_bytes();
    i64::from(u16::from_be_bytes([high, low])) % PROCESS_SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_increase_although_the_clock_stands_still_or_goes_back() {
        let keys = KeySource::alone();
        assert!(keys.take(3, 80).eq([80, 81, 82]));
        assert_eq!(keys.take_one(80), 83);
        assert_eq!(keys.take_one(9), 84);
        assert_eq!(keys.take_one(160), 160);
        keys.avoid_conflicts(1_000);
        assert!(keys.take(2, 20).eq([1_001, 1_002]));
        assert_eq!(keys.take_one(20), 1_003);
    }

    #[test]
    fn keys_of_a_process_share_its_slot() {
        let now = 1_764_000_000_000_000;
        let keys = KeySource::shared();
        let taken: Vec<i64> = keys.take(3, now).collect();
        assert!(taken.is_sorted() && taken.iter().all(|it| it % PROCESS_SLOTS == taken[0] % PROCESS_SLOTS));
        assert_eq!(taken[0] / PROCESS_SLOTS, now);
        // The time at which keys end is far away.
        assert!(i64::MAX / PROCESS_SLOTS > 8 * now);
    }
}
