//! Polls the server with growing delays until a deadline.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// The first delay between two polls; each further delay is 1.5 times as long.
const FIRST: Duration = Duration::from_millis(150);
/// The longest delay between two polls of one resource.
const LONGEST: Duration = Duration::from_secs(2);
/// Additional delay for each further resource that is polled. Polling many resources must stay below the
/// smallest plan's rate limit, which the tenant's other clients share.
const FURTHER: Duration = Duration::from_millis(400);
/// Minimum time for the first poll, even if the deadline is earlier: without a response there is nothing
/// to show.
const GRANTED: Duration = Duration::from_secs(2);

/// A deadline and the delay before the next poll.
pub struct Patience {
    until: Instant,
    /// The deadline of the current poll.
    end: Instant,
    pause: Duration,
}

impl Patience {
    /// Creates a poller with a deadline.
    pub fn until(until: Instant) -> Self {
        Self { until, end: until.max(Instant::now() + GRANTED), pause: FIRST }
    }

    /// Runs one poll; returns `None` if the deadline passes first.
    pub async fn look<T>(&self, look: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.end, look).await.ok()
    }

    /// Sleeps before the next poll of this many resources, at most until the deadline. Returns whether
    /// there is time for another poll.
    pub async fn rest(&mut self, things: usize) -> bool {
        self.end = self.until;
        let left = self.until.saturating_duration_since(Instant::now());
        sleep(pause(self.pause, things).min(left)).await;
        self.pause = self.pause.mul_f64(1.5).min(LONGEST);
        Instant::now() < self.until
    }
}

fn pause(one: Duration, things: usize) -> Duration {
    one.max(FURTHER.saturating_mul(u32::try_from(things.saturating_sub(1)).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[test]
    fn many_are_looked_at_less_often() {
        for (things, millis) in [(0, 150), (1, 150), (2, 400), (11, 4_000)] {
            assert_eq!(pause(FIRST, things), Duration::from_millis(millis), "{things}");
        }
    }

    #[tokio::test]
    async fn the_first_look_is_granted_and_the_others_end_with_the_time() {
        let mut patience = Patience::until(Instant::now());
        let look = async {
            tokio::task::yield_now().await;
            ready(7).await
        };
        assert_eq!(patience.look(look).await, Some(7));
        assert!(!patience.rest(1).await);
        assert_eq!(patience.look(pending::<()>()).await, None);

        let mut patience = Patience::until(Instant::now() + LONGEST * 30);
        assert!(patience.rest(1).await);
    }
}
