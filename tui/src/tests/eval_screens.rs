//! Snapshots of Evals.

use crate::{
    screen::evals::tests::{judged, judging, list, typed},
    tests::screens::{TERMINAL_SIZES, screen, snap},
    tests::*,
};

#[test]
fn evals_screen_draws_every_state() {
    for size in TERMINAL_SIZES {
        let mut state = filled(size, UNICODE_THEME);
        let effects = press(&mut state, "2");
        tick(&mut state, 1);
        snap("evals-loading", &state);
        reply(&mut state, &effects[..1], Ok(Response::new(list(vec![], false))));
        reply(&mut state, &effects[..2], Ok(Response::new(Vec::<api::eval_rule::EvalRule>::new())));
        state.shell.toast = None;
        snap("evals-empty", &state);
        let mut state = filled(size, UNICODE_THEME);
        let effects = press(&mut state, "2");
        reply(&mut state, &effects[..1], Err(answered(503, "overloaded", "the database is away")));
        snap("evals-error", &state);
        let mut state = judging(size, UNICODE_THEME);
        snap("evals", &state);
        press(&mut state, "jjjjj");
        snap("evals-below", &state);
        press(&mut state, "jjjj");
        snap("evals-failed", &state);
        press(&mut state, "gg");
        key(&mut state, KeyCode::Enter);
        snap("evals-whole", &state);
        let mut state = judging(size, UNICODE_THEME);
        press(&mut state, "csent");
        key(&mut state, KeyCode::Tab);
        snap("evals-run", &state);
        let mut state = opened(size, UNICODE_THEME);
        let effects = if size.0 >= 110 { press(&mut state, "]") } else { press(&mut state, "]]]") };
        let mut rows = judged();
        rows[5].original_evaluation_id = Some(id(37));
        rows[1].span_id = Some(id(103));
        reply(&mut state, &effects, Ok(Response::new(list(rows, true))));
        snap("detail-evals", &state);
    }
}

#[test]
fn empty_invalid_and_refused_evals_are_drawn() {
    let mut state = judging((80, 24), UNICODE_THEME);
    let effects = typed(&mut state, "metric:faithfulness from:-15m");
    reply(&mut state, &effects, Ok(Response::new(list(vec![], false))));
    snap("evals-no-match", &state);
    typed(&mut state, " labl:x");
    snap("evals-wrong", &state);
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "2");
    reply(&mut state, &effects[..1], Err(answered(401, "unauthorized", "the key is not known")));
    snap("evals-unauthorized", &state);
    let mut state = opened((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "]]]");
    reply(&mut state, &effects, Ok(Response::new(list(vec![], false))));
    snap("detail-evals-none", &state);
    let mut state = judging((80, 24), UNICODE_THEME);
    press(&mut state, "?");
    snap("evals-help", &state);
}

#[test]
fn evals_screen_is_drawn_in_ascii_without_colour_and_at_every_size() {
    let mut state = judging((80, 24), ASCII_THEME);
    state.screens.evals.rows[0].reasoning = Some("plain".into());
    let text = screen(&state);
    assert!(text.is_ascii(), "{text}");
    snap("ascii-evals", &state);
    for cols in [1, 40, 59, 60, 76, 90, 109, 200] {
        for rows in [1, 10, 14, 15, 20, 24, 33, 34, 60] {
            let mut state = judging((80, 24), UNICODE_THEME);
            update(&mut state, Msg::Resize(cols, rows));
            for keys in ["", "r", "r", "c"] {
                press(&mut state, keys);
                screen(&state);
            }
            key(&mut state, KeyCode::Esc);
            state.shell.dialog = None;
            key(&mut state, KeyCode::Enter);
            screen(&state);
        }
    }
}
