//! Failures: its requests, its keys, its change, and every state of the screen.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use api::{
    FailureType,
    anomaly::{AnomalyCloseReason, AnomalyDirection, AnomalyList, AnomalySeverity, AnomalyStatus},
    failure::{ClusterStatus, Failure, FailureCluster, FailureClusterList, FailureList, TrendPoint},
    feedback::{Feedback, FeedbackLabel, FeedbackList},
};

use super::{change::ClusterChange, state::FailuresTab};
use crate::{
    fixture::anomaly,
    tests::screens::{TERMINAL_SIZES, screen, snap},
    tests::*,
};

const HOUR: i64 = 3_600_000_000;
/// A message that tries to move the cursor and to reorder text.
const HOSTILE_TEXT: &str = "upstream \u{1b}[2J timeout\u{202e} after\u{7} 30000 ms";

fn ago(micros: i64) -> Timestamp {
    Timestamp::from_micros(BASE_MICROS + 60_000_000 - micros)
}

fn failure(n: u128, cluster: u128, minutes: i64) -> Failure {
    Failure {
        id: id(n),
        project_id: id(2),
        trace_id: id(n + 1_000),
        span_id: Some(id(n + 2_000)),
        span_name: "decide_refund".into(),
        failure_type: FailureType::Timeout,
        message: format!("{HOSTILE_TEXT} (request {n})\nat provider.call (client.py:88)"),
        model: Some("claude-sonnet-4-20250514".into()),
        cluster_id: id(cluster),
        created_at: ago(minutes * 60_000_000),
    }
}

fn cluster(n: u128, kind: FailureType, place: &str, count: i64, minutes: i64) -> FailureCluster {
    FailureCluster {
        id: id(n),
        project_id: id(2),
        failure_type: kind,
        status: ClusterStatus::Open,
        signature: format!("{HOSTILE_TEXT} after <*> ms for request <*> of the tenant <*>. Retry later."),
        title: HOSTILE_TEXT.to_owned(),
        span_name: place.into(),
        count,
        trace_count: count - 1,
        first_seen: ago(30 * HOUR),
        last_seen: ago(minutes * 60_000_000),
        resolved_at: None,
        sample_trace_ids: vec![id(n + 500), id(n + 501)],
        models: vec!["gpt-4o".into(), "claude-sonnet-4-20250514".into()],
        trend: (0..24)
            .map(|hour| TrendPoint { start: ago((24 - hour) * HOUR), count: (hour * hour) % 17 })
            .collect(),
        samples: None,
    }
}

fn clusters() -> Vec<FailureCluster> {
    let mut all = vec![
        cluster(41, FailureType::Timeout, "refund_agent / 返金の判定エージェント", 112, 1),
        cluster(42, FailureType::RateLimit, "embed_docs", 41, 5),
        cluster(43, FailureType::RemediationRegression, "answer_question", 1_234_567, 7),
        cluster(44, FailureType::InvalidResponse, "plan_\u{1b}[31mtrip", 17, 22),
        cluster(45, FailureType::Other, "summarise_doc", 1, 26 * 60),
    ];
    all[3].status = ClusterStatus::Muted;
    all[4].status = ClusterStatus::Resolved;
    all[4].resolved_at = Some(ago(HOUR));
    all[4].trend.truncate(3);
    all
}

fn cluster_list(clusters: Vec<FailureCluster>, next: Option<&str>) -> FailureClusterList {
    FailureClusterList { clusters, has_more: next.is_some(), next_cursor: next.map(str::to_owned) }
}

fn anomaly_list() -> AnomalyList {
    let mut all = vec![anomaly(61, "latency_p95"), anomaly(62, "cost"), anomaly(63, "score:faithfulness")];
    all[1].status = AnomalyStatus::Closed;
    all[1].close_reason = Some(AnomalyCloseReason::Recovered);
    (all[1].observed, all[1].expected) = (9.8, 6.1);
    (all[1].expected_low, all[1].expected_high) = (5.5, 6.7);
    all[2].direction = AnomalyDirection::Down;
    all[2].severity = AnomalySeverity::High;
    (all[2].observed, all[2].expected) = (0.41, 0.86);
    (all[2].expected_low, all[2].expected_high) = (0.82, 0.9);
    all[2].window_start = ago(20 * HOUR);
    AnomalyList { anomalies: all, has_more: false, next_cursor: None }
}

