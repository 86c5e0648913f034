//! Approvals: its requests, its keys, its decisions, and every state of the screen.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod decisions;
mod diffs;
mod history;

use api::{
    control::{
        ActionConfig, ActionMetadata, ActionStatus, ActionType, ControlAction, ControlActionList,
        DiffProgress, DiffResponse, DiffStatus, EscalationReason, EvalDelta, RemediationDiff,
    },
    deployment::{
        ArmStatistics, DeploymentStatus, PromptDeployment, PromptDeploymentList, PromptTest, PromptWatch,
        TestMode,
    },
    policy::{Policy, TriggerType},
};

use super::{
    change::{ApprovalChange, Decision},
    state::{ApprovalsTab, ZoomedApproval},
};
use crate::{
    screen::manage::tests::wait,
    tests::screens::{TERMINAL_SIZES, screen, snap},
    tests::*,
};

const MINUTE: i64 = 60_000_000;
/// A text that tries to move the cursor and to reorder text.
const HOSTILE_TEXT: &str = "Cite \u{1b}[2J the policy\u{202e} section\u{7}.";

fn ago(micros: i64) -> Timestamp {
    Timestamp::from_micros(BASE_MICROS + MINUTE - micros)
}

fn template(refund: &str) -> String {
    format!(
        "You are a support agent. Answer in the user's language.\n{refund}\n{HOSTILE_TEXT}\n\
         Never promise a date.\nAsk for the order number.\nBe brief.\nEnd with a question.\n"
    )
}

fn deployment(n: u128, version: i32, status: DeploymentStatus, minutes: i64) -> PromptDeployment {
    let refund = match version {
        13 => "Offer a refund if the user asks.",
        _ => "Offer a refund only after lookup_order\nconfirms the order is refundable.",
    };
    let arm = |mean| ArmStatistics { n: 900, mean: Some(mean), stddev: Some(0.1874) };
    PromptDeployment {
        id: id(n),
        project_id: id(2),
        prompt_name: "support-tone".into(),
        version,
        template: template(refund),
        model: (version == 14).then(|| "gpt-4o-mini".into()),
        status,
        reason: None,
        baseline_id: (version > 13).then(|| id(113)),
        mode: TestMode::Live,
        ab: (version > 13).then(|| PromptTest {
            metric_name: "faithfulness".into(),
            traffic_share: 0.5,
            min_samples: 900,
            alpha: 0.05,
            max_regression: 0.0,
            max_duration_hours: 168,
            baseline: arm(0.871),
            candidate: arm(0.912),
            p_value: Some(0.00003),
            effect: Some(0.041),
            lower_bound: Some(0.0265),
            completed_at: Some(ago(minutes * MINUTE)),
        }),
        watch: None,
        source_action_id: None,
        created_by: Some("you@example".into()),
        decided_by: None,
        decided_at: None,
        decision_note: None,
        shipped_at: status.is_served().then(|| ago(3_000 * MINUTE)),
        // The test takes an hour.
        created_at: ago((minutes + if version > 13 { 60 } else { 0 }) * MINUTE),
        updated_at: ago(0),
    }
}

fn action(n: u128, status: ActionStatus, minutes: i64) -> ControlAction {
    let is_parked = status == ActionStatus::PendingApproval;
    ControlAction {
        id: id(n),
        project_id: id(2),
        trace_id: id(n + 1_000),
        span_id: Some(id(n + 2_000)),
        policy_id: Some(id(301)),
        action_type: if is_parked { ActionType::Escalate } else { ActionType::Retry },
        action_config: ActionConfig::default(),
        status,
        require_approval: is_parked,
        metadata: ActionMetadata {
            escalation_reason: is_parked.then_some(EscalationReason::RetryThresholdExceeded),
            retry_count: is_parked.then_some(3),
            requested_action_type: is_parked.then_some(ActionType::Retry),
            trigger: Some(TriggerType::Failure),
            failing_span_id: None,
            evaluation_id: None,
        },
        remediated_span_id: (status == ActionStatus::Succeeded).then(|| id(n + 3_000)),
        error: (status == ActionStatus::Failed).then(|| format!("the provider answered 500 {HOSTILE_TEXT}")),
        requested_by: None,
        decided_by: None,
        decided_at: None,
        attempts: i32::from(status == ActionStatus::Succeeded),
        cost: (status == ActionStatus::Succeeded).then_some(0.0021),
        completed_at: (status == ActionStatus::Succeeded).then(|| ago(0)),
        created_at: ago(minutes * MINUTE),
        updated_at: ago(0),
    }
}

