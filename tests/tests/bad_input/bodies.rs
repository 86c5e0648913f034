//! Every JSON body of every route: a missing field or a wrong type gets 400, a forbidden value gets 422.
//! The fields come from the OpenAPI document, so new ones are tested automatically.

use std::collections::BTreeMap;

use api::Role;
use serde_json::{Map, Value, json};
use server::{features, http::openapi};
use tests::{Caller, Reply, TestApp, on_both_databases};

use super::start;

/// Valid requests by method and path template: the path with its parameters, and the body.
type Valid = BTreeMap<(&'static str, &'static str), (String, Value)>;

async fn valid(app: &TestApp, owner: &Caller) -> Valid {
    let trace =
        owner.post("/v1/ingest", &json!({"name": "judged", "latency_ms": 5})).await.ok()["id"].clone();
    let project = app.project;
    let made = owner.post("/v1/projects", &json!({"name": "to change"})).await.ok();
    let to_change = made["id"].as_str().unwrap();
    app.session(Role::Viewer).get("/v1/me").await.ok();
    let members = owner.get("/v1/members").await.ok();
    let viewer = members["members"].as_array().unwrap().iter().find(|it| it["role"] == "viewer").unwrap();
    let viewer = viewer["id"].as_str().unwrap();
    let config = json!({"max_latency_ms": 10});
    let metric = json!({"metric_name": "latency_threshold", "evaluator_type": "rule", "config": config});
    let with = |more: Value| {
        let mut body = metric.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let rule = with(json!({"project_id": project}));
    let rule_id = owner.post("/v1/eval-rules", &rule).await.ok()["id"].as_str().unwrap().to_owned();
    let failing = json!({"name": "t", "spans": [{"name": "s", "error": "request timed out"}]});
    owner.post("/v1/ingest", &failing).await.ok();
    app.drain().await;
    let clusters = owner.get("/v1/failures/clusters").await.ok();
    let cluster = clusters["clusters"][0]["id"].as_str().unwrap();
    let failure_rules = owner.get("/v1/failure-rules").await.ok();
    let failure_rule = failure_rules["failure_rules"][0]["id"].as_str().unwrap();
    let evaluator = |name: &str| json!({"name": name, "evaluator_type": "rule", "checks": [{"kind": "contains", "text": "refund"}]});
    owner.post("/v1/evaluators", &evaluator("to_change")).await.ok();
    let webhook = json!({"url": "https://93.184.216.34/", "secret": "0123456789abcdef"});
    let webhook_id = owner.post("/v1/webhooks", &webhook).await.ok()["id"].as_str().unwrap().to_owned();
    let policy = json!({"project_id": project, "action_type": "retry"});
    let policy_id = owner.post("/v1/policies", &policy).await.ok()["id"].as_str().unwrap().to_owned();
    let mut decision_paths = Vec::new();
    for decision in ["approve", "reject", "rollback"] {
        let deployment = json!({"project_id": project, "prompt_name": decision, "template": "t"});
        let made = owner.post("/v1/prompts/deployments", &deployment).await.ok();
        let path = format!("/v1/prompts/deployments/{}", made["id"].as_str().unwrap());
        if decision == "rollback" {
            owner.post(&format!("{path}/approve"), &json!({})).await.ok();
        }
        decision_paths.push(format!("{path}/{decision}"));
    }
    let price = json!({"input_per_million": 1, "output_per_million": 2});
    let rows: Vec<(&'static str, &'static str, String, Value)> = vec![
        ("POST", "/v1/ingest", String::new(), json!({"name": "n"})),
        ("POST", "/v1/ingest/batch", String::new(), json!({"traces": []})),
        ("POST", "/v1/search/spans", String::new(), json!({"vector": vec![1; 1536]})),
        ("POST", "/v1/feedback", String::new(), json!({"trace_id": trace, "label": "good"})),
        ("POST", "/v1/eval", String::new(), with(json!({"trace_id": trace}))),
        ("POST", "/v1/eval/bulk", String::new(), metric.clone()),
        ("POST", "/v1/evaluators", String::new(), evaluator("new_one")),
        ("PATCH", "/v1/evaluators/{name}", "/v1/evaluators/to_change".to_owned(), json!({})),
        ("POST", "/v1/eval-rules", String::new(), rule),
        ("PATCH", "/v1/eval-rules/{id}", format!("/v1/eval-rules/{rule_id}"), json!({})),
        (
            "POST",
            "/v1/eval-rules/{id}/test",
            format!("/v1/eval-rules/{rule_id}/test"),
            json!({"trace_id": trace}),
        ),
        ("POST", "/v1/eval-rules/{id}/backfill", format!("/v1/eval-rules/{rule_id}/backfill"), json!({})),
        (
            "PATCH",
            "/v1/failures/clusters/{id}",
            format!("/v1/failures/clusters/{cluster}"),
            json!({"status": "open"}),
        ),
        ("POST", "/v1/failure-rules", String::new(), json!({"name": "r"})),
        ("PATCH", "/v1/failure-rules/{id}", format!("/v1/failure-rules/{failure_rule}"), json!({})),
        ("POST", "/v1/webhooks", String::new(), webhook),
        ("PATCH", "/v1/webhooks/{id}", format!("/v1/webhooks/{webhook_id}"), json!({})),
        (
            "POST",
            "/v1/webhooks/{id}/rotate-secret",
            format!("/v1/webhooks/{webhook_id}/rotate-secret"),
            json!({}),
        ),
        ("POST", "/v1/policies", String::new(), policy),
        ("PATCH", "/v1/policies/{id}", format!("/v1/policies/{policy_id}"), json!({})),
        ("POST", "/v1/control/actions", String::new(), json!({"trace_id": trace, "action_type": "retry"})),
        (
            "POST",
            "/v1/prompts/deployments",
            String::new(),
            json!({"project_id": project, "prompt_name": "p", "template": "t", "mode": "live", "ab": {"min_samples": 2}}),
        ),
        ("POST", "/v1/prompts/deployments/{id}/approve", decision_paths[0].clone(), json!({"note": "n"})),
        ("POST", "/v1/prompts/deployments/{id}/reject", decision_paths[1].clone(), json!({"note": "n"})),
        ("POST", "/v1/prompts/deployments/{id}/rollback", decision_paths[2].clone(), json!({"note": "n"})),
        ("POST", "/v1/apikeys", String::new(), json!({"name": "k"})),
        ("POST", "/v1/projects", String::new(), json!({"name": "new one"})),
        ("PATCH", "/v1/projects/{id}", format!("/v1/projects/{to_change}"), json!({})),
        (
            "PUT",
            "/v1/projects/{id}/redaction",
            format!("/v1/projects/{to_change}/redaction"),
            json!({"detectors": ["email"], "patterns": [{"name": "case", "pattern": "CASE-[0-9]{4}"}]}),
        ),
        ("PUT", "/v1/models/{name}", "/v1/models/m".to_owned(), price),
        ("PATCH", "/v1/members/{id}", format!("/v1/members/{viewer}"), json!({"status": "active"})),
        (
            "PUT",
            "/v1/provider-credentials/{provider}",
            "/v1/provider-credentials/openai".to_owned(),
            json!({"api_key": "sk-1"}),
        ),
    ];
    let filled =
        |path: &str, template: &str| if path.is_empty() { template.to_owned() } else { path.to_owned() };
    rows.into_iter().map(|(method, path, at, body)| ((method, path), (filled(&at, path), body))).collect()
}

async fn send(owner: &Caller, method: &str, path: &str, body: &Value) -> Reply {
    owner.send(owner.request(method.parse().unwrap(), path).json(body)).await
}

/// Resolves a reference to a schema.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(to) => document.pointer(to.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// Returns the JSON types that a schema allows; none when it allows all.
fn types(document: &Value, schema: &Value) -> Option<Vec<String>> {
    let schema = resolved(document, schema);
    if let Some(parts) = schema["oneOf"].as_array() {
        return parts.iter().map(|it| types(document, it)).collect::<Option<Vec<_>>>().map(|it| it.concat());
    }
    match &schema["type"] {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(some) => Some(some.iter().map(|it| it.as_str().unwrap().to_owned()).collect()),
        _ => None,
    }
}

/// Values of all types except null, which means absence.
fn values() -> [(&'static str, Value); 6] {
    [
        ("string", json!("text")),
        ("integer", json!(7)),
        ("number", json!(7.5)),
        ("boolean", json!(true)),
        ("array", json!(["x"])),
        ("object", json!({"k": "v"})),
    ]
}

/// Returns the schema of a route's JSON body, if it has one with fields.
fn body_schema<'a>(document: &'a Value, method: &str, path: &str) -> Option<&'a Value> {
    let operation = &document["paths"][path][method.to_lowercase()];
    let schema = resolved(document, &operation["requestBody"]["content"]["application/json"]["schema"]);
    schema["properties"].is_object().then_some(schema)
}

