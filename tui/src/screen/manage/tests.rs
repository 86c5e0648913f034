//! Tests of the screen Keys & Projects: requests, and changes that are sent once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use api::{
    key::ApiKey,
    project::ProjectStatus,
    rejection::{Rejection, RejectionList, RejectionReason, RejectionSource},
};

use crate::tests::*;
use crate::{dialog::Body, screen::manage::change::ManageChange};

pub fn api_key(n: u128, name: &str, query: bool) -> ApiKey {
    ApiKey {
        id: id(n),
        name: name.into(),
        prefix: format!("lp_{n:0>8}"),
        scopes: if query { vec![api::Scope::Query] } else { Vec::new() },
        project_id: id(2),
        created_at: Timestamp::from_micros(BASE_MICROS - 86_400_000_000 * 50),
        expires_at: None,
        secret: None,
    }
}

pub fn keys() -> Vec<ApiKey> {
    vec![
        api_key(11, "ci-deploy", false),
        api_key(12, "grafana-read", true),
        api_key(13, "本番環境のエクスポーター用キー、とても長い名前", false),
        ApiKey { expires_at: Some(Timestamp::from_micros(BASE_MICROS)), ..api_key(14, "old-laptop", false) },
    ]
}

pub fn projects() -> Vec<api::project::Project> {
    let mut support = project(3, "support-bot", false);
    support.prompt_autoship_enabled = true;
    support.retention_days = Some(30);
    vec![project(4, "2025-pilot", true), project(2, "checkout-bot", false), support]
}

/// Returns rejections of two SDKs, one of them for many requests.
pub fn rejections() -> RejectionList {
    let reason = |index, code: &str, message: &str| RejectionReason {
        index,
        code: code.to_owned(),
        message: message.to_owned(),
    };
    let python = Rejection {
        id: id(31),
        project_id: id(2),
        source: RejectionSource::Otlp,
        sdk: Some("opentelemetry/python".into()),
        sdk_version: Some("1.27.0".into()),
        rejected: 5,
        requests: 1,
        reasons: vec![
            reason(Some(17), "validation_failed", "trace_id must be 16 bytes that are not all zero"),
            reason(Some(18), "validation_failed", "span_id must be 8 bytes that are not all zero"),
            reason(
                None,
                "ingest_quota_exceeded",
                "the starter plan's quota of 10000 traces per month is used up; it renews on the first day of the next month (UTC)",
            ),
        ],
        request_id: "0198-request".into(),
        received_at: Timestamp::from_micros(BASE_MICROS - 60_000_000),
        last_at: Timestamp::from_micros(BASE_MICROS - 60_000_000),
    };
    let json = Rejection {
        id: id(32),
        project_id: id(2),
        source: RejectionSource::Json,
        sdk: None,
        sdk_version: None,
        rejected: 12_000,
        requests: 3_000,
        reasons: Vec::new(),
        last_at: Timestamp::from_micros(BASE_MICROS - 600_000_000),
        ..python.clone()
    };
    RejectionList { rejections: vec![python, json], has_more: false, next_cursor: None }
}

/// Returns a console on screen 7 with all records loaded.
pub fn managing(size: (u16, u16), theme: Theme) -> App {
    let mut state = filled(size, theme);
    let effects = press(&mut state, "7");
    answer_all(&mut state, &effects);
    state
}

/// Responds to every request for lists and for the identity.
pub fn answer_all(state: &mut App, effects: &[Effect]) {
    for effect in effects {
        let Some(sent) = SentRequest::of(effect) else { continue };
        let response = match sent.path.as_str() {
            "/v1/me" => Response::new(me()),
            "/v1/projects" => Response::new(projects()),
            "/v1/apikeys" => Response::new(keys()),
            "/v1/rejections" => Response::new(rejections()),
            _ => continue,
        };
        update(state, Msg::Reply(sent.id, Ok(response)));
    }
}

/// Advances the clock beyond the time in which a new dialog ignores keys.
pub fn wait(state: &mut App) {
    let now = Timestamp::from_micros(state.shell.now.micros() + 400_000);
    update(state, Msg::Tick(now));
}

