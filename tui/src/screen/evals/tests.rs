//! Tests of the screen Evals: requests, navigation and display.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use api::{
    eval::{Evaluation, EvaluationContext, EvaluationList, EvaluationStatus, EvaluatorType},
    evaluator::Evaluator,
};

use super::SCREEN_DIGIT;
use crate::fixture::evaluation;
use crate::{screen::evals::rules::tests::rules, tests::screens::screen, tests::*};

pub fn list(evaluations: Vec<Evaluation>, more: bool) -> EvaluationList {
    EvaluationList { evaluations, has_more: more, next_cursor: more.then(|| "older".to_owned()) }
}

/// Evaluations with every mark, newest first.
pub fn judged() -> Vec<Evaluation> {
    let mut rows: Vec<Evaluation> = [
        ("faithfulness", Some(0.12)),
        ("pii_leakage", Some(1.0)),
        ("latency_threshold", Some(0.0)),
        ("answer_relevance", Some(0.94)),
        ("json_schema_conformance", Some(1.0)),
        ("faithfulness", Some(0.61)),
        ("hallucination", None),
        ("toxicity", None),
        ("answer_relevance", Some(0.91)),
        ("groundedness", None),
        ("tone_of_voice", Some(0.66)),
    ]
    .into_iter()
    .enumerate()
    .map(|(at, (metric, score))| evaluation(40 - at as u128, metric, score))
    .collect();
    rows[0].reasoning = Some(
        "The answer says that a refund was issued, but no tool call did so.\nThe document speaks of 14 days; \
         the answer speaks of 30 days. \u{1b}[31m返金は確認されていません。"
            .into(),
    );
    rows[0].rule_id = Some(id(701));
    rows[0].span_id = Some(id(107));
    for (at, version) in [(1, "pii_leakage@1"), (2, "latency_threshold@1"), (4, "json_schema_conformance@2")]
    {
        rows[at].evaluator_type = EvaluatorType::Rule;
        rows[at].evaluator_version = version.into();
        rows[at].model_tier = None;
        rows[at].judge_model = None;
        rows[at].prompt_tokens = None;
        rows[at].completion_tokens = None;
        rows[at].cost = None;
    }
    rows[2].reasoning = Some("30000 ms is more than 5000 ms.".into());
    rows[5].context = EvaluationContext::Remediation;
    rows[5].original_evaluation_id = Some(id(9));
    rows[5].source_action_id = Some(id(77));
    rows[5].rule_id = Some(id(701));
    rows[6].status = EvaluationStatus::Running;
    rows[9].status = EvaluationStatus::Failed;
    rows[9].error = Some(
        "The judge gpt-4o-mini answered 529 four times. Wait, or name another provider: loupe credentials set."
            .into(),
    );
    rows[10].label = Some("friendly".into());
    rows
}

pub fn evaluators() -> Vec<Evaluator> {
    let one = |name: &str, kinds: &[EvaluatorType], schema: serde_json::Value| Evaluator {
        name: name.into(),
        display_name: name.into(),
        tags: vec!["quality".into()],
        evaluator_type: kinds[0],
        evaluator_types: kinds.to_vec(),
        description: format!("Whether {name} is as it should be. Needs the output; 1.0 is good."),
        version: 1,
        config_schema: schema,
        builtin: true,
        rubric: None,
        scale: None,
        checks: None,
        combine: None,
        created_at: None,
        updated_at: None,
    };
    let (llm, rule) = (EvaluatorType::Llm, EvaluatorType::Rule);
    vec![
        one("answer_relevance", &[llm], serde_json::json!({"properties": {"threshold": {}}})),
        one("faithfulness", &[llm], serde_json::json!({"properties": {"threshold": {}}})),
        one(
            "latency_threshold",
            &[rule],
            serde_json::json!({"properties": {"max_ms": {}, "threshold": {}}, "required": ["max_ms"]}),
        ),
        one("sentiment_match", &[llm, rule], serde_json::json!({"properties": {"expected": {}}})),
    ]
}

/// Returns a console that shows the screen Evals with all data loaded.
pub fn judging(size: (u16, u16), theme: Theme) -> App {
    let mut state = filled(size, theme);
    let effects = press(&mut state, "2");
    answer_all(&mut state, effects);
    state
}