fn feedback_list() -> FeedbackList {
    let row = |n: u128, comment: Option<&str>| Feedback {
        id: id(n),
        trace_id: id(n + 100),
        project_id: id(2),
        span_id: None,
        label: FeedbackLabel::Bad,
        comment: comment.map(str::to_owned),
        user_id: Some("user-17".into()),
        source: Some("thumbs".into()),
        metadata: None,
        created_at: ago(i64::try_from(n).unwrap() * 60_000_000),
        updated_at: ago(0),
    };
    let feedback = vec![row(71, Some("answered in the wrong \u{1b}[31mlanguage\nand twice")), row(72, None)];
    FeedbackList { feedback, has_more: false, next_cursor: None }
}

fn failure_list(count: u128) -> FailureList {
    let failures = (0..count).map(|n| failure(300 + n, 41, i64::try_from(n).unwrap() * 3)).collect();
    FailureList { failures, has_more: true, next_cursor: Some("older".into()) }
}

/// Responds to every request among the effects, and to the requests that follow.
fn answer_all(state: &mut App, effects: &[Effect]) {
    for sent in requests(effects) {
        let response = match sent.path.as_str() {
            "/v1/failures/clusters" => Response::new(cluster_list(clusters(), None)),
            "/v1/failures" => Response::new(failure_list(12)),
            "/v1/anomalies" => Response::new(anomaly_list()),
            "/v1/feedback" => Response::new(feedback_list()),
            "/v1/projects" => Response::new(vec![project(2, "checkout-bot", false)]),
            path if path.starts_with("/v1/failures/clusters/") => {
                let listed = clusters().into_iter().find(|it| Some(it.id) == sent.path_id()).unwrap();
                let samples = vec![failure(201, 41, 900), failure(202, 41, 5)];
                Response::new(FailureCluster { samples: Some(samples), ..listed })
            }
            path => panic!("{path}"),
        };
        let more = update(state, Msg::Reply(sent.id, Ok(response)));
        answer_all(state, &more);
    }
}

/// Returns a console on screen 4 after responses to all requests.
fn failing(size: (u16, u16), theme: Theme) -> App {
    let mut state = filled(size, theme);
    let effects = press(&mut state, "4");
    answer_all(&mut state, &effects);
    state
}

/// Returns the effects that read a path.
fn only(effects: &[Effect], path: &str) -> Vec<Effect> {
    effects.iter().filter(|it| is_get(it, path)).cloned().collect()
}

/// Applies a filter line.
fn submit(state: &mut App, line: &str) -> Vec<Effect> {
    press(state, &format!("/{line}"));
    key(state, KeyCode::Enter)
}

#[test]
fn failures_screen_requests_clusters_with_the_session_and_anomalies() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "4");
    assert!(are(&effects, &["/v1/failures/clusters", "/v1/anomalies", "/v1/projects"]), "{effects:?}");
    let sent = requests(&effects);
    assert_eq!((sent[0].auth.as_str(), sent[1].auth.as_str()), ("Session", ""));
    let effects = reply(&mut state, &effects[..1], Ok(Response::new(cluster_list(clusters(), None))));
    assert_eq!(only_request(&effects).path_id(), Some(id(41)), "the samples of the first cluster follow");
    assert!(press(&mut state, "j").is_empty(), "one cluster at a time");
    let samples = FailureCluster { samples: Some(vec![]), ..clusters().remove(0) };
    let effects = reply(&mut state, &effects, Ok(Response::new(samples)));
    assert_eq!(only_request(&effects).path_id(), Some(id(42)));
}

#[test]
fn api_key_alone_explains_the_session_and_still_shows_anomalies() {
    let mut state = filled((80, 24), UNICODE_THEME);
    state.shell.target.session = false;
    let effects = press(&mut state, "4");
    assert!(!effects.iter().any(|it| is_get(it, "/v1/failures/clusters")), "{effects:?}");
    answer_all(&mut state, &effects);
    state.shell.toast = None;
    let text = screen(&state);
    assert!(text.contains("Failures need a session token") && text.contains("latency_p95"), "{text}");
    snap("failures-session", &state);
}

