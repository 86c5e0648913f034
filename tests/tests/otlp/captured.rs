//! Posts every captured payload as it was captured, and compares the stored traces with the correct
//! interpretation.

use std::{collections::BTreeSet, path::Path};

use reqwest::Method;
use serde_json::Value;
use tests::{
    Caller,
    expectation::{
        Differences, assert_only_deviations, joined, name_of, read_json, root, scenarios_of, text,
    },
    on_both_databases,
};
use uuid::Uuid;

on_both_databases! {
    async fn every_captured_payload_is_stored_as_expected(app: TestApp) {
        let key = app.full_key();
        let mut differences = Vec::new();
        let scenarios = scenarios_of(&root());
        assert!(scenarios.len() > 200, "only {} scenarios found", scenarios.len());
        for scenario in &scenarios {
            for difference in check(&key, scenario).await {
                differences.push((name_of(scenario), difference));
            }
        }
        assert_only_deviations(&differences);
    }
}

/// Posts a scenario's requests, compares the stored traces, and posts the requests again.
async fn check(key: &Caller, scenario: &Path) -> Vec<String> {
    let expect = read_json(&scenario.join("expect.json"));
    let mut differences = Differences::default();
    post(key, scenario, &expect).await;
    let mut stored = Vec::new();
    for expected in expect["traces"].as_array().unwrap() {
        let trace = key.get(&format!("/v1/traces/{}", text(&expected["otel_trace_id"]))).await.ok();
        check_trace(key, &trace, expected, &mut differences).await;
        stored.push(trace);
    }
    let spans: Vec<&Value> = stored.iter().flat_map(|it| it["spans"].as_array().unwrap()).collect();
    differences.equal("span count", spans.len(), &expect["span_count"]);
    for expected in expect["spans"].as_array().unwrap() {
        let is_it = |span: &&&Value| {
            span["otel_trace_id"] == expected["otel_trace_id"]
                && span["otel_span_id"] == expected["otel_span_id"]
        };
        match spans.iter().find(is_it) {
            Some(span) => check_span(span, expected, &mut differences),
            None => differences.note(format!("{} is missing", expected["name"])),
        }
    }
    post(key, scenario, &expect).await;
    for before in &stored {
        let after = key.get(&format!("/v1/traces/{}", text(&before["id"]))).await.ok();
        if after != *before {
            differences.note(format!("sending {} again changed it", before["id"]));
        }
    }
    differences.0
}

/// Posts the requests with their captured content type and encoding.
async fn post(key: &Caller, scenario: &Path, expect: &Value) {
    for request in expect["requests"].as_array().unwrap() {
        let file = request.as_str().unwrap();
        let number = file.split('.').next().unwrap();
        let meta = read_json(&scenario.join(format!("{number}.meta.json")));
        let body = std::fs::read(scenario.join(file)).unwrap();
        let mut request = key
            .request(Method::POST, "/v1/otlp/traces")
            .header("content-type", text(&meta["content_type"]))
            .body(body);
        if let Some(encoding) = meta["content_encoding"].as_str() {
            request = request.header("content-encoding", encoding);
        }
        let reply = key.send(request).await;
        assert_eq!(reply.status, 200, "{} {file}: {}", scenario.display(), reply.text());
        assert_eq!(reply.headers["content-type"], text(&meta["content_type"]), "{}", scenario.display());
        // No span was rejected: the response is an empty message in either form.
        assert!(
            reply.body.is_empty() || reply.body == b"{}",
            "{} {file}: {}",
            scenario.display(),
            reply.text()
        );
    }
}

async fn check_trace(key: &Caller, trace: &Value, expected: &Value, differences: &mut Differences) {
    let about = |what: &str| format!("trace {}: {what}", expected["root_span_name"]);
    let spans = trace["spans"].as_array().unwrap();
    differences.equal(&about("span count"), spans.len(), &expected["span_count"]);
    differences.equal(&about("span_count"), trace["span_count"].clone(), &expected["span_count"]);
    let root =
        spans.iter().filter(|it| it["parent_span_id"].is_null()).min_by_key(|it| text(&it["start_time"]));
    differences.equal(
        &about("root"),
        root.map(|it| it["otel_span_id"].clone()),
        &expected["root_otel_span_id"],
    );
    differences.equal(
        &about("root failed"),
        root.is_some() && !trace["error"].is_null(),
        &expected["root_error"],
    );
    let failed = spans.iter().any(|it| !it["error"].is_null());
    differences.equal(&about("any span failed"), failed, &expected["any_span_error"]);
    for (field, span_field) in
        [("prompt_tokens_total", "prompt_tokens"), ("completion_tokens_total", "completion_tokens")]
    {
        let sum: i64 = spans.iter().filter_map(|it| it[span_field].as_i64()).sum();
        differences.equal(&about(field), trace[field].as_i64().unwrap_or(0), &expected[field]);
        differences.equal(&about(&format!("sum of {span_field}")), sum, &expected[field]);
    }
    let total = trace["prompt_tokens_total"].as_i64().unwrap_or(0)
        + trace["completion_tokens_total"].as_i64().unwrap_or(0);
    differences.equal(&about("total tokens"), total, &trace["total_token_count"]);
    for field in ["cached_input_tokens", "cache_write_tokens", "reasoning_tokens"] {
        let reported = spans.iter().filter_map(|it| it["usage_details"][field].as_i64());
        let sum = reported.reduce(|sum, it| sum + it);
        differences.equal(&about(field), sum, &trace["usage_details"][field]);
    }
    check_texts(trace, &about, differences);
    let costs: Vec<f64> = spans.iter().filter_map(|it| it["cost"].as_f64()).collect();
    let cost = (!costs.is_empty()).then(|| costs.iter().sum::<f64>());
    differences.equal(&about("cost"), cost, &trace["cost"]);
    if expected["models"].as_array().is_some_and(|models| !models.is_empty()) {
        differences.one_of(&about("model"), trace["model"].clone(), &expected["models"]);
    }
    differences.equal(&about("user"), trace["user_id"].clone(), &expected["user_id"]);
    differences.equal(&about("tags"), joined(&trace["tags"]), &sorted_tags(&expected["tags"]));
    if let Some(session) = expected["session_id"].as_str().filter(|it| !it.starts_with("[Scrubbed")) {
        differences.equal(&about("session"), trace["session_id"].clone(), &Value::from(session));
    }
    check_failures(key, trace, expected, &about, differences).await;
}

