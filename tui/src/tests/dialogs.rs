//! Snapshots of Keys & Projects, dialogs and choices.

use crate::{
    screen::manage::tests::{answer_all, api_key, keys, managing, wait},
    tests::screens::{TERMINAL_SIZES, screen, snap},
    tests::*,
};

#[test]
fn sections_of_keys_are_drawn_at_every_size() {
    for size in TERMINAL_SIZES {
        let mut state = managing(size, UNICODE_THEME);
        state.shell.limit = Some(crate::net::RateLimit {
            limit: 60,
            remaining: 52,
            reset: Some(Timestamp::from_micros(state.shell.now.micros() + 38_000_000)),
        });
        state.shell.project = state.shell.projects.items.first().cloned();
        snap("keys", &state);
        press(&mut state, "]h");
        snap("projects-tab", &state);
        press(&mut state, "]");
        snap("plan", &state);
        let effects = press(&mut state, "]");
        snap("rejections-loading", &state);
        answer_all(&mut state, &effects);
        snap("rejections", &state);
    }
}

#[test]
fn keys_screen_draws_loading_empty_and_error() {
    for size in TERMINAL_SIZES {
        let mut state = filled(size, UNICODE_THEME);
        let effects = press(&mut state, "7");
        tick(&mut state, 1);
        snap("keys-loading", &state);
        for effect in &effects {
            if is_get(effect, "/v1/projects") {
                reply(
                    &mut state,
                    std::slice::from_ref(effect),
                    Ok(Response::new(Vec::<api::project::Project>::new())),
                );
            } else if is_get(effect, "/v1/apikeys") {
                reply(
                    &mut state,
                    std::slice::from_ref(effect),
                    Ok(Response::new(Vec::<api::key::ApiKey>::new())),
                );
            }
        }
        snap("keys-empty", &state);
        let effects = press(&mut state, "R");
        reply(&mut state, &effects, Err(answered(503, "overloaded", "the database is away")));
        snap("keys-error", &state);
    }
}

#[test]
fn missing_or_refused_session_is_explained() {
    let mut state = filled((80, 24), UNICODE_THEME);
    state.shell.target.session = false;
    let effects = press(&mut state, "7");
    answer_all(&mut state, &effects);
    snap("session-needed", &state);
    let mut state = managing((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "R");
    reply(&mut state, &effects, Err(answered(401, "unauthorized", "the session has expired")));
    snap("session-refused", &state);
}

#[test]
fn confirmation_dialogs_are_drawn_at_every_size() {
    for size in TERMINAL_SIZES {
        let mut state = managing(size, UNICODE_THEME);
        press(&mut state, "]A");
        wait(&mut state);
        snap("confirm-protected", &state);
        press(&mut state, "0002");
        let effects = key(&mut state, KeyCode::Enter);
        snap("sending", &state);
        let effects = reply(&mut state, &effects, Err(offline()));
        snap("checking", &state);
        reply(&mut state, &effects, Err(offline()));
        snap("stuck", &state);
    }
    let mut state = managing((80, 24), UNICODE_THEME);
    state.shell.target.protected = false;
    press(&mut state, "d");
    snap("confirm", &state);
}

#[test]
fn new_key_dialog_is_drawn_at_every_step() {
    for size in TERMINAL_SIZES {
        let mut state = managing(size, UNICODE_THEME);
        press(&mut state, "cci-deploy");
        wait(&mut state);
        key(&mut state, KeyCode::Tab);
        snap("new-key", &state);
        key(&mut state, KeyCode::BackTab);
        key(&mut state, KeyCode::BackTab);
        let effects = key(&mut state, KeyCode::Enter);
        let secret = "lp_7Qa2f0H3kPmW9xYzB4nRtLcV8sDgJ5uE1oAqKi6TbXhNwZM0f";
        let mut made = api_key(20, "ci-deploy", false);
        made.secret = Some(secret.into());
        reply(&mut state, &effects, Ok(Response::new(made)));
        wait(&mut state);
        assert!(!screen(&state).contains(secret), "masked until asked for");
        snap("secret-masked", &state);
        press(&mut state, "v");
        key(&mut state, KeyCode::Esc);
        snap("secret-shown", &state);
    }
}

#[test]
fn palette_and_contexts_are_drawn_at_every_size() {
    let mut state = managing((80, 24), UNICODE_THEME);
    let dev = Target {
        url: "http://127.0.0.1:4600".into(),
        context: Some("dev".into()),
        api_key: true,
        variable: "LOUPE_API_KEY",
        ..Target::default()
    };
    state.shell.contexts = vec![dev, state.shell.target.clone()];
    state.shell.saved = [("slow".to_owned(), "latency:>=5s from:-1h".to_owned())].into();
    press(&mut state, ":proj");
    snap("palette", &state);
    key(&mut state, KeyCode::Esc);
    update(&mut state, Msg::Key(KeyEvent::new(KeyCode::Char('o'), KeyModifiers::CONTROL)));
    snap("contexts", &state);
}

#[test]
fn footer_names_missing_role_and_read_only_hides_changes() {
    let mut state = managing((120, 40), UNICODE_THEME);
    state.shell.me.as_mut().unwrap().role = Role::Viewer;
    press(&mut state, "]");
    snap("viewer", &state);
    state.shell.target.read_only = true;
    let text = screen(&state);
    assert!(!text.contains("archive (") && !text.contains("autoship"), "{text}");
    press(&mut state, "?");
    assert!(!screen(&state).contains("archive the selected"), "{}", screen(&state));
}

#[test]
fn ascii_and_no_colour_keep_dialogs_readable() {
    let mut state = managing((80, 24), ASCII_THEME);
    state.screens.manage.fill_keys(keys().into_iter().filter(|key| key.name.is_ascii()).collect());
    press(&mut state, "hd");
    let text = screen(&state);
    assert!(text.is_ascii(), "{text}");
    snap("ascii-confirm", &state);
}

#[test]
fn every_size_draws_every_dialog() {
    for cols in [1, 20, 39, 40, 45, 59, 60, 79, 80, 100, 200] {
        for rows in [1, 5, 9, 10, 14, 15, 18, 24, 33, 34, 60] {
            let mut state = managing((80, 24), UNICODE_THEME);
            update(&mut state, Msg::Resize(cols, rows));
            for keys in ["", "d", "]", "A", "]", "]c", "]:", "?"] {
                press(&mut state, keys);
                screen(&state);
                if state.shell.dialog.is_some() {
                    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
                    update(&mut state, Msg::Key(interrupt));
                    state.shell.dialog = None;
                }
            }
        }
    }
}

#[test]
fn keys_that_are_not_displayed_do_not_answer_a_dialog() {
    let mut state = managing((80, 24), UNICODE_THEME);
    state.shell.target.protected = false;
    press(&mut state, "d");
    wait(&mut state);
    update(&mut state, Msg::Resize(30, 8));
    assert!(press(&mut state, "y").is_empty());
}
