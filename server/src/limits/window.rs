//! One bucket in one minute, as one process sees it. Pure.

use super::{NO_LIMIT, WINDOW};

/// What becomes of a request, and what the headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// It is served.
    pub allowed: bool,
    /// Requests a window.
    pub limit: u64,
    /// Requests left in it.
    pub remaining: u64,
    /// When it ends, in seconds since the epoch.
    pub resets_at: i64,
}

impl Verdict {
    /// Served, without a limit.
    pub fn unlimited(starts_at: i64) -> Self {
        Self { allowed: true, limit: NO_LIMIT, remaining: NO_LIMIT, resets_at: starts_at + WINDOW }
    }
}

/// What a process holds of a bucket.
#[derive(Debug, Default)]
pub(super) struct Window {
    starts_at: i64,
    /// Requests taken from the database so far.
    leased: u64,
    /// Requests served of those.
    used: u64,
    /// Requests that all processes took, as of the last slice.
    taken: u64,
    /// Size of the next slice.
    slice: u64,
    /// The limit of which nothing is left to take; with another plan there may be.
    exhausted: Option<u64>,
}

impl Window {
    /// Begins anew when the minute is another one: later, or earlier where a clock was set back.
    pub(super) fn turn_to(&mut self, starts_at: i64) {
        if self.starts_at != starts_at {
            *self = Self { starts_at, ..Self::default() };
        }
    }

    /// How many requests to fetch before the next one can be judged; none if that can be done now.
    pub(super) fn wants(&mut self, limit: u64) -> Option<u64> {
        if self.used < self.leased.min(limit) || self.exhausted == Some(limit) {
            return None;
        }
        // Doubled each time: a process that serves much asks rarely, one that serves little
        // keeps little from the others.
        self.slice = (self.slice * 2).clamp(1, limit.max(1));
        Some(self.slice)
    }

    /// Takes in what the database granted of this limit, and how much is taken by all now.
    pub(super) fn grant(&mut self, granted: u64, taken: u64, limit: u64) {
        self.leased += granted;
        self.taken = taken;
        self.exhausted = (granted == 0).then_some(limit);
    }

    /// Requests taken from the database so far.
    pub(super) fn leased(&self) -> u64 {
        self.leased
    }

    /// Serves one request, if one is left.
    pub(super) fn take(&mut self, limit: u64) -> Verdict {
        // What was leased under a larger limit is not served under a smaller one.
        let allowed = self.used < self.leased.min(limit);
        self.used += u64::from(allowed);
        let remaining = if allowed {
            let left = limit.saturating_sub(self.taken).saturating_add(self.leased - self.used);
            left.min(limit - self.used)
        } else {
            0
        };
        Verdict { allowed, limit, remaining, resets_at: self.starts_at + WINDOW }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the database does: an eighth of what is left at most, at least one, never too much.
    fn database(taken: &mut u64, wanted: u64, limit: u64) -> (u64, u64) {
        let left = limit - *taken;
        let granted = wanted.min((left / 8).max(1)).min(left);
        *taken += granted;
        (granted, *taken)
    }

    fn serve(window: &mut Window, taken: &mut u64, limit: u64) -> bool {
        if let Some(wanted) = window.wants(limit) {
            let (granted, now) = database(taken, wanted, limit);
            window.grant(granted, now, limit);
        }
        window.take(limit).allowed
    }

    #[test]
    fn processes_that_all_ask_serve_the_limit_exactly() {
        for processes in 1..=4 {
            for limit in [0, 1, 2, 7, 300, 3_600] {
                let mut windows: Vec<Window> = (0..processes).map(|_| Window::default()).collect();
                let mut taken = 0;
                let mut served = 0;
                for round in 0..limit * 3 + 10 {
                    // Unevenly: the first process asks most.
                    let which = if round % 3 == 0 { usize::try_from(round).unwrap() % processes } else { 0 };
                    windows.iter_mut().for_each(|it| it.turn_to(60));
                    served += u64::from(serve(&mut windows[which], &mut taken, limit));
                }
                for window in &mut windows {
                    while serve(window, &mut taken, limit) {
                        served += 1;
                    }
                }
                assert_eq!(served, limit, "{processes} processes, limit {limit}");
            }
        }
    }

    #[test]
    fn a_busy_process_asks_rarely_and_an_idle_one_holds_little() {
        let (mut window, mut taken, mut asked) = (Window::default(), 0, 0);
        for _ in 0..3_600 {
            asked += u64::from(window.used == window.leased);
            assert!(serve(&mut window, &mut taken, 3_600));
        }
        assert!(asked < 80, "{asked} slices");
        let (mut idle, mut taken) = (Window::default(), 0);
        serve(&mut idle, &mut taken, 3_600);
        assert_eq!(taken, 1);
    }

    #[test]
    fn another_limit_counts_at_once() {
        let mut window = Window::default();
        window.turn_to(60);
        window.grant(2, 2, 2);
        assert_eq!((window.take(2).remaining, window.take(2).remaining), (1, 0));
        window.grant(0, 2, 2);
        assert_eq!(window.wants(2), None);
        assert!(window.wants(10).is_some());
        window.grant(8, 10, 10);
        assert_eq!(window.take(10).remaining, 7);
        assert!(!window.take(3).allowed);
        assert!(window.take(10).allowed);
    }

    #[test]
    fn another_minute_begins_anew_in_either_direction() {
        let mut window = Window::default();
        window.turn_to(120);
        window.grant(1, 1, 1);
        assert!(window.take(1).allowed);
        assert_eq!(window.take(1), Verdict { allowed: false, limit: 1, remaining: 0, resets_at: 180 });
        window.turn_to(60);
        assert_eq!(window.wants(1), Some(1));
        window.turn_to(180);
        assert_eq!(window.wants(1), Some(1));
    }
}
