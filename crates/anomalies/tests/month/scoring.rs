//! Compares what the detector reported with the incidents of a month.

use anomalies::{AnomalyChange, Detector, Direction, MetricKind};

use crate::simulation::{HISTORY_DAYS, Month, to_minutes};

/// Minutes after the end of an incident in which a report still belongs to it. For example, the detector
/// reports the return from a level that had become normal.
const GRACE_MINUTES: f64 = 120.0;

/// An anomaly that the detector opened within the month.
#[derive(Clone, Debug)]
// The example prints the fields that the test does not read.
#[allow(dead_code)]
pub struct Report {
    pub project: usize,
    pub kind: MetricKind,
    pub direction: Direction,
    /// Minute at which it was opened.
    pub minute: f64,
    pub score: f64,
    /// Index of the incident.
    pub incident: Option<usize>,
}

/// The result of a month.
#[derive(Debug, Default)]
pub struct MonthScore {
    pub reports: Vec<Report>,
    /// Minutes from the start of each incident to its first report.
    pub delays: Vec<Option<f64>>,
}

impl MonthScore {
    /// Runs the detector over all series of a month.
    pub fn of(month: &Month) -> Self {
        let mut reports = Vec::new();
        for series in &month.series {
            let mut detector = Detector::new(series.kind, series.interval);
            for point in &series.points {
                let Some(point) = point else {
                    if let Some(next) = detector.next_start() {
                        detector.skip_until(next + series.interval);
                    }
                    continue;
                };
                for change in detector.observe(*point) {
                    let minute = to_minutes(point.start + series.interval);
                    if let AnomalyChange::Opened(anomaly) = change
                        && minute >= HISTORY_DAYS * 1440.0
                    {
                        let grace = GRACE_MINUTES.max(3.0 * series.interval as f64 / 60e6);
                        let incident = month.incidents.iter().position(|it| {
                            it.project == series.project
                                && it.metrics().contains(&series.kind)
                                && (it.start..=it.end() + grace).contains(&minute)
                        });
                        let (direction, score) = (anomaly.direction, anomaly.score);
                        let (project, kind) = (series.project, series.kind);
                        reports.push(Report { project, kind, direction, minute, score, incident });
                    }
                }
            }
        }
        let first = |index: usize| {
            let own = reports.iter().filter(|it| it.incident == Some(index));
            own.map(|it| it.minute - month.incidents[index].start).min_by(f64::total_cmp)
        };
        let delays = (0..month.incidents.len()).map(first).collect();
        Self { reports, delays }
    }

    /// Returns the number of incidents that were reported.
    pub fn detected(&self) -> usize {
        self.delays.iter().flatten().count()
    }

    /// Returns the number of reports that belong to no incident.
    pub fn false_alarms(&self) -> usize {
        self.reports.iter().filter(|it| it.incident.is_none()).count()
    }
}