fn pending_deployments() -> Vec<PromptDeployment> {
    let mut first = deployment(111, 1, DeploymentStatus::AbPassed, 3);
    first.prompt_name = format!("triage {HOSTILE_TEXT}");
    vec![deployment(114, 14, DeploymentStatus::AbPassed, 240), first]
}

fn pending_actions() -> Vec<ControlAction> {
    let mut prompt = action(202, ActionStatus::PendingApproval, 4);
    prompt.metadata.escalation_reason = Some(EscalationReason::CascadeDepthExhausted);
    prompt.metadata.requested_action_type = Some(ActionType::PromptModification);
    prompt.action_config.system_suffix = Some(format!("Answer in English.\n{HOSTILE_TEXT}"));
    prompt.action_config.temperature = Some(0.2);
    vec![action(201, ActionStatus::PendingApproval, 9), prompt]
}

fn past_deployments() -> Vec<PromptDeployment> {
    let mut rolled_back = deployment(115, 15, DeploymentStatus::RolledBack, 900);
    (rolled_back.decided_by, rolled_back.decided_at) = (Some("owner@example".into()), Some(ago(MINUTE)));
    rolled_back.decision_note = Some("complaints about refunds".into());
    let mut shipped = deployment(116, 16, DeploymentStatus::Shipped, 1_000);
    shipped.watch = Some(PromptWatch {
        windows: 2,
        current: ArmStatistics { n: 12, mean: Some(0.9), stddev: None },
        effect: Some(-0.01),
    });
    vec![deployment(114, 14, DeploymentStatus::AbPassed, 3), rolled_back, shipped]
}

fn past_actions() -> Vec<ControlAction> {
    vec![
        action(201, ActionStatus::PendingApproval, 9),
        action(203, ActionStatus::Succeeded, 20),
        action(204, ActionStatus::Failed, 30),
    ]
}

fn original_trace(n: u128) -> Trace {
    let mut original = span(n + 1_000, None);
    original.name = "decide_refund".into();
    original.output = Some(format!("The embassy {HOSTILE_TEXT} was bought.\nSecond line of the output."));
    let mut found = trace(0);
    found.id = id(n);
    found.spans = Some(vec![original]);
    found
}

fn policy(n: u128) -> Policy {
    Policy {
        id: id(n),
        project_id: id(2),
        name: "refund answers".into(),
        enabled: true,
        trigger: None,
        action_type: ActionType::Retry,
        action_config: ActionConfig::default(),
        require_approval: false,
        max_retry_depth: 3,
        max_cascade_depth: 5,
        cooldown_seconds: 0,
        daily_budget_usd: None,
        created_at: ago(0),
        updated_at: ago(0),
    }
}

fn remediation_diff() -> DiffResponse {
    let delta = |metric: &str, original, remediated: f64, regressed| EvalDelta {
        rule_id: id(7),
        metric_name: metric.into(),
        original_score: original,
        remediated_score: Some(remediated),
        delta: original.map(|original| remediated - original),
        regressed,
    };
    DiffResponse::Complete(RemediationDiff {
        action_id: id(203),
        original_span_id: id(2_203),
        remediated_span_id: id(3_203),
        original_output: Some(format!("The order was bought in March.\n{HOSTILE_TEXT}")),
        remediated_output: Some(format!("The order was bought in May.\n{HOSTILE_TEXT}\nIt is refundable.")),
        token_length_delta: Some(176),
        latency_delta_ms: Some(-540),
        embedding_similarity: Some(0.7812),
        eval_deltas: vec![
            delta("faithfulness", Some(0.88), 0.61, true),
            delta("answer_relevance", Some(0.91), 0.93, false),
            delta("groundedness", None, 0.9, false),
        ],
    })
}

