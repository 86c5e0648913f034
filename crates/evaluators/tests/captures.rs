//! Tests with traces of real SDKs: documents, tools, and calls with their results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use evaluators::{
    Subject,
    subject::{Reading, Step},
};
use serde_json::Value;

/// Returns the captured traces by sender and scenario.
fn captured() -> BTreeMap<(String, String), Subject> {
    let text = include_str!("data/captures/traces.jsonl");
    let word = |value: &Value| value.as_str().map(str::to_owned);
    text.lines()
        .map(|line| {
            let trace: Value = serde_json::from_str(line).unwrap();
            let mut subject = Subject::default();
            for span in trace["spans"].as_array().unwrap() {
                if span["root"] == true {
                    subject.input = word(&span["input"]).or(subject.input);
                    subject.output = word(&span["output"]).or(subject.output);
                }
                subject.steps.push(Step {
                    name: word(&span["name"]).unwrap(),
                    kind: serde_json::from_value(span["type"].clone()).unwrap(),
                    input: word(&span["input"]),
                    output: word(&span["output"]),
                    metadata: span["metadata"].as_object().cloned().unwrap_or_default(),
                    ..Step::default()
                });
            }
            ((word(&trace["sender"]).unwrap(), word(&trace["scenario"]).unwrap()), subject)
        })
        .collect()
}

#[test]
fn documents_of_every_sdk_are_found() {
    let mut read = 0;
    for ((sender, scenario), subject) in captured().iter().filter(|((_, it), _)| it == "rag") {
        let reading = Reading::of(subject);
        // If the application has no span for its retrieval, its prompt contains the context.
        let expected = match sender.as_str() {
            "openinference-langchain" => 2,
            "openinference-node" | "logfire-pydantic-ai" | "logfire-pydantic-ai1" => 1,
            "vercel-ai5-json" | "vercel-ai7-json" => 1,
            _ => 3,
        };
        let texts: Vec<&str> = reading.documents().iter().map(|it| it.text.as_str()).collect();
        assert_eq!(texts.len(), expected, "{sender} {scenario}: {texts:?}");
        assert!(
            texts[0].to_lowercase().contains("refunds") && texts[0].contains("30 days"),
            "{sender}: {texts:?}"
        );
        assert!(reading.input().unwrap().contains("refund policy"), "{sender}: {:?}", reading.input());
        assert!(reading.output().unwrap().starts_with("According to the policy"), "{sender}");
        read += 1;
    }
    assert!(read >= 10, "{read}");
}

#[test]
fn calls_and_tools_of_every_sdk_are_found() {
    let mut read = 0;
    for ((sender, scenario), subject) in captured().iter().filter(|((_, it), _)| it.contains("tool")) {
        let reading = Reading::of(subject);
        let names: Vec<&str> = reading.calls().iter().map(|it| it.name.as_str()).collect();
        let expected: &[&str] = match (sender.as_str(), scenario.as_str()) {
            (_, "agent_as_tool") => &["translate_text"],
            ("agents-logfire" | "agents-openinference" | "openinference-node", _)
            | ("litellm-otel", _)
            | (_, "streaming_tool_call") => &["get_weather"],
            ("vercel-ai5-json" | "vercel-ai7-json", _) => &["getWeather", "lookupOrder"],
            _ => &["get_weather", "lookup_order"],
        };
        assert_eq!(names, expected, "{sender} {scenario}: {:?}", reading.calls());
        // The old convention without content names only the tools.
        if sender == "otel-openai-v2-old" {
            continue;
        }
        let first = &reading.calls()[0];
        let argument = if scenario == "agent_as_tool" { "refund policy" } else { "Zürich" };
        assert!(
            first.arguments.is_object() && first.arguments.to_string().contains(argument),
            "{sender}: {first:?}"
        );
        read += 1;
    }
    assert!(read >= 15, "{read}");
}

#[test]
fn results_are_joined_to_their_calls() {
    // These senders neither record the runs of tools nor send the results back.
    let without = ["litellm-otel", "otel-openai-v2-old", "openinference-node", "openlit25"];
    for ((sender, scenario), subject) in captured().iter().filter(|((_, it), _)| it.contains("tool")) {
        if scenario == "streaming_tool_call" || without.contains(&sender.as_str()) {
            continue;
        }
        for call in Reading::of(subject).calls() {
            assert!(call.result.is_some(), "{sender} {scenario}: {call:?}");
        }
    }
}

#[test]
fn schemas_are_found_where_they_are_sent() {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for ((sender, scenario), subject) in captured().iter().filter(|((_, it), _)| it.contains("tool")) {
        let reading = Reading::of(subject);
        let whole = !reading.tools().is_empty() && reading.tools().iter().any(|it| it.schema.is_some());
        if whole { &mut with } else { &mut without }.push(format!("{sender} {scenario}"));
    }
    // These senders do not send schemas at all.
    let expected = [
        "agents-logfire agent_as_tool",
        "agents-logfire tools",
        "openlit tools_multi_turn",
        "openlit25 tools_multi_turn",
        "otel-openai-v2 tools_multi_turn",
        "otel-openai-v2-old tools_multi_turn",
    ];
    assert_eq!(without, expected, "with: {with:#?}");
}