/// Responds to every request, and to the requests that follow from the responses.
pub fn answer_all(state: &mut App, effects: Vec<Effect>) {
    let mut open = effects;
    while let Some(effect) = open.pop() {
        let Some(sent) = SentRequest::of(&effect) else { continue };
        let response = if sent.gets("/v1/eval") && sent.param("rule_id").is_some() {
            let mut rows = judged();
            rows.retain(|row| row.status == EvaluationStatus::Complete);
            Response::new(list(rows, true))
        } else if sent.gets("/v1/eval") {
            Response::new(list(judged(), true))
        } else if sent.gets("/v1/eval/*") {
            let mut found = evaluation(9, "faithfulness", Some(0.88));
            found.id = sent.path_id().unwrap();
            Response::new(found)
        } else if sent.gets("/v1/eval-rules") {
            Response::new(rules())
        } else if sent.gets("/v1/evaluators") {
            Response::new(evaluators())
        } else {
            continue;
        };
        open.extend(update(state, Msg::Reply(sent.id, Ok(response))));
    }
}

/// Returns the requests for evaluations among the effects.
pub fn evaluation_requests(effects: &[Effect]) -> Vec<SentRequest> {
    requests(effects).into_iter().filter(|it| it.gets("/v1/eval")).collect()
}

pub fn typed(state: &mut App, text: &str) -> Vec<Effect> {
    press(state, "/");
    press(state, text);
    key(state, KeyCode::Enter)
}

#[test]
fn evals_screen_polls_every_two_seconds_while_shown() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "2");
    assert!(are(&effects, &["/v1/eval", "/v1/eval-rules", "/v1/evaluators", "/v1/projects"]), "{effects:?}");
    assert!(tick(&mut state, 1).is_empty(), "the console waits for the first response");
    answer_all(&mut state, effects);
    assert!(tick(&mut state, 1).is_empty());
    let effects = tick(&mut state, 1);
    assert!(are(&effects, &["/v1/eval"]), "{effects:?}");
    answer_all(&mut state, effects);
    press(&mut state, "?");
    assert!(without_count(tick(&mut state, 60)).is_empty(), "help covers it");
    press(&mut state, "?1");
    let away = tick(&mut state, 60);
    assert!(evaluation_requests(&away).is_empty(), "{away:?}");
    let back = press(&mut state, "2");
    assert_eq!(evaluation_requests(&back).len(), 1);
    assert_eq!(state.screens.evals.rows.len(), judged().len(), "the previous rows are shown at once");
}

#[test]
fn rules_are_requested_again_every_15_seconds() {
    let mut state = judging((80, 24), UNICODE_THEME);
    let effects = tick(&mut state, 15);
    assert!(effects.iter().any(|it| is_get(it, "/v1/eval-rules")), "{effects:?}");
}

#[test]
fn evals_filter_becomes_parameters_and_supersedes_requests() {
    let mut state = judging((80, 24), UNICODE_THEME);
    let before = press(&mut state, "R");
    let after = typed(&mut state, "metric:faithfulness label:fail score:<0.5");
    let found = evaluation_requests(&after);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].param("metric_name"), found[0].param("label")),
        (Some("faithfulness"), Some("fail"))
    );
    assert!(state.screens.evals.rows.is_empty());
    answer_all(&mut state, before);
    assert!(
        state.screens.evals.rows.is_empty() && !state.screens.evals.loaded,
        "the response without the filter is dropped"
    );
    answer_all(&mut state, after);
    assert_eq!(state.screens.evals.rows.len(), judged().len());
    key(&mut state, KeyCode::Char('/'));
    assert_eq!(state.shell.input.as_ref().unwrap().text(), "metric:faithfulness label:fail score:<0.5");
}

#[test]
fn invalid_evals_filter_sends_nothing_and_marks_the_error() {
    let mut state = judging((80, 24), UNICODE_THEME);
    for (text, at) in [("status:done", 7), ("metrc:x", 0), ("label:fail trace:00ffff", 17)] {
        assert!(typed(&mut state, text).is_empty());
        assert_eq!(state.shell.line_error.as_ref().unwrap().0, at, "{text}");
        key(&mut state, KeyCode::Esc);
        assert!(state.shell.line_error.is_none() && state.screens.evals.text.is_empty());
    }
}

