//! Spans as bars on one common scale of time.

use api::{Timestamp, trace::Span};
use present::waterfall::{Interval, TimeScale};

/// The time that the bars share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(TimeScale);

impl Scale {
    /// Returns the scale from the first start to the last end of any span; none without spans.
    pub fn of(spans: &[Span]) -> Option<Self> {
        TimeScale::of(spans.iter().map(interval)).map(Self)
    }

    /// Returns the first cell and the number of cells of a span's bar on `cells` cells.
    pub fn bar(&self, span: &Span, cells: usize) -> (usize, usize) {
        self.0.bar(interval(span), cells)
    }

    /// Returns the labels above the bars.
    pub fn ruler(&self, cells: usize) -> String {
        self.0.ruler(cells)
    }
}

/// Returns when a span began and ended. A span without an end ended after its latency, or when it began.
fn interval(span: &Span) -> Interval {
    let by_latency = || {
        let micros = span.latency_ms.unwrap_or(0).saturating_mul(1_000);
        Timestamp::from_micros(span.start_time.micros().saturating_add(micros))
    };
    let end = span.end_time.unwrap_or_else(by_latency).max(span.start_time);
    (span.start_time.micros(), end.micros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::span;

    #[test]
    fn span_without_an_end_ends_after_its_latency() {
        let mut span = span(5, None);
        let start = span.start_time.micros();
        (span.end_time, span.latency_ms) = (None, Some(20));
        assert_eq!(interval(&span), (start, start + 20_000));
        span.latency_ms = None;
        assert_eq!(interval(&span), (start, start));
        span.end_time = Some(Timestamp::MIN);
        assert_eq!(interval(&span), (start, start), "an end before the start");
    }
}
