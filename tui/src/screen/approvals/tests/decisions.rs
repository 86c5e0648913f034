//! The dialogs of decisions, their requests and their outcomes.

use super::*;

#[test]
fn approval_of_a_deployment_shows_the_diff_and_sends_one_request() {
    for size in TERMINAL_SIZES {
        let mut state = deciding(size, UNICODE_THEME);
        let effects = press(&mut state, "a");
        assert!(effects.is_empty(), "{effects:?}");
        wait(&mut state);
        snap("approvals-approve", &state);
        assert!(screen(&state).contains(">[ Cancel ]"), "the focus is on Cancel");
        // Without the characters, the button sends nothing.
        key(&mut state, KeyCode::Tab);
        assert!(key(&mut state, KeyCode::Enter).is_empty() && press(&mut state, "y").is_empty());
        state.shell.dialog.as_mut().unwrap().text_mut().unwrap().clear();
        let digits = id(114).simple().to_string();
        press(&mut state, &digits[28..]);
        let effects = key(&mut state, KeyCode::Enter);
        let sent = only_request(&effects);
        assert_eq!((sent.method.as_str(), sent.auth.as_str()), ("POST", "SessionOnly"));
        assert_eq!(sent.path, format!("/v1/prompts/deployments/{}/approve", id(114)));
        assert!(key(&mut state, KeyCode::Enter).is_empty() && press(&mut state, "y").is_empty());
        let shipped = deployment(114, 14, DeploymentStatus::Shipped, 3);
        let effects = reply(&mut state, &effects, Ok(Response::new(shipped)));
        assert!(are(&effects, &["/v1/prompts/deployments", "/v1/control/actions"]), "{effects:?}");
        assert!(state.shell.dialog.is_none() && toast(&state).contains("support-tone v14 is shipped"));
    }
}

#[test]
fn note_of_a_decision_is_sent_with_it() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    state.shell.target.protected = false;
    press(&mut state, "x");
    wait(&mut state);
    key(&mut state, KeyCode::BackTab);
    assert!(press(&mut state, "yes, but not now").is_empty(), "letters of the note decide nothing");
    snap("approvals-note", &state);
    key(&mut state, KeyCode::Enter);
    key(&mut state, KeyCode::Tab);
    let effects = key(&mut state, KeyCode::Enter);
    let changes = sent_changes::<ApprovalChange>(&state, &effects);
    assert_eq!((changes[0].decision, changes[0].id), (Decision::Reject, id(114)));
    assert_eq!(changes[0].note.as_deref(), Some("yes, but not now"));
    let Effect::Request(request) = &effects[0] else { panic!("{effects:?}") };
    assert!(request.summary().ends_with("{\"note\":\"yes, but not now\"}"), "{}", request.summary());
}

#[test]
fn note_that_is_too_long_is_not_sent() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    state.shell.target.protected = false;
    press(&mut state, "x");
    wait(&mut state);
    key(&mut state, KeyCode::BackTab);
    update(&mut state, Msg::Paste("long ".repeat(401)));
    key(&mut state, KeyCode::Enter);
    key(&mut state, KeyCode::Tab);
    assert!(key(&mut state, KeyCode::Enter).is_empty());
    let complaint = state.shell.dialog.as_ref().unwrap().complaint.clone().unwrap();
    assert!(complaint.contains("2000 characters"), "{complaint}");
}

#[test]
fn action_is_approved_and_rejected_after_a_confirmation() {
    for (keys, decision) in [("a", "approve"), ("x", "reject")] {
        let mut state = deciding((80, 24), UNICODE_THEME);
        state.shell.target.protected = false;
        let effects = press(&mut state, "jj");
        answer_all(&mut state, &effects);
        press(&mut state, keys);
        wait(&mut state);
        snap(&format!("approvals-action-{decision}"), &state);
        let effects = press(&mut state, "y");
        assert_eq!(only_request(&effects).path, format!("/v1/control/actions/{}/{decision}", id(202)));
        let effects = reply(&mut state, &effects, Ok(Response::new(action(202, ActionStatus::Queued, 9))));
        assert!(are(&effects, &["/v1/prompts/deployments", "/v1/control/actions"]), "{effects:?}");
    }
}

#[test]
fn decision_taken_elsewhere_is_reported_and_not_repeated() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    state.shell.target.protected = false;
    press(&mut state, "a");
    wait(&mut state);
    let effects = press(&mut state, "y");
    let refusal = answered(409, "invalid_state", "the deployment is shipped");
    let effects = reply(&mut state, &effects, Err(refusal));
    let paths = ["/v1/prompts/deployments/*", "/v1/prompts/deployments", "/v1/control/actions"];
    assert!(are(&effects, &paths), "{effects:?}");
    assert!(state.shell.dialog.is_none() && toast(&state).contains("409 invalid_state"));
    let mut shipped = deployment(114, 14, DeploymentStatus::Shipped, 3);
    (shipped.decided_by, shipped.decided_at) = (Some("other@example".into()), Some(ago(MINUTE)));
    reply(&mut state, &effects[..1], Ok(Response::new(shipped)));
    let text = toast(&state);
    assert!(text.contains("is shipped already, decided by other@example at 14:02"), "{text}");
}

