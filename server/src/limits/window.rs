//! One bucket in one minute, as seen by one process. Pure.

use super::{NO_LIMIT, WINDOW_SECONDS};

/// Whether a request is allowed, and the values of the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitDecision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// Requests per window.
    pub limit: u64,
    /// Requests left in the window.
    pub remaining: u64,
    /// End of the window, in seconds since the epoch.
    pub resets_at: i64,
}

impl RateLimitDecision {
    /// Allows a request without a limit.
    pub fn unlimited(starts_at: i64) -> Self {
        Self { allowed: true, limit: NO_LIMIT, remaining: NO_LIMIT, resets_at: starts_at + WINDOW_SECONDS }
    }
}

/// The state of a bucket in a process.
#[derive(Debug, Default)]
pub(super) struct RateLimitWindow {
    starts_at: i64,
    /// Requests leased from the database so far.
    leased: u64,
    /// Leased requests that were used.
    used: u64,
    /// Requests leased by all processes, at the time of the last lease.
    leased_by_all: u64,
    /// Size of the next lease.
    next_lease: u64,
    /// The limit that is used up; a changed plan may allow more.
    exhausted: Option<u64>,
}

impl RateLimitWindow {
    /// Resets the window for another minute: later, or earlier after a clock was set back.
    pub(super) fn advance_to(&mut self, starts_at: i64) {
        if self.starts_at != starts_at {
            *self = Self { starts_at, ..Self::default() };
        }
    }

    /// Returns the number of requests to lease before the next request can be decided; `None` if no
    /// lease is needed.
    pub(super) fn lease_needed(&mut self, limit: u64) -> Option<u64> {
        if self.used < self.leased.min(limit) || self.exhausted == Some(limit) {
            return None;
        }
        // Doubled each time, so that a busy process leases rarely and an idle one holds few requests.
        self.next_lease = (self.next_lease * 2).clamp(1, limit.max(1));
        Some(self.next_lease)
    }

    /// Records what the database granted of this limit, and the total of all processes.
    pub(super) fn record_lease(&mut self, granted: u64, leased_by_all: u64, limit: u64) {
        self.leased += granted;
        self.leased_by_all = leased_by_all;
        self.exhausted = (granted == 0).then_some(limit);
    }

    /// Returns the requests leased from the database so far.
    pub(super) fn leased(&self) -> u64 {
        self.leased
    }

    /// Uses one request, if one is left.
    pub(super) fn count(&mut self, limit: u64) -> RateLimitDecision {
        // Requests leased under a larger limit do not count under a smaller one.
        let allowed = self.used < self.leased.min(limit);
        self.used += u64::from(allowed);
        let remaining = if allowed {
            let left = limit.saturating_sub(self.leased_by_all).saturating_add(self.leased - self.used);
            left.min(limit - self.used)
        } else {
            0
        };
        RateLimitDecision { allowed, limit, remaining, resets_at: self.starts_at + WINDOW_SECONDS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates the database: grants at most an eighth of the remainder, at least one, never beyond
    /// the limit.
    fn database(leased_by_all: &mut u64, wanted: u64, limit: u64) -> (u64, u64) {
        let left = limit - *leased_by_all;
        let granted = wanted.min((left / 8).max(1)).min(left);
        *leased_by_all += granted;
        (granted, *leased_by_all)
    }

    fn serve(window: &mut RateLimitWindow, leased_by_all: &mut u64, limit: u64) -> bool {
        if let Some(wanted) = window.lease_needed(limit) {
            let (granted, now) = database(leased_by_all, wanted, limit);
            window.record_lease(granted, now, limit);
        }
        window.count(limit).allowed
    }

    #[test]
    fn busy_processes_serve_the_limit_exactly() {
        for processes in 1..=4 {
            for limit in [0, 1, 2, 7, 300, 3_600] {
                let mut windows: Vec<RateLimitWindow> =
                    (0..processes).map(|_| RateLimitWindow::default()).collect();
                let mut leased_by_all = 0;
                let mut served = 0;
                for round in 0..limit * 3 + 10 {
                    // Unevenly: the first process has the most requests.
                    let process =
                        if round % 3 == 0 { usize::try_from(round).unwrap() % processes } else { 0 };
                    windows.iter_mut().for_each(|it| it.advance_to(60));
                    served += u64::from(serve(&mut windows[process], &mut leased_by_all, limit));
                }
                for window in &mut windows {
                    while serve(window, &mut leased_by_all, limit) {
                        served += 1;
                    }
                }
                assert_eq!(served, limit, "{processes} processes, limit {limit}");
            }
        }
    }

    #[test]
    fn busy_process_leases_rarely_and_idle_process_holds_little() {
        let (mut window, mut leased_by_all, mut leases) = (RateLimitWindow::default(), 0, 0);
        for _ in 0..3_600 {
            leases += u64::from(window.used == window.leased);
            assert!(serve(&mut window, &mut leased_by_all, 3_600));
        }
        assert!(leases < 80, "{leases} slices");
        let (mut idle, mut leased_by_all) = (RateLimitWindow::default(), 0);
        serve(&mut idle, &mut leased_by_all, 3_600);
        assert_eq!(leased_by_all, 1);
    }

    #[test]
    fn changed_limit_takes_effect_immediately() {
        let mut window = RateLimitWindow::default();
        window.advance_to(60);
        window.record_lease(2, 2, 2);
        assert_eq!((window.count(2).remaining, window.count(2).remaining), (1, 0));
        window.record_lease(0, 2, 2);
        assert_eq!(window.lease_needed(2), None);
        assert!(window.lease_needed(10).is_some());
        window.record_lease(8, 10, 10);
        assert_eq!(window.count(10).remaining, 7);
        assert!(!window.count(3).allowed);
        assert!(window.count(10).allowed);
    }

    #[test]
    fn window_resets_when_minute_changes_in_either_direction() {
        let mut window = RateLimitWindow::default();
        window.advance_to(120);
        window.record_lease(1, 1, 1);
        assert!(window.count(1).allowed);
        assert_eq!(
            window.count(1),
            RateLimitDecision { allowed: false, limit: 1, remaining: 0, resets_at: 180 }
        );
        window.advance_to(60);
        assert_eq!(window.lease_needed(1), Some(1));
        window.advance_to(180);
        assert_eq!(window.lease_needed(1), Some(1));
    }
}