fn enter(state: &mut App) -> Vec<Effect> {
    key(state, KeyCode::Enter)
}

#[test]
fn keys_screen_requests_keys_projects_and_identity() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "7");
    assert!(are(&effects, &["/v1/me", "/v1/projects", "/v1/apikeys"]), "{effects:?}");
    assert_eq!(requests(&effects)[0].auth, "Session");
    let mut state = filled((80, 24), UNICODE_THEME);
    state.shell.target.session = false;
    let effects = press(&mut state, "7");
    assert!(!effects.iter().any(|it| is_get(it, "/v1/apikeys")), "keys need a session");
    assert!(press(&mut state, "c").is_empty() && state.shell.dialog.is_none());
    assert!(state.shell.toast.as_ref().unwrap().text.contains("session token"));
}

#[test]
fn rejections_of_the_selected_project_are_requested_when_they_are_shown() {
    let mut state = managing((80, 24), UNICODE_THEME);
    state.shell.project = state.shell.projects.items.first().cloned();
    let project = state.shell.project_id();
    let effects = press(&mut state, "[");
    assert!(are(&effects, &["/v1/rejections"]), "{effects:?}");
    assert_eq!(only_request(&effects).uuid("project_id"), project);
    assert!(!state.screens.manage.rejections.loaded);
    answer_all(&mut state, &effects);
    press(&mut state, "j");
    assert_eq!(state.screens.manage.rejection().unwrap().id, id(32));
    let effects = press(&mut state, "R");
    assert!(effects.iter().any(|it| is_get(it, "/v1/rejections")), "{effects:?}");
    answer_all(&mut state, &effects);
    assert_eq!(state.screens.manage.rejection().unwrap().id, id(32), "the cursor stays on its rejection");
    assert!(press(&mut state, "]").is_empty(), "the keys are loaded");
}

