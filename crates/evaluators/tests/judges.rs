//! Tests of the built-in LLM evaluators: each has a complete rubric, shows the parts that it needs, and names
//! missing parts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use api::SpanType;
use evaluators::{
    Subject, builtin,
    judge::{Instructions, JudgeRequest, Rubric, Token, TracePart, build_request, parse_response},
    subject::{ConversationTurn, Step},
};
use serde_json::{Value, json};

const TOKEN_BYTES: [u8; 16] = *b"0123456789abcdef";

fn rubrics() -> impl Iterator<Item = (&'static str, &'static Rubric)> {
    builtin::ALL.iter().filter_map(|it| Some((it.name, it.rubric()?)))
}

/// Returns a trace with all parts.
fn whole() -> Subject {
    let request = json!({
        "messages": [
            {"role": "system", "content": "You answer questions about refunds."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "How can I help?"},
            {"role": "user", "content": "When do I get my refund?"},
        ],
    });
    let tools = json!({"tools": [{"name": "find_policy", "parameters": {"type": "object"}}]});
    let called = json!({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "find_policy", "arguments": "{\"topic\":\"refunds\"}"}}]});
    let step = |kind, input: &str, output: Value| Step {
        kind,
        name: "step".to_owned(),
        input: Some(input.to_owned()),
        output: Some(output.to_string()),
        ..Step::default()
    };
    let mut asking = step(SpanType::Llm, &request.to_string(), called);
    asking.metadata.extend(tools.as_object().unwrap().clone());
    Subject {
        input: Some("When do I get my refund?".to_owned()),
        output: Some("Within 30 days [1].".to_owned()),
        steps: vec![
            asking,
            step(SpanType::Retrieval, "refunds", json!([{"id": "1", "content": "Refunds take 30 days."}])),
        ],
        turns: vec![ConversationTurn {
            input: Some("Hello".to_owned()),
            output: Some("How can I help?".to_owned()),
        }],
        ..Subject::default()
    }
}

/// Returns a trace with all parts but one.
fn without(part: TracePart) -> Subject {
    let mut subject = whole();
    match part {
        TracePart::Input => {
            subject.input = None;
            subject.steps[0].input = None;
        }
        TracePart::Output => {
            subject.output = None;
            subject.steps[0].output = None;
        }
        TracePart::Documents => subject.steps.truncate(1),
        TracePart::Tools => subject.steps[0].metadata.clear(),
        TracePart::Calls => subject.steps[0].output = None,
        TracePart::Turns => subject.turns.clear(),
    }
    subject
}

fn build(
    rubric: &'static Rubric,
    subject: &Subject,
    config: Value,
) -> Result<JudgeRequest, evaluators::NotEvaluated> {
    let Value::Object(config) = config else { panic!("{config}") };
    build_request(&Instructions::from(rubric), subject, &config, &Token::new(TOKEN_BYTES))
}

fn sections(request: &JudgeRequest) -> BTreeSet<&str> {
    request.user.lines().filter_map(|it| it.strip_prefix("BEGIN DATA ")?.split(' ').nth(1)).collect()
}

#[test]
fn every_rubric_is_complete() {
    let mut questions = BTreeSet::new();
    for (name, rubric) in rubrics() {
        assert!(questions.insert(rubric.question), "{name} asks what another one asks");
        assert!(rubric.question.ends_with('?'), "{name}");
        assert!(rubric.steps.len() >= 3 && rubric.counts.len() >= 3 && rubric.ignores.len() >= 3, "{name}");
        let scores: Vec<f64> = rubric.levels.iter().map(|it| it.score).collect();
        assert_eq!(scores, [1.0, 0.75, 0.5, 0.25, 0.0], "{name}");
        assert!(
            !rubric.needs.is_empty() && rubric.uses.iter().all(|it| !rubric.needs.contains(it)),
            "{name}"
        );
        let words = [rubric.steps, rubric.counts, rubric.ignores].concat();
        assert!(words.iter().all(|it| it.ends_with('.') || it.ends_with(':')), "{name}");
    }
}

#[test]
fn judge_request_contains_exactly_needed_and_used_parts() {
    for (name, rubric) in rubrics() {
        let request = build(rubric, &whole(), json!({})).unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected: BTreeSet<&str> = rubric.needs.iter().chain(rubric.uses).map(|it| it.word()).collect();
        assert_eq!(sections(&request), expected, "{name}");
        assert!(request.system.contains(rubric.question), "{name}");
        assert!(!request.system.contains("refund"), "{name}: the instructions contain text of the trace");
    }
}

#[test]
fn missing_part_error_says_what_to_send() {
    let mut refused = 0;
    for (name, rubric) in rubrics() {
        for need in rubric.needs {
            let error = build(rubric, &without(*need), json!({})).map(|it| it.user).unwrap_err();
            assert!(error.to_string().starts_with("the trace"), "{name}: {error}");
            assert!(
                error.to_string().contains("send") || error.to_string().contains("give"),
                "{name}: {error}"
            );
            refused += 1;
        }
        for need in rubric.uses {
            assert!(build(rubric, &without(*need), json!({})).is_ok(), "{name} without {need:?}");
        }
    }
    assert!(refused > 25, "{refused}");
}

#[test]
fn options_reach_the_judge() {
    for (name, rubric) in rubrics() {
        let config = json!({"rubric": "Our customers are pirates.", "language": "German", "threshold": 0.5});
        let request = build(rubric, &whole(), config).unwrap();
        assert!(request.system.contains("Our customers are pirates."), "{name}");
        assert!(request.system.contains("in this language: German"), "{name}");
    }
}

#[test]
fn response_of_requested_shape_is_parsed() {
    for (name, rubric) in rubrics() {
        let request = build(rubric, &whole(), json!({})).unwrap();
        let members: Vec<&str> =
            request.schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members, ["reasoning", "score"], "{name}");
        for level in rubric.levels {
            let answer = json!({"reasoning": "So it is.", "score": level.score}).to_string();
            assert_eq!(parse_response(&request, &answer).unwrap().score, level.score, "{name}");
        }
    }
}

#[test]
fn rubric_needs_match_their_descriptions() {
    for definition in builtin::ALL {
        let Some(rubric) = definition.rubric() else { continue };
        for need in rubric.needs {
            let word = match need {
                TracePart::Turns => "turns",
                TracePart::Calls => "call",
                other => other.word(),
            };
            let description = definition.description.to_lowercase();
            assert!(
                description.contains("needs") && description.contains(word),
                "{}: {word}",
                definition.name
            );
        }
    }
}

#[test]
fn user_table_lists_needs_and_uses() {
    let page = include_str!("../../../docs/evaluators.md");
    for definition in builtin::ALL {
        let start = format!("| `{}` |", definition.name);
        let row = page.lines().find(|it| it.starts_with(&start)).unwrap_or_else(|| panic!("no row {start}"));
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let kind = match definition.types() {
            [_, _] => "both",
            [api::EvaluatorType::Llm] => "llm",
            _ => "rule",
        };
        assert_eq!(columns[2], kind, "{row}");
        let Some(rubric) = definition.rubric() else { continue };
        let words =
            |needs: &[TracePart]| needs.iter().map(|it| it.word().to_owned()).collect::<BTreeSet<_>>();
        let listed = |column: &str| -> BTreeSet<String> {
            let column = column.split("llm: ").last().unwrap();
            column.split(", ").filter(|it| !it.is_empty()).map(str::to_owned).collect()
        };
        assert_eq!(listed(columns[4]), words(rubric.needs), "{row}");
        assert_eq!(listed(columns[5]), words(rubric.uses), "{row}");
    }
}
