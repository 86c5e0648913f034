//! Behaviour of the detector on small series.

use super::*;

/// A Monday, in microseconds since 1970.
const MONDAY_MICROS: i64 = 1_756_684_800_000_000;
const INTERVAL_MICROS: i64 = 5 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Returns a number from -1 to 1 that looks random.
fn noise(index: i64) -> f64 {
    let bits = (index as u64).wrapping_add(7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let bits = (bits ^ (bits >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (bits >> 32) as f64 / f64::from(u32::MAX) * 2.0 - 1.0
}

/// Feeds intervals from one time to another, in microseconds from [`MONDAY_MICROS`], and returns all changes.
fn feed(
    detector: &mut Detector,
    from: i64,
    to: i64,
    point: impl Fn(i64) -> (f64, u64),
) -> Vec<AnomalyChange> {
    let mut changes = Vec::new();
    for index in from / INTERVAL_MICROS..to / INTERVAL_MICROS {
        let (value, samples) = point(index);
        changes.extend(detector.observe(Point {
            start: MONDAY_MICROS + index * INTERVAL_MICROS,
            value,
            samples,
        }));
    }
    changes
}

fn traces(index: i64) -> (f64, u64) {
    let count = 200.0 + 30.0 * noise(index);
    (count.round(), count as u64)
}

fn volume_with_history(days: i64) -> Detector {
    let mut detector = Detector::new(MetricKind::Volume, INTERVAL_MICROS);
    assert_eq!(feed(&mut detector, 0, days * DAY, traces), []);
    detector
}

#[test]
fn volume_that_drops_to_nothing_opens_and_closes_a_severe_anomaly() {
    let mut detector = volume_with_history(14);
    let changes = feed(&mut detector, 14 * DAY, 14 * DAY + HOUR, |_| (0.0, 0));
    let Some(AnomalyChange::Opened(anomaly)) = changes.first() else { panic!("{changes:?}") };
    assert_eq!((anomaly.direction, anomaly.severity), (Direction::Down, Severity::High));
    assert_eq!(anomaly.window_start, MONDAY_MICROS + 14 * DAY);
    assert_eq!(anomaly.observed, 0.0);
    assert!((190.0..210.0).contains(&anomaly.expected), "{anomaly:?}");
    assert!(anomaly.expected_low > 50.0 && anomaly.expected_high > anomaly.expected, "{anomaly:?}");
    let changes = feed(&mut detector, 14 * DAY + HOUR, 14 * DAY + 3 * HOUR, traces);
    let [AnomalyChange::Closed(anomaly, CloseReason::Recovered)] = changes[..] else { panic!("{changes:?}") };
    assert_eq!(anomaly.window_end, MONDAY_MICROS + 14 * DAY + HOUR);
    assert_eq!(detector.open_anomaly(), None);
}

#[test]
fn volume_of_a_new_project_is_not_judged_before_its_second_week() {
    let mut detector = volume_with_history(6);
    assert_eq!(feed(&mut detector, 6 * DAY, 6 * DAY + 3 * HOUR, |_| (0.0, 0)), []);
}

#[test]
fn level_that_stays_is_normal_after_a_day_and_its_end_is_not_an_anomaly() {
    let mut detector = volume_with_history(14);
    let doubled = |index| (traces(index).0 * 2.0, traces(index).1 * 2);
    let changes = feed(&mut detector, 14 * DAY, 16 * DAY, doubled);
    let Some(AnomalyChange::Closed(anomaly, CloseReason::NewNormal)) = changes.last() else {
        panic!("{changes:?}")
    };
    assert_eq!(anomaly.window_end - anomaly.window_start, NEW_NORMAL_TIME);
    assert_eq!(feed(&mut detector, 16 * DAY, 18 * DAY, traces), [], "returns to the earlier level");
    assert!(!feed(&mut detector, 18 * DAY, 18 * DAY + HOUR, doubled).is_empty());
}

#[test]
fn error_rate_needs_several_failures() {
    let mut detector = Detector::new(MetricKind::ErrorRate, INTERVAL_MICROS);
    let healthy = |index: i64| (f64::from(u8::from(index % 20 == 0)), 10);
    assert_eq!(feed(&mut detector, 0, 7 * DAY, healthy), []);
    assert_eq!(feed(&mut detector, 7 * DAY, 7 * DAY + INTERVAL_MICROS, |_| (3.0, 10)), []);
    let changes = feed(&mut detector, 7 * DAY + INTERVAL_MICROS, 7 * DAY + HOUR, |_| (8.0, 10));
    assert!(matches!(changes[0], AnomalyChange::Opened(it) if it.direction == Direction::Up), "{changes:?}");
}

#[test]
fn latency_that_falls_is_not_reported() {
    let latency = |factor: f64| move |index| (1000.0 * factor * (1.0 + 0.1 * noise(index)), 100);
    let mut detector = Detector::new(MetricKind::LatencyP95, INTERVAL_MICROS);
    assert_eq!(feed(&mut detector, 0, 7 * DAY, latency(1.0)), []);
    assert_eq!(feed(&mut detector, 7 * DAY, 8 * DAY + 2 * HOUR, latency(0.4)), []);
    let changes = feed(&mut detector, 10 * DAY, 10 * DAY + HOUR, latency(3.0));
    assert!(matches!(changes[0], AnomalyChange::Opened(_)), "{changes:?}");
}

#[test]
fn latency_below_the_smallest_effect_is_not_reported() {
    let latency = |factor: f64| move |index| (1000.0 * factor * (1.0 + 0.01 * noise(index)), 5000);
    let mut detector = Detector::new(MetricKind::LatencyP95, INTERVAL_MICROS);
    assert_eq!(feed(&mut detector, 0, 7 * DAY, latency(1.0)), []);
    assert_eq!(feed(&mut detector, 7 * DAY, 9 * DAY, latency(1.2)), []);
}

#[test]
fn repeated_intervals_change_nothing() {
    let mut detector = volume_with_history(14);
    let before = detector.clone();
    assert_eq!(feed(&mut detector, 13 * DAY, 14 * DAY, |_| (0.0, 0)), []);
    assert_eq!(detector, before);
}

#[test]
fn skipped_intervals_without_data_are_not_a_drop() {
    let mut detector = volume_with_history(14);
    detector.skip_until(MONDAY_MICROS + 14 * DAY + 5 * HOUR);
    assert_eq!(feed(&mut detector, 14 * DAY + 5 * HOUR, 15 * DAY, traces), []);
    let point = Point { start: MONDAY_MICROS + 15 * DAY + 2 * HOUR, value: 200.0, samples: 200 };
    let changes = detector.observe(point);
    assert!(matches!(changes[0], AnomalyChange::Opened(_)), "a gap of the caller is a volume of zero");
}

#[test]
fn metric_without_values_for_a_day_closes_its_anomaly() {
    let mut detector = Detector::new(MetricKind::ErrorRate, INTERVAL_MICROS);
    feed(&mut detector, 0, 7 * DAY, |index| (f64::from(u8::from(index % 20 == 0)), 10));
    let changes = feed(&mut detector, 7 * DAY, 7 * DAY + HOUR, |_| (8.0, 10));
    assert!(matches!(changes[0], AnomalyChange::Opened(_)), "{changes:?}");
    let changes = feed(&mut detector, 7 * DAY + HOUR, 9 * DAY, |_| (0.0, 0));
    assert!(matches!(changes[..], [.., AnomalyChange::Closed(_, CloseReason::NoData)]), "{changes:?}");
}

#[test]
fn values_that_are_not_numbers_are_ignored() {
    let mut detector = volume_with_history(14);
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    assert_eq!(feed(&mut detector, 14 * DAY, 14 * DAY + HOUR, |index| (odd[index as usize % 3], 5)), []);
    assert_eq!(feed(&mut detector, 14 * DAY + HOUR, 15 * DAY, traces), []);
}

#[test]
fn stored_state_continues_as_if_it_had_not_been_stored() {
    let mut detector = Detector::new(MetricKind::Cost, INTERVAL_MICROS);
    let cost = |index| (traces(index).0 * 0.0123, traces(index).1);
    feed(&mut detector, 0, 12 * DAY, cost);
    let stored = serde_json::to_string(&detector).unwrap();
    assert!(stored.len() < 120_000, "{} bytes", stored.len());
    let mut restored: Detector = serde_json::from_str(&stored).unwrap();
    let dear = |index| (cost(index).0 * (1.0 + noise(index).abs() * 4.0), cost(index).1);
    let expected = feed(&mut detector, 12 * DAY, 13 * DAY, dear);
    assert_eq!(feed(&mut restored, 12 * DAY, 13 * DAY, dear), expected);
    assert!(!expected.is_empty());
}

#[test]
fn state_size_is_bounded_after_a_year() {
    let mut detector = Detector::new(MetricKind::Tokens, HOUR);
    for index in 0..365 * 24 {
        let value = 5e4 + 1e4 * noise(index);
        detector.observe(Point { start: MONDAY_MICROS + index * HOUR, value, samples: 50 });
    }
    assert!(serde_json::to_string(&detector).unwrap().len() < 120_000);
}
