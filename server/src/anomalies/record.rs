//! Conversions of anomalies: from the detector to the row, and from the row to the wire type.

use anomalies::{CloseReason, Direction, Severity};
use api::{
    Timestamp,
    anomaly::{Anomaly, AnomalyCloseReason, AnomalyDirection, AnomalySeverity, AnomalyStatus},
};
use entities::anomaly;
use store::new_id;
use uuid::Uuid;

use crate::error::Result;

/// Returns the row of an anomaly that a detector reports.
pub fn row(
    (tenant, project): (Uuid, Uuid),
    metric: &str,
    reported: &anomalies::Anomaly,
    closed: Option<CloseReason>,
    now: i64,
) -> anomaly::Model {
    let anomalies::Anomaly {
        direction,
        severity,
        observed,
        expected,
        expected_low,
        expected_high,
        score,
        window_start,
        window_end,
    } = *reported;
    let status = if closed.is_some() { AnomalyStatus::Closed } else { AnomalyStatus::Open };
    anomaly::Model {
        tenant_id: tenant,
        id: new_id(),
        project_id: project,
        metric: metric.to_owned(),
        direction: direction_word(direction).as_str().to_owned(),
        severity: severity_word(severity).as_str().to_owned(),
        status: status.as_str().to_owned(),
        close_reason: closed.map(|it| close_reason_word(it).as_str().to_owned()),
        observed: finite(observed),
        expected: finite(expected),
        expected_low: finite(expected_low),
        expected_high: finite(expected_high),
        score: finite(score),
        window_start,
        window_end,
        created_at: now,
        updated_at: now,
    }
}

/// Returns a number that JSON can represent.
fn finite(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(f64::MIN, f64::MAX) }
}

fn direction_word(direction: Direction) -> AnomalyDirection {
    match direction {
        Direction::Up => AnomalyDirection::Up,
        Direction::Down => AnomalyDirection::Down,
    }
}

fn severity_word(severity: Severity) -> AnomalySeverity {
    match severity {
        Severity::Low => AnomalySeverity::Low,
        Severity::Medium => AnomalySeverity::Medium,
        Severity::High => AnomalySeverity::High,
    }
}

fn close_reason_word(reason: CloseReason) -> AnomalyCloseReason {
    match reason {
        CloseReason::Recovered => AnomalyCloseReason::Recovered,
        CloseReason::NewNormal => AnomalyCloseReason::NewNormal,
        CloseReason::NoData => AnomalyCloseReason::NoData,
    }
}

/// Returns the wire type of a row.
///
/// # Errors
///
/// Fails when the row has a word that this version does not know.
pub fn to_wire(row: anomaly::Model) -> Result<Anomaly> {
    let anomaly::Model {
        tenant_id: _,
        id,
        project_id,
        metric,
        direction,
        severity,
        status,
        close_reason,
        observed,
        expected,
        expected_low,
        expected_high,
        score,
        window_start,
        window_end,
        created_at,
        updated_at,
    } = row;
    Ok(Anomaly {
        id,
        project_id,
        metric,
        direction: direction.parse().map_err(anyhow::Error::from)?,
        severity: severity.parse().map_err(anyhow::Error::from)?,
        status: status.parse().map_err(anyhow::Error::from)?,
        close_reason: close_reason.map(|it| it.parse()).transpose().map_err(anyhow::Error::from)?,
        observed,
        expected,
        expected_low,
        expected_high,
        score,
        window_start: Timestamp::from_micros(window_start),
        window_end: Timestamp::from_micros(window_end),
        created_at: Timestamp::from_micros(created_at),
        updated_at: Timestamp::from_micros(updated_at),
    })
}