#[test]
fn tab_completes_fields_values_and_evaluators() {
    let mut state = judging((80, 24), UNICODE_THEME);
    press(&mut state, "/met");
    key(&mut state, KeyCode::Tab);
    press(&mut state, "sent");
    key(&mut state, KeyCode::Tab);
    press(&mut state, "con");
    key(&mut state, KeyCode::Tab);
    press(&mut state, "r");
    key(&mut state, KeyCode::Tab);
    assert_eq!(state.shell.input.as_ref().unwrap().text(), "metric:sentiment_match context:remediation ");
}

#[test]
fn id_suffix_in_a_filter_resolves_to_a_loaded_trace() {
    let mut state = judging((80, 24), UNICODE_THEME);
    let trace = state.screens.evals.rows[3].trace_id;
    let short = present::format::short_id(trace);
    let effects = typed(&mut state, &format!("trace:{short}"));
    assert_eq!(evaluation_requests(&effects)[0].uuid("trace_id"), Some(trace));
    assert_eq!(state.screens.evals.text, format!("trace:{trace}"));
}

#[test]
fn filter_by_trace_ignores_the_project_shown() {
    let mut state = judging((80, 24), UNICODE_THEME);
    state.shell.project = Some(project(2, "checkout-bot", false));
    let effects = typed(&mut state, "label:fail");
    assert_eq!(evaluation_requests(&effects)[0].uuid("project_id"), Some(id(2)));
    let effects = typed(&mut state, &format!(" trace:{}", id(5)));
    assert_eq!(
        (
            evaluation_requests(&effects)[0].uuid("project_id"),
            evaluation_requests(&effects)[0].uuid("trace_id")
        ),
        (None, Some(id(5)))
    );
}

#[test]
fn older_rows_are_requested_once_near_the_end() {
    let mut state = judging((80, 24), UNICODE_THEME);
    let effects = key(&mut state, KeyCode::End);
    assert_eq!(
        evaluation_requests(&effects).iter().filter(|it| it.param("cursor") == Some("older")).count(),
        1,
        "{effects:?}"
    );
    assert!(press(&mut state, "k").is_empty(), "the page is already requested");
    reply(&mut state, &effects[..1], Ok(Response::new(list(vec![evaluation(1, "bias", Some(0.8))], false))));
    assert_eq!(state.screens.evals.rows.len(), judged().len() + 1);
    assert!(key(&mut state, KeyCode::End).is_empty(), "there is nothing more");
}

#[test]
fn older_rows_are_requested_with_the_filter_of_their_cursor() {
    let mut state = judging((80, 24), UNICODE_THEME);
    let effects = typed(&mut state, "from:-1h");
    let first = evaluation_requests(&effects)[0].time("from");
    reply(&mut state, &effects, Ok(Response::new(list(judged(), true))));
    tick(&mut state, 30);
    for _ in 0..2 {
        let effects = key(&mut state, KeyCode::End);
        let sent = only_request(&effects);
        assert_eq!((sent.time("from"), sent.param("cursor")), (first, Some("older")), "half a minute later");
        let rows = vec![evaluation(1, "bias", Some(0.8))];
        reply(&mut state, &effects, Ok(Response::new(list(rows, true))));
        tick(&mut state, 1);
    }
}

#[test]
fn older_rows_of_a_list_that_was_replaced_are_dropped() {
    let mut state = judging((80, 24), UNICODE_THEME);
    let older = key(&mut state, KeyCode::End);
    key(&mut state, KeyCode::Home);
    press(&mut state, "gg");
    let effects = tick(&mut state, 2);
    let rows = vec![evaluation(90, "bias", Some(0.5)), evaluation(89, "bias", Some(0.5))];
    reply(&mut state, &effects, Ok(Response::new(list(rows, true))));
    assert_eq!(state.screens.evals.rows.len(), 2, "there is a gap between them and the previous rows");
    reply(&mut state, &older, Ok(Response::new(list(judged(), true))));
    assert_eq!(state.screens.evals.rows.len(), 2);
}

