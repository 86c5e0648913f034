//! Tests of the screen Metrics: requests, navigation and display.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use api::{
    anomaly::{Anomaly, AnomalyList, AnomalySeverity, AnomalyStatus},
    feedback::{Feedback, FeedbackLabel, FeedbackList},
    metrics::{Metric, MetricPoint, MetricValues, Metrics as Answer, Window},
};

use crate::screen::metrics::state::Stretch;
use crate::{
    fixture::anomaly,
    tests::screens::{TERMINAL_SIZES, screen, snap},
    tests::*,
};

const NOW_MICROS: i64 = BASE_MICROS + 60_000_000;

/// Returns a day of a service that is slow for three hours; `scale` makes it busier.
fn answer_of(stretch: Stretch, scale: f64) -> Answer {
    let step = stretch.interval().micros();
    let from = NOW_MICROS - stretch.micros();
    let first = from.div_euclid(step) * step;
    let starts = (0..).map(|n| first + n * step).take_while(|start| *start <= NOW_MICROS);
    let series: Vec<MetricPoint> = starts
        .enumerate()
        .map(|(at, start)| {
            let wave = (at as f64 * 0.7).sin();
            let slow = if at % 25 == 14 { 2.6 } else { 1.0 };
            let traces = ((3_000.0 + 900.0 * wave) * scale).round();
            let some = |value: f64| (at % 25 != 7).then_some(value);
            let values = MetricValues {
                error_rate: some(0.012 + 0.004 * wave + if slow > 1.0 { 0.11 } else { 0.0 }),
                latency_p50: some((1_600.0 + 150.0 * wave) * scale),
                latency_p95: some((3_100.0 + 300.0 * wave) * slow * scale),
                latency_p99: some((4_900.0 + 500.0 * wave) * slow * slow * scale),
                total_cost: if at % 25 == 7 { 0.0 } else { 1.71 * scale },
                trace_count: if at % 25 == 7 { 0 } else { traces as i64 },
                feedback_good_rate: (at % 3 == 0).then_some(0.875),
            };
            MetricPoint { start: Timestamp::from_micros(start), values }
        })
        .collect();
    Answer {
        from: Timestamp::from_micros(from),
        to: Timestamp::from_micros(NOW_MICROS),
        metrics: MetricValues {
            error_rate: Some(0.024 * scale),
            latency_p50: Some(1_810.0 * scale),
            latency_p95: Some(6_700.0 * scale * scale),
            latency_p99: Some(30_000.0 * scale * scale),
            total_cost: 41.07 * scale,
            trace_count: (72_318.0 * scale) as i64,
            feedback_good_rate: Some(0.875 / scale.sqrt()),
        },
        series: Some(series),
        groups: None,
        groups_truncated: None,
        groups_from: None,
    }
}

fn nothing(stretch: Stretch) -> Answer {
    let mut answer = answer_of(stretch, 1.0);
    answer.metrics = MetricValues::default();
    for point in answer.series.iter_mut().flatten() {
        point.values = MetricValues::default();
    }
    answer
}

fn reported() -> FeedbackList {
    let one = |at: u128| Feedback {
        id: id(at),
        trace_id: id(1),
        project_id: id(0),
        span_id: None,
        label: match at % 16 {
            0 => FeedbackLabel::Bad,
            1 | 2 => FeedbackLabel::Neutral,
            _ => FeedbackLabel::Good,
        },
        comment: None,
        user_id: None,
        source: None,
        metadata: None,
        created_at: Timestamp::from_micros(NOW_MICROS),
        updated_at: Timestamp::from_micros(NOW_MICROS),
    };
    FeedbackList { feedback: (0..200).map(one).collect(), has_more: true, next_cursor: Some("more".into()) }
}

/// Returns anomalies: two of the latency, a closed and an open one, and one of a metric without a chart.
fn detected() -> AnomalyList {
    let hour = |hours: i64| Timestamp::from_micros(NOW_MICROS - hours * 3_600_000_000);
    let closed = Anomaly {
        status: AnomalyStatus::Closed,
        severity: AnomalySeverity::High,
        window_start: hour(11),
        window_end: hour(10),
        ..anomaly(31, "latency_p95")
    };
    let open = Anomaly { window_start: hour(1), ..anomaly(30, "latency_p95") };
    let other = anomaly(32, "score:faithfulness");
    AnomalyList { anomalies: vec![open, closed, other], has_more: false, next_cursor: None }
}

