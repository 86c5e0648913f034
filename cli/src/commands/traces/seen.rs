//! State of `traces tail`: the traces that were printed, and the time from which to continue.

use api::Timestamp;
use serde_json::Value;

use crate::{commands::seen_ids::SeenIds, output::cell};

/// Overlap with the newest trace seen, in microseconds, for traces that arrive late.
const LATE_ARRIVAL_MICROS: i64 = 60_000_000;

/// The traces seen so far.
pub struct SeenTraces {
    ids: SeenIds,
    newest: Option<Timestamp>,
    start: Timestamp,
}

impl SeenTraces {
    /// Creates an empty state; traces that started before `start` are ignored.
    pub fn from(start: Timestamp) -> Self {
        Self { ids: SeenIds::default(), newest: None, start }
    }

    /// Records a trace, and returns whether it is new.
    pub fn record(&mut self, trace: &Value) -> bool {
        let Some(id) = trace.get("id").and_then(Value::as_str) else {
            return false;
        };
        if let Some(time) = cell::timestamp(trace, "started_at") {
            self.newest = self.newest.max(Some(time));
        }
        self.ids.record(id)
    }

    /// Returns whether a trace was recorded before.
    pub fn contains(&self, trace: &Value) -> bool {
        trace.get("id").and_then(Value::as_str).is_some_and(|id| self.ids.contains(id))
    }

    /// Returns the start of the newest trace seen.
    pub fn newest(&self) -> Option<Timestamp> {
        self.newest
    }

    /// Returns the time from which the next read has to begin so that no trace is missed.
    pub fn resume(&self) -> Timestamp {
        match self.newest {
            Some(newest) => Timestamp::from_micros(newest.micros().saturating_sub(LATE_ARRIVAL_MICROS))
                .max(self.earliest()),
            None => self.earliest(),
        }
    }

    fn earliest(&self) -> Timestamp {
        Timestamp::from_micros(self.start.micros().saturating_sub(LATE_ARRIVAL_MICROS))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::seen_ids::MAX_SEEN_IDS;

    #[test]
    fn seen_traces_ignore_repeats_and_drop_old_ids() {
        let mut seen = SeenTraces::from(Timestamp::default());
        let trace = |n: usize| json!({ "id": n.to_string(), "started_at": "2026-11-21T14:00:00Z" });
        assert!(seen.record(&trace(0)));
        assert!(!seen.record(&trace(0)));
        for n in 1..=MAX_SEEN_IDS {
            seen.record(&trace(n));
        }
        assert!(!seen.contains(&trace(0)) && seen.contains(&trace(MAX_SEEN_IDS)));
        assert!(!seen.record(&json!({})));
    }

    #[test]
    fn reading_resumes_a_minute_before_the_newest_trace() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let mut seen = SeenTraces::from(at("2026-11-21T14:00:00Z"));
        assert_eq!(seen.resume(), at("2026-11-21T13:59:00Z"));
        seen.record(&json!({ "id": "a", "started_at": "2026-11-21T14:10:00Z" }));
        seen.record(&json!({ "id": "b", "started_at": "2026-11-21T14:05:00Z" }));
        assert_eq!(seen.resume(), at("2026-11-21T14:09:00Z"));
    }
}
