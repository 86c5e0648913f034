//! Time, injected so that tests can steer it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A source of the current time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the microseconds since the epoch.
    fn now(&self) -> i64;
}

/// The system clock.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the machine for the time")]
    fn now(&self) -> i64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |it| i64::try_from(it.as_micros()).unwrap_or(i64::MAX))
    }
}

/// Returns the processor time of this thread. It bounds work and is never stored.
#[cfg(unix)]
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Returns the time since the first call, on systems without processor time per thread.
#[cfg(not(unix))]
pub fn processor_time() -> Duration {
    static FIRST_CALL: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    FIRST_CALL.get_or_init(std::time::Instant::now).elapsed()
}

/// A clock for tests, which stands still until it is moved.
#[cfg(feature = "fakes")]
#[derive(Debug)]
pub struct FakeClock(std::sync::atomic::AtomicI64);

#[cfg(feature = "fakes")]
impl FakeClock {
    /// Creates a clock at `micros` since the epoch.
    pub fn at(micros: i64) -> Self {
        Self(std::sync::atomic::AtomicI64::new(micros))
    }

    /// Moves the clock forward by `micros`.
    pub fn advance(&self, micros: i64) {
        self.0.fetch_add(micros, std::sync::atomic::Ordering::SeqCst);
    }
}

#[cfg(feature = "fakes")]
impl Clock for FakeClock {
    fn now(&self) -> i64 {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}
