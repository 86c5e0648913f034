//! The records of Metrics: the metrics of the selected window and of the window before it, and the
//! cursors.

use api::{
    Timestamp,
    anomaly::Anomaly,
    client::calls::MetricQuery,
    feedback::{FeedbackLabel, FeedbackList},
    metrics::{Interval, Metric, MetricPoint, MetricValues, Metrics as Answer, Window},
    project::Project,
};

use crate::{
    anomalies::{detected_metric, end_of},
    net::NetError,
    shell::{Pending, RequestPurpose},
};
use present::chart::per_column;

/// A window of time that ends now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stretch {
    /// 60 minutes, by minute.
    Hour,
    /// 6 hours, by minute.
    SixHours,
    /// 24 hours, by hour.
    #[default]
    Day,
    /// 7 days, by hour.
    Week,
    /// 30 days, by day.
    Month,
}

impl Stretch {
    /// The windows, from the shortest to the longest.
    pub const ALL: [Self; 5] = [Self::Hour, Self::SixHours, Self::Day, Self::Week, Self::Month];

    /// Returns the label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::SixHours => "6h",
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Month => "30d",
        }
    }

    /// Returns the length in microseconds.
    pub const fn micros(self) -> i64 {
        match self {
            Self::Hour => Window::Hour.micros(),
            Self::SixHours => 6 * Window::Hour.micros(),
            Self::Day => Window::Day.micros(),
            Self::Week => Window::Week.micros(),
            Self::Month => Window::Month.micros(),
        }
    }

    /// Returns the length of a point of the series.
    pub const fn interval(self) -> Interval {
        match self {
            Self::Hour | Self::SixHours => Interval::Minute,
            Self::Day | Self::Week => Interval::Hour,
            Self::Month => Interval::Day,
        }
    }

    /// Returns the interval in microseconds at which the values are requested.
    pub const fn refresh(self) -> i64 {
        match self {
            Self::Hour | Self::SixHours => 10_000_000,
            Self::Day | Self::Week | Self::Month => 60_000_000,
        }
    }

    /// Returns the next longer or shorter window, if there is one.
    pub fn turned(self, longer: bool) -> Self {
        let at = Self::ALL.iter().position(|it| *it == self).unwrap_or(0);
        let to = if longer { at + 1 } else { at.saturating_sub(1) };
        Self::ALL.get(to).copied().unwrap_or(self)
    }

    /// Returns the filter of the request. The window ends at the server's present, which can differ from this
    /// machine's clock; only the window of six hours, which the API has no name for, begins by this clock.
    pub fn query(self, project: Option<&Project>, now: Timestamp) -> MetricQuery {
        let (window, from) = match self {
            Self::Hour => (Some(Window::Hour), None),
            Self::SixHours => (None, Some(Timestamp::from_micros(now.micros() - self.micros()))),
            Self::Day => (Some(Window::Day), None),
            Self::Week => (Some(Window::Week), None),
            Self::Month => (Some(Window::Month), None),
        };
        MetricQuery {
            project_id: project.map(|project| project.id),
            window,
            from,
            interval: Some(self.interval()),
            ..MetricQuery::default()
        }
    }
}

/// Counts of the feedback within the window, by label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedbackCounts {
    /// The number of labels `good`.
    pub good: usize,
    /// The number of labels `neutral`.
    pub neutral: usize,
    /// The number of labels `bad`.
    pub bad: usize,
    /// Whether there is older feedback, which is not counted.
    pub more: bool,
}

impl FeedbackCounts {
    /// Counts a page of feedback.
    pub fn of(page: &FeedbackList) -> Self {
        let count = |label| page.feedback.iter().filter(|it| it.label == label).count();
        Self {
            good: count(FeedbackLabel::Good),
            neutral: count(FeedbackLabel::Neutral),
            bad: count(FeedbackLabel::Bad),
            more: page.has_more,
        }
    }

    /// Returns the number of all labels.
    pub const fn all(self) -> usize {
        self.good + self.neutral + self.bad
    }
}

/// The purpose of an open request of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsRequest {
    /// The metrics shown.
    Current,
    /// The metrics of the previous window.
    Previous,
    /// The metric of the project.
    RetryCap,
    /// The feedback within the time shown.
    Feedback,
    /// The anomalies.
    Anomalies,
}

impl RequestPurpose for MetricsRequest {
    fn is_shown(self) -> bool {
        self == Self::Current
    }
}