#[test]
fn unfinished_rows_further_down_are_requested_again() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "2");
    let rows: Vec<Evaluation> =
        (0..300).rev().map(|n| evaluation(n, "bias", (n != 50).then_some(0.9))).collect();
    reply(&mut state, &effects[..1], Ok(Response::new(list(rows, false))));
    state.screens.evals.select(250, true);
    let effects = tick(&mut state, 2);
    let found = evaluation_requests(&effects);
    assert_eq!(found.len(), 2, "{effects:?}");
    assert_eq!(found[1].time("to"), Some(evaluation(50, "", None).created_at));
    let done = list(vec![evaluation(50, "bias", Some(0.3))], false);
    reply(&mut state, &effects, Ok(Response::new(done)));
    assert_eq!(state.screens.evals.rows[249].score, Some(0.3));
    let newest = state.screens.evals.rows[..50].to_vec();
    reply(&mut state, &effects[..1], Ok(Response::new(list(newest, true))));
    assert_eq!(state.screens.evals.rows.len(), 300);
    let effects = tick(&mut state, 2);
    assert_eq!(evaluation_requests(&effects).len(), 1, "all evaluations are finished: {effects:?}");
    assert_eq!(state.screens.evals.rows.len(), 300);
}

#[test]
fn visible_rows_are_refreshed_while_newer_ones_wait() {
    let mut state = judging((80, 24), UNICODE_THEME);
    press(&mut state, "j");
    let effects = tick(&mut state, 2);
    let rows = vec![evaluation(90, "bias", Some(0.5))];
    reply(&mut state, &effects, Ok(Response::new(list(rows, true))));
    assert!(state.screens.evals.newer);
    let effects = tick(&mut state, 2);
    let late = judged()[6].created_at;
    assert_eq!(
        evaluation_requests(&effects)[1].time("to"),
        Some(late),
        "the range of the unfinished rows: {effects:?}"
    );
    let mut done = judged()[6].clone();
    done.score = Some(0.8);
    done.status = EvaluationStatus::Complete;
    reply(&mut state, &effects, Ok(Response::new(list(vec![done], true))));
    assert_eq!(state.screens.evals.rows[6].score, Some(0.8));
}

#[test]
fn visible_baseline_is_requested_once() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "2");
    let effects = reply(&mut state, &effects[..1], Ok(Response::new(list(judged(), false))));
    assert!(are(&effects, &["/v1/eval/*"]), "{effects:?}");
    assert_eq!(only_request(&effects).path_id(), Some(id(9)));
    reply(&mut state, &effects, Err(answered(404, "not_found", "there is no such evaluation")));
    let effects = tick(&mut state, 2);
    assert!(effects.iter().all(|it| !is_get(it, "/v1/eval/*")), "{effects:?}");
    let effects = reply(&mut state, &effects, Ok(Response::new(list(judged(), false))));
    assert!(effects.is_empty(), "a missing baseline is not requested again: {effects:?}");
}

#[test]
fn error_is_reported_once_and_requests_back_off() {
    let mut state = judging((80, 24), UNICODE_THEME);
    let mut effects = tick(&mut state, 2);
    for wait in [4, 8, 16] {
        reply(&mut state, &effects, Err(answered(503, "overloaded", "the database is away")));
        let next = state.screens.evals.next.unwrap().micros() - state.shell.now.micros();
        assert!((wait * 500_000..=wait * 1_000_000).contains(&next), "{next} of {wait} s");
        assert!(!state.screens.evals.rows.is_empty(), "the rows stay");
        effects = tick(&mut state, wait).into_iter().filter(|it| is_get(it, "/v1/eval")).collect();
    }
    assert_eq!(state.shell.problems.len(), 1, "{:?}", state.shell.problems);
    reply(&mut state, &effects, Ok(Response::new(list(judged(), true))));
    assert!(state.screens.evals.error.is_none());
}

#[test]
fn evaluation_opens_its_trace_at_the_span_and_esc_returns() {
    for keys in ["t", "gt"] {
        let mut state = judging((80, 24), UNICODE_THEME);
        let effects = press(&mut state, keys);
        let trace = judged()[0].trace_id;
        assert_eq!(last_request(&effects).path, format!("/v1/traces/{trace}"));
        let mut whole = refund();
        whole.id = trace;
        reply(&mut state, &effects, Ok(Response::new(whole)));
        assert_eq!(state.screens.traces.detail.as_ref().unwrap().current().unwrap().id, id(107));
        key(&mut state, KeyCode::Esc);
        assert_eq!(state.shell.screen, SCREEN_DIGIT);
    }
}

