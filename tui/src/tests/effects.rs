//! Tests of the requests of the console, and of its handling of the responses.

use crate::tests::*;

#[test]
fn start_requests_identity_and_first_page_then_streams() {
    let (mut state, effects) = started((80, 24), UNICODE_THEME);
    assert!(are(&effects, &["/v1/me", "/v1/traces"]), "{effects:?}");
    let sent = requests(&effects);
    assert_eq!((sent[0].auth.as_str(), sent[1].param("cursor")), ("Session", None));
    let effects = answer(&mut state, &effects, page(rows()));
    assert!(are(&effects, &["OpenStream"]), "{effects:?}");
    assert_eq!(state.shell.link, Link::Polling);
    let request = state.shell.stream.unwrap();
    let effects = update(&mut state, Msg::Stream(request, StreamEvent::Open));
    assert!(are(&effects, &["/v1/traces"]));
    assert_eq!(state.shell.link, Link::Streaming);
}

#[test]
fn response_of_a_superseded_request_is_dropped() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let before = press(&mut state, "R");
    press(&mut state, "/error:true");
    let after = key(&mut state, KeyCode::Enter);
    assert!(answer(&mut state, &before, page(rows())).is_empty());
    assert!(state.screens.traces.list.is_empty() && !state.screens.traces.list.loaded);
    answer(&mut state, &after, last_page(vec![trace(1)]));
    assert_eq!(state.screens.traces.list.len(), 1);
    let old = update(&mut state, Msg::Stream(1, StreamEvent::Traces(vec![trace(2)])));
    assert!(old.is_empty() && state.screens.traces.list.len() == 1);
}

#[test]
fn list_is_polled_every_two_seconds_without_a_stream() {
    let (mut state, effects) = started((80, 24), UNICODE_THEME);
    answer(&mut state, &effects, last_page(vec![trace(1)]));
    let request = state.shell.stream.unwrap();
    let effects =
        update(&mut state, Msg::Stream(request, StreamEvent::Closed(answered(404, "not_found", "no"))));
    answer(&mut state, &effects, last_page(vec![trace(1)]));
    assert!(tick(&mut state, 1).is_empty());
    let effects = tick(&mut state, 1);
    assert!(are(&effects, &["/v1/traces"]), "{effects:?}");
    answer(&mut state, &effects, last_page(vec![trace(2), trace(1)]));
    assert_eq!(state.screens.traces.list.len(), 2);
    let effects = tick(&mut state, 20);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::OpenStream { .. })), "{effects:?}");
}

#[test]
fn gap_between_new_and_known_rows_is_filled() {
    let (mut state, effects) = started((80, 24), UNICODE_THEME);
    answer(&mut state, &effects, page((0..3).map(trace).collect()));
    let effects = press(&mut state, "R");
    let effects = answer(&mut state, &effects, page((20..23).map(trace).collect()));
    assert_eq!(only_request(&effects).param("cursor"), Some("older"));
    let effects = answer(&mut state, &effects, page((1..20).map(trace).collect()));
    assert!(!effects.iter().any(|effect| is_get(effect, "/v1/traces")), "{effects:?}");
    assert_eq!(state.screens.traces.list.len(), 23);
}

#[test]
fn older_rows_are_requested_once_near_the_end() {
    let mut state = filled((80, 24), UNICODE_THEME);
    assert!(press(&mut state, "j").is_empty());
    let effects = key(&mut state, KeyCode::End);
    assert_eq!(only_request(&effects).param("cursor"), Some("older"));
    assert!(press(&mut state, "k").is_empty(), "the page is already requested");
    answer(&mut state, &effects, last_page(vec![trace(-100)]));
    assert_eq!(state.screens.traces.list.len(), 41);
    assert!(key(&mut state, KeyCode::End).is_empty(), "there is nothing more");
}

