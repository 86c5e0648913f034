//! Tests of the screen Search: requests, navigation and display.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use api::search::{SearchResult, SearchResults};

use super::{SCREEN_DIGIT, state::SearchQuery};
use crate::{
    tests::screens::{TERMINAL_SIZES, screen, snap},
    tests::*,
};

fn found(n: u128, name: &str, output: &str, score: f64) -> SearchResult {
    let mut span = span(n, Some(1));
    span.trace_id = id(900 + n);
    span.name = name.into();
    span.model = Some("gpt-4o".into());
    span.output = Some(output.into());
    span.prompt_tokens = Some(512);
    span.completion_tokens = Some(128);
    span.cost = Some(0.0031);
    SearchResult { span, score, distance: 2.0 - 2.0 * score }
}

fn results() -> SearchResults {
    let mut rows = vec![
        found(101, "answer_question", "Dear customer,\nyour refund has been issued, as promised.", 0.91),
        found(
            107,
            "decide_refund",
            "I will refund order 58113 today. You do not need to do anything else; the amount returns to \
             your card in 3–5 days.\nБез проверки заказа.",
            0.88,
        ),
        found(
            103,
            "返金を決めるエージェント",
            "{\"text\": \"ご注文の確認なしに返金します。\u{1b}[31m\"}",
            0.86,
        ),
        found(104, "policy_lookup", "", 0.78),
    ];
    rows[1].span.input = Some("Customer asks for a refund of order 58113 without a receipt.".into());
    rows[2].span.kind = "retrieval".to_owned().into();
    rows[3].span.output = None;
    rows[3].span.model = None;
    rows[3].span.error = Some("index is away".into());
    rows.extend((200..216).map(|n| found(n, "answer_question", "Nothing of the kind.", 0.5)));
    SearchResults {
        results: rows,
        has_more: true,
        next_cursor: Some("further".into()),
        searched: 11_204,
        not_searched: 37,
    }
}

fn typed(state: &mut App, text: &str) -> Vec<Effect> {
    press(state, "/");
    press(state, text);
    key(state, KeyCode::Enter)
}

/// Returns a console on screen 8 with results.
fn searched(size: (u16, u16), theme: Theme) -> App {
    let mut state = filled(size, theme);
    press(&mut state, "8");
    let effects = typed(&mut state, "refunds promised without checking the order from:-7d");
    reply(&mut state, &effects, Ok(found_spans(results())));
    state
}

fn found_spans(results: SearchResults) -> Response {
    Response::new(results)
}

/// Returns the query of the search among the effects; checks that it is the one that was sent.
fn requested_query(state: &App, effects: &[Effect]) -> SearchQuery {
    let query = state.screens.search.query.clone().expect("no query");
    let sent = last_request(effects);
    let wanted = Effect::Request(crate::net::Request::new(sent.id, query.call(None)));
    assert_eq!(effects.last(), Some(&wanted));
    query
}

#[test]
fn words_and_terms_become_a_request() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "8");
    reply(&mut state, &effects, Ok(Response::new(vec![project(2, "checkout-bot", false)])));
    let effects = typed(&mut state, "late refund type:llm project:checkout-bot");
    let text = requested_query(&state, &effects).text;
    assert_eq!((text.q.as_str(), text.kind.as_deref()), ("late refund", Some("llm")));
    assert_eq!(text.project_id, Some(id(2)));
}

#[test]
fn search_is_limited_to_the_project_shown() {
    let mut state = filled((80, 24), UNICODE_THEME);
    state.shell.project = Some(project(2, "checkout-bot", false));
    press(&mut state, "8");
    let effects = typed(&mut state, "refund");
    assert_eq!(requested_query(&state, &effects).text.project_id, Some(id(2)));
    let effects = typed(&mut state, " project:*");
    assert_eq!(requested_query(&state, &effects).text.project_id, None);
}

#[test]
fn invalid_search_line_sends_no_request() {
    let mut state = filled((80, 24), UNICODE_THEME);
    press(&mut state, "8");
    state.shell.projects.fill([0x1_beef, 0x2_beef].map(|n| project(n, "checkout-bot", false)).to_vec());
    let wrong = [("refund from:soon", 12), ("type:llm", 0), ("x project:nope", 10), ("x project:BEEF", 10)];
    for (text, at) in wrong {
        assert!(typed(&mut state, text).is_empty());
        assert_eq!(state.shell.line_error.as_ref().unwrap().0, at, "{text}");
        key(&mut state, KeyCode::Esc);
        assert!(state.shell.line_error.is_none() && state.screens.search.query.is_none());
    }
}