#[test]
fn refused_session_leaves_the_anomalies_and_is_explained() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "4");
    let followed = reply(&mut state, &effects[..1], Err(answered(401, "unauthorized", "expired")));
    assert!(are(&followed, &["/v1/me"]), "{followed:?}");
    assert!(!state.shell.has_session());
    answer_all(&mut state, &effects[1..]);
    let text = screen(&state);
    assert!(text.contains("The session token was refused") && text.contains("latency_p95"), "{text}");
    assert!(only(&tick(&mut state, 1), "/v1/failures/clusters").is_empty());
    state.shell.refused_session = None;
    assert_eq!(only(&tick(&mut state, 1), "/v1/failures/clusters").len(), 1, "the session is accepted again");
}

#[test]
fn filter_of_clusters_is_sent_and_cleared() {
    let mut state = failing((80, 24), UNICODE_THEME);
    let effects = submit(&mut state, "type:timeout status:open from:-24h");
    let sent = only_request(&effects);
    assert_eq!((sent.param("failure_type"), sent.param("status")), (Some("timeout"), Some("open")));
    assert_eq!(sent.time("from"), Some(ago(24 * HOUR)));
    reply(&mut state, &effects, Ok(Response::new(cluster_list(vec![], None))));
    snap("failures-no-match", &state);
    let effects = press(&mut state, "w");
    assert_eq!(only_request(&effects).param("from"), None);
    let effects = key(&mut state, KeyCode::Esc);
    assert_eq!(only_request(&effects).param("failure_type"), None);
    submit(&mut state, "typ:timeout");
    assert!(state.shell.line_error.as_ref().unwrap().1.contains("there is no field `typ`"));
}

#[test]
fn older_clusters_load_near_the_end_of_the_list() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "4");
    reply(&mut state, &effects[..1], Ok(Response::new(cluster_list(clusters(), Some("older")))));
    let effects = press(&mut state, "j");
    assert_eq!(only_request(&effects).param("cursor"), Some("older"));
    assert!(press(&mut state, "j").is_empty(), "the page is under way");
    let more = vec![cluster(50, FailureType::Timeout, "older", 1, 60 * 40)];
    reply(&mut state, &effects, Ok(Response::new(cluster_list(more, None))));
    assert_eq!(state.screens.failures.clusters.items.len(), 6);
    press(&mut state, "G");
    assert_eq!(state.screens.failures.clusters.current().unwrap().id, id(50));
}