#[test]
fn further_pages_are_requested_with_the_filter_of_their_cursor() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let query = |effects: &[Effect], cursor: Option<&str>| {
        let found =
            requests(effects).into_iter().find(|it| it.gets("/v1/traces") && it.param("cursor") == cursor);
        found.unwrap_or_else(|| panic!("{effects:?}")).param("from").map(str::to_owned)
    };
    press(&mut state, "/from:-1h");
    let effects = key(&mut state, KeyCode::Enter);
    let first = query(&effects, None);
    answer(&mut state, &effects, page(rows()));
    tick(&mut state, 30);
    let effects = key(&mut state, KeyCode::End);
    assert_eq!(query(&effects, Some("older")), first, "half a minute later");
    let looked = press(&mut state, "R");
    let newer = query(&looked, None);
    assert_ne!(newer, first);
    tick(&mut state, 1);
    let filled = answer(&mut state, &looked, page((200..203).map(trace).collect()));
    assert_eq!(query(&filled, Some("older")), newer);
    tick(&mut state, 1);
    let filled = answer(&mut state, &filled, page((100..103).map(trace).collect()));
    assert_eq!(query(&filled, Some("older")), newer, "the gap is larger than two pages");
}

#[test]
fn unreachable_server_is_retried_with_growing_waits() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let (mut effects, mut gone) = (press(&mut state, "R"), 0);
    for bound in [2, 4, 8, 16, 30, 30] {
        reply(&mut state, &effects, Err(offline()));
        let wait = state.shell.next_poll.unwrap().micros() - state.shell.now.micros();
        assert!((bound * 500_000..=bound * 1_000_000).contains(&wait), "{wait} of {bound} s");
        let asks = |effects: &[Effect]| effects.iter().any(|it| is_get(it, "/v1/traces"));
        assert!(!asks(&tick(&mut state, wait / 1_000_000 - 1)));
        effects = tick(&mut state, 2);
        assert!(asks(&effects), "{effects:?}");
        gone += wait / 1_000_000 + 1;
    }
    assert_eq!(state.shell.problems.len(), 1, "one notice for the whole outage");
    let effects = answer(&mut state, &effects, page(rows()));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::OpenStream { .. })), "{effects:?}");
    let back = format!("back after {}", present::format::elapsed(gone));
    assert!(state.shell.toast.as_ref().unwrap().text.starts_with(&back), "{:?}", state.shell.toast);
    assert_eq!(state.screens.traces.list.len(), 40);
}

#[test]
fn rate_limited_request_waits_for_retry_after() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "R");
    let limited = NetError { retry_after: Some(12), ..answered(429, "rate_limited", "slow down") };
    reply(&mut state, &effects, Err(limited));
    assert_eq!(state.shell.seconds_until(state.shell.next_poll.unwrap()), 12);
}

#[test]
fn refused_credential_is_probed_every_30_seconds() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let mut effects = press(&mut state, "R");
    for _ in 0..3 {
        let closed = reply(&mut state, &effects, Err(answered(401, "unauthorized", "expired")));
        assert_eq!(closed, [Effect::CloseStream]);
        assert!(tick(&mut state, 29).is_empty());
        effects = tick(&mut state, 1);
        assert!(are(&effects, &["/v1/traces"]), "{effects:?}");
    }
    let effects = answer(&mut state, &effects, page(rows()));
    assert!(effects.iter().any(|it| is_get(it, "/v1/me")), "the role may be another");
    assert!(
        state.shell.failure().is_none()
            && state.shell.toast.as_ref().unwrap().text.starts_with("back after 01:30")
    );
}