fn evaluating() -> DiffResponse {
    DiffResponse::Evaluating(DiffProgress { status: DiffStatus::Evaluating, completed: 1, total: 3 })
}

fn response_to(sent: &SentRequest) -> Response {
    let is_pending = sent.param("status").is_some();
    let path_id = || sent.path_id().unwrap();
    match sent.path.as_str() {
        "/v1/prompts/deployments" if is_pending => Response::new(pending_deployments()),
        "/v1/prompts/deployments" => Response::new(PromptDeploymentList {
            deployments: past_deployments(),
            has_more: false,
            next_cursor: None,
        }),
        "/v1/control/actions" if is_pending => Response::new(pending_actions()),
        "/v1/control/actions" => {
            Response::new(ControlActionList { actions: past_actions(), has_more: false, next_cursor: None })
        }
        "/v1/projects" => Response::new(vec![project(2, "checkout-bot", false)]),
        path if path.starts_with("/v1/prompts/deployments/") => {
            assert_eq!(path_id(), id(113));
            Response::new(deployment(113, 13, DeploymentStatus::Shipped, 30_000))
        }
        path if path.ends_with("/diff") => Response::new(remediation_diff()),
        path if path.starts_with("/v1/policies/") => Response::new(policy(301)),
        path if path.starts_with("/v1/traces/") => {
            let trace = path_id().as_u128() & 0xffff;
            Response::new(original_trace(trace))
        }
        path => panic!("{path}"),
    }
}

/// Responds to every request among the effects, and to the requests that follow.
fn answer_all(state: &mut App, effects: &[Effect]) {
    for sent in requests(effects) {
        let more = update(state, Msg::Reply(sent.id, Ok(response_to(&sent))));
        answer_all(state, &more);
    }
}

/// Returns a console on screen 5 after responses to all requests.
fn deciding(size: (u16, u16), theme: Theme) -> App {
    let mut state = filled(size, theme);
    let effects = press(&mut state, "5");
    answer_all(&mut state, &effects);
    state
}

/// Returns a console with the history of screen 5.
fn past(size: (u16, u16)) -> App {
    let mut state = deciding(size, UNICODE_THEME);
    let effects = press(&mut state, "H");
    answer_all(&mut state, &effects);
    state
}

fn only(effects: &[Effect], path: &str) -> Vec<Effect> {
    effects.iter().filter(|it| is_get(it, path)).cloned().collect()
}

fn current_id(state: &App) -> uuid::Uuid {
    state.screens.approvals.current().unwrap().id()
}

fn toast(state: &App) -> &str {
    &state.shell.toast.as_ref().expect("no notice").text
}

#[test]
fn approvals_screen_requests_both_pending_lists_with_the_session() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "5");
    assert!(
        are(&effects, &["/v1/prompts/deployments", "/v1/control/actions", "/v1/projects"]),
        "{effects:?}"
    );
    let sent = requests(&effects);
    assert_eq!((sent[0].param("status"), sent[0].auth.as_str()), (Some("ab_passed"), "SessionOnly"));
    assert_eq!((sent[1].param("status"), sent[1].auth.as_str()), (Some("pending_approval"), "SessionOnly"));
    let followed = reply(&mut state, &effects[..1], Ok(Response::new(pending_deployments())));
    assert_eq!(only_request(&followed).path_id(), Some(id(113)), "the baseline of the first row");
    let followed = reply(&mut state, &effects[..2], Ok(Response::new(pending_actions())));
    assert!(followed.is_empty(), "the baseline is under way");
}

#[test]
fn queue_is_sorted_oldest_first_whatever_the_kind() {
    let state = deciding((80, 24), UNICODE_THEME);
    let ids: Vec<_> = state.screens.approvals.rows().iter().map(|row| row.id()).collect();
    assert_eq!(ids, [id(114), id(201), id(202), id(111)]);
}