#[test]
fn trace_key_opens_the_newest_sample_and_esc_returns() {
    let mut state = failing((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "t");
    assert_eq!(only_request(&effects).path_id(), Some(id(1_202)), "the newest sample");
    key(&mut state, KeyCode::Esc);
    assert_eq!(state.shell.screen, 4);
    state.screens.failures.samples.clear();
    let effects = press(&mut state, "t");
    assert_eq!(only_request(&effects).path_id(), Some(id(541 + 1)), "without samples, the last listed trace");
    let mut state = failing((80, 24), UNICODE_THEME);
    state.screens.failures.samples.clear();
    state.screens.failures.clusters.items[0].sample_trace_ids.clear();
    assert!(press(&mut state, "t").is_empty());
    assert!(state.shell.toast.as_ref().unwrap().text.contains("no trace of this cluster"));
}

#[test]
fn enter_lists_the_failures_of_the_cluster() {
    for size in TERMINAL_SIZES {
        let mut state = failing(size, UNICODE_THEME);
        let effects = key(&mut state, KeyCode::Enter);
        let sent = only_request(&effects);
        assert_eq!((sent.path.as_str(), sent.uuid("cluster_id")), ("/v1/failures", Some(id(41))));
        assert_eq!(sent.auth, "Session");
        answer_all(&mut state, &effects);
        press(&mut state, "j");
        snap("failures-events", &state);
        let effects = key(&mut state, KeyCode::Enter);
        assert_eq!(only_request(&effects).path_id(), Some(id(1_301)));
        key(&mut state, KeyCode::Esc);
        assert!(state.shell.screen == 4 && state.screens.failures.events.is_some());
        key(&mut state, KeyCode::Esc);
        assert!(state.screens.failures.events.is_none() && state.shell.screen == 4);
    }
}

#[test]
fn status_of_a_cluster_changes_after_a_confirmation() {
    let mut state = failing((80, 24), UNICODE_THEME);
    state.shell.target.protected = false;
    for (keys, wanted) in [("x", ClusterStatus::Resolved), ("u", ClusterStatus::Muted)] {
        press(&mut state, keys);
        crate::screen::manage::tests::wait(&mut state);
        let effects = press(&mut state, "y");
        let name = HOSTILE_TEXT.to_owned();
        assert_eq!(
            sent_changes::<ClusterChange>(&state, &effects),
            [ClusterChange { id: id(41), name, status: wanted }]
        );
        let sent = only_request(&effects);
        assert_eq!((sent.method.as_str(), sent.auth.as_str()), ("PATCH", "Session"));
        let changed = FailureCluster { status: wanted, ..clusters().remove(0) };
        let effects = reply(&mut state, &effects, Ok(Response::new(changed)));
        assert!(are(&effects, &["/v1/failures/clusters"]), "{effects:?}");
        assert_eq!(state.screens.failures.clusters.items[0].status, wanted);
    }
    // The same key opens the cluster again.
    press(&mut state, "u");
    crate::screen::manage::tests::wait(&mut state);
    snap("failures-reopen", &state);
    let effects = press(&mut state, "y");
    assert_eq!(sent_changes::<ClusterChange>(&state, &effects)[0].status, ClusterStatus::Open);
    let effects = reply(&mut state, &effects, Err(offline()));
    assert!(are(&effects, &["/v1/failures/clusters/*"]), "a lost response reads the cluster: {effects:?}");
    reply(&mut state, &effects, Ok(Response::new(clusters().remove(0))));
    assert!(state.shell.toast.as_ref().unwrap().text.contains("its response was lost"));
}

#[test]
fn viewers_and_read_only_consoles_change_no_cluster() {
    let mut state = failing((80, 24), UNICODE_THEME);
    state.shell.me.as_mut().unwrap().role = Role::Viewer;
    press(&mut state, "x");
    assert!(state.shell.dialog.is_none());
    assert!(state.shell.toast.as_ref().unwrap().text.contains("requires the role member"));
    state.shell.target.read_only = true;
    press(&mut state, "u");
    assert!(state.shell.toast.as_ref().unwrap().text.contains("read-only"));
}

#[test]
fn tabs_and_keys_lead_to_anomalies_and_feedback() {
    let mut state = failing((80, 24), UNICODE_THEME);
    assert!(press(&mut state, "]").is_empty(), "the anomalies are loaded");
    assert_eq!(state.screens.failures.tab, FailuresTab::Anomalies);
    let effects = key(&mut state, KeyCode::Enter);
    assert!(effects.iter().any(|it| is_get(it, "/v1/traces")), "{effects:?}");
    assert_eq!(
        state.screens.traces.filter.text, "from:2026-11-21T13:02:00Z to:2026-11-21T14:03:00Z",
        "an open anomaly lasts until now"
    );
    let effects = press(&mut state, "4F");
    let feedback = only(&effects, "/v1/feedback");
    assert_eq!(last_request(&feedback).param("label"), Some("bad"));
    answer_all(&mut state, &feedback);
    assert_eq!(only_request(&press(&mut state, "t")).path_id(), Some(id(171)));
    key(&mut state, KeyCode::Esc);
    press(&mut state, "[");
    assert_eq!(state.screens.failures.tab, FailuresTab::Anomalies);
}

#[test]
fn clusters_are_requested_again_and_failures_keep_the_rows() {
    let mut state = failing((80, 24), UNICODE_THEME);
    assert!(tick(&mut state, 9).is_empty());
    let before = state.shell.problems.len();
    for _ in 0..3 {
        let effects = tick(&mut state, 31);
        let asked = only(&effects, "/v1/failures/clusters");
        reply(&mut state, &asked, Err(answered(503, "overloaded", "the database is away")));
    }
    assert_eq!(state.shell.problems.len(), before + 1);
    let text = screen(&state);
    assert!(text.contains("embed_docs") && text.contains("STALE since"), "{text}");
    press(&mut state, "1");
    assert!(only(&tick(&mut state, 60), "/v1/failures/clusters").is_empty(), "only while it is shown");
}

#[test]
fn another_project_discards_the_clusters_but_not_the_filter() {
    let mut state = failing((80, 24), UNICODE_THEME);
    let effects = submit(&mut state, "status:open");
    answer_all(&mut state, &effects);
    let late = press(&mut state, "R");
    let effects = press(&mut state, "p");
    answer_all(&mut state, &effects);
    press(&mut state, "j");
    let effects = key(&mut state, KeyCode::Enter);
    assert!(state.screens.failures.clusters.items.is_empty() && state.screens.failures.text == "status:open");
    answer_all(&mut state, &only(&late, "/v1/failures/clusters"));
    assert!(state.screens.failures.clusters.items.is_empty(), "late responses are dropped");
    assert_eq!(state.shell.project_id(), Some(id(2)), "{effects:?}");
    let sent = only(&effects, "/v1/failures/clusters");
    assert_eq!(last_request(&sent).uuid("project_id"), Some(id(2)));
}

#[test]
fn records_of_failures_are_copied_and_exported() {
    let mut state = failing((80, 24), UNICODE_THEME);
    assert_eq!(press(&mut state, "yi"), [Effect::Copy(id(41).to_string())]);
    let [Effect::Copy(curl)] = &press(&mut state, "yc")[..] else { panic!("no copy") };
    assert!(curl.ends_with("/v1/failures/clusters'"), "{curl}");
    press(&mut state, "e");
    let effects = key(&mut state, KeyCode::Enter);
    let [Effect::Write { path, text, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((path.as_str(), text.lines().count()), ("clusters.ndjson", 5));
}

#[test]
fn failures_screen_draws_every_state() {
    for size in TERMINAL_SIZES {
        let mut state = filled(size, UNICODE_THEME);
        let effects = press(&mut state, "4");
        tick(&mut state, 1);
        snap("failures-loading", &state);
        reply(&mut state, &effects[..1], Err(answered(503, "overloaded", "the database is away")));
        snap("failures-error", &state);
        let mut state = filled(size, UNICODE_THEME);
        let effects = press(&mut state, "4");
        reply(&mut state, &effects[..1], Ok(Response::new(cluster_list(vec![], None))));
        let none = AnomalyList { anomalies: vec![], has_more: false, next_cursor: None };
        reply(&mut state, &effects[..2], Ok(Response::new(none)));
        snap("failures-empty", &state);
        let mut state = failing(size, UNICODE_THEME);
        snap("failures", &state);
        press(&mut state, "]j");
        snap("failures-anomalies", &state);
        let effects = press(&mut state, "]");
        answer_all(&mut state, &effects);
        snap("failures-feedback", &state);
    }
}

#[test]
fn plan_of_failures_is_explained_in_place_of_the_list() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "4");
    let error = NetError {
        required_plan: Some("team".into()),
        ..answered(402, "plan_upgrade_required", "failures need the plan Team")
    };
    answer_all(&mut state, &effects[1..]);
    reply(&mut state, &effects[..1], Err(error));
    state.shell.toast = None;
    let text = screen(&state);
    assert!(text.contains("requires the plan Team") && text.contains("latency_p95"), "{text}");
}

#[test]
fn failures_screen_is_drawn_in_ascii_and_at_every_size() {
    let mut state = failing((80, 24), ASCII_THEME);
    for row in &mut state.screens.failures.clusters.items {
        row.span_name = "plain".into();
        row.title = "plain".into();
    }
    state.screens.failures.samples.clear();
    let text = screen(&state);
    assert!(text.is_ascii(), "{text}");
    snap("ascii-failures", &state);
    for cols in [1, 40, 59, 60, 76, 90, 109, 200] {
        for rows in [1, 10, 14, 15, 20, 24, 33, 34, 60] {
            let mut state = failing((80, 24), UNICODE_THEME);
            update(&mut state, Msg::Resize(cols, rows));
            for keys in ["", "x"] {
                press(&mut state, keys);
                screen(&state);
            }
            state.shell.dialog = None;
            let effects = key(&mut state, KeyCode::Enter);
            answer_all(&mut state, &effects);
            screen(&state);
            key(&mut state, KeyCode::Esc);
            for _ in 0..2 {
                let effects = press(&mut state, "]");
                answer_all(&mut state, &effects);
                screen(&state);
            }
        }
    }
}