#[test]
fn refusal_on_a_screen_ends_when_the_credential_is_accepted_again() {
    for digit in ["2", "3", "7", "8"] {
        let mut state = filled((80, 24), UNICODE_THEME);
        press(&mut state, digit);
        let request = start_list_request(&mut state, TracesRequest::Newest);
        update(&mut state, Msg::Reply(request, Err(answered(401, "unauthorized", "expired"))));
        let screens = &state.screens;
        let open: Vec<u64> = [
            state.shell.pending.ids(),
            screens.traces.pending.ids(),
            screens.evals.pending.ids(),
            screens.metrics.pending.ids(),
            screens.manage.pending.ids(),
            screens.search.pending.ids(),
        ]
        .concat();
        for request in open {
            update(&mut state, Msg::Reply(request, Err(answered(401, "unauthorized", "expired"))));
        }
        let effects = tick(&mut state, 30);
        let list: Vec<Effect> = effects.into_iter().filter(|it| is_get(it, "/v1/traces")).collect();
        assert_eq!(list.len(), 1, "screen {digit}");
        let effects = answer(&mut state, &list, page(rows()));
        let asks = |wanted: fn(&Effect) -> bool| effects.iter().any(wanted);
        assert!(
            match digit {
                "2" => asks(|it| is_get(it, "/v1/eval")),
                "3" => asks(|it| is_get(it, "/v1/metrics")),
                "7" => asks(|it| is_get(it, "/v1/projects")),
                _ => asks(|it| is_get(it, "/v1/me")),
            },
            "screen {digit}: {effects:?}"
        );
    }
}

#[test]
fn refused_session_is_tried_again_while_the_key_reads() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "7");
    reply(&mut state, &effects, Err(answered(401, "unauthorized", "expired")));
    assert!(!state.shell.has_session());
    let probe = |state: &mut App| {
        let effects = tick(state, 30);
        let is_probe = |it: &SentRequest| it.gets("/v1/me") && it.auth == "Session";
        let probe = effects.into_iter().find(|it| SentRequest::of(it).as_ref().is_some_and(is_probe));
        vec![probe.expect("the session is not tried again")]
    };
    let effects = probe(&mut state);
    reply(&mut state, &effects, Err(answered(401, "unauthorized", "expired")));
    assert!(!state.shell.has_session() && state.shell.failure().is_none());
    let effects = probe(&mut state);
    let effects = reply(&mut state, &effects, Ok(Response::new(me())));
    assert!(state.shell.has_session() && effects.iter().any(|it| is_get(it, "/v1/apikeys")), "{effects:?}");
}

#[test]
fn project_archived_by_another_client_is_detected() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "p");
    reply(&mut state, &effects, Ok(Response::new(vec![project(2, "checkout-bot", false)])));
    press(&mut state, "j");
    let effects = key(&mut state, KeyCode::Enter);
    answer(&mut state, &effects, last_page(vec![trace(1)]));
    for archived in [true, false] {
        let effects = tick(&mut state, 30);
        let look = effects.into_iter().find(|it| is_get(it, "/v1/projects/*"));
        let look = [look.expect("the project is not requested")];
        reply(&mut state, &look, Ok(Response::new(project(2, "checkout-bot", archived))));
        assert_eq!(state.shell.is_archived(), archived);
    }
}

#[test]
fn failures_key_toggles_the_error_filter() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let filter = |effects: &[Effect]| {
        assert!(are(effects, &["CloseStream", "/v1/traces"]), "{effects:?}");
        last_request(effects)
    };
    let effects = press(&mut state, "F");
    assert_eq!(filter(&effects).param("error"), Some("true"));
    assert!(state.screens.traces.failures_only(&state.shell));
    let effects = press(&mut state, "F");
    assert_eq!((filter(&effects).param("error"), state.screens.traces.filter.text.as_str()), (None, ""));
    press(&mut state, "/model:gpt-4o error:false");
    key(&mut state, KeyCode::Enter);
    press(&mut state, "F");
    assert_eq!(state.screens.traces.filter.text, "model:gpt-4o error:true");
    press(&mut state, "F");
    assert_eq!(state.screens.traces.filter.text, "model:gpt-4o");
}

