//! One bucket in one minute, as seen by one process. Pure.

use super::{NO_LIMIT, WINDOW_SECONDS};

/// Whether a request is allowed, and the values of the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// Requests per window.
    pub limit: u64,
    /// Requests left in the window.
    pub remaining: u64,
    /// End of the window, in seconds since the epoch.
    pub resets_at: i64,
}

impl Verdict {
    /// Allows a request without a limit.
    pub fn unlimited(starts_at: i64) -> Self {
        Self { allowed: true, limit: NO_LIMIT, remaining: NO_LIMIT, resets_at: starts_at + WINDOW_SECONDS }
    }
}

/// The state of a bucket in a process.
#[derive(Debug, Default)]
pub(super) struct Window {
    starts_at: i64,
    /// Requests leased from the database so far.
    leased: u64,
    /// Leased requests that were used.
    used: u64,
    /// Requests leased by all processes, at the time of the last lease.
    taken: u64,
    /// Size of the next lease.
    slice: u64,
    /// The limit that is used up; a changed plan may allow more.
    exhausted: Option<u64>,
}

impl Window {
    /// Resets the window for another minute: later, or earlier after a clock was set back.
    pub(super) fn turn_to(&mut self, starts_at: i64) {
        if self.starts_at != starts_at {
            *self = Self { starts_at, ..Self::default() };
        }
    }

    /// Returns the number of requests to lease before the next request can be decided; `None` if no
    /// lease is needed.
    pub(super) fn wants(&mut self, limit: u64) -> Option<u64> {
        if self.used < self.leased.min(limit) || self.exhausted == Some(limit) {
            return None;
        }
        // Doubled each time, so that a busy process leases rarely and an idle one holds few requests.
        self.slice = (self.slice * 2).clamp(1, limit.max(1));
        Some(self.slice)
    }

    /// Records what the database granted of this limit, and the total of all processes.
    pub(super) fn grant(&mut self, granted: u64, taken: u64, limit: u64) {
        self.leased += granted;
        self.taken = taken;
        self.exhausted = (granted == 0).then_some(limit);
    }

    /// Returns the requests leased from the database so far.
    pub(super) fn leased(&self) -> u64 {
        self.leased
    }

    /// Uses one request, if one is left.
    pub(super) fn take(&mut self, limit: u64) -> Verdict {
        // Requests leased under a larger limit do not count under a smaller one.
        let allowed = self.used < self.leased.min(limit);
        self.used += u64::from(allowed);
        let remaining = if allowed {
            let left = limit.saturating_sub(self.taken).saturating_add(self.leased - self.used);
            left.min(limit - self.used)
        } else {
            0
        };
        Verdict { allowed, limit, remaining, resets_at: self.starts_at + WINDOW_SECONDS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates the database: grants at most an eighth of the remainder, at least one, never beyond
    /// the limit.
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
    fn busy_processes_serve_the_limit_exactly() {
        for processes in 1..=4 {
            for limit in [0, 1, 2, 7, 300, 3_600] {
                let mut windows: Vec<Window> = (0..processes).map(|_| Window::default()).collect();
                let mut taken = 0;
                let mut served = 0;
                for round in 0..limit * 3 + 10 {
                    // Unevenly: the first process has the most requests.
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
    fn busy_process_leases_rarely_and_idle_process_holds_little() {
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
    fn changed_limit_takes_effect_immediately() {
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
    fn window_resets_when_minute_changes_in_either_direction() {
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