/// Responds to the requests among the effects, and to the requests that follow from the responses.
fn answer_all(state: &mut App, effects: &[Effect]) {
    for effect in effects {
        let Some(sent) = SentRequest::of(effect) else { continue };
        let response = if sent.gets("/v1/metrics") {
            let factor = if sent.param("interval").is_some() { 1.0 } else { 0.8 };
            Response::new(answer_of(state.screens.metrics.stretch, factor))
        } else if sent.gets("/v1/projects/*/metrics") {
            let (metric, window) =
                (api::metrics::ProjectMetric::RetryCapHit, api::metrics::ProjectWindow::Week);
            Response::new(api::metrics::ProjectMetricValue { metric, value: 14, window })
        } else if sent.gets("/v1/anomalies") {
            Response::new(detected())
        } else if sent.gets("/v1/feedback") {
            Response::new(reported())
        } else {
            continue;
        };
        let more = update(state, Msg::Reply(sent.id, Ok(response)));
        answer_all(state, &more);
    }
}

/// Returns a console on screen 3 after responses to all requests.
fn measured(size: (u16, u16), theme: Theme) -> App {
    let mut state = filled(size, theme);
    let effects = press(&mut state, "3");
    answer_all(&mut state, &effects);
    state
}

fn of_project(size: (u16, u16), theme: Theme) -> App {
    let mut state = filled(size, theme);
    state.shell.project = Some(project(2, "checkout-bot", false));
    let effects = press(&mut state, "3jj");
    answer_all(&mut state, &effects);
    state
}

#[test]
fn previous_window_is_requested_once_the_window_is_known() {
    let mut state = filled((120, 40), UNICODE_THEME);
    let effects = press(&mut state, "3");
    assert!(are(&effects, &["/v1/metrics"]), "{effects:?}");
    let sent = only_request(&effects);
    assert_eq!((sent.param("window"), sent.param("from"), sent.param("to")), (Some("24h"), None, None));
    let effects = reply(&mut state, &effects, Ok(Response::new(answer_of(Stretch::Day, 1.0))));
    assert!(are(&effects, &["/v1/metrics", "/v1/anomalies", "/v1/feedback"]), "{effects:?}");
    let [previous, anomalies, feedback] = &requests(&effects)[..] else { panic!("{effects:?}") };
    let day = Window::Day.micros();
    assert_eq!(previous.time("from"), Some(Timestamp::from_micros(NOW_MICROS - 2 * day)));
    assert_eq!(previous.time("to"), Some(Timestamp::from_micros(NOW_MICROS - day - 1)));
    assert_eq!(previous.param("interval"), None);
    assert_eq!((anomalies.param("from"), anomalies.uuid("project_id")), (None, None));
    assert_eq!(feedback.time("from"), Some(Timestamp::from_micros(NOW_MICROS - day)));
}

#[test]
fn selected_project_adds_its_own_metric() {
    let mut state = filled((80, 24), UNICODE_THEME);
    state.shell.project = Some(project(2, "checkout-bot", false));
    let effects = press(&mut state, "3");
    assert!(are(&effects, &["/v1/metrics", "/v1/projects/*/metrics"]), "{effects:?}");
    let sent = requests(&effects);
    assert_eq!((sent[0].uuid("project_id"), sent[1].path_id()), (Some(id(2)), Some(id(2))));
}

#[test]
fn anomalies_of_the_charted_metric_mark_their_columns() {
    let mut state = measured((120, 40), UNICODE_THEME);
    let marked = |state: &App| {
        let marks = state.screens.metrics.marks(109, state.shell.now);
        (0..marks.len()).filter(|at| marks[*at].is_some()).collect::<Vec<_>>()
    };
    assert!(marked(&state).is_empty() && !screen(&state).contains("anomaly"), "the error rate has none");
    press(&mut state, "jj");
    assert_eq!(state.screens.metrics.metric(), Metric::LatencyP95);
    assert_eq!(marked(&state), [13, 14, 23, 24], "the open one lasts until now");
    let text = screen(&state);
    assert!(text.contains("! ✗ anomaly"), "{text}");
    assert!(text.contains("medium anomaly: 8.20s, expected 2.90s to 3.30s"), "{text}");
}

