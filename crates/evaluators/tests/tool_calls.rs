//! Tests of the tool evaluators on labelled calls (`tests/data/tool_calls`), in the formats of eight
//! conventions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use api::SpanType;
use evaluators::{
    Subject, builtin,
    subject::{Reading, Step},
};
use serde_json::{Map, Value, json};

/// Minimum share of rows with the labelled result; the documentation quotes the measured share.
const AT_LEAST: f64 = 0.98;

fn rows() -> Vec<Value> {
    let text = include_str!("data/tool_calls/rows.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn labelled_calls_are_judged_as_labelled() {
    let rows = rows();
    assert!(rows.len() >= 300, "{}", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let definition = builtin::find(row["metric"].as_str().unwrap()).unwrap();
        let config = row["config"].as_object().unwrap();
        definition.check(config).unwrap_or_else(|problems| panic!("{row}: {problems:?}"));
        let rule = definition.compile(config).unwrap_or_else(|problems| panic!("{row}: {problems:?}"));
        let verdict = rule.evaluate(&trace(row)).unwrap_or_else(|error| panic!("{row}: {error}"));
        let label = if verdict.score == 1.0 { "pass" } else { "fail" };
        if label != row["label"] {
            wrong.push(format!("{} {}: {} ({})", row["id"], row["shape"], row["why"], verdict.reasoning));
        }
    }
    let share = 1.0 - wrong.len() as f64 / rows.len() as f64;
    println!("{} rows, {:.1} % as labelled; wrong: {wrong:#?}", rows.len(), 100.0 * share);
    assert!(share >= AT_LEAST, "{share}: {wrong:#?}");
}

#[test]
fn every_shape_gives_the_same_subject() {
    for row in rows() {
        let reading = Reading::of(&trace(&row));
        let expected: Vec<String> = row["calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap().trim_start_matches("functions.").to_owned())
            .collect();
        let read: Vec<&str> = reading.calls().iter().map(|it| it.name.as_str()).collect();
        assert_eq!(read, expected, "{row}");
        assert_eq!(reading.tools().len(), row["tools"].as_array().unwrap().len(), "{row}");
    }
}

/// Returns the row as a trace in the format of its convention.
fn trace(row: &Value) -> Subject {
    let (tools, calls) = (&row["tools"], row["calls"].as_array().unwrap());
    let shape = row["shape"].as_str().unwrap();
    let text = |arguments: &Value| match arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let each = |write: &dyn Fn(usize, &str, &Value) -> Value| -> Vec<Value> {
        let written = calls.iter().enumerate();
        written.map(|(at, it)| write(at, it["name"].as_str().unwrap(), &it["arguments"])).collect()
    };
    let (output, request, metadata) = match shape {
        "openai" => {
            let calls = each(
                &|at, name, arguments| json!({"id": format!("call_{at}"), "type": "function", "function": {"name": name, "arguments": text(arguments)}}),
            );
            let answer = json!({"role": "assistant", "content": null, "tool_calls": calls});
            (answer, json!({"messages": [{"role": "user", "content": "Do it"}], "tools": tools}), json!({}))
        }
        "anthropic" => {
            let parts = each(
                &|at, name, arguments| json!({"type": "tool_use", "id": format!("toolu_{at}"), "name": name, "input": arguments}),
            );
            let schemas: Map<String, Value> = tools
                .as_array()
                .unwrap()
                .iter()
                .enumerate()
                .map(|(at, it)| (format!("llm.tools.{at}.tool.json_schema"), it.to_string().into()))
                .collect();
            (json!({"role": "assistant", "content": parts}), json!("Do it"), Value::Object(schemas))
        }
        "genai" => {
            let parts = each(
                &|at, name, arguments| json!({"type": "tool_call", "id": format!("call_{at}"), "name": name, "arguments": arguments}),
            );
            let answer = json!([{"role": "assistant", "parts": parts, "finish_reason": "tool_call"}]);
            (answer, json!("Do it"), json!({"gen_ai.tool.definitions": tools.to_string()}))
        }
        "vercel" => {
            let calls = each(
                &|at, name, arguments| json!({"toolCallId": format!("call_{at}"), "toolName": name, "input": text(arguments)}),
            );
            let tools: Vec<String> = tools.as_array().unwrap().iter().map(Value::to_string).collect();
            (json!(calls), json!("Do it"), json!({"ai.prompt.tools": tools}))
        }
        "responses" => {
            let items = each(
                &|at, name, arguments| json!({"type": "function_call", "call_id": format!("call_{at}"), "name": name, "arguments": text(arguments)}),
            );
            (json!(items), json!({"input": "Do it", "tools": tools}), json!({}))
        }
        "gemini" => {
            let parts =
                each(&|_, name, arguments| json!({"functionCall": {"name": name, "args": arguments}}));
            let answer = json!({"candidates": [{"content": {"role": "model", "parts": parts}}]});
            let declarations: Vec<&Value> =
                tools.as_array().unwrap().iter().map(|it| it.get("function").unwrap_or(it)).collect();
            (answer, json!("Do it"), json!({"tools": [{"functionDeclarations": declarations}]}))
        }
        "langchain" => {
            let calls = each(
                &|at, name, arguments| json!({"name": name, "args": arguments, "id": format!("call_{at}"), "type": "tool_call"}),
            );
            let answer = json!({"type": "ai", "data": {"content": "", "type": "ai", "tool_calls": calls}});
            let parameters = json!({"model": "m", "tools": tools}).to_string();
            (json!([answer]), json!("Do it"), json!({"llm.invocation_parameters": parameters}))
        }
        "toolspan" => (json!("Done"), json!("Do it"), json!({"tools": tools})),
        other => panic!("{other}"),
    };
    let plain = |value: Value| match value {
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    };
    let output = if calls.is_empty() { json!("Done") } else { output };
    let Value::Object(metadata) = metadata else { panic!() };
    let mut steps = vec![Step {
        kind: SpanType::Llm,
        input: plain(request),
        output: plain(output),
        metadata,
        ..Step::default()
    }];
    if shape == "toolspan" {
        for call in calls {
            let tool = json!({"tool": {"name": call["name"]}});
            let input = Some(&call["arguments"]).filter(|it| !it.is_null());
            steps.push(Step {
                kind: SpanType::Tool,
                input: input.and_then(|it| plain(it.clone())),
                output: Some("ok".to_owned()),
                metadata: tool.as_object().unwrap().clone(),
                ..Step::default()
            });
        }
    }
    Subject { input: Some("Do it".to_owned()), output: Some("Done".to_owned()), steps, ..Subject::default() }
}
