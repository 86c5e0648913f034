//! Tests of the eval rules in the screen Evals: display, and changes that are sent once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use api::{
    eval::{EvaluationStatus, EvaluatorType, ModelTier},
    eval_rule::{Decision, EvalRule, RuleDecision, RuleDecisionList, RuleFilter, RuleTest},
};

use crate::{
    app::palette::items::PaletteChoice, dialog::Stop, screen::evals::change::EvalsChange,
    screen::evals::rules::state::RulePane,
};
use crate::{
    screen::evals::tests::{answer_all, judging},
    screen::manage::tests::{projects, wait},
    tests::screens::{TERMINAL_SIZES, faded, screen, snap},
    tests::*,
};

fn rule(n: u128, metric: &str, kind: EvaluatorType) -> EvalRule {
    EvalRule {
        id: id(n),
        project_id: id(2),
        metric_name: metric.into(),
        evaluator_type: kind,
        config: RawValue::from_string("{}".into()).unwrap(),
        enabled: true,
        model_tier: ModelTier::Cheap,
        min_score_drop: Some(0.05),
        filter: RuleFilter::default(),
        sample_rate: 1.0,
        paused_reason: None,
        paused_detail: None,
        created_at: Timestamp::from_micros(BASE_MICROS - 86_400_000_000 * 2),
        updated_at: Timestamp::from_micros(BASE_MICROS - 86_400_000_000),
    }
}

pub fn rules() -> Vec<EvalRule> {
    let (llm, code) = (EvaluatorType::Llm, EvaluatorType::Rule);
    let mut rules = vec![
        rule(701, "faithfulness", llm),
        rule(702, "answer_relevance", llm),
        rule(703, "latency_threshold", code),
        rule(704, "toxicity", llm),
        rule(705, "返金の約束を確かめる評価器、長い名前", llm),
    ];
    rules[1].model_tier = ModelTier::Premium;
    rules[1].paused_reason = Some("judge_rejected".into());
    rules[1].paused_detail =
        Some("openai answered 401: the key was revoked. Store another: loupe credentials set openai".into());
    rules[2].config = RawValue::from_string("{\"max_ms\":5000}".into()).unwrap();
    rules[2].min_score_drop = None;
    rules[2].sample_rate = 0.125;
    rules[2].filter =
        RuleFilter { model: Some("gpt-4o".into()), error: Some(false), ..RuleFilter::default() };
    rules[3].enabled = false;
    rules
}

/// Returns a console that shows the eval rules.
fn ruling(size: (u16, u16), theme: Theme) -> App {
    let mut state = judging(size, theme);
    state.shell.projects.fill(projects());
    let effects = press(&mut state, "r");
    answer_all(&mut state, effects);
    state
}

/// Presses Tab this many times.
fn tabs(state: &mut App, times: usize) {
    for _ in 0..times {
        key(state, KeyCode::Tab);
    }
}

#[test]
fn samples_are_requested_one_by_one_and_only_when_shown() {
    let mut state = judging((80, 24), UNICODE_THEME);
    assert!(state.screens.evals.rules.samples.is_empty(), "the rules are not shown");
    let effects = press(&mut state, "r");
    let sent = only_request(&effects);
    assert_eq!((sent.uuid("rule_id"), sent.param("status")), (Some(id(701)), Some("complete")));
    assert!(press(&mut state, "j").is_empty(), "a request is open");
    answer_all(&mut state, effects);
    assert_eq!(state.screens.evals.rules.samples.len(), rules().len());
    assert!(press(&mut state, "k").is_empty(), "the samples are current");
}

#[test]
fn enter_leads_to_the_evaluations_of_a_rule() {
    let mut state = ruling((80, 24), UNICODE_THEME);
    press(&mut state, "jj");
    let effects = key(&mut state, KeyCode::Enter);
    assert_eq!(
        (only_request(&effects).uuid("rule_id"), state.screens.evals.part),
        (Some(id(703)), crate::screen::evals::state::EvalsSection::List)
    );
}

