//! Looking at what goes on elsewhere again and again, until the time is up.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// The first pause between two looks; each further one is half as long again.
const FIRST: Duration = Duration::from_millis(150);
/// The longest pause between two looks at one thing.
const LONGEST: Duration = Duration::from_secs(2);
/// The pause for each further thing that is looked at. Looks at many things stay below the
/// smallest plan's requests a minute, which the rest of the tenant wants some of as well.
const FURTHER: Duration = Duration::from_millis(400);
/// What the first look may take, however short the time is: what was never looked at has nothing
/// to show.
const GRANTED: Duration = Duration::from_secs(2);

/// How long there is time, and when the next look is due.
pub struct Patience {
    until: Instant,
    /// The end of the present look.
    end: Instant,
    pause: Duration,
}

impl Patience {
    /// Patience until a moment.
    pub fn until(until: Instant) -> Self {
        Self { until, end: until.max(Instant::now() + GRANTED), pause: FIRST }
    }

    /// Looks; nothing comes back where the time was up first.
    pub async fn look<T>(&self, look: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.end, look).await.ok()
    }

    /// Rests before the next look at so many things, not beyond the end. Answers whether there is
    /// time for one.
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