#[test]
fn remediated_evaluation_goes_to_its_baseline() {
    let mut state = judging((80, 24), UNICODE_THEME);
    assert!(
        press(&mut state, "gb").is_empty()
            && state.shell.toast.as_ref().unwrap().text.contains("no baseline")
    );
    let effects = press(&mut state, "jjjjjgb");
    let trace = judged()[5].trace_id;
    assert_eq!(state.screens.evals.text, format!("metric:faithfulness trace:{trace}"));
    let rows = vec![
        judged().remove(5),
        evaluation(20, "faithfulness", Some(0.8)),
        evaluation(9, "faithfulness", Some(0.88)),
    ];
    reply(&mut state, &effects, Ok(Response::new(list(rows, false))));
    assert_eq!(state.screens.evals.current().unwrap().id, id(9));
    press(&mut state, "gg");
    assert!(press(&mut state, "gb").is_empty());
    assert_eq!(state.screens.evals.current().unwrap().id, id(9), "the new evaluation is a row of the list");
}

#[test]
fn trace_action_shows_its_evaluations() {
    let mut state = opened((80, 24), UNICODE_THEME);
    let trace = state.screens.traces.detail.as_ref().unwrap().id;
    let effects = press(&mut state, "ge");
    assert_eq!(
        (state.shell.screen, evaluation_requests(&effects)[0].uuid("trace_id")),
        (SCREEN_DIGIT, Some(trace))
    );
    press(&mut state, "1");
    assert!(state.screens.traces.detail.is_none());
    let effects = press(&mut state, "ge");
    assert_eq!(
        evaluation_requests(&effects)[0].uuid("trace_id"),
        state.screens.traces.list.current().map(|row| row.id)
    );
}

#[test]
fn enter_opens_one_evaluation_and_esc_goes_back() {
    let mut state = judging((60, 20), UNICODE_THEME);
    key(&mut state, KeyCode::Enter);
    let text = screen(&state);
    assert!(text.contains(&judged()[0].trace_id.to_string()), "{text}");
    press(&mut state, "G");
    assert!(screen(&state).contains("返金"), "{}", screen(&state));
    let refreshed = tick(&mut state, 2);
    let mut newer = judged();
    newer.insert(0, evaluation(50, "bias", Some(0.5)));
    reply(&mut state, &refreshed[..1], Ok(Response::new(list(newer, true))));
    assert_eq!(state.screens.evals.current().unwrap().id, id(40), "the opened evaluation stays selected");
    key(&mut state, KeyCode::Esc);
    assert!(state.screens.evals.zoom.is_none() && state.shell.screen == SCREEN_DIGIT);
}

#[test]
fn opened_evaluation_stays_when_it_leaves_the_filter() {
    let mut state = judging((80, 24), UNICODE_THEME);
    press(&mut state, "jjjjjj");
    key(&mut state, KeyCode::Enter);
    let read = judged()[6].id;
    let mut rest = judged();
    rest.remove(6);
    let effects = tick(&mut state, 2);
    reply(&mut state, &effects, Ok(Response::new(list(rest.clone(), true))));
    assert_eq!(state.screens.evals.current().unwrap().id, read);
    assert!(screen(&state).contains("no longer matches the filter"), "{}", screen(&state));
    let effects = tick(&mut state, 2);
    assert!(is_get(&effects[1], "/v1/eval/*"), "{effects:?}");
    assert_eq!(
        requests(&effects)[1].path_id(),
        Some(read),
        "the opened evaluation is requested until it is finished"
    );
    let mut done = judged().remove(6);
    (done.status, done.score) = (EvaluationStatus::Complete, Some(0.25));
    reply(&mut state, &effects[..2], Ok(Response::new(done)));
    assert!(screen(&state).contains("0.25"), "{}", screen(&state));
    reply(&mut state, &effects[..1], Ok(Response::new(list(rest.clone(), true))));
    assert_eq!(tick(&mut state, 2).len(), 1, "the opened evaluation is finished");
    let effects = key(&mut state, KeyCode::Esc);
    reply(&mut state, &effects, Ok(Response::new(list(rest.clone(), true))));
    assert_eq!(state.screens.evals.rows, rest);
}