#[test]
fn deployment_waits_since_the_end_of_its_test() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "5");
    // It was created 65 minutes ago.
    let tested = deployment(114, 14, DeploymentStatus::AbPassed, 5);
    reply(&mut state, &effects[..1], Ok(Response::new(vec![tested])));
    reply(&mut state, &effects[..2], Ok(Response::new(pending_actions())));
    assert_eq!(state.screens.approvals.rows()[1].id(), id(114), "between actions of 9 and 4 minutes");
    let text = screen(&state);
    let row = text.lines().find(|line| line.contains("support-tone v14")).unwrap();
    assert!(row.contains(" 5m00s "), "{text}");
}

#[test]
fn count_of_lists_that_are_not_read_to_their_end_has_a_plus() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "5");
    reply(&mut state, &effects[..1], Ok(Response::new(pending_deployments()).with_more()));
    reply(&mut state, &effects[..2], Ok(Response::new(pending_actions())));
    let text = screen(&state);
    assert!(text.contains("[5 Appr 4+]") && text.contains("[Pending 4+]"), "{text}");
    state.shell.toast = None;
    assert!(screen(&state).contains("4 of 4+ pending"), "{}", screen(&state));
    let effects = only(&tick(&mut state, 10), "/v1/prompts/deployments");
    reply(&mut state, &effects, Ok(Response::new(pending_deployments())));
    assert!(screen(&state).contains("[5 Appr 4] "), "{}", screen(&state));
}

#[test]
fn selected_action_requests_its_trace_and_its_policy_once() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "j");
    assert!(are(&effects, &["/v1/traces/*", "/v1/policies/*"]), "{effects:?}");
    assert_eq!(requests(&effects)[0].path_id(), Some(id(1_201)));
    answer_all(&mut state, &effects);
    let text = screen(&state);
    assert!(text.contains("retry_threshold_exceeded") && text.contains("refund answers"), "{text}");
    assert!(text.contains("Second line of the output."), "{text}");
    assert!(press(&mut state, "kj").is_empty(), "everything is loaded");
}

#[test]
fn tab_line_counts_pending_rows_on_every_screen() {
    let mut state = filled((80, 24), UNICODE_THEME);
    assert!(!screen(&state).contains("5 Appr 4"));
    let effects = press(&mut state, "5");
    answer_all(&mut state, &effects);
    press(&mut state, "1");
    assert!(screen(&state).contains("5 Appr 4"), "{}", screen(&state));
    let effects = tick(&mut state, 31);
    let asked = [only(&effects, "/v1/prompts/deployments"), only(&effects, "/v1/control/actions")].concat();
    assert_eq!(asked.len(), 2, "the count is refreshed: {effects:?}");
    reply(&mut state, &asked[..1], Ok(Response::new(Vec::<PromptDeployment>::new())));
    reply(&mut state, &asked, Ok(Response::new(pending_actions())));
    assert!(screen(&state).contains("5 Appr 2"), "{}", screen(&state));
    let before = state.shell.problems.len();
    let effects = tick(&mut state, 31);
    let asked = only(&effects, "/v1/control/actions");
    reply(&mut state, &asked, Err(answered(503, "overloaded", "the database is away")));
    assert_eq!(state.shell.problems.len(), before, "a failed count does not interrupt the user");
}

#[test]
fn count_is_requested_as_soon_as_the_identity_is_known() {
    let (mut state, effects) = started((80, 24), UNICODE_THEME);
    let followed = update(&mut state, Msg::Reply(me_request(&effects), Ok(Response::new(me()))));
    assert!(are(&followed, &["/v1/prompts/deployments", "/v1/control/actions"]), "{followed:?}");
}

#[test]
fn count_needs_a_session_and_the_plan() {
    let (mut state, effects) = started((80, 24), UNICODE_THEME);
    let mut poor = me();
    poor.tenant.plan = Plan::Pro;
    let followed = update(&mut state, Msg::Reply(me_request(&effects), Ok(Response::new(poor))));
    assert!(followed.is_empty(), "{followed:?}");
    let (mut state, effects) = started((80, 24), UNICODE_THEME);
    state.shell.target.session = false;
    let followed = update(&mut state, Msg::Reply(me_request(&effects), Ok(Response::new(me()))));
    assert!(followed.is_empty(), "{followed:?}");
}