#[test]
fn refusal_for_the_role_says_so_and_reports_no_other_decision() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    state.shell.target.protected = false;
    press(&mut state, "a");
    wait(&mut state);
    let effects = press(&mut state, "y");
    let refusal = answered(403, "forbidden", "this requires the role owner");
    let effects = reply(&mut state, &effects, Err(refusal));
    reply(&mut state, &effects[..1], Ok(Response::new(deployment(114, 14, DeploymentStatus::AbPassed, 3))));
    assert!(toast(&state).contains("requires the role owner"), "{}", toast(&state));
}

#[test]
fn lost_response_of_a_decision_reads_the_record() {
    let outcomes = [
        (DeploymentStatus::Shipped, "its response was lost"),
        (DeploymentStatus::Rejected, "the response was lost, and support-tone v14 is rejected now"),
    ];
    for (status, notice) in outcomes {
        let mut state = deciding((80, 24), UNICODE_THEME);
        state.shell.target.protected = false;
        press(&mut state, "a");
        wait(&mut state);
        let effects = press(&mut state, "y");
        let effects = reply(&mut state, &effects, Err(offline()));
        assert!(are(&effects, &["/v1/prompts/deployments/*"]), "{effects:?}");
        reply(&mut state, &effects, Ok(Response::new(deployment(114, 14, status, 3))));
        assert!(toast(&state).contains(notice), "{}", toast(&state));
        assert!(state.shell.dialog.is_none());
    }
    let mut state = deciding((80, 24), UNICODE_THEME);
    state.shell.target.protected = false;
    press(&mut state, "j");
    press(&mut state, "x");
    wait(&mut state);
    let effects = press(&mut state, "y");
    let effects = reply(&mut state, &effects, Err(offline()));
    assert!(are(&effects, &["/v1/control/actions/*"]), "{effects:?}");
    reply(&mut state, &effects, Ok(Response::new(action(201, ActionStatus::PendingApproval, 4))));
    let complaint = state.shell.dialog.as_ref().unwrap().complaint.clone().unwrap();
    assert!(complaint.contains("the change was not made"), "{complaint}");
}

#[test]
fn confirmation_is_given_anew_after_a_lost_response() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    press(&mut state, "a");
    wait(&mut state);
    let digits = id(114).simple().to_string();
    press(&mut state, &digits[28..]);
    let effects = key(&mut state, KeyCode::Enter);
    let effects = reply(&mut state, &effects, Err(offline()));
    reply(&mut state, &effects, Ok(Response::new(deployment(114, 14, DeploymentStatus::AbPassed, 240))));
    wait(&mut state);
    let text = screen(&state);
    assert!(text.contains("the change was not made") && text.contains(">[ Cancel ]"), "{text}");
    key(&mut state, KeyCode::Tab);
    assert!(key(&mut state, KeyCode::Enter).is_empty(), "nothing is typed");
    assert!(screen(&state).contains("type the characters first"), "{}", screen(&state));
}

#[test]
fn decision_waits_for_the_baseline() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "5");
    let baseline = reply(&mut state, &effects[..1], Ok(Response::new(pending_deployments())));
    assert!(press(&mut state, "a").is_empty() && state.shell.dialog.is_none());
    assert!(toast(&state).contains("the baseline is being loaded"));
    reply(&mut state, &baseline, Err(answered(503, "overloaded", "the database is away")));
    assert!(screen(&state).contains("the baseline can't be read: 503"), "{}", screen(&state));
    press(&mut state, "a");
    assert!(screen(&state).contains("the baseline can't be read"), "{}", screen(&state));
}

#[test]
fn viewers_and_read_only_consoles_decide_nothing() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    state.shell.me.as_mut().unwrap().role = Role::Member;
    assert!(screen(&state).contains("a approve (owner)"), "{}", screen(&state));
    for keys in ["a", "x", "B"] {
        press(&mut state, keys);
        assert!(state.shell.dialog.is_none() && toast(&state).contains("requires the role owner"));
    }
    state.shell.target.read_only = true;
    press(&mut state, "a");
    assert!(state.shell.dialog.is_none() && toast(&state).contains("read-only"));
    state.shell.toast = None;
    assert!(!screen(&state).contains("approve"), "{}", screen(&state));
}