#[test]
fn esc_clears_the_filter_of_a_list_with_rows() {
    let mut state = filled((80, 24), UNICODE_THEME);
    press(&mut state, "/error:true");
    let effects = key(&mut state, KeyCode::Enter);
    answer(&mut state, &effects, last_page(vec![trace(1)]));
    press(&mut state, "fgpt");
    key(&mut state, KeyCode::Enter);
    assert!(key(&mut state, KeyCode::Esc).is_empty(), "find comes first");
    let effects = key(&mut state, KeyCode::Esc);
    assert!(are(&effects, &["CloseStream", "/v1/traces"]), "{effects:?}");
    assert_eq!(state.screens.traces.filter.text, "");
    assert!(key(&mut state, KeyCode::Esc).is_empty(), "esc never quits");
}

#[test]
fn filter_error_is_shown_from_leaving_the_term_until_its_correction() {
    let mut state = filled((80, 24), UNICODE_THEME);
    press(&mut state, "/latncy:>2s");
    assert_eq!(state.shell.line_error, None, "the term is still being typed");
    press(&mut state, " ");
    assert!(state.shell.line_error.as_ref().is_some_and(|(at, _)| *at == 0));
    for _ in 0..8 {
        key(&mut state, KeyCode::Backspace);
    }
    press(&mut state, "xx");
    assert_eq!(state.shell.line_error, None);
    key(&mut state, KeyCode::Enter);
    assert!(state.shell.line_error.is_some());
    key(&mut state, KeyCode::Backspace);
    assert!(state.shell.line_error.is_some(), "after Enter it stays until the text is right");
    for _ in 0..20 {
        key(&mut state, KeyCode::Backspace);
    }
    press(&mut state, "latency:>2s");
    assert_eq!(state.shell.line_error, None);
}

#[test]
fn wrong_filter_of_the_command_line_opens_the_filter_line() {
    let target = started((80, 24), UNICODE_THEME).0.shell.target;
    let mut state = App::new(target, UNICODE_THEME, Zone::Utc, Timestamp::from_micros(BASE_MICROS), (80, 24));
    start(&mut state, &Options { filter: Some("latncy:>2s".into()), ..Options::default() });
    assert_eq!(state.shell.input.as_ref().map(|input| input.text()), Some("latncy:>2s"));
    assert!(state.shell.line_error.is_some() && state.screens.traces.filter.text.is_empty());
}

#[test]
fn invalid_trace_filter_sends_nothing_and_keeps_the_list() {
    let mut state = filled((80, 24), UNICODE_THEME);
    press(&mut state, "/latncy:>2s");
    assert!(key(&mut state, KeyCode::Enter).is_empty());
    assert!(state.shell.line_error.is_some() && state.screens.traces.list.len() == 40);
    assert!(key(&mut state, KeyCode::Esc).is_empty());
    assert_eq!(state.screens.traces.filter.text, "");
}