fn changed(body: &Value, change: impl FnOnce(&mut Map<String, Value>)) -> Value {
    let mut body = body.clone();
    change(body.as_object_mut().unwrap());
    body
}

on_both_databases! {
    async fn missing_or_mistyped_field_is_400(app: TestApp) {
        let document = serde_json::to_value(openapi::document(features::routes())).unwrap();
        let owner = app.session(Role::Owner);
        let valid = valid(app, &owner).await;
        let (mut tried, mut wrong) = (0, Vec::new());
        for route in features::routes() {
            let method = route.method.as_str();
            let Some(schema) = body_schema(&document, method, &route.path) else { continue };
            let found = valid.iter().find(|((it, path), _)| *it == method && *path == route.path);
            let Some((_, (path, body))) = found else { panic!("{method} {}: no valid request is listed", route.path) };
            let mut cases: Vec<(String, Value)> = ["[]", "\"text\"", "7", "true", "null"]
                .map(|it| (format!("the body {it}"), serde_json::from_str(it).unwrap())).to_vec();
            for field in schema["required"].as_array().into_iter().flatten() {
                let field = field.as_str().unwrap();
                cases.push((format!("no {field}"), changed(body, |it| _ = it.remove(field))));
                cases.push((format!("{field}: null"), changed(body, |it| _ = it.insert(field.to_owned(), Value::Null))));
            }
            for (field, property) in schema["properties"].as_object().unwrap() {
                let Some(taken) = types(&document, property) else { continue };
                for (kind, value) in values() {
                    let takes = taken.iter().any(|it| it == kind || (it == "number" && kind == "integer"));
                    if !takes {
                        let body = changed(body, |it| _ = it.insert(field.clone(), value));
                        cases.push((format!("{field}: a value of type {kind}"), body));
                    }
                }
            }
            for (what, body) in cases {
                tried += 1;
                let reply = send(&owner, method, path, &body).await;
                if (reply.status, reply.code().as_deref()) != (400, Some("invalid_body")) {
                    wrong.push(format!("{method} {}, {what}: {} {}", route.path, reply.status, start(&reply.text())));
                }
            }
            let unknown = changed(body, |it| _ = it.insert("of_a_later_version".to_owned(), json!([1])));
            let reply = send(&owner, method, path, &unknown).await;
            assert!((200..300).contains(&reply.status), "{method} {}: {}", route.path, reply.text());
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(tried > 400, "{tried}");
    }

    /// Fields that are required in alternatives, by another field or by the path.
    async fn missing_alternative_field_is_400(app: TestApp) {
        let owner = app.session(Role::Owner);
        for (method, path, body) in [
            ("POST", "/v1/feedback", json!({"label": "good"})),
            ("POST", "/v1/search/spans", json!({})),
            ("POST", "/v1/search/spans", json!({"near": null})),
            ("POST", "/v1/evaluators", json!({"name": "a", "evaluator_type": "llm"})),
            ("POST", "/v1/evaluators", json!({"name": "a", "evaluator_type": "rule"})),
            ("PUT", "/v1/provider-credentials/openai_compatible", json!({"api_key": "k", "embedding_model": "e"})),
        ] {
            let reply = send(&owner, method, path, &body).await;
            reply.is(400, "invalid_body");
            assert!(reply.text().contains("missing field"), "{path}: {}", reply.text());
        }
    }

    async fn forbidden_field_value_is_422(app: TestApp) {
        let owner = app.session(Role::Owner);
        let valid = valid(app, &owner).await;
        for (method, path, field, value) in [
            ("POST", "/v1/ingest", "latency_ms", json!(-1)),
            ("POST", "/v1/ingest", "cost", json!(-0.5)),
            ("POST", "/v1/search/spans", "vector", json!([1])),
            ("POST", "/v1/search/spans", "limit", json!(0)),
            ("POST", "/v1/search/spans", "limit", json!(-1)),
            ("POST", "/v1/search/spans", "limit", json!(201)),
            ("POST", "/v1/feedback", "label", json!("great")),
            ("POST", "/v1/feedback", "external_id", json!("beside the trace's id")),
            ("POST", "/v1/eval", "metric_name", json!("nonsense")),
            ("POST", "/v1/eval", "evaluator_type", json!("oracle")),
            ("POST", "/v1/eval", "model_tier", json!("free")),
            ("POST", "/v1/eval", "config", json!({"max_latency_ms": -1})),
            ("POST", "/v1/eval/bulk", "filter", json!({"nonsense": 1})),
            ("POST", "/v1/evaluators", "name", json!("Not A Name")),
            ("POST", "/v1/evaluators", "evaluator_type", json!("oracle")),
            ("POST", "/v1/evaluators", "checks", json!([])),
            ("POST", "/v1/evaluators", "combine", json!("most")),
            ("PATCH", "/v1/evaluators/{name}", "checks", json!([{"kind": "magic"}])),
            ("POST", "/v1/eval-rules", "min_score_drop", json!(-0.1)),
            ("POST", "/v1/eval-rules", "sample_rate", json!(1.5)),
            ("PATCH", "/v1/eval-rules/{id}", "min_score_drop", json!(-0.1)),
            ("PATCH", "/v1/eval-rules/{id}", "evaluator_type", json!("oracle")),
            ("PATCH", "/v1/failures/clusters/{id}", "status", json!("gone")),
            ("POST", "/v1/failure-rules", "name", json!(" ")),
            ("POST", "/v1/failure-rules", "failure_types", json!(["sloth"])),
            ("POST", "/v1/failure-rules", "failure_types", json!([])),
            ("POST", "/v1/failure-rules", "metric_name", json!("latency_threshold")),
            ("POST", "/v1/failure-rules", "max_score", json!(0.5)),
            ("POST", "/v1/failure-rules", "min_count", json!(0)),
            ("POST", "/v1/failure-rules", "window_minutes", json!(10_081)),
            ("POST", "/v1/failure-rules", "filter", json!({"nonsense": 1})),
            ("PATCH", "/v1/failure-rules/{id}", "failure_types", json!([])),
            ("PATCH", "/v1/failure-rules/{id}", "min_count", json!(1_001)),
            ("POST", "/v1/webhooks", "secret", json!("fifteen letters")),
            ("POST", "/v1/webhooks", "events", json!(["failure.undetected"])),
            ("PATCH", "/v1/webhooks/{id}", "events", json!([])),
            ("POST", "/v1/webhooks/{id}/rotate-secret", "secret", json!("")),
            ("POST", "/v1/prompts/deployments", "prompt_name", json!("deployments")),
            ("POST", "/v1/prompts/deployments", "template", json!("")),
            ("POST", "/v1/prompts/deployments", "mode", json!("dream")),
            ("POST", "/v1/prompts/deployments", "ab", json!({"alpha": 1})),
            ("POST", "/v1/prompts/deployments/{id}/approve", "note", json!("a\u{0}")),
            ("POST", "/v1/policies", "name", json!(" ")),
            ("POST", "/v1/policies", "action_type", json!("escalate")),
            ("POST", "/v1/policies", "max_retry_depth", json!(0)),
            ("POST", "/v1/policies", "max_retry_depth", json!(11)),
            ("POST", "/v1/policies", "max_cascade_depth", json!(0)),
            ("POST", "/v1/policies", "max_cascade_depth", json!(21)),
            ("POST", "/v1/policies", "cooldown_seconds", json!(-1)),
            ("POST", "/v1/policies", "daily_budget_usd", json!(0)),
            ("POST", "/v1/policies", "trigger", json!({"type": "failure", "failure_types": []})),
            ("POST", "/v1/policies", "trigger", json!({"type": "moon"})),
            ("POST", "/v1/policies", "action_config", json!({"model": "gpt-4o"})),
            ("PATCH", "/v1/policies/{id}", "max_retry_depth", json!(-1)),
            ("PATCH", "/v1/policies/{id}", "max_cascade_depth", json!(9_999_999_999_i64)),
            ("PATCH", "/v1/policies/{id}", "action_type", json!("fallback_model")),
            ("POST", "/v1/control/actions", "action_type", json!("escalate")),
            ("POST", "/v1/control/actions", "action_type", json!("magic")),
            ("POST", "/v1/control/actions", "action_config", json!({"temperature": 3})),
            ("POST", "/v1/apikeys", "scopes", json!(["everything"])),
            ("POST", "/v1/apikeys", "name", json!(" ")),
            ("POST", "/v1/projects", "name", json!("")),
            ("POST", "/v1/projects", "retention_days", json!(0)),
            ("PATCH", "/v1/projects/{id}", "retention_days", json!(-1)),
            ("PUT", "/v1/projects/{id}/redaction", "detectors", json!(["name"])),
            ("PUT", "/v1/projects/{id}/redaction", "patterns", json!([{"name": "p", "pattern": ".*"}])),
            ("PUT", "/v1/models/{name}", "input_per_million", json!(-1)),
            ("PATCH", "/v1/members/{id}", "status", json!("gone")),
            ("PUT", "/v1/provider-credentials/{provider}", "api_key", json!("two words")),
        ] {
            let (at, body) = &valid[&(method, path)];
            let body = changed(body, |it| _ = it.insert(field.to_owned(), value));
            let reply = send(&owner, method, at, &body).await;
            assert_eq!((reply.status, reply.code().as_deref()), (422, Some("validation_failed")), "{path} {field}: {}", reply.text());
            assert!(reply.json()["fields"][0]["field"].as_str().is_some_and(|it| !it.is_empty()), "{}", reply.text());
        }
    }
}
