//! How many workers of a process embed for one tenant at the same time.
//!
//! A provider may take almost a minute for each answer and never fail; the workers that wait for it
//! are not there for others.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use uuid::Uuid;

/// Turns of a tenant at the same time, of the workers that a process has.
const MOST: usize = 2;

/// The turns that tenants have now.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<Uuid, usize>>);

/// A turn, until it is dropped.
#[derive(Debug)]
pub struct Taken<'a> {
    turns: &'a Turns,
    tenant: Uuid,
}

impl Turns {
    /// A turn of a tenant; nothing when it has enough of them.
    pub fn take(&self, tenant: Uuid) -> Option<Taken<'_>> {
        let mut turns = self.lock();
        let taken = turns.entry(tenant).or_default();
        if *taken >= MOST {
            return None;
        }
        *taken += 1;
        Some(Taken { turns: self, tenant })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut turns = self.turns.lock();
        if let Some(taken) = turns.get_mut(&self.tenant) {
            *taken -= 1;
            if *taken == 0 {
                turns.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_some_turns_at_a_time() {
        let turns = Turns::default();
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let first = turns.take(one).unwrap();
        let _second = turns.take(one).unwrap();
        assert!(turns.take(one).is_none() && turns.take(other).is_some());
        drop(first);
        assert!(turns.take(one).is_some());
        assert_eq!(turns.lock().len(), 1);
    }
}
