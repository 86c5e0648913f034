//! Polls the server with growing delays until a deadline.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// The first delay between two polls; each further delay is 1.5 times as long.
const FIRST_POLL_DELAY: Duration = Duration::from_millis(150);
/// The longest delay between two polls of one resource.
const MAX_POLL_DELAY: Duration = Duration::from_secs(2);
/// Additional delay for each further resource that is polled. Polling many resources must stay below the
/// smallest plan's rate limit, which the tenant's other clients share.
const DELAY_PER_FURTHER_RESOURCE: Duration = Duration::from_millis(400);
/// Minimum time for the first poll, even if the deadline is earlier: without a response there is nothing
/// to show.
const MIN_FIRST_POLL_TIME: Duration = Duration::from_secs(2);

/// A deadline and the delay before the next poll.
pub struct Poller {
    until: Instant,
    /// The deadline of the current poll.
    end: Instant,
    pause: Duration,
}

impl Poller {
    /// Creates a poller with a deadline.
    pub fn until(until: Instant) -> Self {
        Self { until, end: until.max(Instant::now() + MIN_FIRST_POLL_TIME), pause: FIRST_POLL_DELAY }
    }

    /// Runs one poll; returns `None` if the deadline passes first.
    pub async fn poll<T>(&self, poll: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.end, poll).await.ok()
    }

    /// Sleeps before the next poll of this many resources, at most until the deadline. Returns whether
    /// there is time for another poll.
    pub async fn pause_before_next_poll(&mut self, resources: usize) -> bool {
        self.end = self.until;
        let left = self.until.saturating_duration_since(Instant::now());
        sleep(pause(self.pause, resources).min(left)).await;
        self.pause = self.pause.mul_f64(1.5).min(MAX_POLL_DELAY);
        Instant::now() < self.until
    }
}

fn pause(one: Duration, resources: usize) -> Duration {
    one.max(
        DELAY_PER_FURTHER_RESOURCE
            .saturating_mul(u32::try_from(resources.saturating_sub(1)).unwrap_or(u32::MAX)),
    )
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[test]
    fn poll_delay_grows_with_the_number_of_resources() {
        for (resources, millis) in [(0, 150), (1, 150), (2, 400), (11, 4_000)] {
            assert_eq!(pause(FIRST_POLL_DELAY, resources), Duration::from_millis(millis), "{resources}");
        }
    }

    #[tokio::test]
    async fn first_poll_outlasts_the_deadline_and_others_do_not() {
        let mut poller = Poller::until(Instant::now());
        let poll = async {
            tokio::task::yield_now().await;
            ready(7).await
        };
        assert_eq!(poller.poll(poll).await, Some(7));
        assert!(!poller.pause_before_next_poll(1).await);
        assert_eq!(poller.poll(pending::<()>()).await, None);

        let mut poller = Poller::until(Instant::now() + MAX_POLL_DELAY * 30);
        assert!(poller.pause_before_next_poll(1).await);
    }
}