#[test]
fn new_rule_contains_the_values_of_the_form() {
    let mut state = ruling((80, 24), UNICODE_THEME);
    press(&mut state, "a");
    assert_eq!(state.shell.dialog.as_ref().unwrap().focus, Stop::Field(1));
    press(&mut state, "sent");
    tabs(&mut state, 1);
    key(&mut state, KeyCode::Right);
    tabs(&mut state, 2);
    press(&mut state, "{\"expected\": \"positive\"}");
    tabs(&mut state, 1);
    press(&mut state, "model:gpt-4o tag:\"team:customer care\" error:false");
    tabs(&mut state, 1);
    key(&mut state, KeyCode::Backspace);
    press(&mut state, "25%");
    tabs(&mut state, 1);
    press(&mut state, ".1");
    tabs(&mut state, 1);
    wait(&mut state);
    key(&mut state, KeyCode::Right);
    tabs(&mut state, 2);
    let effects = key(&mut state, KeyCode::Enter);
    let [EvalsChange::CreateRule(new)] = &sent_changes::<EvalsChange>(&state, &effects)[..] else {
        panic!("{effects:?} {:?}", state.shell.dialog)
    };
    assert_eq!((new.project_id, new.metric_name.as_str()), (id(2), "sentiment_match"));
    assert_eq!((new.evaluator_type.as_str(), new.model_tier.as_deref()), ("rule", None));
    assert_eq!(
        (new.enabled, new.sample_rate, new.min_score_drop),
        (Some(false), Some(0.25), Some(Some(0.1)))
    );
    let filter = new.filter.as_ref().unwrap();
    assert_eq!(filter.tag.as_deref(), Some("team:customer care"));
    assert_eq!((filter.model.as_deref(), filter.error), (Some("gpt-4o"), Some(false)));
    let effects =
        reply(&mut state, &effects, Ok(Response::new(rule(706, "sentiment_match", EvaluatorType::Rule))));
    assert!(are(&effects, &["/v1/eval-rules"]), "{effects:?}");
    let mut after = rules();
    after.insert(0, rule(706, "sentiment_match", EvaluatorType::Rule));
    reply(&mut state, &effects, Ok(Response::new(after)));
    assert_eq!(state.screens.evals.rules.current().unwrap().id, id(706), "the cursor goes to it");
}

