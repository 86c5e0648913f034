//! The evaluations of an opened trace, and the requests sent when the server is back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::shell::Outage;
use crate::{
    screen::evals::rules::tests::{decisions, rules},
    screen::evals::tests::{evaluation_requests, judged, judging, list},
    tests::screens::{screen, snap},
    tests::*,
};

#[test]
fn sentences_name_the_keys_in_force() {
    let own: crate::keymap::Rebinding = [
        ("trace.evaluate", "ctrl-e"),
        ("trace.why", "ctrl-w"),
        ("trace.evals", "g v"),
        ("evals.rules", "ctrl-r"),
        ("rules.create", "ctrl-a"),
        ("nav.refresh", "ctrl-y"),
        ("evals.filter", "ctrl-f"),
    ]
    .map(|(name, key)| (name.to_owned(), vec![key.to_owned()]))
    .into();
    let mut state = opened((80, 24), UNICODE_THEME);
    state.shell.keymap = crate::screen::keymap(&own).unwrap();
    let effects = press(&mut state, "]]]");
    reply(&mut state, &effects, Ok(Response::new(list(vec![], true))));
    press(&mut state, "z");
    let text = screen(&state);
    for told in ["ctrl-e runs one, ctrl-w tells why", "g v lists all"] {
        assert!(text.contains(told), "{told}: {text}");
    }
    state.shell.target.read_only = true;
    press(&mut state, "z");
    state.screens.traces.detail.as_mut().unwrap().touch();
    press(&mut state, "z");
    let text = screen(&state);
    assert!(text.contains("ctrl-w tells why") && !text.contains("runs one"), "{text}");
    let effects = press(&mut state, "2");
    reply(&mut state, &effects[..1], Err(answered(503, "overloaded", "the database is away")));
    let text = screen(&state);
    assert!(text.contains("ctrl-y retries now"), "{text}");
    let effects = press(&mut state, "1");
    assert!(effects.is_empty(), "{effects:?}");
    state.screens.traces.list = crate::screen::traces::state::TraceRows::new();
    let request = start_list_request(&mut state, TracesRequest::First);
    update(&mut state, Msg::Reply(request, Err(answered(422, "validation", "no such model"))));
    let text = screen(&state);
    assert!(text.contains("ctrl-y retries now") && text.contains("/ changes the filter"), "{text}");
}

#[test]
fn scores_of_a_trace_are_requested_when_shown() {
    let mut state = opened((80, 24), UNICODE_THEME);
    press(&mut state, "]]");
    let effects = press(&mut state, "]");
    let trace = state.screens.traces.detail.as_ref().unwrap().id;
    assert_eq!(evaluation_requests(&effects)[0].uuid("trace_id"), Some(trace));
    reply(&mut state, &effects, Ok(Response::new(list(judged(), false))));
    assert!(tick(&mut state, 1).iter().all(|it| !is_get(it, "/v1/eval")));
    let again = tick(&mut state, 1);
    assert_eq!(evaluation_requests(&again).len(), 1, "an evaluation is not finished: {again:?}");
    let mut done = judged();
    done.retain(|row| row.score.is_some());
    reply(&mut state, &again, Ok(Response::new(list(done.clone(), false))));
    let again = tick(&mut state, 2);
    assert_eq!(evaluation_requests(&again).len(), 1, "all evaluations are finished, but the trace is young");
    tick(&mut state, 120);
    reply(&mut state, &again, Ok(Response::new(list(done, false))));
    assert!(evaluation_requests(&tick(&mut state, 60)).is_empty(), "no further evaluations are expected");
    press(&mut state, "[");
    assert_eq!(
        evaluation_requests(&press(&mut state, "]")).len(),
        1,
        "returning to the tab repeats the request"
    );
    let effects = press(&mut state, "J");
    assert_eq!(evaluation_requests(&effects).len(), 1, "the scores of the next trace");
    press(&mut state, "]");
    assert!(evaluation_requests(&tick(&mut state, 60)).is_empty());
}

