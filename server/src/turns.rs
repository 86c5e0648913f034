//! How many of a process may do something for somebody, or wait for somebody, at the same time.
//!
//! A provider may take almost a minute for each answer and never fail; the workers that wait for it
//! are not there for others.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The turns that are taken now, by whom they are for.
#[derive(Debug)]
pub struct Turns<K>(Mutex<HashMap<K, usize>>);

/// A turn, until it is dropped.
#[derive(Debug)]
pub struct Taken<'a, K: Hash + Eq> {
    turns: &'a Turns<K>,
    who: K,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone> Turns<K> {
    /// A turn; nothing when there are `most` of them.
    pub fn take(&self, who: &K, most: usize) -> Option<Taken<'_, K>> {
        let mut turns = self.lock();
        let taken = turns.entry(who.clone()).or_default();
        if *taken >= most {
            return None;
        }
        *taken += 1;
        Some(Taken { turns: self, who: who.clone() })
    }
}

impl<K: Hash + Eq> Turns<K> {
    /// Who has turns, and how many.
    pub fn all(&self) -> Vec<(K, usize)>
    where
        K: Clone,
    {
        self.lock().iter().map(|(who, taken)| (who.clone(), *taken)).collect()
    }

    /// How many turns are taken.
    pub fn taken(&self, who: &K) -> usize {
        self.lock().get(who).copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq> Drop for Taken<'_, K> {
    fn drop(&mut self) {
        let mut turns = self.turns.lock();
        if let Some(taken) = turns.get_mut(&self.who) {
            *taken -= 1;
            if *taken == 0 {
                turns.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_some_turns_at_a_time() {
        let turns = Turns::default();
        let (one, other) = (1, 2);
        let first = turns.take(&one, 2).unwrap();
        let _second = turns.take(&one, 2).unwrap();
        assert!(turns.take(&one, 2).is_none() && turns.take(&other, 2).is_some());
        assert_eq!((turns.taken(&one), turns.taken(&other)), (2, 0));
        drop(first);
        assert!(turns.take(&one, 2).is_some());
        assert_eq!(turns.lock().len(), 1);
    }
}