#[test]
fn invalid_form_field_receives_the_focus() {
    for (line, text, told) in [
        (5, "model", "not a term"),
        (5, "modl:x", "fields: model"),
        (5, "error:maybe", "true or false"),
        (5, "name:\"x", "not closed"),
        (6, "2", "not a share"),
        (7, "-1", "not a drop"),
    ] {
        let mut state = ruling((80, 24), UNICODE_THEME);
        press(&mut state, "afaith");
        tabs(&mut state, line - 1);
        update(&mut state, Msg::Key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
        press(&mut state, text);
        wait(&mut state);
        tabs(&mut state, 10 - line);
        assert!(key(&mut state, KeyCode::Enter).is_empty(), "{text}");
        let dialog = state.shell.dialog.as_ref().unwrap();
        assert!(
            dialog.complaint.as_ref().is_some_and(|it| it.contains(told)),
            "{text}: {:?}",
            dialog.complaint
        );
        assert_eq!(dialog.focus, Stop::Field(line), "{text}");
    }
}

#[test]
fn unknown_evaluator_is_refused_unless_none_are_listed() {
    let mut state = ruling((80, 24), UNICODE_THEME);
    press(&mut state, "azzz");
    assert!(screen(&state).contains("none matches these letters"));
    wait(&mut state);
    tabs(&mut state, 9);
    assert!(key(&mut state, KeyCode::Enter).is_empty());
    assert!(
        state
            .shell
            .dialog
            .as_ref()
            .unwrap()
            .complaint
            .as_ref()
            .unwrap()
            .contains("no evaluator matches `zzz`")
    );

    let mut state = judging((80, 24), UNICODE_THEME);
    state.shell.evaluators = crate::shell::Rows::default();
    let effects = press(&mut state, "c");
    assert!(are(&effects, &["/v1/evaluators"]), "{effects:?}");
    reply(&mut state, &effects, Err(answered(503, "overloaded", "later")));
    press(&mut state, "my_own");
    wait(&mut state);
    tabs(&mut state, 5);
    let effects = key(&mut state, KeyCode::Enter);
    let [EvalsChange::Evaluate(new)] = &sent_changes::<EvalsChange>(&state, &effects)[..] else {
        panic!("{effects:?} {:?}", state.shell.dialog)
    };
    assert_eq!((new.metric_name.as_str(), new.evaluator_type.as_deref()), ("my_own", None));
}

#[test]
fn rule_changes_are_confirmed_and_sent_once() {
    for (keys, wanted) in [
        ("E", EvalsChange::SetEnabled { id: id(701), name: "faithfulness".into(), on: false, paused: false }),
        (
            "jE",
            EvalsChange::SetEnabled { id: id(702), name: "answer_relevance".into(), on: true, paused: true },
        ),
        ("jjjE", EvalsChange::SetEnabled { id: id(704), name: "toxicity".into(), on: true, paused: false }),
        ("d", EvalsChange::DeleteRule { id: id(701), name: "faithfulness".into() }),
    ] {
        let mut state = ruling((80, 24), UNICODE_THEME);
        press(&mut state, keys);
        wait(&mut state);
        assert!(press(&mut state, "y").is_empty(), "the context is protected");
        key(&mut state, KeyCode::Backspace);
        let end = wanted.id().unwrap().simple().to_string();
        press(&mut state, &end[28..]);
        let effects = key(&mut state, KeyCode::Enter);
        assert_eq!(sent_changes::<EvalsChange>(&state, &effects), [wanted]);
        assert!(key(&mut state, KeyCode::Enter).is_empty(), "the request is open");
        let effects = reply(&mut state, &effects, Ok(Response::new(())));
        assert!(sent_changes::<EvalsChange>(&state, &effects).is_empty() && state.shell.dialog.is_none());
    }
}

#[test]
fn lost_response_of_a_new_rule_reads_the_rules() {
    for (gone, told) in [(true, "its response was lost"), (false, "the change was not made")] {
        let mut state = ruling((80, 24), UNICODE_THEME);
        state.shell.target.protected = false;
        press(&mut state, "d");
        wait(&mut state);
        let effects = press(&mut state, "y");
        let effects = reply(&mut state, &effects, Err(offline()));
        assert!(are(&effects, &["/v1/eval-rules"]), "{effects:?}");
        let mut after = rules();
        if gone {
            after.remove(0);
        }
        reply(&mut state, &effects, Ok(Response::new(after)));
        let text = match &state.shell.dialog {
            Some(dialog) => dialog.complaint.clone().unwrap(),
            None => state.shell.toast.as_ref().unwrap().text.clone(),
        };
        assert!(text.contains(told), "{text}");
    }
}

fn result() -> RuleTest {
    RuleTest {
        trace_id: id(540),
        decision: Decision::SampledOut,
        detail: "The sample of 12.5% leaves this trace out.".into(),
        status: EvaluationStatus::Complete,
        score: Some(0.35),
        label: Some("fail".into()),
        reasoning: Some("The refund that the answer promises is in no document.".into()),
        error: None,
        evaluator_version: "faithfulness@1".into(),
        judge_model: Some("gpt-4o-mini".into()),
        prompt_tokens: Some(900),
        completion_tokens: Some(60),
        cost: Some(0.0003),
    }
}

#[test]
fn rule_test_shows_its_result_and_a_lost_one_changes_nothing() {
    let mut state = ruling((80, 24), UNICODE_THEME);
    press(&mut state, "t");
    wait(&mut state);
    tabs(&mut state, 2);
    let effects = key(&mut state, KeyCode::Enter);
    let [EvalsChange::TestRule { trace, .. }] = &sent_changes::<EvalsChange>(&state, &effects)[..] else {
        panic!("{effects:?} {:?}", state.shell.dialog)
    };
    assert_eq!(*trace, state.screens.evals.current().unwrap().trace_id, "the trace at hand");
    reply(&mut state, &effects, Ok(Response::new(result())));
    assert!(
        state.shell.dialog.is_none() && matches!(state.screens.evals.rules.side(), RulePane::Tested { .. })
    );
    press(&mut state, "j");
    assert!(
        matches!(state.screens.evals.rules.side(), RulePane::Facts),
        "the pane belongs to the rule above"
    );
    press(&mut state, "kt");
    wait(&mut state);
    tabs(&mut state, 2);
    let effects = key(&mut state, KeyCode::Enter);
    let effects = reply(&mut state, &effects, Err(offline()));
    assert!(effects.is_empty() && state.shell.dialog.is_none());
    assert!(state.shell.toast.as_ref().unwrap().text.contains("nothing was stored"));
}

pub fn decisions() -> RuleDecisionList {
    let one = |n: u128, decision: Decision, detail: &str, evaluation: Option<u128>| RuleDecision {
        rule_id: id(701),
        trace_id: id(n),
        decision,
        detail: detail.into(),
        evaluation_id: evaluation.map(id),
        decided_at: evaluation.map(|_| Timestamp::from_micros(BASE_MICROS)),
    };
    let decisions = vec![
        one(540, Decision::Queued, "It asked for an evaluation.", Some(40)),
        one(
            539,
            Decision::SampledOut,
            "The sample of 25% leaves this trace out; sample_rate says how many.",
            None,
        ),
        one(538, Decision::Quota, "The month's 2,500 llm evaluations were used up.", None),
    ];
    RuleDecisionList { decisions, has_more: false, next_cursor: None }
}

#[test]
fn decisions_are_requested_for_a_trace_or_the_newest() {
    let mut state = ruling((80, 24), UNICODE_THEME);
    press(&mut state, "w");
    let trace = state.screens.evals.current().unwrap().trace_id;
    assert_eq!(state.shell.input.as_ref().unwrap().text(), trace.to_string());
    let effects = key(&mut state, KeyCode::Enter);
    assert!(are(&effects, &["/v1/eval-rules/*/decisions"]), "{effects:?}");
    let sent = only_request(&effects);
    assert_eq!((sent.path_id(), sent.uuid("trace_id")), (Some(id(701)), Some(trace)));
    press(&mut state, "w");
    update(&mut state, Msg::Key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
    press(&mut state, "nonsense");
    assert!(key(&mut state, KeyCode::Enter).is_empty() && state.shell.line_error.is_some());
    update(&mut state, Msg::Key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
    let newest = key(&mut state, KeyCode::Enter);
    assert!(
        are(&newest, &["/v1/eval-rules/*/decisions"]) && only_request(&newest).param("trace_id").is_none()
    );
    reply(&mut state, &effects, Ok(Response::new(RuleDecisionList { decisions: vec![], ..decisions() })));
    assert!(screen(&state).contains("loading"), "the response about the trace is superseded");
    reply(&mut state, &newest, Ok(Response::new(decisions())));
    assert!(screen(&state).contains("sampled_out"));
    key(&mut state, KeyCode::Esc);
    assert!(matches!(state.screens.evals.rules.side(), RulePane::Facts));
    key(&mut state, KeyCode::Esc);
    assert_eq!(state.screens.evals.part, crate::screen::evals::state::EvalsSection::List);
}

#[test]
fn pages_scroll_the_pane_wherever_it_overflows() {
    let mut state = ruling((60, 20), UNICODE_THEME);
    press(&mut state, "j");
    let text = screen(&state);
    assert!(text.contains("pgdn more") && !text.contains("created"), "{text}");
    key(&mut state, KeyCode::PageDown);
    assert!(screen(&state).contains("created"), "{}", screen(&state));
    assert_eq!(state.screens.evals.rules.current().unwrap().id, id(702), "the rule stays");
    key(&mut state, KeyCode::PageUp);
    assert!(screen(&state).contains("Paused:"), "{}", screen(&state));
    let mut state = ruling((120, 40), UNICODE_THEME);
    assert!(!screen(&state).contains("pgdn more"));
    key(&mut state, KeyCode::PageDown);
    assert_eq!(state.screens.evals.rules.list.selected, rules().len() - 1, "there is nothing to scroll");
}

#[test]
fn viewers_and_read_only_consoles_change_no_rule() {
    for keys in ["a", "E", "d", "t"] {
        let mut state = ruling((80, 24), UNICODE_THEME);
        state.shell.me.as_mut().unwrap().role = Role::Viewer;
        press(&mut state, keys);
        assert!(
            state.shell.dialog.is_none() && state.shell.toast.as_ref().unwrap().text.contains("member"),
            "{keys}"
        );
        state.shell.target.read_only = true;
        press(&mut state, keys);
        assert!(
            state.shell.dialog.is_none() && state.shell.toast.as_ref().unwrap().text.contains("read-only"),
            "{keys}"
        );
    }
    let changes = |state: &App, words: &str| {
        let found = crate::app::palette::items::items(&state.shell, words);
        let rows =
            found.iter().filter_map(|it| if let PaletteChoice::Do(row) = it.pick { Some(row) } else { None });
        let rows: Vec<_> = rows.collect();
        (rows.iter().filter(|row| row.role.is_some()).count(), rows.len())
    };
    let mut state = ruling((120, 40), UNICODE_THEME);
    let (needing, all) = changes(&state, "rule");
    assert!(needing >= 4 && all > needing, "{needing} of {all}: the table has actions that need permissions");
    state.shell.target.read_only = true;
    let text = screen(&state);
    assert!(!text.contains("add") && !text.contains("delete"), "{text}");
    assert_eq!(changes(&state, "rule"), (0, all - needing));
    press(&mut state, "r");
    state.shell.target.read_only = false;
    assert_eq!(changes(&state, "run an evaluation").0, 1);
    state.shell.target.read_only = true;
    assert_eq!(changes(&state, "run an evaluation").0, 0);
}

#[test]
fn rule_list_that_fails_to_refresh_is_marked_stale() {
    let mut state = ruling((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "R");
    assert!(!screen(&state).contains("not up to date") && !faded(&state, "latency_threshold"));
    let (looks, rules): (Vec<Effect>, Vec<Effect>) =
        effects.into_iter().partition(|it| !is_get(it, "/v1/eval-rules"));
    reply(&mut state, &rules, Err(answered(503, "overloaded", "the database is away")));
    state.shell.toast = None;
    assert!(screen(&state).contains("not up to date, next in 30s"), "{}", screen(&state));
    assert!(faded(&state, "latency_threshold"));
    snap("rules-stale", &state);
    press(&mut state, "r");
    reply(&mut state, &looks[..1], Err(answered(503, "overloaded", "the database is away")));
    state.shell.toast = None;
    assert!(screen(&state).contains("not up to date, next in 4s"), "{}", screen(&state));
}

#[test]
fn note_mentions_older_decisions() {
    let mut state = ruling((80, 24), UNICODE_THEME);
    press(&mut state, "w");
    update(&mut state, Msg::Key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
    let effects = key(&mut state, KeyCode::Enter);
    let page = RuleDecisionList { has_more: true, next_cursor: Some("older".into()), ..decisions() };
    reply(&mut state, &effects, Ok(Response::new(page)));
    key(&mut state, KeyCode::PageDown);
    assert!(
        screen(&state).contains("all of them: loupe rules decisions 000002bd --all"),
        "{}",
        screen(&state)
    );
}

#[test]
fn rule_test_result_fits_the_smallest_terminal() {
    let mut state = ruling((40, 10), UNICODE_THEME);
    press(&mut state, "t");
    wait(&mut state);
    tabs(&mut state, 2);
    let effects = key(&mut state, KeyCode::Enter);
    reply(&mut state, &effects, Ok(Response::new(result())));
    state.shell.toast = None;
    assert!(screen(&state).contains("0.35"), "{}", screen(&state));
    for _ in 0..5 {
        key(&mut state, KeyCode::PageDown);
    }
    assert!(screen(&state).contains("no document"), "{}", screen(&state));
    key(&mut state, KeyCode::Esc);
    assert!(screen(&state).contains("latency_thres"), "the rules are back: {}", screen(&state));
}

#[test]
fn lost_rule_is_looked_up_in_its_own_project() {
    let mut state = ruling((80, 24), UNICODE_THEME);
    state.shell.project = Some(project(33, "shown", false));
    press(&mut state, "a");
    tabs(&mut state, 8);
    wait(&mut state);
    tabs(&mut state, 1);
    let effects = key(&mut state, KeyCode::Enter);
    let [EvalsChange::CreateRule(new)] = &sent_changes::<EvalsChange>(&state, &effects)[..] else {
        panic!("{effects:?} {:?}", state.shell.dialog)
    };
    let (made_in, metric) = (new.project_id, new.metric_name.clone());
    assert_ne!(made_in, id(33));
    let effects = reply(&mut state, &effects, Err(offline()));
    assert!(are(&effects, &["/v1/eval-rules"]), "{effects:?}");
    assert_eq!(only_request(&effects).uuid("project_id"), Some(made_in));
    let made = EvalRule { project_id: made_in, ..rule(990, &metric, EvaluatorType::Llm) };
    reply(&mut state, &effects, Ok(Response::new(vec![made])));
    assert!(
        state.shell.toast.as_ref().unwrap().text.contains("its response was lost"),
        "{:?}",
        state.shell.toast
    );
    assert!(state.screens.evals.rules.get(id(990)).is_none(), "the rules shown are of the project shown");
}

#[test]
fn another_project_shows_its_own_rules() {
    let mut state = ruling((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "p");
    reply(&mut state, &effects, Ok(Response::new(projects())));
    press(&mut state, "j");
    let effects = key(&mut state, KeyCode::Enter);
    assert!(state.screens.evals.rows.is_empty() && state.screens.evals.rules.list.items.is_empty());
    for path in ["/v1/eval-rules", "/v1/eval"] {
        let of_project = |it: &SentRequest| it.gets(path) && it.uuid("project_id") == Some(id(2));
        assert!(requests(&effects).iter().any(of_project), "{path}: {effects:?}");
    }
}

#[test]
fn rules_pane_draws_every_state() {
    for size in TERMINAL_SIZES {
        let mut state = filled(size, UNICODE_THEME);
        let effects = press(&mut state, "2r");
        tick(&mut state, 1);
        snap("rules-loading", &state);
        reply(&mut state, &effects[..2], Ok(Response::new(Vec::<EvalRule>::new())));
        state.shell.toast = None;
        snap("rules-empty", &state);
        let mut state = filled(size, UNICODE_THEME);
        let effects = press(&mut state, "2r");
        reply(&mut state, &effects[..2], Err(answered(503, "overloaded", "the database is away")));
        snap("rules-error", &state);
        let mut state = ruling(size, UNICODE_THEME);
        snap("rules", &state);
        press(&mut state, "j");
        snap("rules-paused", &state);
        press(&mut state, "afaith");
        snap("rules-new", &state);
        wait(&mut state);
        key(&mut state, KeyCode::Esc);
        press(&mut state, "kt");
        snap("rules-test", &state);
        wait(&mut state);
        tabs(&mut state, 2);
        let effects = key(&mut state, KeyCode::Enter);
        reply(&mut state, &effects, Ok(Response::new(result())));
        state.shell.toast = None;
        snap("rules-tested", &state);
        press(&mut state, "w");
        let effects = key(&mut state, KeyCode::Enter);
        reply(&mut state, &effects, Ok(Response::new(decisions())));
        snap("rules-why", &state);
        press(&mut state, "d");
        snap("rules-delete", &state);
    }
    let state = ruling((80, 24), ASCII_THEME);
    snap("ascii-rules", &state);
}
