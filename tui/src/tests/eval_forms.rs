//! Tests of the form of an evaluation: its first values, valid and invalid input, and that it is sent once.

use api::{
    eval::{Evaluation, EvaluatorType},
    evaluator::Evaluator,
};

use crate::fixture::evaluation;
use crate::screen::evals::change::EvalsChange;
use crate::{
    screen::evals::tests::{answer_all, evaluation_requests, evaluators, judged, judging, list},
    screen::manage::tests as manage,
    screen::manage::tests::wait,
    tests::screens::screen,
    tests::*,
};

#[test]
fn new_evaluation_is_sent_once_and_selected() {
    let mut state = judging((80, 24), UNICODE_THEME);
    press(&mut state, "c");
    press(&mut state, "lat");
    for _ in 0..3 {
        key(&mut state, KeyCode::Tab);
    }
    press(&mut state, "{\"max_ms\": 5000}");
    wait(&mut state);
    key(&mut state, KeyCode::Tab);
    key(&mut state, KeyCode::Tab);
    let effects = key(&mut state, KeyCode::Enter);
    let [EvalsChange::Evaluate(new)] = &sent_changes(&state, &effects)[..] else {
        panic!("{effects:?} {:?}", state.shell.dialog)
    };
    assert_eq!(only_request(&effects).auth, "Session");
    assert_eq!((new.trace_id, new.metric_name.as_str()), (judged()[0].trace_id, "latency_threshold"));
    assert_eq!((new.evaluator_type.as_deref(), new.model_tier.as_deref()), (Some("rule"), None));
    assert_eq!(serde_json::to_string(&new.config).unwrap(), "{\"max_ms\":5000}");
    assert!(key(&mut state, KeyCode::Enter).is_empty(), "the request is open");
    let begun = evaluation(60, "latency_threshold", None);
    let effects = reply(&mut state, &effects, Ok(Response::new(begun.clone())));
    assert!(state.shell.dialog.is_none() && evaluation_requests(&effects).len() == 1, "{effects:?}");
    let mut rows = judged();
    rows.insert(0, begun);
    rows.insert(0, evaluation(61, "bias", Some(0.9)));
    reply(&mut state, &effects, Ok(Response::new(list(rows, true))));
    assert_eq!(state.screens.evals.current().unwrap().id, id(60));
}

#[test]
fn form_error_is_shown_at_its_field() {
    for (config, told) in [("{", "the JSON ends too early, at line 1, column 1"), ("[1]", "an object")] {
        let mut state = judging((80, 24), UNICODE_THEME);
        press(&mut state, "cfaith");
        for _ in 0..3 {
            key(&mut state, KeyCode::Tab);
        }
        press(&mut state, config);
        key(&mut state, KeyCode::Tab);
        wait(&mut state);
        key(&mut state, KeyCode::Tab);
        assert!(key(&mut state, KeyCode::Enter).is_empty());
        let dialog = state.shell.dialog.as_ref().unwrap();
        assert!(dialog.complaint.as_ref().unwrap().contains(told), "{:?}", dialog.complaint);
        assert_eq!(dialog.focus, crate::dialog::Stop::Field(5));
    }
}

#[test]
fn refused_evaluation_can_be_corrected_and_resent() {
    let mut state = judging((80, 24), UNICODE_THEME);
    press(&mut state, "cfaith");
    wait(&mut state);
    for _ in 0..5 {
        key(&mut state, KeyCode::Tab);
    }
    let effects = key(&mut state, KeyCode::Enter);
    let quota = answered(402, "eval_quota_exceeded", "the month's 2,500 llm evaluations are used up");
    reply(&mut state, &effects, Err(quota));
    let dialog = state.shell.dialog.as_ref().unwrap();
    assert!(dialog.complaint.as_ref().unwrap().contains("eval_quota_exceeded"));
}

#[test]
fn repeated_evaluation_form_contains_the_values_of_the_row() {
    let mut state = judging((80, 24), UNICODE_THEME);
    state.screens.evals.rules.list.items[0].config =
        RawValue::from_string("{\"threshold\":0.8}".into()).unwrap();
    state.screens.evals.rows[0].model_tier = Some(api::eval::ModelTier::Premium);
    let effects = press(&mut state, "c");
    assert!(are(&effects, &["/v1/evaluators"]), "others may have been made: {effects:?}");
    let mut more = evaluators();
    more.insert(0, Evaluator { name: "faith".into(), ..evaluators()[0].clone() });
    reply(&mut state, &effects, Ok(Response::new(more)));
    wait(&mut state);
    for _ in 0..5 {
        key(&mut state, KeyCode::Tab);
    }
    let effects = key(&mut state, KeyCode::Enter);
    let [EvalsChange::Evaluate(new)] = &sent_changes(&state, &effects)[..] else { panic!("{effects:?}") };
    let row = &judged()[0];
    assert_eq!((new.trace_id, new.span_id), (row.trace_id, row.span_id));
    assert_eq!((new.metric_name.as_str(), new.evaluator_type.as_deref()), ("faithfulness", Some("llm")));
    assert_eq!(new.model_tier.as_deref(), Some("premium"));
    assert_eq!(serde_json::to_string(&new.config).unwrap(), "{\"threshold\":0.8}", "of the row's rule");
}