#[test]
fn api_key_alone_explains_the_session_of_approvals() {
    for size in TERMINAL_SIZES {
        let mut state = filled(size, UNICODE_THEME);
        state.shell.target.session = false;
        let effects = press(&mut state, "5");
        assert!(are(&effects, &["/v1/projects"]), "{effects:?}");
        snap("approvals-session", &state);
        press(&mut state, "a");
        assert!(state.shell.dialog.is_none());
    }
}

#[test]
fn plan_of_approvals_is_explained_in_place_of_the_queue() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "5");
    for at in [1, 2] {
        let error = NetError {
            required_plan: Some("team".into()),
            ..answered(402, "plan_upgrade_required", "approvals need the plan Team")
        };
        reply(&mut state, &effects[..at], Err(error));
    }
    state.shell.toast = None;
    assert!(screen(&state).contains("requires the plan Team"), "{}", screen(&state));
    snap("approvals-plan", &state);
}

#[test]
fn refused_session_stops_the_requests_until_it_is_accepted() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "5");
    let followed = reply(&mut state, &effects[..1], Err(answered(401, "unauthorized", "expired")));
    assert!(are(&followed, &["/v1/me"]), "{followed:?}");
    assert!(screen(&state).contains("The session token was refused"), "{}", screen(&state));
    let late =
        update(&mut state, Msg::Reply(requests(&effects)[1].id, Err(answered(401, "unauthorized", "x"))));
    assert!(only(&late, "/v1/control/actions").is_empty());
    assert!(only(&tick(&mut state, 1), "/v1/control/actions").is_empty());
    assert!(!state.shell.is_unauthorized(), "traces can still be read");
    state.shell.refused_session = None;
    assert_eq!(only(&tick(&mut state, 1), "/v1/control/actions").len(), 1);
}

#[test]
fn late_trace_of_an_action_that_is_gone_is_dropped() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    let trace = only(&press(&mut state, "j"), "/v1/traces/*");
    let effects = tick(&mut state, 10);
    answer_all(&mut state, &only(&effects, "/v1/prompts/deployments"));
    let effects = only(&effects, "/v1/control/actions");
    reply(&mut state, &effects, Ok(Response::new(pending_actions().split_off(1))));
    let effects = reply(&mut state, &trace, Ok(Response::new(original_trace(1_201))));
    answer_all(&mut state, &effects);
    assert!(state.screens.approvals.originals.get(id(201)).is_none());
    let effects = only(&tick(&mut state, 10), "/v1/control/actions");
    let effects = reply(&mut state, &effects, Ok(Response::new(pending_actions())));
    answer_all(&mut state, &effects);
    let effects = press(&mut state, "k");
    assert_eq!(last_request(&only(&effects, "/v1/traces/*")).path_id(), Some(id(1_201)));
}

#[test]
fn whole_text_closes_when_its_row_leaves_the_queue() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    press(&mut state, "=");
    let effects = only(&tick(&mut state, 10), "/v1/prompts/deployments");
    reply(&mut state, &effects, Ok(Response::new(vec![pending_deployments().remove(1)])));
    assert!(state.screens.approvals.zoom.is_none() && toast(&state).contains("no longer"));
    assert_eq!(current_id(&state), id(201));
}

#[test]
fn cursor_stays_on_its_record_while_rows_arrive() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    press(&mut state, "jj");
    assert_eq!(current_id(&state), id(202));
    let effects = only(&tick(&mut state, 10), "/v1/control/actions");
    let rows = [vec![action(210, ActionStatus::PendingApproval, 100)], pending_actions()].concat();
    reply(&mut state, &effects, Ok(Response::new(rows)));
    assert_eq!(current_id(&state), id(202));
    assert!(screen(&state).contains("5 Appr 5"), "{}", screen(&state));
}