#[test]
fn created_evaluation_is_selected_after_the_opened_one_closes() {
    let mut state = judging((80, 24), UNICODE_THEME);
    press(&mut state, "j");
    key(&mut state, KeyCode::Enter);
    state.screens.evals.wanted = Some(id(60));
    let mut rows = judged();
    rows.insert(0, evaluation(60, "bias", None));
    let effects = tick(&mut state, 2);
    reply(&mut state, &effects[..1], Ok(Response::new(list(rows.clone(), true))));
    assert_eq!(state.screens.evals.current().unwrap().id, id(39), "the opened evaluation stays selected");
    let effects = key(&mut state, KeyCode::Esc);
    reply(&mut state, &effects[..1], Ok(Response::new(list(rows, true))));
    assert_eq!(state.screens.evals.current().unwrap().id, id(60));
}

#[test]
fn regressions_are_a_lower_bound_until_all_baselines_are_known() {
    let mut state = judging((80, 24), UNICODE_THEME);
    assert!(screen(&state).contains("regressions 1 "), "{}", screen(&state));
    let mut further = evaluation(2, "faithfulness", Some(0.4));
    further.context = EvaluationContext::Remediation;
    further.original_evaluation_id = Some(id(5000));
    state.screens.evals.rows.push(further);
    assert!(screen(&state).contains("regressions 1+ "), "{}", screen(&state));
    state.screens.evals.baselines.insert(id(5000), None);
    assert!(
        screen(&state).contains("regressions 1 "),
        "the missing baseline is remembered: {}",
        screen(&state)
    );
}

#[test]
fn rows_are_found_by_their_text() {
    let mut state = judging((80, 24), UNICODE_THEME);
    press(&mut state, "fFAITHFUL");
    key(&mut state, KeyCode::Enter);
    assert!(screen(&state).contains("1 of 2"), "{}", screen(&state));
    press(&mut state, "n");
    assert_eq!(state.screens.evals.selected, 5);
    press(&mut state, "n");
    assert_eq!(state.screens.evals.selected, 0, "around the end");
    press(&mut state, "N");
    assert_eq!(state.screens.evals.selected, 5);
    let effects = tick(&mut state, 2);
    let mut rows = judged();
    rows.insert(0, evaluation(60, "faithfulness", Some(0.5)));
    reply(&mut state, &effects[..1], Ok(Response::new(list(rows, true))));
    assert_eq!(state.screens.evals.hits(), Some((3, 3)), "rows that come are searched too");
    key(&mut state, KeyCode::Esc);
    assert!(state.screens.evals.find().is_none() && state.shell.screen == SCREEN_DIGIT);
    press(&mut state, "f14 days");
    key(&mut state, KeyCode::Enter);
    assert_eq!(state.screens.evals.current().unwrap().id, id(40), "the reasoning is searched");
    press(&mut state, "fnowhere");
    key(&mut state, KeyCode::Enter);
    assert!(state.shell.toast.as_ref().unwrap().text.contains("not found"));
}

#[test]
fn id_suffix_resolves_to_one_rule_or_fails() {
    let mut state = judging((80, 24), UNICODE_THEME);
    state.screens.evals.rules.list.items[1].id = id(0x1_02bd);
    assert!(typed(&mut state, "rule:02BD").is_empty(), "two end so");
    assert!(
        state.shell.line_error.as_ref().unwrap().1.contains("more than one"),
        "{:?}",
        state.shell.line_error
    );
    key(&mut state, KeyCode::Esc);
    let effects = typed(&mut state, "rule:02C0");
    assert_eq!(evaluation_requests(&effects)[0].uuid("rule_id"), Some(id(704)));
}

#[test]
fn rows_are_copied_and_written() {
    let mut state = judging((80, 24), UNICODE_THEME);
    assert_eq!(press(&mut state, "yi"), [Effect::Copy(id(40).to_string())]);
    let effects = press(&mut state, "yd");
    assert!(matches!(&effects[..], [Effect::Copy(text)] if text.starts_with("The answer says")));
    typed(&mut state, "metric:faithfulness");
    let effects = press(&mut state, "yc");
    let [Effect::Copy(curl)] = &effects[..] else { panic!("{effects:?}") };
    assert!(curl.ends_with("'https://loupe.example/v1/eval?metric_name=faithfulness'"), "{curl}");
    let mut state = judging((80, 24), UNICODE_THEME);
    press(&mut state, "e");
    let effects = key(&mut state, KeyCode::Enter);
    assert!(matches!(&effects[..], [Effect::Write { path, text, .. }]
        if path == "evaluations.ndjson" && text.lines().count() == judged().len()));
}