#[test]
fn span_is_resolved_by_id_or_loaded_suffix() {
    for (typed, span) in [
        ("006B", Ok(Some(id(107)))),
        ("", Ok(None)),
        ("ffff", Err("no loaded span")),
        ("x", Err("not the id of a span")),
    ] {
        let mut state = judging((80, 24), UNICODE_THEME);
        state.screens.evals.rows[0].span_id = Some(id(107));
        press(&mut state, "c");
        key(&mut state, KeyCode::BackTab);
        update(&mut state, Msg::Key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
        press(&mut state, typed);
        wait(&mut state);
        for _ in 0..6 {
            key(&mut state, KeyCode::Tab);
        }
        let effects = key(&mut state, KeyCode::Enter);
        match (&sent_changes(&state, &effects)[..], span) {
            ([EvalsChange::Evaluate(new)], Ok(span)) => assert_eq!(new.span_id, span),
            ([], Err(told)) => {
                let complaint = state.shell.dialog.as_ref().unwrap().complaint.clone().unwrap();
                assert!(complaint.contains(told), "{complaint}");
            }
            _ => panic!("{typed}: {effects:?} {:?}", state.shell.dialog),
        }
    }
}

#[test]
fn evaluator_name_is_edited_like_other_fields() {
    let chosen = |state: &App| {
        let Some(crate::dialog::Body::Form(form)) = state.shell.dialog.as_ref().map(|it| &it.body) else {
            panic!()
        };
        let crate::dialog::FieldValue::Choice(metric) = &form.fields[2].value else { panic!() };
        (metric.typed().to_owned(), metric.word().map(str::to_owned), form.about.clone())
    };
    let with = |code: char, modifiers| Msg::Key(KeyEvent::new(KeyCode::Char(code), modifiers));
    let mut state = judging((80, 24), UNICODE_THEME);
    press(&mut state, "c");
    update(&mut state, with('x', KeyModifiers::CONTROL));
    update(&mut state, with('b', KeyModifiers::ALT));
    assert_eq!(chosen(&state).0, "", "a key combination is not a letter");
    update(&mut state, Msg::Paste(" latency_threshold\n".into()));
    let (typed, word, about) = chosen(&state);
    assert_eq!((typed.as_str(), word.as_deref()), ("latency_threshold", Some("latency_threshold")));
    assert!(
        about.unwrap().options.contains("max_ms*"),
        "the form lists the required options of the pasted evaluator"
    );
    update(&mut state, with('u', KeyModifiers::CONTROL));
    press(&mut state, "sent");
    update(&mut state, with('c', KeyModifiers::CONTROL));
    assert_eq!(chosen(&state).0, "", "the letters are cleared first");
    update(&mut state, with('c', KeyModifiers::CONTROL));
    assert!(state.shell.dialog.is_none());
}

#[test]
fn lost_response_of_an_evaluation_reads_the_list() {
    let begun = |n: u128, change: fn(&mut Evaluation)| {
        let mut it = evaluation(n, "faithfulness", None);
        it.trace_id = judged()[0].trace_id;
        it.span_id = judged()[0].span_id;
        change(&mut it);
        vec![it]
    };
    for (after, told) in [
        (begun(70, |_| {}), "its response was lost"),
        (begun(50, |_| {}), "may be the requested one or another client's"),
        (begun(70, |it| it.id = id(4711)), "the change was not made"),
        (begun(70, |it| it.span_id = None), "the change was not made"),
        (begun(70, |it| it.evaluator_type = EvaluatorType::Rule), "the change was not made"),
        (begun(70, |it| it.rule_id = Some(id(701))), "the change was not made"),
        (vec![], "the change was not made"),
    ] {
        let mut state = opened((80, 24), UNICODE_THEME);
        let effects = press(&mut state, "]]]");
        let mut known = evaluation(1, "faithfulness", None);
        known.id = id(4711);
        reply(&mut state, &effects, Ok(Response::new(list(vec![known], false))));
        let detail = state.screens.traces.detail.take();
        let effects = press(&mut state, "2");
        answer_all(&mut state, effects);
        state.screens.traces.detail = detail;
        press(&mut state, "cfaith");
        wait(&mut state);
        for _ in 0..5 {
            key(&mut state, KeyCode::Tab);
        }
        let effects = key(&mut state, KeyCode::Enter);
        let effects = reply(&mut state, &effects, Err(offline()));
        let found = evaluation_requests(&effects);
        assert_eq!(found[0].param("metric_name"), Some("faithfulness"));
        assert!(found[0].param("from").is_some() && found[0].param("trace_id").is_some());
        let effects = reply(&mut state, &effects, Ok(Response::new(list(after.clone(), false))));
        assert!(
            requests(&effects).iter().all(|it| it.method == "GET"),
            "the change is never sent twice: {effects:?}"
        );
        let renewed = evaluation_requests(&effects).len() == 1
            && state.screens.evals.wanted == Some(id(after.first().map_or(0, |it| it.id.as_u128() & 0xffff)));
        assert_eq!(renewed, told != "the change was not made", "{told}: {effects:?}");
        let text = match &state.shell.dialog {
            Some(dialog) => dialog.complaint.clone().unwrap(),
            None => state.shell.toast.as_ref().unwrap().text.clone(),
        };
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn viewers_read_only_consoles_and_query_keys_change_nothing() {
    let tried = |change: fn(&mut App)| {
        let mut state = judging((120, 40), UNICODE_THEME);
        change(&mut state);
        press(&mut state, "c");
        assert!(state.shell.dialog.is_none());
        (state.shell.toast.take().unwrap().text, screen(&state))
    };
    let (told, text) = tried(|state| state.shell.me.as_mut().unwrap().role = Role::Viewer);
    assert!(told.contains("requires the role member") && text.contains("run (member)"), "{told}\n{text}");
    let (told, text) = tried(|state| state.shell.target.read_only = true);
    assert!(told.contains("read-only") && !text.contains("c run"), "{told}\n{text}");
    let (told, _) = tried(|state| {
        let me = state.shell.me.as_mut().unwrap();
        me.subject = None;
        me.api_key = Some(manage::api_key(11, "grafana-read", true));
    });
    assert!(told.contains("may only read"), "{told}");
}