#[test]
fn history_shows_other_states_and_rolls_back() {
    for size in TERMINAL_SIZES {
        let mut state = past(size);
        let rows = state.screens.approvals.rows();
        let statuses: Vec<&str> = rows.iter().map(|row| row.status()).collect();
        assert_eq!(statuses, ["succeeded", "failed", "rolled_back", "shipped"]);
        snap("approvals-history", &state);
        let effects = press(&mut state, "jj");
        answer_all(&mut state, &effects);
        press(&mut state, "B");
        assert!(
            state.shell.dialog.is_none() && toast(&state).contains("rolled_back: it can't be rolled back")
        );
        press(&mut state, "j");
        press(&mut state, "B");
        wait(&mut state);
        snap("approvals-roll-back", &state);
        state.shell.dialog = None;
        state.shell.target.protected = false;
        press(&mut state, "B");
        wait(&mut state);
        let effects = press(&mut state, "y");
        assert_eq!(only_request(&effects).path, format!("/v1/prompts/deployments/{}/rollback", id(116)));
    }
}

#[test]
fn confirmation_scrolls_a_long_diff() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "5");
    let mut long = deployment(114, 1, DeploymentStatus::AbPassed, 3);
    long.template = (0..80).map(|n| format!("line {n} of the template\n")).collect();
    let followed = reply(&mut state, &effects[..1], Ok(Response::new(vec![long])));
    assert!(followed.is_empty(), "there is no baseline");
    press(&mut state, "a");
    wait(&mut state);
    assert!(screen(&state).contains("line 0 of the template") && screen(&state).contains("lines 1 to"));
    for _ in 0..40 {
        key(&mut state, KeyCode::PageDown);
    }
    assert!(screen(&state).contains("line 79 of the template"), "{}", screen(&state));
    key(&mut state, KeyCode::PageUp);
    assert!(!screen(&state).contains("line 79 of the template"), "{}", screen(&state));
    assert!(screen(&state).contains("[ Approve ]"));
}

/// Returns the lines of the open confirmation, with their marks.
fn excerpt_of(state: &App) -> Vec<String> {
    let dialog = state.shell.dialog.as_ref().expect("no dialog");
    let crate::dialog::Body::Confirm { change, .. } = &dialog.body else { panic!("no confirmation") };
    change.excerpt().iter().map(|line| format!("{}{}", line.mark, line.text)).collect()
}

#[test]
fn long_diff_leaves_out_lines_but_neither_the_model_nor_the_evidence() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "5");
    let mut long = deployment(114, 14, DeploymentStatus::AbPassed, 3);
    long.template = (0..400).map(|n| format!("line {n} of the template\n")).collect();
    let followed = reply(&mut state, &effects[..1], Ok(Response::new(vec![long])));
    answer_all(&mut state, &followed);
    press(&mut state, "a");
    let lines = excerpt_of(&state);
    let signs = lines.iter().filter(|line| line.starts_with(['-', '+'])).count();
    assert_eq!(signs, 300, "{lines:?}");
    let facts = &lines[300..];
    assert_eq!(
        facts[..3],
        [
            "(107 more lines are not shown here)",
            "model: the application's to gpt-4o-mini",
            "compared with the baseline v13"
        ]
    );
    assert!(facts[3].starts_with("faithfulness  effect +0.041"), "{facts:?}");
}

#[test]
fn wrapped_lines_of_a_confirmation_repeat_their_sign() {
    let mut state = filled((60, 20), UNICODE_THEME);
    let effects = press(&mut state, "5");
    let mut long = deployment(114, 1, DeploymentStatus::AbPassed, 3);
    long.template = format!("{}compared with the baseline v13", "word ".repeat(12));
    reply(&mut state, &effects[..1], Ok(Response::new(vec![long])));
    press(&mut state, "a");
    let text = screen(&state);
    let is_marked = |line: &str| line.trim_start_matches([' ', '│']).starts_with('+');
    let rows: Vec<&str> =
        text.lines().filter(|line| line.contains("word word") || line.contains("compared with")).collect();
    assert!(rows.len() > 1 && rows.iter().all(|line| is_marked(line)), "{text}");
}

#[test]
fn roll_back_says_what_applications_get() {
    let mut state = past((80, 24));
    press(&mut state, "jjj");
    let error = answered(503, "overloaded", "the database is away");
    state.screens.approvals.baselines.store(id(113), state.shell.now, Err(error));
    press(&mut state, "B");
    let lines = excerpt_of(&state);
    assert!(
        lines[0].starts_with("the baseline can't be read: 503") && lines[1].starts_with('-'),
        "{lines:?}"
    );
    assert!(lines.iter().any(|line| line == "the whole template is shown as removed"), "{lines:?}");
    state.shell.dialog = None;
    for row in &mut state.screens.approvals.past.deployments.items {
        row.baseline_id = None;
    }
    press(&mut state, "B");
    let lines = excerpt_of(&state);
    assert!(lines.iter().any(|line| line.ends_with("applications get 404")), "{lines:?}");
}
