//! Limits the memory that the requests and responses of tenants hold.
//!
//! The process has one budget, and each tenant has a share of it. The budget counts request bodies, the
//! texts that a response is built from, and responses that clients have not read yet, until they are
//! dropped. A tenant that uses up its share waits, and gets an error after a while. Other tenants are not
//! affected.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use store::{MemoryAccount, OutOfMemory};
use tokio::{sync::Notify, time::Instant};
use uuid::Uuid;

/// Maximum time that a request waits for memory.
pub const MEMORY_WAIT: Duration = Duration::from_secs(5);

/// Maximum number of reservations of one holder that wait for memory at the same time.
const MAX_WAITING_RESERVATIONS: usize = 256;
/// A tenant's share is the budget divided by this number.
const SHARE_DIVISOR: usize = 4;
/// The share of all callers without a token together is the budget divided by this number.
const ANONYMOUS_DIVISOR: usize = 32;
/// The part of the budget reserved for holders that use little: the budget divided by this number.
const HEADROOM_DIVISOR: usize = 8;
/// A holder that reserves no more than the budget divided by this number uses little.
const SMALL_DIVISOR: usize = 48;

/// The owner of reserved memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryHolder {
    /// A tenant.
    Tenant(Uuid),
    /// All callers without a valid token.
    Anonymous,
}

/// The memory budget of a process.
#[derive(Debug)]
pub struct MemoryBudget {
    total: usize,
    state: Mutex<BudgetState>,
    /// Signals that memory was released while a reservation waited.
    freed: Notify,
}

#[derive(Debug, Default)]
struct BudgetState {
    used: usize,
    waiting: usize,
    accounts: HashMap<MemoryHolder, HolderUsage>,
}

#[derive(Debug, Default)]
struct HolderUsage {
    used: usize,
    waiting: usize,
    /// Whether one of the holder's reservations exceeds the share.
    has_oversized: bool,
}

/// Counted bytes; dropping the reservation releases them.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<MemoryBudget>,
    holder: MemoryHolder,
    bytes: usize,
    is_oversized: bool,
}

/// The error when the holder's share or the whole budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryExhausted {
    /// A tenant needed the memory.
    #[error(
        "too much is held in memory for this tenant: its request bodies and the responses that it has not read; try again shortly"
    )]
    Tenant,
    /// A caller without a valid token needed the memory.
    #[error(
        "too much is held in memory for requests without a valid token; try again shortly, or send a valid token"
    )]
    Anonymous,
}

impl From<MemoryHolder> for MemoryExhausted {
    fn from(holder: MemoryHolder) -> Self {
        match holder {
            MemoryHolder::Tenant(_) => Self::Tenant,
            MemoryHolder::Anonymous => Self::Anonymous,
        }
    }
}

impl MemoryBudget {
    /// Creates a budget of `total` bytes.
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total, state: Mutex::default(), freed: Notify::new() })
    }

    /// Returns a reservation that does not count towards a budget, for work that is bounded in other ways.
    pub fn uncounted() -> Reservation {
        Self::new(usize::MAX / 2).reservation(MemoryHolder::Anonymous)
    }

    /// Returns an empty reservation, which [`Reservation::grow`] enlarges.
    pub fn reservation(self: &Arc<Self>, holder: MemoryHolder) -> Reservation {
        Reservation { budget: Arc::clone(self), holder, bytes: 0, is_oversized: false }
    }

    /// Returns the number of bytes reserved now.
    pub fn used(&self) -> usize {
        self.state().used
    }

    /// Returns the size of the budget in bytes.
    pub fn total(&self) -> usize {
        self.total
    }

    fn state(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn share(&self, holder: MemoryHolder) -> usize {
        match holder {
            MemoryHolder::Tenant(_) => self.total / SHARE_DIVISOR,
            MemoryHolder::Anonymous => self.total / ANONYMOUS_DIVISOR,
        }
    }
}

