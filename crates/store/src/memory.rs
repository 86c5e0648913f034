//! Memory accounting for readers of large texts.

use std::future::Future;

/// The error when an account has no memory left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no memory left to read large texts")]
pub struct OutOfMemory;

/// Memory that a caller grants to a read.
pub trait MemoryAccount: Send {
    /// Reserves bytes, and may wait until there is room for them.
    ///
    /// # Errors
    /// Fails with [`OutOfMemory`] when there is no room in time; the account is unchanged then.
    fn reserve(&mut self, bytes: usize) -> impl Future<Output = Result<(), OutOfMemory>> + Send;

    /// Releases bytes that were reserved.
    fn release(&mut self, bytes: usize);
}

/// An account without a limit, for work that is bounded in other ways.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncounted;

impl MemoryAccount for Uncounted {
    async fn reserve(&mut self, _: usize) -> Result<(), OutOfMemory> {
        Ok(())
    }

    fn release(&mut self, _: usize) {}
}
