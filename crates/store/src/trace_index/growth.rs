//! Counts new and changed traces of each tenant, so that tails are examined only after they have grown.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use uuid::Uuid;

/// Number of traces by which a tail grows before it is examined.
const EXAMINED_GROWTH: usize = 1_000;

/// Numbers of traces that this process stored since their tenant's tail was examined. A tenant takes about 30 bytes.
#[derive(Debug, Default)]
pub struct TailGrowth(Mutex<HashMap<Uuid, usize>>);

impl TailGrowth {
    /// Counts a stored trace for each of the tenants.
    pub fn add(&self, tenants: impl Iterator<Item = Uuid>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for tenant in tenants {
            *counts.entry(tenant).or_default() += 1;
        }
    }

    /// Returns the tenants whose tails have grown enough to be examined, and forgets them.
    pub fn take(&self) -> Vec<Uuid> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.extract_if(|_, count| *count >= EXAMINED_GROWTH).map(|it| it.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenant_is_returned_once_after_enough_traces() {
        let (growth, tenant, other) = (TailGrowth::default(), Uuid::from_u128(1), Uuid::from_u128(2));
        growth.add(std::iter::repeat_n(tenant, EXAMINED_GROWTH - 1).chain([other]));
        assert!(growth.take().is_empty());
        growth.add([tenant].into_iter());
        assert_eq!(growth.take(), [tenant]);
        assert!(growth.take().is_empty());
    }
}