impl Reservation {
    /// Returns the number of bytes that this reservation holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves more bytes if there is room now.
    ///
    /// # Errors
    ///
    /// Fails with [`MemoryExhausted`] when the share or the budget is used up; the reservation is unchanged then.
    pub fn try_grow(&mut self, bytes: usize) -> Result<(), MemoryExhausted> {
        if bytes == 0 {
            return Ok(());
        }
        let budget = &self.budget;
        let mut state = budget.state();
        let account = state.accounts.get(&self.holder);
        let (used, has_oversized) = account.map_or((0, false), |it| (it.used, it.has_oversized));
        let within_share = used + bytes <= budget.share(self.holder);
        // A reservation larger than the share is allowed as well, one at a time, if it leaves the other
        // tenants a part of the budget.
        let may_be_oversized =
            self.is_oversized || !has_oversized && matches!(self.holder, MemoryHolder::Tenant(_));
        let kept_free = match within_share {
            true if used + bytes <= budget.total / SMALL_DIVISOR => 0,
            true => budget.total / HEADROOM_DIVISOR,
            false if may_be_oversized => budget.total / SHARE_DIVISOR,
            false => return Err(self.holder.into()),
        };
        if state.used + bytes + kept_free > budget.total {
            return Err(self.holder.into());
        }
        state.used += bytes;
        let account = state.accounts.entry(self.holder).or_default();
        account.used += bytes;
        if !within_share {
            account.has_oversized = true;
            self.is_oversized = true;
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Reserves more bytes, and waits up to `timeout` for room.
    ///
    /// # Errors
    ///
    /// Fails with [`MemoryExhausted`] when there is no room in time, or when too many reservations of the holder wait
    /// already.
    pub async fn grow(&mut self, bytes: usize, timeout: Duration) -> Result<(), MemoryExhausted> {
        if self.try_grow(bytes).is_ok() {
            return Ok(());
        }
        let deadline = Instant::now() + timeout;
        let budget = Arc::clone(&self.budget);
        let _waiting = WaitingReservation::begin(&budget, self.holder)?;
        loop {
            let mut freed = std::pin::pin!(budget.freed.notified());
            // From here on, no release is missed.
            freed.as_mut().enable();
            if self.try_grow(bytes).is_ok() {
                return Ok(());
            }
            tokio::time::timeout_at(deadline, freed).await.map_err(|_| MemoryExhausted::from(self.holder))?;
        }
    }

    /// Releases some of the bytes.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        if bytes == 0 {
            return;
        }
        self.bytes -= bytes;
        let mut state = self.budget.state();
        state.used -= bytes;
        let share = self.budget.share(self.holder);
        if let Some(account) = state.accounts.get_mut(&self.holder) {
            account.used -= bytes;
            if self.is_oversized && (self.bytes == 0 || account.used <= share) {
                account.has_oversized = false;
                self.is_oversized = false;
            }
            if account.used == 0 && account.waiting == 0 {
                state.accounts.remove(&self.holder);
            }
        }
        if state.waiting > 0 {
            self.budget.freed.notify_waiters();
        }
    }

    /// Releases all but `bytes` bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.shrink(self.bytes.saturating_sub(bytes));
    }
}

impl MemoryAccount for Reservation {
    async fn reserve(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        self.grow(bytes, MEMORY_WAIT).await.map_err(|_| OutOfMemory)
    }

    fn release(&mut self, bytes: usize) {
        self.shrink(bytes);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

/// A waiting reservation; it is counted until it is dropped.
struct WaitingReservation<'a> {
    budget: &'a MemoryBudget,
    holder: MemoryHolder,
}

impl<'a> WaitingReservation<'a> {
    fn begin(budget: &'a MemoryBudget, holder: MemoryHolder) -> Result<Self, MemoryExhausted> {
        let mut state = budget.state();
        let account = state.accounts.entry(holder).or_default();
        if account.waiting >= MAX_WAITING_RESERVATIONS {
            return Err(holder.into());
        }
        account.waiting += 1;
        state.waiting += 1;
        Ok(Self { budget, holder })
    }
}

impl Drop for WaitingReservation<'_> {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.waiting -= 1;
        if let Some(account) = state.accounts.get_mut(&self.holder) {
            account.waiting -= 1;
            if account.used == 0 && account.waiting == 0 {
                state.accounts.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: MemoryHolder = MemoryHolder::Tenant(Uuid::from_u128(1));
    const OTHER: MemoryHolder = MemoryHolder::Tenant(Uuid::from_u128(2));

    fn reserved(budget: &Arc<MemoryBudget>, holder: MemoryHolder, bytes: usize) -> Option<Reservation> {
        let mut reservation = budget.reservation(holder);
        reservation.try_grow(bytes).ok().map(|()| reservation)
    }

    #[test]
    fn tenant_beyond_its_share_leaves_memory_to_others() {
        let budget = MemoryBudget::new(4_800);
        let reservations: Vec<_> = (0..12).map(|_| reserved(&budget, ONE, 100).unwrap()).collect();
        // One reservation may exceed the share, as long as it leaves a share to the others.
        let may_be_oversized = reserved(&budget, ONE, 2_400).unwrap();
        assert!(reserved(&budget, ONE, 1).is_none());
        let other = reserved(&budget, OTHER, 100).unwrap();
        drop((reservations, may_be_oversized));
        assert_eq!(budget.used(), 100);
        drop(other);
        assert!(budget.used() == 0 && budget.state().accounts.is_empty());
    }

    #[test]
    fn anonymous_callers_have_a_small_share() {
        let budget = MemoryBudget::new(3_200);
        let reservations = reserved(&budget, MemoryHolder::Anonymous, 100).unwrap();
        let error = budget.reservation(MemoryHolder::Anonymous).try_grow(1).unwrap_err();
        assert!(!error.to_string().contains("tenant"), "{error}");
        drop(reservations);
        assert!(reserved(&budget, MemoryHolder::Anonymous, 1).is_some());
    }

    #[tokio::test]
    async fn reservation_waits_for_released_memory_until_deadline() {
        let budget = MemoryBudget::new(400);
        let mut first = reserved(&budget, ONE, 300).unwrap();
        let mut second = budget.reservation(ONE);
        assert!(second.grow(50, Duration::from_millis(20)).await.is_err());
        let (waited, ()) = tokio::join!(second.grow(50, Duration::from_secs(20)), async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            first.shrink_to(10);
        });
        waited.unwrap();
        assert_eq!((budget.used(), second.bytes()), (60, 50));
    }
}