#[test]
fn failed_anomalies_leave_the_chart_and_are_reported_once() {
    let mut state = measured((80, 24), UNICODE_THEME);
    press(&mut state, "jj");
    for _ in 0..2 {
        let effects = without_count(tick(&mut state, 60));
        let effects = reply(&mut state, &effects, Ok(Response::new(answer_of(Stretch::Day, 1.0))));
        let asked: Vec<Effect> = effects.into_iter().filter(|it| is_get(it, "/v1/anomalies")).collect();
        reply(&mut state, &asked, Err(answered(500, "internal", "no luck")));
    }
    assert_eq!(state.shell.problems.len(), 1, "{:?}", state.shell.problems);
    let text = screen(&state);
    assert!(text.contains("anomalies not loaded") && text.contains('█') && !text.contains("STALE"), "{text}");
}

#[test]
fn superseded_window_is_dropped() {
    let mut state = measured((80, 24), UNICODE_THEME);
    let slow = press(&mut state, "]");
    let fast = press(&mut state, "[[");
    let sent = last_request(&fast);
    assert_eq!(sent.param("window"), None);
    assert_eq!(sent.time("from"), Some(Timestamp::from_micros(NOW_MICROS - 6 * Window::Hour.micros())));
    reply(&mut state, &slow, Ok(Response::new(answer_of(Stretch::Week, 1.0))));
    assert!(state.screens.metrics.shown.is_none(), "the response was superseded");
    assert!(
        press(&mut state, "[").len() == 1 && press(&mut state, "[").is_empty(),
        "an hour is the shortest"
    );
}

#[test]
fn metrics_refresh_while_the_screen_is_shown() {
    let mut state = measured((80, 24), UNICODE_THEME);
    assert!(without_count(tick(&mut state, 59)).is_empty());
    let effects = tick(&mut state, 1);
    assert!(are(&effects, &["/v1/metrics"]), "{effects:?}");
    answer_all(&mut state, &effects);
    press(&mut state, "t");
    assert!(without_count(tick(&mut state, 600)).is_empty());
    assert!(are(&press(&mut state, "t"), &["/v1/metrics"]));
    press(&mut state, "1");
    assert!(without_count(tick(&mut state, 600)).is_empty());
}

#[test]
fn enter_opens_the_traces_of_the_column() {
    let mut state = measured((80, 24), UNICODE_THEME);
    key(&mut state, KeyCode::Left);
    let effects = key(&mut state, KeyCode::Enter);
    assert!(are(&effects, &["CloseStream", "/v1/traces"]), "{effects:?}");
    assert_eq!(
        state.screens.traces.filter.text,
        "error:true from:2026-11-21T13:00:00Z to:2026-11-21T13:59:59.999999Z"
    );
    assert_eq!(state.shell.screen, 1);
    assert!(state.shell.parse(&state.screens.traces.filter.text).is_ok());
    press(&mut state, "3jG");
    key(&mut state, KeyCode::Enter);
    assert_eq!(
        state.screens.traces.filter.text, "from:2026-11-21T14:00:00Z to:2026-11-21T14:03:00Z",
        "the last one ends now"
    );
}

#[test]
fn cursor_stays_on_its_time_or_on_the_newest() {
    let mut state = measured((80, 24), UNICODE_THEME);
    let newest = state.screens.metrics.point();
    key(&mut state, KeyCode::Right);
    assert_eq!((state.screens.metrics.point(), state.screens.metrics.cursor), (newest, None));
    press(&mut state, "hhh");
    let start = state.screens.metrics.points()[newest - 3].start;
    assert_eq!(state.screens.metrics.cursor, Some(start));
    for _ in 0..99 {
        press(&mut state, "h");
    }
    assert_eq!(state.screens.metrics.point(), 0);
    press(&mut state, "vj");
    assert_eq!(state.screens.metrics.point(), 0, "the oldest is the last row");
    key(&mut state, KeyCode::Home);
    assert_eq!(state.screens.metrics.cursor, None);
}

#[test]
fn failure_is_reported_once_and_values_stay() {
    let mut state = measured((80, 24), UNICODE_THEME);
    let before = state.shell.problems.len();
    for _ in 0..3 {
        let effects = tick(&mut state, 60);
        let asked: Vec<Effect> = effects.into_iter().filter(|it| is_get(it, "/v1/metrics")).collect();
        reply(&mut state, &asked, Err(answered(503, "overloaded", "the database is away")));
    }
    assert_eq!(state.shell.problems.len(), before + 1);
    assert!(state.screens.metrics.shown.is_some() && screen(&state).contains("not renewed, as of"));
}

