//! Spans as bars on one common scale of time.

use api::{Timestamp, trace::Span};

use crate::format::latency;

/// The time that the bars share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Microseconds since the epoch, where the left edge is.
    start: i64,
    /// Microseconds from edge to edge, at least 1.
    length: i64,
}

impl Scale {
    /// From the first start to the last end of any span.
    pub fn of(spans: &[Span]) -> Option<Self> {
        let start = spans.iter().map(|span| span.start_time.micros()).min()?;
        let end = spans.iter().map(|span| end(span).micros()).max()?;
        Some(Self { start, length: (end - start).max(1) })
    }

    /// First cell and number of cells of a span's bar on `cells` cells. A bar has at least
    /// one cell and never leaves the scale, however odd the span's times are.
    pub fn bar(&self, span: &Span, cells: usize) -> (usize, usize) {
        if cells == 0 {
            return (0, 0);
        }
        let place = |time: i64| {
            let share = (time - self.start) as f64 / self.length as f64;
            (share.clamp(0.0, 1.0) * cells as f64) as usize
        };
        let first = place(span.start_time.micros()).min(cells - 1);
        let last = place(end(span).micros()).clamp(first + 1, cells);
        (first, last - first)
    }

    /// The words above the bars: the left edge, the middle where there is room, the right edge.
    pub fn ruler(&self, cells: usize) -> String {
        let at = |micros: i64| match micros {
            0 => "0s".to_owned(),
            _ if self.length < 1_000 => format!("{micros}us"),
            _ => latency(micros / 1_000),
        };
        let (left, middle, right) = (at(0), at(self.length / 2), at(self.length));
        if cells < left.len() + right.len() + 1 {
            return String::new();
        }
        let mut ruler = left;
        let centre = (cells / 2).saturating_sub(middle.len() / 2);
        if centre > ruler.len() && centre + middle.len() + right.len() < cells {
            ruler = format!("{ruler:<centre$}{middle}");
        }
        let room = cells - right.len();
        format!("{ruler:<room$}{right}")
    }
}

/// When a span ended: as it says, else by its latency, else at its start.
fn end(span: &Span) -> Timestamp {
    let by_latency = || {
        let micros = span.latency_ms.unwrap_or(0).saturating_mul(1_000);
        Timestamp::from_micros(span.start_time.micros().saturating_add(micros))
    };
    span.end_time.unwrap_or_else(by_latency).max(span.start_time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{BASE, span};

    #[test]
    fn bars_share_one_scale_and_have_at_least_a_cell() {
        let mut root = span(0, None);
        root.end_time = Some(Timestamp::from_micros(BASE + 10_000_000));
        let mut short = span(99, Some(0));
        short.end_time = Some(Timestamp::from_micros(short.start_time.micros() + 1));
        let spans = [root, short, span(50, Some(0))];
        let scale = Scale::of(&spans).unwrap_or(Scale { start: 0, length: 1 });
        assert_eq!(scale.bar(&spans[0], 40), (0, 40));
        assert_eq!(scale.bar(&spans[1], 40), (39, 1));
        assert_eq!(scale.bar(&spans[2], 40), (20, 1));
        assert_eq!(scale.bar(&spans[2], 0), (0, 0));
    }

    #[test]
    fn odd_times_stay_on_the_scale() {
        let mut backwards = span(5, None);
        backwards.end_time = Some(Timestamp::MIN);
        let mut endless = span(6, None);
        endless.end_time = Some(Timestamp::MAX);
        let spans = [backwards, endless];
        let scale = Scale::of(&spans).unwrap_or(Scale { start: 0, length: 1 });
        for span in &spans {
            let (first, cells) = scale.bar(span, 20);
            assert!(cells >= 1 && first + cells <= 20);
        }
    }

    #[test]
    fn ruler_is_as_wide_as_the_bars() {
        let scale = Scale { start: 0, length: 30_000_000 };
        assert_eq!(scale.ruler(40).len(), 40);
        assert!(scale.ruler(40).starts_with("0s") && scale.ruler(40).ends_with("30.0s"));
        assert_eq!(scale.ruler(3), "");
    }
}