#[test]
fn failed_request_for_rejections_is_explained_and_leaves_the_keys() {
    let mut state = managing((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "[");
    reply(&mut state, &effects, Err(answered(503, "overloaded", "the database is away")));
    let manage = &state.screens.manage;
    assert!(manage.rejections.error.is_some() && manage.keys.error.is_none());
    let effects = press(&mut state, "R");
    answer_all(&mut state, &effects);
    assert!(state.screens.manage.rejections.error.is_none());
}

#[test]
fn archiving_on_a_protected_context_takes_the_typed_characters_and_sends_once() {
    let mut state = managing((80, 24), UNICODE_THEME);
    press(&mut state, "]A");
    press(&mut state, "0002");
    assert!(enter(&mut state).is_empty(), "keys right after opening are ignored");
    assert!(state.shell.dialog.is_some());
    wait(&mut state);
    assert!(enter(&mut state).is_empty() && state.shell.dialog.is_none(), "the focus is on Cancel");

    press(&mut state, "A");
    wait(&mut state);
    assert!(press(&mut state, "y").is_empty(), "y is not enough here");
    key(&mut state, KeyCode::Backspace);
    key(&mut state, KeyCode::Tab);
    assert!(enter(&mut state).is_empty(), "nothing was typed");
    press(&mut state, "0002");
    let effects = enter(&mut state);
    let wanted =
        ManageChange::SetStatus { id: id(2), name: "checkout-bot".into(), status: ProjectStatus::Archived };
    assert_eq!(sent_changes::<ManageChange>(&state, &effects), [wanted]);
    for _ in 0..3 {
        assert!(enter(&mut state).is_empty(), "the request is open");
        assert!(
            key(&mut state, KeyCode::Esc).is_empty() && state.shell.dialog.is_some(),
            "esc no longer cancels"
        );
    }
    let effects = reply(&mut state, &effects, Ok(Response::new(())));
    assert!(
        sent_changes::<ManageChange>(&state, &effects).is_empty()
            && effects.iter().any(|it| is_get(it, "/v1/projects"))
    );
    assert!(state.shell.dialog.is_none() && state.shell.toast.as_ref().unwrap().text.contains("is archived"));
}

#[test]
fn unprotected_context_accepts_y_and_ignores_key_repeats() {
    let mut state = managing((80, 24), UNICODE_THEME);
    state.shell.target.protected = false;
    press(&mut state, "d");
    wait(&mut state);
    let mut held = KeyEvent::new(KeyCode::Char('y'), KeyModifiers::NONE);
    held.kind = crossterm::event::KeyEventKind::Repeat;
    assert!(update(&mut state, Msg::Key(held)).is_empty());
    let effects = press(&mut state, "y");
    assert_eq!(
        sent_changes::<ManageChange>(&state, &effects),
        [ManageChange::RevokeKey { id: id(11), name: "ci-deploy".into() }]
    );
    reply(&mut state, &effects, Err(answered(404, "not_found", "no such key")));
    assert!(state.shell.dialog.is_none());
    assert!(state.shell.toast.as_ref().unwrap().text.contains("no longer exists"));
}

#[test]
fn lost_response_reads_the_list_and_is_not_resent() {
    let archived = |status| {
        let mut all = projects();
        all[1].status = status;
        all
    };
    for (lost, status, told) in [
        (offline(), ProjectStatus::Archived, "its response was lost"),
        (offline(), ProjectStatus::Active, "the change was not made"),
        (answered(502, "", "bad gateway"), ProjectStatus::Archived, "its response was lost"),
    ] {
        let mut state = managing((80, 24), UNICODE_THEME);
        state.shell.target.protected = false;
        press(&mut state, "]A");
        wait(&mut state);
        let effects = press(&mut state, "y");
        assert_eq!(sent_changes::<ManageChange>(&state, &effects).len(), 1);
        let effects = reply(&mut state, &effects, Err(lost));
        assert!(are(&effects, &["/v1/projects"]), "{effects:?}");
        assert!(enter(&mut state).is_empty());
        // The request for the list fails as well, and is repeated when the user presses R.
        let nothing = reply(&mut state, &effects, Err(offline()));
        assert!(nothing.is_empty() && state.shell.dialog.is_some());
        let effects = press(&mut state, "R");
        assert!(are(&effects, &["/v1/projects"]), "{effects:?}");
        let effects = reply(&mut state, &effects, Ok(Response::new(archived(status))));
        assert!(sent_changes::<ManageChange>(&state, &effects).is_empty());
        let text = match &state.shell.dialog {
            Some(dialog) => dialog.complaint.clone().unwrap(),
            None => state.shell.toast.as_ref().unwrap().text.clone(),
        };
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn new_key_shows_its_secret_until_it_is_stored() {
    let mut state = managing((80, 24), UNICODE_THEME);
    press(&mut state, "cci");
    wait(&mut state);
    key(&mut state, KeyCode::Enter);
    press(&mut state, " ");
    for _ in 0..3 {
        key(&mut state, KeyCode::Tab);
    }
    let effects = enter(&mut state);
    assert_eq!(
        sent_changes::<ManageChange>(&state, &effects),
        [ManageChange::CreateKey { name: "ci".into(), query: true, project: None }]
    );
    let secret = "lp_SECRETSECRET";
    let made = ApiKey { secret: Some(secret.into()), ..api_key(20, "ci", true) };
    reply(&mut state, &effects, Ok(Response::new(made)));
    wait(&mut state);
    for code in [KeyCode::Esc, KeyCode::Enter] {
        key(&mut state, code);
        assert!(state.shell.dialog.as_ref().is_some_and(|it| it.complaint.is_some()), "{code:?}");
    }
    assert_eq!(press(&mut state, "y"), [Effect::Copy(secret.into())]);
    assert!(!format!("{state:?}").contains(secret), "the debug output does not contain the secret");
    key(&mut state, KeyCode::Tab);
    assert!(enter(&mut state).is_empty() && state.shell.dialog.is_some(), "the box is not ticked");
    key(&mut state, KeyCode::Tab);
    press(&mut state, " ");
    key(&mut state, KeyCode::Tab);
    enter(&mut state);
    assert!(state.shell.dialog.is_none());
}

#[test]
fn new_key_with_a_lost_response_is_reported_by_name() {
    let mut state = managing((80, 24), UNICODE_THEME);
    press(&mut state, "cci");
    wait(&mut state);
    key(&mut state, KeyCode::BackTab);
    let effects = enter(&mut state);
    assert_eq!(sent_changes::<ManageChange>(&state, &effects).len(), 1);
    let effects = reply(&mut state, &effects, Err(offline()));
    let mut after = keys();
    after.insert(0, api_key(20, "ci", false));
    reply(&mut state, &effects, Ok(Response::new(after)));
    assert!(state.shell.toast.as_ref().unwrap().text.contains("its secret was lost"));
}

#[test]
fn refused_form_can_be_corrected_and_resent() {
    let mut state = managing((80, 24), UNICODE_THEME);
    press(&mut state, "]ccheckout-bot");
    wait(&mut state);
    key(&mut state, KeyCode::BackTab);
    let effects = enter(&mut state);
    assert_eq!(
        sent_changes::<ManageChange>(&state, &effects),
        [ManageChange::CreateProject { name: "checkout-bot".into() }]
    );
    reply(&mut state, &effects, Err(answered(409, "duplicate_name", "there is such a project")));
    let dialog = state.shell.dialog.as_ref().unwrap();
    assert!(dialog.complaint.as_ref().unwrap().contains("there is such a project"));
    assert!(dialog.is_asking());
    press(&mut state, "-2");
    wait(&mut state);
    key(&mut state, KeyCode::BackTab);
    let effects = enter(&mut state);
    assert_eq!(
        sent_changes::<ManageChange>(&state, &effects),
        [ManageChange::CreateProject { name: "checkout-bot-2".into() }]
    );
}

#[test]
fn ctrl_c_clears_then_closes_and_twice_always_quits() {
    let mut state = managing((80, 24), UNICODE_THEME);
    let interrupt = || Msg::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    press(&mut state, "cx");
    assert!(update(&mut state, interrupt()).is_empty() && state.shell.dialog.is_some());
    assert!(update(&mut state, interrupt()).is_empty() && state.shell.dialog.is_none());
    press(&mut state, "cx");
    wait(&mut state);
    key(&mut state, KeyCode::BackTab);
    enter(&mut state);
    assert!(update(&mut state, interrupt()).is_empty(), "the request is open");
    assert_eq!(update(&mut state, interrupt()), [Effect::Quit]);
}

#[test]
fn roles_read_only_and_silence_stop_changes() {
    let tried = |change: fn(&mut App)| {
        let mut state = managing((80, 24), UNICODE_THEME);
        change(&mut state);
        press(&mut state, "]A");
        assert!(state.shell.dialog.is_none());
        state.shell.toast.unwrap().text
    };
    assert!(
        tried(|state| state.shell.me.as_mut().unwrap().role = Role::Member)
            .contains("requires the role owner")
    );
    assert!(tried(|state| state.shell.target.read_only = true).contains("read-only"));
    let away = |state: &mut App| {
        let outage = crate::shell::Outage { since: state.shell.now, attempts: 1, error: offline() };
        state.shell.link = Link::Down(outage);
    };
    assert!(tried(away).contains("does not respond"));
}

#[test]
fn refused_session_falls_back_to_the_api_key() {
    let mut state = managing((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "R");
    let effects = reply(&mut state, &effects, Err(answered(401, "unauthorized", "expired")));
    assert!(are(&effects, &["/v1/me"]) && only_request(&effects).auth.is_empty(), "{effects:?}");
    assert!(!state.shell.has_session() && state.shell.link == Link::Streaming);
}

#[test]
fn archived_projects_are_hidden_until_requested() {
    let mut state = managing((80, 24), UNICODE_THEME);
    assert_eq!(state.shell.projects.shown_len(), 2);
    press(&mut state, "]jh");
    assert_eq!(state.shell.projects.shown_len(), 3);
    assert_eq!(
        state.shell.projects.current().unwrap().name,
        "support-bot",
        "the cursor stays with its project"
    );
    press(&mut state, "jU");
    assert!(matches!(&state.shell.dialog.as_ref().unwrap().body, Body::Confirm { .. }));
}

#[test]
fn enter_shows_the_traces_of_a_project() {
    let mut state = managing((80, 24), UNICODE_THEME);
    press(&mut state, "]j");
    let effects = enter(&mut state);
    assert_eq!((last_request(&effects).uuid("project_id"), state.shell.screen), (Some(id(3)), 1));
}

#[test]
fn changed_context_keeps_no_data() {
    let mut state = managing((80, 24), UNICODE_THEME);
    let here = state.shell.target.clone();
    let there = Target {
        url: "http://other".into(),
        context: Some("dev".into()),
        variable: "LOUPE_API_KEY",
        ..Target::default()
    };
    state.shell.contexts = vec![there, here];
    state.screens.traces.filter.text = "error:true".into();
    let before = press(&mut state, "R");
    update(&mut state, Msg::Key(KeyEvent::new(KeyCode::Char('o'), KeyModifiers::CONTROL)));
    assert!(enter(&mut state).is_empty(), "the cursor stands at the context in use");
    update(&mut state, Msg::Key(KeyEvent::new(KeyCode::Char('o'), KeyModifiers::CONTROL)));
    press(&mut state, "k");
    let effects = enter(&mut state);
    assert_eq!(effects[0], Effect::Connect(0));
    let unfiltered = |it: &SentRequest| it.gets("/v1/traces") && it.param("error").is_none();
    assert!(requests(&effects).iter().any(unfiltered), "{effects:?}");
    assert_eq!(
        (state.shell.target.url.as_str(), state.shell.target.protected, state.shell.screen),
        ("http://other", false, 7)
    );
    assert!(
        state.shell.me.is_none()
            && state.screens.traces.list.is_empty()
            && state.screens.manage.keys.items.is_empty()
    );
    answer_all(&mut state, &before);
    assert!(
        state.shell.me.is_none() && !state.screens.manage.keys.loaded,
        "responses of the old server are dropped"
    );
}

#[test]
fn palette_finds_actions_projects_filters_and_ids() {
    let mut state = managing((80, 24), UNICODE_THEME);
    state.shell.saved = [("slow".to_owned(), "latency:>=5s".to_owned())].into();
    press(&mut state, ":arch");
    assert!(state.shell.input.is_some());
    let words = |state: &App| {
        crate::app::palette::items::items(&state.shell, state.shell.input.as_ref().unwrap().text())
    };
    assert!(!words(&state).is_empty());
    key(&mut state, KeyCode::Esc);
    press(&mut state, ":support");
    let effects = enter(&mut state);
    assert_eq!(last_request(&effects).uuid("project_id"), Some(id(3)));
    press(&mut state, ":@slow");
    let effects = enter(&mut state);
    assert_eq!((last_request(&effects).param("latency_min"), state.shell.screen), (Some("5000"), 1));
    press(&mut state, &format!(":{}", id(5)));
    assert_eq!(only_request(&enter(&mut state)).path, format!("/v1/traces/{}", id(5)));
}

#[test]
fn read_only_offers_no_change_anywhere() {
    let mut state = managing((80, 24), UNICODE_THEME);
    state.shell.target.read_only = true;
    press(&mut state, "]:");
    for words in ["archive the", "create a", "autoship", "revoke"] {
        let found = crate::app::palette::items::items(&state.shell, words);
        assert!(
            found.iter().all(
                |it| !matches!(it.pick, crate::app::palette::items::PaletteChoice::Do(row) if row.role.is_some())
            ),
            "{words}"
        );
    }
}

#[test]
fn rebound_key_works_in_the_console() {
    let mut state = managing((80, 24), UNICODE_THEME);
    state.shell.keymap =
        crate::screen::keymap(&[("keys.create".to_owned(), vec!["ctrl-n".to_owned()])].into()).unwrap();
    assert!(press(&mut state, "c").is_empty() && state.shell.dialog.is_none());
    update(&mut state, Msg::Key(KeyEvent::new(KeyCode::Char('n'), KeyModifiers::CONTROL)));
    assert!(state.shell.dialog.is_some());
}

#[test]
fn end_of_a_session_is_announced_once() {
    let mut state = managing((80, 24), UNICODE_THEME);
    tick(&mut state, 35 * 60);
    assert!(state.shell.problems.is_empty());
    tick(&mut state, 70);
    tick(&mut state, 1);
    assert_eq!(state.shell.problems.len(), 1, "{:?}", state.shell.problems);
}