#[test]
fn tab_completes_terms_and_up_recalls() {
    let mut state = searched((80, 24), UNICODE_THEME);
    press(&mut state, "i");
    update(&mut state, Msg::Key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
    press(&mut state, "x ty");
    key(&mut state, KeyCode::Tab);
    press(&mut state, "ret");
    key(&mut state, KeyCode::Tab);
    assert_eq!(state.shell.input.as_ref().unwrap().text(), "x type:retrieval ");
    key(&mut state, KeyCode::Up);
    assert!(state.shell.input.as_ref().unwrap().text().starts_with("refunds promised"));
}

#[test]
fn further_rows_are_requested_once_near_the_end() {
    let mut state = searched((80, 24), UNICODE_THEME);
    assert!(press(&mut state, "j").is_empty());
    let effects = press(&mut state, "G");
    assert_eq!(only_request(&effects).param("cursor"), Some("further"));
    assert!(press(&mut state, "k").is_empty(), "the page is already requested");
    let last = SearchResults {
        results: vec![found(300, "last", "", 0.1)],
        has_more: false,
        next_cursor: None,
        searched: 11_204,
        not_searched: 37,
    };
    reply(&mut state, &effects, Ok(found_spans(last)));
    assert_eq!(state.screens.search.rows.len(), 21);
    assert!(press(&mut state, "G").is_empty());
}

#[test]
fn response_of_a_superseded_search_is_dropped() {
    let mut state = searched((80, 24), UNICODE_THEME);
    let more = press(&mut state, "G");
    let other = typed(&mut state, " tool calls");
    assert!(state.screens.search.rows.is_empty());
    reply(&mut state, &more, Ok(found_spans(results())));
    assert!(state.screens.search.rows.is_empty());
    reply(&mut state, &other, Ok(found_spans(results())));
    assert_eq!(state.screens.search.rows.len(), 20);
}

#[test]
fn enter_opens_the_trace_at_the_span_and_esc_comes_back() {
    let mut state = searched((80, 24), UNICODE_THEME);
    press(&mut state, "j");
    let effects = key(&mut state, KeyCode::Enter);
    let trace = id(900 + 107);
    assert_eq!(last_request(&effects).path, format!("/v1/traces/{trace}"));
    let mut whole = refund();
    whole.id = trace;
    let late = whole.spans.as_mut().unwrap().split_off(3);
    whole.spans_next_cursor = Some("more".into());
    let effects = reply(&mut state, &effects, Ok(Response::new(whole)));
    let page = api::trace::SpanList { spans: late, has_more: false, next_cursor: None };
    reply(&mut state, &effects, Ok(Response::new(page)));
    assert_eq!(
        state.screens.traces.detail.as_ref().unwrap().current().unwrap().id,
        id(107),
        "it came with the second page"
    );
    key(&mut state, KeyCode::Esc);
    assert_eq!((state.shell.screen, state.screens.search.selected), (SCREEN_DIGIT, 1));
}

#[test]
fn neighbours_of_a_span_are_searched_without_words() {
    let mut state = searched((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "jx");
    let near = requested_query(&state, &effects).near.unwrap().span;
    assert_eq!((near.trace_id, near.span_id), (id(900 + 107), id(107)));
    reply(&mut state, &effects, Ok(found_spans(results())));
    assert_eq!(state.screens.search.rows.len(), 19, "all but the span itself");
    assert!(screen(&state).contains("spans like decide_refund in 000003ef"));
    let effects = press(&mut state, "yc");
    let [Effect::Copy(curl)] = &effects[..] else { panic!("{effects:?}") };
    assert!(curl.ends_with(r#""span_id":"01980f6e-7000-7000-8000-00000000006b","trace_id":"01980f6e-7000-7000-8000-0000000003ef"}}'"#), "{curl}");
    press(&mut state, "/");
    assert!(state.shell.input.as_ref().unwrap().text().starts_with("refunds promised"));
}

#[test]
fn rows_are_marked_copied_and_written() {
    let mut state = searched((80, 24), UNICODE_THEME);
    assert!(are(&press(&mut state, "m"), &["KeepBookmarks"]));
    assert!(state.shell.bookmarks.has(&state.shell.target.url, id(900 + 101)));
    assert_eq!(press(&mut state, "yi"), [Effect::Copy(id(101).to_string())]);
    let effects = press(&mut state, "yc");
    let [Effect::Copy(curl)] = &effects[..] else { panic!("{effects:?}") };
    assert!(curl.contains("/v1/search/spans?q=refunds+promised+without+checking+the+order&from="), "{curl}");
    press(&mut state, "e");
    let effects = key(&mut state, KeyCode::Enter);
    assert!(
        matches!(&effects[..], [Effect::Write { text, .. }] if text.lines().count() == 20),
        "{effects:?}"
    );
}

#[test]
fn search_screen_draws_every_state() {
    for size in TERMINAL_SIZES {
        let mut state = filled(size, UNICODE_THEME);
        press(&mut state, "8");
        snap("search-start", &state);
        let effects = typed(&mut state, "refunds promised");
        tick(&mut state, 1);
        snap("search-loading", &state);
        let none = SearchResults {
            results: vec![],
            has_more: false,
            next_cursor: None,
            searched: 0,
            not_searched: 412,
        };
        reply(&mut state, &effects, Ok(found_spans(none)));
        snap("search-none", &state);
        let mut state = searched(size, UNICODE_THEME);
        press(&mut state, "j");
        snap("search", &state);
        press(&mut state, "j");
        snap("search-wide", &state);
        let effects = press(&mut state, "R");
        let mut plan = answered(402, "plan_upgrade_required", "semantic search needs the plan pro");
        plan.required_plan = Some("pro".into());
        reply(&mut state, &effects, Err(plan));
        state.shell.toast = None;
        snap("search-plan", &state);
        let effects = press(&mut state, "R");
        reply(
            &mut state,
            &effects,
            Err(answered(502, "upstream_failed", "no embedding provider is configured")),
        );
        state.shell.toast = None;
        snap("search-provider", &state);
    }
}

#[test]
fn search_screen_is_drawn_in_ascii_and_at_every_size() {
    let mut state = searched((80, 24), ASCII_THEME);
    snap("ascii-search", &state);
    press(&mut state, "8");
    for cols in [1, 40, 59, 60, 76, 109, 200] {
        for rows in [1, 10, 14, 15, 24, 60] {
            screen(&searched((cols, rows), UNICODE_THEME));
        }
    }
    press(&mut state, "/x from:soon");
    key(&mut state, KeyCode::Enter);
    snap("search-wrong", &state);
}