#[test]
fn trace_key_opens_the_trace_of_an_action_and_esc_returns() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    press(&mut state, "t");
    assert!(state.shell.screen == 5 && toast(&state).contains("belongs to no trace"));
    press(&mut state, "j");
    let effects = press(&mut state, "t");
    assert_eq!(only_request(&effects).path_id(), Some(id(1_201)));
    key(&mut state, KeyCode::Esc);
    assert_eq!(state.shell.screen, 5);
}

#[test]
fn approval_key_of_a_trace_selects_its_pending_action() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let trace = state.screens.traces.list.current().unwrap().id;
    let mut waiting = action(202, ActionStatus::PendingApproval, 4);
    waiting.trace_id = trace;
    let effects = press(&mut state, "ga");
    assert_eq!(state.shell.screen, 5);
    let asked = only(&effects, "/v1/control/actions");
    let rows = vec![action(201, ActionStatus::PendingApproval, 9), waiting];
    reply(&mut state, &asked, Ok(Response::new(rows.clone())));
    assert_eq!(current_id(&state), id(202));
    press(&mut state, "1j");
    let effects = press(&mut state, "ga");
    let asked = only(&effects, "/v1/control/actions");
    reply(&mut state, &asked, Ok(Response::new(rows)));
    assert!(toast(&state).contains("no action on this trace waits"));
}

#[test]
fn filter_selects_loaded_rows_and_leaves_the_count_alone() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    press(&mut state, "/kind:action type:prompt_modification");
    let effects = key(&mut state, KeyCode::Enter);
    answer_all(&mut state, &effects);
    assert_eq!(current_id(&state), id(202));
    assert!(screen(&state).contains("[5 Appr 4]") && screen(&state).contains("1 of 4 pending"));
    press(&mut state, "/prompt:nothing");
    key(&mut state, KeyCode::Enter);
    press(&mut state, "/");
    for _ in 0..60 {
        key(&mut state, KeyCode::Backspace);
    }
    press(&mut state, "prompt:nothing");
    key(&mut state, KeyCode::Enter);
    state.shell.toast = None;
    snap("approvals-no-match", &state);
    key(&mut state, KeyCode::Esc);
    assert_eq!(state.screens.approvals.rows().len(), 4);
}

#[test]
fn find_goes_to_rows_by_name_and_template() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    press(&mut state, "fcascade");
    key(&mut state, KeyCode::Enter);
    press(&mut state, "n");
    assert_eq!(current_id(&state), id(202));
    assert!(screen(&state).contains("1 of 1"), "{}", screen(&state));
}

#[test]
fn rows_are_requested_again_and_failures_keep_them() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    assert!(tick(&mut state, 9).is_empty());
    let before = state.shell.problems.len();
    for _ in 0..3 {
        let effects = tick(&mut state, 31);
        for path in ["/v1/prompts/deployments", "/v1/control/actions"] {
            let asked = only(&effects, path);
            assert_eq!(asked.len(), 1, "{effects:?}");
            reply(&mut state, &asked, Err(answered(503, "overloaded", "the database is away")));
        }
    }
    assert_eq!(state.shell.problems.len(), before + 2);
    let text = screen(&state);
    assert!(text.contains("support-tone v14") && text.contains("STALE since"), "{text}");
}

#[test]
fn server_without_deployments_still_shows_actions() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "5");
    reply(&mut state, &effects[..1], Err(answered(404, "not_found", "no such path")));
    let followed = reply(&mut state, &effects[..2], Ok(Response::new(pending_actions())));
    answer_all(&mut state, &followed);
    state.shell.toast = None;
    let text = screen(&state);
    assert!(text.contains("[5 Appr 2]") && text.contains("deployments are not up to date: 404"), "{text}");
}

#[test]
fn another_project_discards_the_queue_and_late_responses() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    let late = press(&mut state, "R");
    let effects = press(&mut state, "p");
    answer_all(&mut state, &effects);
    press(&mut state, "j");
    let effects = key(&mut state, KeyCode::Enter);
    assert_eq!(state.shell.project_id(), Some(id(2)));
    assert!(state.screens.approvals.rows().is_empty());
    answer_all(&mut state, &late);
    assert!(state.screens.approvals.rows().is_empty(), "late responses are dropped");
    let asked = only(&effects, "/v1/control/actions");
    assert_eq!(last_request(&asked).uuid("project_id"), Some(id(2)));
}