#[test]
fn trace_filter_applies_to_list_and_stream() {
    let mut state = filled((80, 24), UNICODE_THEME);
    press(&mut state, "/error:true");
    let effects = without_count(key(&mut state, KeyCode::Enter));
    assert!(are(&effects, &["CloseStream", "/v1/traces"]), "{effects:?}");
    let list = last_request(&effects);
    assert_eq!((list.param("error"), list.param("cursor")), (Some("true"), None));
    let effects = answer(&mut state, &effects, last_page(vec![]));
    let [Effect::OpenStream { query, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((query.filter.param("error"), query.project), (Some("true"), None));
}

#[test]
fn keys_open_the_next_and_the_previous_trace() {
    let mut state = opened((80, 24), UNICODE_THEME);
    let open = state.screens.traces.detail.as_ref().unwrap();
    assert_eq!(open.current().unwrap().name, "decide_refund", "where the failure began");
    let effects = press(&mut state, "J");
    assert_eq!(only_request(&effects).path, format!("/v1/traces/{}", id(35)));
    let effects = press(&mut state, "K");
    assert_eq!(only_request(&effects).path, format!("/v1/traces/{}", id(36)));
    key(&mut state, KeyCode::Esc);
    assert!(state.screens.traces.detail.is_none());
    assert!(are(&press(&mut state, "-"), &["/v1/traces/*"]));
}

#[test]
fn spans_are_read_page_by_page() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = key(&mut state, KeyCode::Enter);
    let mut trace = refund();
    trace.id = id(39);
    trace.spans_next_cursor = Some("more".into());
    let effects = reply(&mut state, &effects, Ok(Response::new(trace)));
    assert!(are(&effects, &["/v1/traces/*/spans"]), "{effects:?}");
    assert_eq!(only_request(&effects).param("cursor"), Some("more"));
    let page = api::trace::SpanList { spans: vec![span(200, Some(101))], has_more: false, next_cursor: None };
    assert!(reply(&mut state, &effects, Ok(Response::new(page))).is_empty());
    assert_eq!(state.screens.traces.detail.as_ref().unwrap().tree.rows.len(), 9);
}

#[test]
fn opened_trace_is_reloaded_when_it_changes() {
    let mut state = opened((80, 24), UNICODE_THEME);
    let stream = state.shell.stream.unwrap();
    let mut changed = rows().remove(36);
    let effects = update(&mut state, Msg::Stream(stream, StreamEvent::Traces(vec![changed.clone()])));
    assert!(are(&effects, &["/v1/traces/*"]));
    changed.id = id(1);
    assert!(update(&mut state, Msg::Stream(stream, StreamEvent::Traces(vec![changed]))).is_empty());
}

#[test]
fn copy_never_holds_a_credential() {
    let mut state = opened((80, 24), UNICODE_THEME);
    let span_id = id(107).to_string();
    assert_eq!(press(&mut state, "yi"), [Effect::Copy(span_id)]);
    let effects = press(&mut state, "yc");
    let [Effect::Copy(curl)] = &effects[..] else { panic!("{effects:?}") };
    assert!(curl.contains("$LOUPE_API_KEY") && curl.contains("/v1/traces/"), "{curl}");
    let effects = press(&mut state, "yj");
    assert!(matches!(&effects[..], [Effect::Copy(json)] if json.contains("decide_refund")));
}

#[test]
fn only_quit_key_and_third_interrupt_end_the_console() {
    let mut state = filled((80, 24), UNICODE_THEME);
    assert!(key(&mut state, KeyCode::Esc).is_empty(), "esc never quits");
    assert_eq!(press(&mut state, "q"), [Effect::Quit]);
    press(&mut state, "/q");
    let interrupt = || Msg::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert!(update(&mut state, interrupt()).is_empty(), "the first clears the line");
    assert!(update(&mut state, interrupt()).is_empty(), "the second leaves it");
    assert_eq!(update(&mut state, interrupt()), [Effect::Quit]);
}

#[test]
fn trace_of_25_000_spans_stays_responsive() {
    let mut state = filled((120, 40), UNICODE_THEME);
    let effects = key(&mut state, KeyCode::Enter);
    let mut big = refund();
    big.id = id(39);
    big.spans = Some((1..=25_000).map(|n| span(n, (n > 1).then_some(n / 2))).collect());
    reply(&mut state, &effects, Ok(Response::new(big)));
    for _ in 0..200 {
        press(&mut state, "j");
    }
    assert_eq!(state.screens.traces.detail.as_ref().unwrap().selected, 200);
}

#[test]
fn another_project_is_chosen_from_the_list() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "p");
    assert!(are(&effects, &["/v1/projects"]));
    let projects = vec![project(1, "zeta", true), project(2, "checkout-bot", false)];
    reply(&mut state, &effects, Ok(Response::new(projects)));
    press(&mut state, "j");
    let effects = without_count(key(&mut state, KeyCode::Enter));
    assert!(are(&effects, &["CloseStream", "/v1/traces"]), "{effects:?}");
    let project = id(2).to_string();
    assert_eq!(last_request(&effects).param("project_id"), Some(project.as_str()), "active ones come first");
    assert!(state.shell.overlay.is_none());
}