/// The state of the screen.
#[derive(Debug)]
pub struct Metrics {
    /// Open requests.
    pub pending: Pending<MetricsRequest>,
    /// The selected window.
    pub stretch: Stretch,
    /// The response for the selected window.
    pub shown: Option<Answer>,
    /// The time at which the response arrived.
    pub at: Option<Timestamp>,
    /// The metrics of the previous window.
    pub before: Option<MetricValues>,
    /// `retry_cap_hit` of the project over 7 days.
    pub retry_cap: Option<i64>,
    /// Feedback of the time shown.
    pub verdicts: Option<FeedbackCounts>,
    /// The newest anomalies of the project, or of all projects.
    pub anomalies: Vec<Anomaly>,
    /// The error of the last request for anomalies, if it failed.
    pub anomalies_error: Option<NetError>,
    /// The error of the last request, if it failed.
    pub error: Option<NetError>,
    /// The metric under the cursor, a position of [`Metric::ALL`].
    pub row: usize,
    /// The start of the point under the cursor; `None` for the newest point.
    pub cursor: Option<Timestamp>,
    /// Whether a table of numbers replaces the chart.
    pub numbers: bool,
    /// Whether the values refresh automatically.
    pub auto: bool,
    /// Time at which the values are refreshed next.
    pub next: Option<Timestamp>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            pending: Pending::default(),
            stretch: Stretch::default(),
            shown: None,
            at: None,
            before: None,
            retry_cap: None,
            verdicts: None,
            anomalies: Vec::new(),
            anomalies_error: None,
            error: None,
            row: 0,
            cursor: None,
            numbers: false,
            auto: true,
            next: None,
        }
    }
}

impl Metrics {
    /// Returns the metric under the cursor.
    pub fn metric(&self) -> Metric {
        Metric::ALL.get(self.row).copied().unwrap_or(Metric::ErrorRate)
    }

    /// Returns the series, oldest first.
    pub fn points(&self) -> &[MetricPoint] {
        self.shown.as_ref().and_then(|it| it.series.as_deref()).unwrap_or_default()
    }

    /// Discards the values, because others are requested.
    pub fn forget(&mut self) {
        *self = Self {
            stretch: self.stretch,
            row: self.row,
            numbers: self.numbers,
            auto: self.auto,
            pending: std::mem::take(&mut self.pending),
            ..Self::default()
        };
    }

    /// Returns the position of the point under the cursor.
    pub fn point(&self) -> usize {
        let points = self.points();
        let last = points.len().saturating_sub(1);
        let at = self.cursor.map(|cursor| points.partition_point(|point| point.start <= cursor));
        at.map_or(last, |after| after.saturating_sub(1))
    }

    /// Returns the points of the column under the cursor, when no more than `cols` columns are drawn.
    pub fn column(&self, cols: usize) -> std::ops::Range<usize> {
        let per = per_column(self.points().len(), cols);
        let first = self.point() / per * per;
        first..(first + per).min(self.points().len())
    }

    /// Moves the cursor forward or back by a column.
    pub fn step(&mut self, cols: usize, forward: bool) {
        let column = self.column(cols);
        let to = if forward { Some(column.end) } else { column.start.checked_sub(1) };
        let Some(to) = to else { return };
        // A cursor on the newest point follows the newest point.
        let newest = self.points().len().saturating_sub(1);
        self.cursor = self.points().get(to).filter(|_| to < newest).map(|point| point.start);
    }

    /// Puts the cursor on the oldest or the newest point.
    pub fn jump(&mut self, newest: bool) {
        self.cursor = if newest { None } else { self.points().first().map(|point| point.start) };
    }

    /// Returns, for each column, the most severe anomaly of the selected metric that overlaps it.
    pub fn marks(&self, cols: usize, now: Timestamp) -> Vec<Option<&Anomaly>> {
        let points = self.points();
        let per = per_column(points.len(), cols);
        let metric = detected_metric(self.metric());
        let anomalies: Vec<&Anomaly> =
            self.anomalies.iter().filter(|it| Some(it.metric.as_str()) == metric).collect();
        let columns = (0..points.len()).step_by(per).map(|first| first..(first + per).min(points.len()));
        let mark = |column| {
            let (from, to) = self.bounds(column)?;
            let overlaps = |it: &&&Anomaly| it.window_start <= to && end_of(it, now) > from;
            anomalies.iter().filter(overlaps).max_by_key(|it| it.severity).copied()
        };
        columns.map(mark).collect()
    }

    /// Returns the first and the last instant of some points, both inclusive.
    pub fn bounds(&self, points: std::ops::Range<usize>) -> Option<(Timestamp, Timestamp)> {
        let shown = self.shown.as_ref()?;
        let first = self.points().get(points.start)?.start.max(shown.from);
        let next = self.points().get(points.end).map(|point| point.start.micros() - 1);
        Some((first, next.map_or(shown.to, Timestamp::from_micros)))
    }
}