#[test]
fn records_of_approvals_are_copied_and_exported() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    assert_eq!(press(&mut state, "yi"), [Effect::Copy(id(114).to_string())]);
    let [Effect::Copy(text)] = &press(&mut state, "yd")[..] else { panic!("no copy") };
    assert_eq!(*text, deployment(114, 14, DeploymentStatus::AbPassed, 3).template);
    let [Effect::Copy(curl)] = &press(&mut state, "yc")[..] else { panic!("no copy") };
    assert!(curl.contains("/v1/prompts/deployments/"), "{curl}");
    let effects = press(&mut state, "j");
    answer_all(&mut state, &effects);
    let [Effect::Copy(text)] = &press(&mut state, "yd")[..] else { panic!("no copy") };
    assert!(text.starts_with("The embassy"), "{text}");
    press(&mut state, "e");
    let effects = key(&mut state, KeyCode::Enter);
    let [Effect::Write { path, text, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((path.as_str(), text.lines().count()), ("approvals.ndjson", 4));
}

#[test]
fn approvals_screen_draws_every_state() {
    for size in TERMINAL_SIZES {
        let mut state = filled(size, UNICODE_THEME);
        let effects = press(&mut state, "5");
        tick(&mut state, 1);
        snap("approvals-loading", &state);
        for at in [1, 2] {
            reply(&mut state, &effects[..at], Err(answered(503, "overloaded", "the database is away")));
        }
        state.shell.toast = None;
        snap("approvals-error", &state);
        let mut state = filled(size, UNICODE_THEME);
        let effects = press(&mut state, "5");
        reply(&mut state, &effects[..1], Ok(Response::new(Vec::<PromptDeployment>::new())));
        reply(&mut state, &effects[..2], Ok(Response::new(Vec::<ControlAction>::new())));
        snap("approvals-empty", &state);
        let mut state = deciding(size, UNICODE_THEME);
        snap("approvals", &state);
        press(&mut state, "u");
        snap("approvals-unified", &state);
        let effects = press(&mut state, "jj");
        answer_all(&mut state, &effects);
        snap("approvals-action", &state);
        press(&mut state, "j");
        snap("approvals-first-version", &state);
        press(&mut state, "k");
        key(&mut state, KeyCode::Enter);
        snap("approvals-action-whole", &state);
    }
}

#[test]
fn hostile_texts_draw_no_control_characters() {
    let mut state = deciding((120, 40), UNICODE_THEME);
    for keys in ["", "j", "j", "j", "a"] {
        let effects = press(&mut state, keys);
        answer_all(&mut state, &effects);
        let text = screen(&state);
        let is_hostile = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(is_hostile), "{text:?}");
    }
}

#[test]
fn approvals_without_unicode_and_in_any_size() {
    let mut state = deciding((80, 24), ASCII_THEME);
    for row in &mut state.screens.approvals.pending_queue.deployments.items {
        row.prompt_name = "plain".into();
        row.template = "plain".into();
    }
    state.screens.approvals.baselines.clear();
    update(&mut state, Msg::Resize(81, 24));
    let text = screen(&state);
    assert!(text.is_ascii(), "{text}");
    for cols in [1, 40, 59, 60, 76, 90, 109, 200] {
        for rows in [1, 10, 14, 15, 20, 24, 33, 34, 60] {
            let mut state = deciding((80, 24), UNICODE_THEME);
            update(&mut state, Msg::Resize(cols, rows));
            for keys in ["", "=", "G", "=", "j", "a"] {
                let effects = press(&mut state, keys);
                answer_all(&mut state, &effects);
                screen(&state);
            }
            key(&mut state, KeyCode::PageDown);
            state.shell.dialog = None;
            let effects = press(&mut state, "H");
            answer_all(&mut state, &effects);
            let effects = press(&mut state, "=");
            answer_all(&mut state, &effects);
            screen(&state);
        }
    }
    assert_eq!(state.screens.approvals.tab, ApprovalsTab::Pending);
}
