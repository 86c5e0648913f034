//! Remediation diffs, and diffs of templates over the whole body.

use super::*;

#[test]
fn remediation_diff_opens_by_itself_once_it_is_complete() {
    for size in TERMINAL_SIZES {
        let mut state = past(size);
        let effects = press(&mut state, "=");
        assert!(are(&effects, &["/v1/control/actions/*/diff"]), "{effects:?}");
        let effects = reply(&mut state, &effects, Ok(Response::new(evaluating())));
        assert!(effects.is_empty());
        state.shell.toast = None;
        snap("approvals-evaluating", &state);
        let text = screen(&state).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("1 of 3 done, checked 1x, next in 4s"), "{text}");
        let effects = only(&tick(&mut state, 4), "/v1/control/actions/*/diff");
        assert_eq!(effects.len(), 1);
        assert!(only(&tick(&mut state, 4), "/v1/control/actions/*/diff").is_empty(), "one at a time");
        reply(&mut state, &effects, Ok(Response::new(remediation_diff())));
        state.shell.toast = None;
        snap("approvals-remediation", &state);
        assert!(only(&tick(&mut state, 60), "/v1/control/actions/*/diff").is_empty());
        key(&mut state, KeyCode::Esc);
        assert!(state.screens.approvals.zoom.is_none());
    }
}

#[test]
fn remediation_diff_that_fails_is_explained() {
    let mut state = past((80, 24));
    let effects = press(&mut state, "=");
    reply(&mut state, &effects, Err(answered(409, "invalid_state", "the action was not executed")));
    let text = screen(&state);
    assert!(text.contains("409 invalid_state") && text.contains("R requests the diff again"), "{text}");
    assert!(only(&tick(&mut state, 60), "/v1/control/actions/*/diff").is_empty(), "it is final");
    assert_eq!(only(&press(&mut state, "R"), "/v1/control/actions/*/diff").len(), 1);
    let mut state = past((80, 24));
    press(&mut state, "j");
    press(&mut state, "=");
    assert!(toast(&state).contains("is failed: it has no output to compare"));
    assert_eq!(state.screens.approvals.zoom, Some((ZoomedApproval::Row(id(204)), 0)));
}

#[test]
fn decisions_do_not_act_on_the_row_behind_a_remediation_diff() {
    let mut state = past((80, 24));
    let effects = press(&mut state, "=");
    answer_all(&mut state, &effects);
    for keys in ["a", "x", "B"] {
        press(&mut state, keys);
        assert!(state.shell.dialog.is_none() && toast(&state).contains("the diff of an executed action"));
    }
}

#[test]
fn whole_diff_scrolls_and_switches_between_unified_and_two_sides() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    press(&mut state, "=");
    snap("approvals-diff", &state);
    press(&mut state, "u");
    snap("approvals-diff-unified", &state);
    let before = screen(&state);
    press(&mut state, "G");
    assert!(before.contains("--- v13") && screen(&state).contains("End with a question."), "{before}");
    press(&mut state, "=");
    assert!(state.screens.approvals.zoom.is_none());
    update(&mut state, Msg::Resize(60, 20));
    press(&mut state, "u");
    assert!(toast(&state).contains("too narrow"));
}

#[test]
fn remediated_span_is_marked_and_its_diff_returns_to_the_trace() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = key(&mut state, KeyCode::Enter);
    let mut found = trace(0);
    found.id = state.screens.traces.detail.as_ref().unwrap().id;
    let (mut original, mut remediated) = (span(101, None), span(102, None));
    (original.name, remediated.name) = ("decide_refund".into(), "decide_refund".into());
    let origin = serde_json::json!({"remediation": {
        "action_id": id(203), "action_type": "retry", "original_span_id": id(101),
    }});
    remediated.metadata = RawValue::from_string(origin.to_string()).ok();
    found.spans = Some(vec![original, remediated, span(103, None)]);
    reply(&mut state, &effects, Ok(Response::new(found.clone())));
    snap("detail-remediation", &state);
    for keys in ["j=", "k="] {
        let effects = press(&mut state, keys);
        let diff = only(&effects, "/v1/control/actions/*/diff");
        if keys == "j=" {
            assert_eq!(only_request(&diff).path_id(), Some(id(203)));
            reply(&mut state, &diff, Ok(Response::new(remediation_diff())));
        }
        assert!(
            state.shell.screen == 5 && screen(&state).contains("remediated output"),
            "{}",
            screen(&state)
        );
        let effects = key(&mut state, KeyCode::Esc);
        assert_eq!((state.shell.screen, only_request(&effects).path_id()), (1, Some(found.id)));
        reply(&mut state, &effects, Ok(Response::new(found.clone())));
    }
    press(&mut state, "G=");
    assert!(state.shell.screen == 1 && toast(&state).contains("no action repeated this span"));
}

#[test]
fn refresh_requests_a_complete_remediation_diff_and_the_policy_again() {
    let mut state = past((80, 24));
    let effects = press(&mut state, "=");
    answer_all(&mut state, &effects);
    let effects = press(&mut state, "R");
    assert!(are(&effects, &["/v1/control/actions/*/diff"]), "{effects:?}");
    assert!(screen(&state).contains("+0.020"), "the diff stays until the response: {}", screen(&state));
    reply(&mut state, &effects, Err(answered(503, "overloaded", "the database is away")));
    let text = screen(&state);
    assert!(text.contains("503 overloaded") && text.contains("+0.020"), "{text}");
    let effects = only(&press(&mut state, "R"), "/v1/control/actions/*/diff");
    let DiffResponse::Complete(mut diff) = remediation_diff() else { panic!("not complete") };
    diff.remediated_output = Some("The order was bought in June.".into());
    reply(&mut state, &effects, Ok(Response::new(DiffResponse::Complete(diff))));
    assert!(screen(&state).contains("in June."), "{}", screen(&state));
    key(&mut state, KeyCode::Esc);
    assert!(are(&only(&press(&mut state, "R"), "/v1/policies/*"), &["/v1/policies/*"]));
}

#[test]
fn records_beside_rows_are_dropped_and_requested_again() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    let waiting = |n| action(n, ActionStatus::PendingApproval, i64::try_from(n - 200).unwrap());
    let effects = only(&press(&mut state, "R"), "/v1/control/actions");
    let effects = reply(&mut state, &effects, Ok(Response::new((201..221).map(waiting).collect::<Vec<_>>())));
    answer_all(&mut state, &effects);
    for _ in 0..22 {
        let effects = press(&mut state, "j");
        answer_all(&mut state, &effects);
    }
    for _ in 0..7 {
        assert!(only(&press(&mut state, "k"), "/v1/traces/*").is_empty(), "the last records are kept");
    }
    let mut count = 0;
    for _ in 0..15 {
        let effects = press(&mut state, "k");
        count += only(&effects, "/v1/traces/*").len();
        answer_all(&mut state, &effects);
    }
    assert!(count > 10, "{count}");
}
