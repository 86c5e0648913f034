//! State of `traces tail`: the traces that were printed, and the time from which to continue.

use std::collections::{HashSet, VecDeque};

use api::Timestamp;
use serde_json::Value;

use crate::output::cell;

/// Maximum number of ids that are kept.
const RING: usize = 10_000;
/// Overlap with the newest trace seen, in microseconds, for traces that arrive late.
const OVERLAP_MICROS: i64 = 60_000_000;

/// The traces seen so far.
pub struct Seen {
    order: VecDeque<String>,
    ids: HashSet<String>,
    newest: Option<Timestamp>,
    start: Timestamp,
}

impl Seen {
    /// Creates an empty state; traces that started before `start` are ignored.
    pub fn from(start: Timestamp) -> Self {
        Self { order: VecDeque::new(), ids: HashSet::new(), newest: None, start }
    }

    /// Records a trace, and returns whether it is new.
    pub fn note(&mut self, trace: &Value) -> bool {
        let Some(id) = trace.get("id").and_then(Value::as_str) else {
            return false;
        };
        if let Some(time) = cell::timestamp(trace, "started_at") {
            self.newest = self.newest.max(Some(time));
        }
        if !self.ids.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > RING
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }

    /// Returns whether a trace was recorded before.
    pub fn knows(&self, trace: &Value) -> bool {
        trace.get("id").and_then(Value::as_str).is_some_and(|id| self.ids.contains(id))
    }

    /// Returns the start of the newest trace seen.
    pub fn newest(&self) -> Option<Timestamp> {
        self.newest
    }

    /// Returns the time from which the next read has to begin so that no trace is missed.
    pub fn resume(&self) -> Timestamp {
        match self.newest {
            Some(newest) => {
                Timestamp::from_micros(newest.micros().saturating_sub(OVERLAP_MICROS)).max(self.earliest())
            }
            None => self.earliest(),
        }
    }

    fn earliest(&self) -> Timestamp {
        Timestamp::from_micros(self.start.micros().saturating_sub(OVERLAP_MICROS))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repeats_are_dropped_and_old_ids_forgotten() {
        let mut seen = Seen::from(Timestamp::default());
        let trace = |n: usize| json!({ "id": n.to_string(), "started_at": "2026-11-21T14:00:00Z" });
        assert!(seen.note(&trace(0)));
        assert!(!seen.note(&trace(0)));
        for n in 1..=RING {
            seen.note(&trace(n));
        }
        assert!(!seen.knows(&trace(0)) && seen.knows(&trace(RING)));
        assert!(!seen.note(&json!({})));
    }

    #[test]
    fn reading_resumes_a_minute_before_the_newest() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let mut seen = Seen::from(at("2026-11-21T14:00:00Z"));
        assert_eq!(seen.resume(), at("2026-11-21T13:59:00Z"));
        seen.note(&json!({ "id": "a", "started_at": "2026-11-21T14:10:00Z" }));
        seen.note(&json!({ "id": "b", "started_at": "2026-11-21T14:05:00Z" }));
        assert_eq!(seen.resume(), at("2026-11-21T14:09:00Z"));
    }
}
