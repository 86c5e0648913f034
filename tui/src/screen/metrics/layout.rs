//! The layout of Metrics.

use ratatui::layout::Rect;

use crate::layout::{ALL_SECTIONS_ROWS, frame};

/// Height in rows of the table of metrics: the heads, the metrics of traces, and the metric of the project.
const METRIC_ROWS: u16 = 9;
/// Width in columns of a chart's labels with its axis.
pub const AXIS_COLS: u16 = 10;
/// Maximum rows of a chart; a taller one shows no more detail.
const MAX_CHART_ROWS: u16 = 20;

/// The parts of Metrics. Parts without room have no height.
#[derive(Clone, Copy, Debug)]
pub struct MetricsLayout {
    /// The table, or the numbers.
    pub table: Rect,
    /// The chart with the rule above it.
    pub chart: Rect,
    /// The feedback with the rule above it.
    pub feedback: Option<Rect>,
}

/// Returns the parts of Metrics for a terminal of this size. The table of numbers takes the whole
/// body.
pub fn parts(size: (u16, u16), numbers: bool) -> MetricsLayout {
    let body = frame(size).body;
    let none = Rect { y: body.bottom(), height: 0, ..body };
    if numbers || body.height < METRIC_ROWS + 5 {
        return MetricsLayout { table: body, chart: none, feedback: None };
    }
    let roomy = body.height >= ALL_SECTIONS_ROWS && size.0 >= 76;
    let chart = (body.height - METRIC_ROWS - if roomy { 4 } else { 0 }).min(MAX_CHART_ROWS);
    let at = |y: u16, height: u16| Rect { y: body.y + y, height, ..body };
    MetricsLayout {
        table: at(0, METRIC_ROWS),
        chart: at(METRIC_ROWS, chart),
        feedback: roomy.then(|| at(METRIC_ROWS + chart, 4)),
    }
}

/// Returns the number of columns that a chart has for values.
pub fn plot_cols(size: (u16, u16)) -> usize {
    usize::from(size.0.saturating_sub(AXIS_COLS + 1)).max(1)
}
