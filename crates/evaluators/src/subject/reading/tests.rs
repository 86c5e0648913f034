//! Tests of the parts of a trace in the formats of various senders.

use serde_json::json;

use super::*;

fn step(kind: SpanType, input: Value, output: Value) -> Step {
    let text = |value: Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    };
    Step { kind, input: text(input), output: text(output), ..Step::default() }
}

fn tool(name: &str, id: Option<&str>, input: Value, output: &str) -> Step {
    let mut step = step(SpanType::Tool, input, json!(output));
    step.metadata.insert("tool".to_owned(), json!({"name": name, "call_id": id}));
    step
}

#[test]
fn call_and_its_tool_span_are_merged() {
    let said = json!([{"role": "assistant", "tool_calls": [
        {"id": "a", "function": {"name": "f", "arguments": "{\"x\": 1}"}},
        {"id": "b", "function": {"name": "f", "arguments": "{\"x\": 2}"}},
        {"id": "c", "function": {"name": "g", "arguments": "{}"}},
    ]}]);
    let later = json!([
        {"role": "user", "content": "Hi"},
        {"role": "tool", "tool_call_id": "c", "content": "from the history"},
    ]);
    let subject = Subject {
        steps: vec![
            step(SpanType::Llm, json!("Hi"), said),
            // Spans without IDs, in another order than the calls.
            tool("f", None, json!({"x": 2}), "two"),
            tool("f", None, json!({"x": 1}), "one"),
            tool("h", Some("z"), json!({}), "by itself"),
            step(SpanType::Llm, later, json!("Done")),
        ],
        ..Subject::default()
    };
    let reading = Reading::of(&subject);
    let calls: Vec<(&str, Option<&str>)> =
        reading.calls().iter().map(|it| (it.name.as_str(), it.result.as_deref())).collect();
    assert_eq!(
        calls,
        [("f", Some("one")), ("f", Some("two")), ("g", Some("from the history")), ("h", Some("by itself"))]
    );
    assert_eq!(reading.output(), Some("Done"));
    assert_eq!(reading.input(), Some("Hi"));
}

#[test]
fn call_reported_by_client_and_server_is_merged() {
    let below = |mut step: Step, id: u128, parent: Option<u128>| {
        (step.id, step.parent) = (Uuid::from_u128(id), parent.map(Uuid::from_u128));
        step
    };
    let subject = Subject {
        steps: vec![
            below(tool("add", Some("a"), json!({"x": 1}), "1"), 1, None),
            below(tool("add", None, Value::Null, ""), 2, Some(1)),
            below(step(SpanType::Other, Value::Null, Value::Null), 3, Some(2)),
            below(tool("add", None, Value::Null, ""), 4, Some(3)),
            // A different tool, and a separate call of the same tool.
            below(tool("log", None, json!({}), ""), 5, Some(4)),
            below(tool("add", None, json!({"x": 2}), "2"), 6, Some(1)),
        ],
        ..Subject::default()
    };
    let reading = Reading::of(&subject);
    let names: Vec<&str> = reading.calls().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["add", "log", "add"]);
}

#[test]
fn request_recorded_by_two_libraries_is_counted_once() {
    let said = |id: &str, arguments: &str| json!([{"role": "assistant", "tool_calls": [{"id": id, "function": {"name": "f", "arguments": arguments}}]}]);
    let subject = |answers: Vec<Value>| Subject {
        steps: answers.into_iter().map(|it| step(SpanType::Llm, json!("Hi"), it)).collect(),
        ..Subject::default()
    };
    let count = |answers| Reading::of(&subject(answers)).calls().len();
    assert_eq!(count(vec![said("a", "{\"x\": 1}"), said("a", "{\"x\":1}")]), 1);
    assert_eq!(count(vec![said("call_0", "{\"x\": 1}"), said("call_0", "{\"x\": 2}")]), 2);
}

#[test]
fn calls_beyond_the_limit_are_neither_kept_nor_parsed() {
    let call = |id: usize| Call::new("f", None, Some(&id.to_string()));
    let mut calls = Vec::new();
    let mut looked_at = 0;
    add(&mut calls, (0..10 * MAX_CALLS).map(call).inspect(|_| looked_at += 1));
    assert_eq!((calls.len(), looked_at), (MAX_CALLS, MAX_CALLS + 1));
}

#[test]
fn calls_are_found_without_spans() {
    let calls =
        json!([{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]);
    for subject in [
        Subject {
            output: Some(json!({"role": "assistant", "content": null, "tool_calls": calls}).to_string()),
            ..Subject::default()
        },
        Subject { output: Some(calls.to_string()), ..Subject::default() },
        Subject {
            output: Some("Done".to_owned()),
            metadata: [("tool_calls".to_owned(), calls.clone())].into_iter().collect(),
            ..Subject::default()
        },
        Subject {
            input: Some(
                json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null, "tool_calls": calls}])
                    .to_string(),
            ),
            output: Some("Done".to_owned()),
            ..Subject::default()
        },
    ] {
        let reading = Reading::of(&subject);
        assert_eq!(reading.calls().len(), 1, "{subject:?}");
        assert_eq!(reading.calls()[0].arguments, json!({"x": 1}));
    }
}

#[test]
fn turns_are_read_from_conversation_or_session() {
    let conversation = json!([
        {"role": "system", "content": "Be terse"},
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "Two?"},
    ]);
    let turn = super::super::ConversationTurn {
        input: Some("Zero?".to_owned()),
        output: Some(json!([{"role": "assistant", "content": "0"}]).to_string()),
    };
    let mut subject = Subject {
        input: Some(conversation.to_string()),
        output: Some("2".to_owned()),
        turns: vec![turn],
        ..Subject::default()
    };
    let turns = |subject: &Subject| -> Vec<String> {
        Reading::of(subject).turns().iter().map(Message::to_string).collect()
    };
    assert_eq!(turns(&subject), ["system: Be terse", "user: One?", "assistant: 1"]);
    let reading = Reading::of(&subject);
    assert_eq!(reading.last_input(), Some("Two?"));
    assert_eq!(reading.input(), Some("system: Be terse\n\nuser: One?\n\nassistant: 1\n\nuser: Two?"));
    subject.input = Some("Two?".to_owned());
    assert_eq!(turns(&subject), ["user: Zero?", "assistant: 0"]);
    subject.turns.clear();
    assert_eq!(turns(&subject), [""; 0]);
}

#[test]
fn huge_and_deep_texts_are_text() {
    let deep = "[".repeat(100_000);
    let huge = format!("[{}\"x\"]", "\"x\",".repeat(3_000_000));
    for text in [deep, huge] {
        let subject = Subject {
            input: Some(text.clone()),
            output: Some(text.clone()),
            steps: (0..2_000).map(|_| step(SpanType::Llm, json!("Hi"), json!("x"))).collect(),
            ..Subject::default()
        };
        let reading = Reading::of(&subject);
        assert_eq!(reading.output().map(str::len), Some(text.len()));
    }
}
