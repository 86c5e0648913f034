//! Detects anomalies in the rolling metrics of a project.
//!
//! A [`Detector`] follows one metric of one project. The caller passes it a [`Point`] for each interval, in
//! the order of time, and stores the [`AnomalyChange`]s that it returns. The state of a detector has a bounded
//! size and can be serialized between two intervals; the same points always produce the same changes.
//!
//! An anomaly is opened, updated and closed. It is never withdrawn. `docs/decisions/0031-anomaly-detection.md`
//! explains the statistics.
//!
//! **Invariant:** no I/O, no clock, no randomness.

mod anomaly;
mod baseline;
mod calibration;
mod detector;
mod evidence;
mod metric;
mod point;
mod robust;
mod window;

pub use anomaly::{Anomaly, AnomalyChange, CloseReason, Direction, Severity};
pub use detector::Detector;
pub use metric::{Directions, MetricKind, MetricSettings};
pub use point::{Point, interval_for};