#[test]
fn another_project_discards_the_numbers() {
    let mut state = measured((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "p");
    reply(&mut state, &effects, Ok(Response::new(vec![project(2, "checkout-bot", false)])));
    press(&mut state, "j");
    let effects = key(&mut state, KeyCode::Enter);
    let sent = requests(&effects).into_iter().find(|it| it.gets("/v1/metrics"));
    assert_eq!(
        (sent.and_then(|it| it.uuid("project_id")), state.screens.metrics.shown.is_none()),
        (Some(id(2)), true)
    );
}

#[test]
fn metrics_wait_for_a_project_given_by_name() {
    let mut state = filled((80, 24), UNICODE_THEME);
    state.shell.target.project = Some("checkout-bot".into());
    assert!(press(&mut state, "3").is_empty());
    press(&mut state, "1");
    let effects = press(&mut state, "R");
    press(&mut state, "3");
    let effects = reply(&mut state, &effects, Ok(Response::new(vec![project(2, "checkout-bot", false)])));
    assert!(effects.iter().any(|it| is_get(it, "/v1/projects/*/metrics")), "{effects:?}");
}

#[test]
fn series_is_exported_and_its_request_copied() {
    let mut state = measured((80, 24), UNICODE_THEME);
    press(&mut state, "e");
    let effects = key(&mut state, KeyCode::Enter);
    let [Effect::Write { path, text, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((path.as_str(), text.lines().count()), ("metrics-24h.csv", 26));
    assert!(text.starts_with("error_rate,feedback_good_rate,latency_p50,"), "{text}");
    let effects = press(&mut state, "yc");
    let [Effect::Copy(curl)] = &effects[..] else { panic!("{effects:?}") };
    assert!(curl.ends_with("/v1/metrics?window=24h&interval=hour'"), "{curl}");
}

#[test]
fn metrics_screen_draws_every_state() {
    for size in TERMINAL_SIZES {
        let mut state = of_project(size, UNICODE_THEME);
        press(&mut state, "hhhhhhhhhh");
        snap("metrics", &state);
        press(&mut state, "v");
        snap("metrics-numbers", &state);
    }
}

#[test]
fn every_window_and_metric_is_drawn() {
    for (keys, name) in [("[", "6h"), ("]", "7d"), ("]]", "30d")] {
        for size in TERMINAL_SIZES {
            let mut state = measured(size, UNICODE_THEME);
            let effects = press(&mut state, keys);
            answer_all(&mut state, &effects);
            press(&mut state, "jjjjjhh");
            snap(&format!("metrics-{name}"), &state);
        }
    }
    let mut state = measured((80, 24), UNICODE_THEME);
    for metric in Metric::ALL {
        snap(&format!("metrics-{metric}"), &state);
        press(&mut state, "j");
    }
}

#[test]
fn loading_empty_and_refused_metrics_are_drawn() {
    for size in TERMINAL_SIZES {
        let mut state = filled(size, UNICODE_THEME);
        let effects = press(&mut state, "3");
        tick(&mut state, 1);
        snap("metrics-loading", &state);
        reply(&mut state, &effects, Err(answered(503, "overloaded", "the database is away")));
        snap("metrics-error", &state);
        let effects = press(&mut state, "R");
        reply(&mut state, &effects, Ok(Response::new(nothing(Stretch::Day))));
        state.shell.toast = None;
        snap("metrics-empty", &state);
    }
    let (mut state, effects) = started((80, 24), UNICODE_THEME);
    answer(&mut state, &effects, last_page(vec![]));
    let effects = press(&mut state, "3");
    reply(&mut state, &effects, Ok(Response::new(nothing(Stretch::Day))));
    snap("metrics-never", &state);
}

#[test]
fn metrics_screen_is_drawn_in_ascii_and_at_every_size() {
    let mut state = of_project((80, 24), ASCII_THEME);
    press(&mut state, "hhhhhhhhhh");
    snap("ascii-metrics", &state);
    assert!(screen(&state).is_ascii());
    press(&mut state, "v");
    assert!(screen(&state).is_ascii());
    for cols in [1, 40, 59, 60, 76, 109, 200] {
        for rows in [1, 10, 14, 15, 24, 60] {
            let mut state = of_project((cols, rows), UNICODE_THEME);
            screen(&state);
            press(&mut state, "v");
            screen(&state);
        }
    }
}