/// Checks that a trace shows the texts of its root or, if the root has none, the texts of its model calls.
fn check_texts(trace: &Value, about: &impl Fn(&str) -> String, differences: &mut Differences) {
    let calls = || trace["spans"].as_array().unwrap().iter().filter(|it| it["type"] == "llm");
    for text in ["input", "output"] {
        let is_said = calls().any(|it| !it[text].is_null());
        let has_failed = calls().any(|it| !it["error"].is_null());
        if is_said && !has_failed && trace[text].is_null() {
            differences.note(about(&format!("no {text}, though a model call has one")));
        }
    }
}

/// Checks the failure types of the spans, and that only these filters of the list find the trace.
async fn check_failures(
    key: &Caller,
    trace: &Value,
    expected: &Value,
    about: &impl Fn(&str) -> String,
    differences: &mut Differences,
) {
    let spans = trace["spans"].as_array().unwrap();
    let had: BTreeSet<_> = spans.iter().filter_map(|it| it["failure_type"].as_str()).collect();
    for missing in expected["failure_types"].as_array().unwrap().iter().filter_map(Value::as_str) {
        if !had.contains(missing) {
            differences.note(about(&format!("no span failed by {missing}")));
        }
    }
    if had.is_empty() {
        return;
    }
    let started = text(&trace["started_at"]);
    for failure in ["timeout", "rate_limit", "invalid_response", "context_length"] {
        let path = format!("/v1/traces?failure_type={failure}&from={started}&to={started}");
        let listed =
            key.get(&path).await.ok()["traces"].as_array().unwrap().iter().any(|it| it["id"] == trace["id"]);
        differences.equal(&about(&format!("listed by {failure}")), listed, &had.contains(failure).into());
    }
}

fn check_span(span: &Value, expected: &Value, differences: &mut Differences) {
    let name = text(&expected["name"]);
    let about = |what: &str| format!("{name}: {what}");
    // Templates are shown with their values.
    if !name.contains('{') {
        differences.equal(&about("name"), span["name"].clone(), &expected["name"]);
    }
    let trace: Uuid = text(&span["trace_id"]).parse().unwrap();
    let parent = expected["parent_otel_span_id"].as_str();
    let parent = parent.map(|it| Uuid::new_v5(&trace, it.as_bytes()).to_string());
    differences.equal(&about("parent"), span["parent_span_id"].clone(), &parent.into());
    differences.one_of(&about("type"), span["type"].clone(), &expected["type_any_of"]);
    if !expected["model_any_of"].is_null() {
        differences.one_of(&about("model"), span["model"].clone(), &expected["model_any_of"]);
    }
    // Values that another span reports are in the metadata.
    let sent = |field: &str| match &span[field] {
        Value::Null => span["metadata"]["usage"][field].clone(),
        counted => counted.clone(),
    };
    differences.equal(&about("prompt tokens"), sent("prompt_tokens"), &expected["prompt_tokens"]);
    differences.equal(&about("completion tokens"), sent("completion_tokens"), &expected["completion_tokens"]);
    for (field, name) in [("cached_tokens", "cached_input_tokens"), ("reasoning_tokens", "reasoning_tokens")]
    {
        if !expected[field].is_null() {
            let details = [&span["usage_details"], &span["metadata"]["usage"]];
            let found = details.into_iter().map(|it| it[name].clone()).find(|it| !it.is_null());
            differences.equal(&about(name), found.unwrap_or_default(), &expected[field]);
        }
    }
    if let Some(cost) = expected["cost_usd_sent"].as_f64().filter(|it| *it > 0.0 && span["type"] == "llm") {
        differences.equal(&about("cost"), sent("cost"), &cost.into());
    }
    differences.equal(&about("failed"), !span["error"].is_null(), &expected["error"]);
    if let Some(part) = expected["error_contains"].as_str() {
        differences.contains(&about("error"), span["error"].as_str(), part);
    }
    // Expectations omit failures without a named type.
    let failure = span["failure_type"].as_str().filter(|it| *it != "other");
    differences.one_of(&about("failure"), failure, &expected["failure_type_any_of"]);
    if let Some(part) = expected["input_contains"].as_str() {
        differences.contains(&about("input"), span["input"].as_str(), part);
    }
    if let Some(part) = expected["output_contains"].as_str() {
        differences.contains(&about("output"), span["output"].as_str(), part);
    }
    if !expected["tool_name"].is_null() {
        differences.equal(&about("tool"), span["metadata"]["tool"]["name"].clone(), &expected["tool_name"]);
    }
}

/// Returns the tags in the server's order.
fn sorted_tags(tags: &Value) -> Value {
    let mut tags = tags.clone();
    if let Some(list) = tags.as_array_mut() {
        list.sort_by_key(text);
    }
    match joined(&tags) {
        // A trace without tags has an empty list.
        Value::Null => Value::from(""),
        text => text,
    }
}