#[test]
fn trace_without_evaluations_is_polled_until_it_is_ready_and_old() {
    let mut state = opened((80, 24), UNICODE_THEME);
    state.screens.traces.detail.as_mut().unwrap().trace =
        Some(std::sync::Arc::new(Trace { ready: false, ..refund() }));
    let mut effects = press(&mut state, "]]]");
    for _ in 0..3 {
        reply(&mut state, &effects, Ok(Response::new(list(vec![], false))));
        effects = without_count(tick(&mut state, 600));
        assert_eq!(evaluation_requests(&effects).len(), 1, "rules judge it once it is ready");
    }
    state.screens.traces.detail.as_mut().unwrap().trace = Some(std::sync::Arc::new(refund()));
    reply(&mut state, &effects, Ok(Response::new(list(vec![], false))));
    assert!(evaluation_requests(&tick(&mut state, 600)).is_empty());
}

#[test]
fn failed_request_for_trace_evaluations_backs_off() {
    let mut state = opened((80, 24), UNICODE_THEME);
    let mut effects = press(&mut state, "]]]");
    reply(&mut state, &effects, Ok(Response::new(list(judged(), false))));
    effects = tick(&mut state, 2);
    for wait in [4, 8] {
        reply(&mut state, &effects, Err(answered(503, "overloaded", "the database is away")));
        assert!(evaluation_requests(&tick(&mut state, wait / 2 - 1)).is_empty(), "{wait}");
        effects = tick(&mut state, wait / 2 + 1);
        assert_eq!(evaluation_requests(&effects).len(), 1, "{wait}");
    }
    reply(&mut state, &effects, Err(answered(404, "not_found", "there is no such trace")));
    assert!(evaluation_requests(&tick(&mut state, 29)).is_empty(), "the next request is the same");
    assert_eq!(evaluation_requests(&tick(&mut state, 1)).len(), 1, "no failure is for good");
}

#[test]
fn shown_records_are_requested_when_the_server_is_back() {
    for detail in [false, true] {
        let mut state =
            if detail { opened((80, 24), UNICODE_THEME) } else { judging((80, 24), UNICODE_THEME) };
        state.shell.link = Link::Down(Outage { since: state.shell.now, attempts: 3, error: offline() });
        if detail {
            press(&mut state, "]]]");
        }
        for _ in 0..4 {
            let effects = if detail { press(&mut state, "[]") } else { press(&mut state, "R") };
            let effects: Vec<Effect> = effects.into_iter().filter(|it| is_get(it, "/v1/eval")).collect();
            reply(&mut state, &effects, Err(offline()));
        }
        state.shell.next_poll = Some(Timestamp::from_micros(state.shell.now.micros() + 30_000_000));
        let effects = tick(&mut state, 30);
        let (mut looks, mut traces) = (effects.clone(), effects);
        looks.retain(|it| is_get(it, "/v1/eval"));
        traces.retain(|it| is_get(it, "/v1/traces"));
        if !looks.is_empty() {
            reply(&mut state, &looks, Err(offline()));
        }
        let effects = answer(&mut state, &traces, page(rows()));
        assert_eq!(evaluation_requests(&effects).len(), 1, "detail {detail}: {effects:?}");
    }
}

#[test]
fn trace_shows_decisions_of_its_rules() {
    let mut state = opened((80, 24), UNICODE_THEME);
    let trace = state.screens.traces.detail.as_ref().unwrap().id;
    let effects = press(&mut state, "w");
    assert!(are(&effects, &["/v1/eval", "/v1/eval-rules"]), "{effects:?}");
    assert!(last_request(&effects).param("project_id").is_some());
    reply(&mut state, &effects[..1], Ok(Response::new(list(vec![], false))));
    let mut effects = reply(&mut state, &effects, Ok(Response::new(rules())));
    for (number, rule) in rules().iter().enumerate() {
        assert!(are(&effects, &["/v1/eval-rules/*/decisions"]), "{effects:?}");
        let sent = only_request(&effects);
        assert_eq!(
            (sent.path_id(), sent.uuid("trace_id")),
            (Some(rule.id), Some(trace)),
            "one after the other"
        );
        let mut page = decisions();
        page.decisions.rotate_left(number % 3);
        let result = if number == 3 { Err(offline()) } else { Ok(Response::new(page)) };
        effects = reply(&mut state, &effects, result);
    }
    assert!(effects.is_empty(), "{effects:?}");
    press(&mut state, "z");
    snap("detail-why", &state);
    let effects = press(&mut state, "wJ");
    let mut late = effects;
    late.retain(|it| is_get(it, "/v1/eval-rules"));
    assert!(
        reply(&mut state, &late, Ok(Response::new(rules()))).is_empty(),
        "the response belongs to the previous trace"
    );
}