#[test]
fn named_project_is_looked_up_before_the_list() {
    let (mut state, _) = started((80, 24), UNICODE_THEME);
    state.shell.target.project = Some("checkout-bot".into());
    let effects = press(&mut state, "R");
    let effects = reply(&mut state, &effects, Ok(Response::new(vec![project(2, "checkout-bot", false)])));
    assert_eq!(only_request(&effects).param("project_id"), Some(id(2).to_string().as_str()));
    state.shell.project = None;
    state.shell.target.project = Some("missing".into());
    let effects = press(&mut state, "R");
    let effects = reply(&mut state, &effects, Ok(Response::new(Vec::<api::project::Project>::new())));
    assert!(are(&effects, &["/v1/traces"]) && only_request(&effects).param("project_id").is_none());
    assert!(state.shell.toast.as_ref().unwrap().is_failure);
}

#[test]
fn project_is_resolved_by_an_unambiguous_id_suffix() {
    for (wanted, found) in [("ABCD", Some(0xabcd)), ("000abcd", Some(0xabcd)), ("beef", None), ("eef", None)]
    {
        let (mut state, _) = started((80, 24), UNICODE_THEME);
        state.shell.target.project = Some(wanted.into());
        let projects = [0xabcd, 0x1_beef, 0x2_beef].map(|n| project(n, "checkout-bot", false));
        let effects = press(&mut state, "R");
        let effects = reply(&mut state, &effects, Ok(Response::new(projects.to_vec())));
        let found_id = found.map(|it| id(it).to_string());
        assert_eq!(only_request(&effects).param("project_id"), found_id.as_deref(), "{wanted}");
        assert_eq!(state.shell.toast.as_ref().is_some_and(|it| it.is_failure), found.is_none(), "{wanted}");
    }
}

#[test]
fn opened_trace_can_be_requested_again_after_a_refusal() {
    let mut state = opened((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "R");
    reply(&mut state, &effects, Err(answered(401, "unauthorized", "expired")));
    assert!(state.shell.is_unauthorized());
    let effects = press(&mut state, "R");
    assert_eq!(state.shell.link, Link::Connecting, "nothing else would request the trace again");
    assert!(effects.iter().any(|it| is_get(it, "/v1/traces")), "{effects:?}");
}

#[test]
fn loaded_rows_are_exported_to_a_file() {
    let mut state = filled((80, 24), UNICODE_THEME);
    press(&mut state, "e");
    let effects = key(&mut state, KeyCode::Enter);
    let [Effect::Write { path, text, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((path.as_str(), text.lines().count()), ("traces.ndjson", 40));
    assert!(text.lines().all(|line| line.starts_with('{')));
    press(&mut state, "e");
    let all = KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL);
    update(&mut state, Msg::Key(all));
    press(&mut state, "/tmp/x.csv");
    let effects = key(&mut state, KeyCode::Enter);
    let [Effect::Write { text, .. }] = &effects[..] else { panic!("no file") };
    assert!(text.starts_with("completion_tokens_total,cost,ended_at,"));
    assert_eq!(text.matches("\r\n").count(), 41);
    update(&mut state, Msg::Written(Err("/tmp/x.csv: File exists".into())));
    assert!(state.shell.toast.as_ref().unwrap().is_failure);
}

#[test]
fn traces_are_marked_listed_and_opened() {
    let mut state = filled((80, 24), UNICODE_THEME);
    assert!(are(&press(&mut state, "m"), &["KeepBookmarks"]));
    press(&mut state, "jM");
    let effects = key(&mut state, KeyCode::Enter);
    assert_eq!(only_request(&effects).path, format!("/v1/traces/{}", id(39)));
    assert!(are(&press(&mut state, "m"), &["KeepBookmarks"]));
    press(&mut state, "M");
    assert!(key(&mut state, KeyCode::Enter).is_empty(), "the mark is gone");
}
