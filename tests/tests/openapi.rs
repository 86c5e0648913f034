//! Compares the OpenAPI document with the routes, and provokes every error code with a request.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "a concurrent caller is a task of the test")]

use std::{collections::BTreeSet, time::Duration};

use api::{ErrorCode, Plan, Role};
use reqwest::Method;
use sea_orm::{ConnectionTrait, EntityTrait, PaginatorTrait};
use serde_json::{Value, json};
use server::{features, http::openapi};
use tests::{Caller, On, Reply, TestApp, on_both_databases};
use uuid::Uuid;

fn document() -> Value {
    serde_json::to_value(openapi::document(features::routes())).unwrap()
}

#[test]
fn every_route_is_described() {
    let document = document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{}", document["openapi"]);
    let mut described: BTreeSet<(String, String)> = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let at = format!("{method} {path}");
            assert!(operation["summary"].as_str().is_some_and(|it| !it.is_empty()), "{at} has no summary");
            assert!(operation["tags"][0].is_string(), "{at} has no tag");
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.keys().any(|it| it.starts_with('2')), "{at} has no success");
            described.insert((method.to_uppercase(), path.clone()));
        }
    }
    let routes = features::routes();
    let served: BTreeSet<_> = routes.iter().map(|it| (it.method.to_string(), it.path.clone())).collect();
    assert_eq!(described, served);
}

#[test]
fn operations_have_unique_names_and_declared_parameters() {
    let document = document();
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap().to_owned();
            assert!(names.insert(name.clone()), "{method} {path}: the operation ID {name} is used twice");
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            for part in path.split('/').filter_map(|it| it.strip_prefix('{')?.strip_suffix('}')) {
                let declared = parameters
                    .iter()
                    .any(|it| it["name"] == part && it["in"] == "path" && it["required"] == true);
                assert!(declared, "{method} {path}: {part} is not declared");
            }
        }
    }
}

#[test]
fn responses_have_descriptions_and_parameters_have_bounds() {
    let document = document();
    let mut limits = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for (status, response) in operation["responses"].as_object().unwrap() {
                let text = response["description"].as_str().unwrap_or_default();
                assert!(!text.is_empty(), "{method} {path}: {status} has no description");
            }
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let (name, schema) = (&parameter["name"], &parameter["schema"]);
                let is_nullable = schema["type"].is_array() || schema["oneOf"].is_array();
                assert!(!is_nullable, "{method} {path}: {name} is absent or has a value, never null");
                if name == "limit" {
                    limits += 1;
                    let bounds = (&schema["minimum"], &schema["maximum"], &schema["default"]);
                    assert_eq!(bounds, (&json!(1), &json!(200), &json!(50)), "{method} {path}");
                }
            }
        }
    }
    assert!(limits > 10, "{limits}");
    let required = document["components"]["schemas"]["Trace"]["required"].as_array().unwrap();
    for field in ["id", "project_id", "error", "tags", "started_at"] {
        assert!(required.iter().any(|it| it == field), "Trace.{field} is required");
    }
}

/// The values of an enumeration are those that the server sends and accepts.
#[test]
fn enum_values_equal_the_wire_format() {
    let document = document();
    let words = |name: &str| document["components"]["schemas"][name]["enum"].clone();
    assert_eq!(words("EvaluatorType"), json!(["llm", "rule"]));
    assert_eq!(words("Decision"), json!(api::eval_rule::Decision::ALL));
    assert_eq!(words("Role"), json!(Role::ALL));
    assert_eq!(words("Plan"), json!(Plan::ALL));
    let mut looked_at = 0;
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for word in schema["enum"].as_array().into_iter().flatten() {
            looked_at += 1;
            // The specification spells one word differently.
            let is_word = |it: &str| it == it.to_lowercase() || it == "RemediationRegression";
            assert!(word.as_str().is_some_and(is_word), "{name}: {word}");
        }
    }
    assert!(looked_at > 40, "{looked_at}");
}

#[test]
fn events_are_described_with_their_data() {
    let document = document();
    let described: Vec<&String> = document["webhooks"].as_object().unwrap().keys().collect();
    assert_eq!(
        described,
        [
            "anomaly.detected",
            "control_action.pending_approval",
            "evaluation.failed",
            "failure.detected",
            "ping",
            "prompt_deployment.ab_passed",
            "prompt_deployment.regressed"
        ]
    );
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in [
        "FailureDetected",
        "FailedTrace",
        "LowScore",
        "FiredRule",
        "Anomaly",
        "EvaluationFailed",
        "DeploymentEvent",
    ] {
        assert!(schemas.contains_key(name), "{name}");
    }
}

#[test]
fn every_schema_reference_resolves() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(to)) = members.get("$ref") {
                    found.insert(to.clone());
                }
                members.values().for_each(|it| references(it, found));
            }
            Value::Array(items) => items.iter().for_each(|it| references(it, found)),
            _ => {}
        }
    }
    let (document, mut found) = (document(), BTreeSet::new());
    references(&document, &mut found);
    assert!(found.len() > 5, "{found:?}");
    for reference in found {
        assert!(
            document.pointer(reference.trim_start_matches('#')).is_some(),
            "{reference} does not resolve"
        );
    }
}

#[test]
fn every_route_error_is_documented_and_every_code_is_used() {
    let document = document();
    let mut used = BTreeSet::new();
    for route in features::routes() {
        let operation = &document["paths"][&route.path][route.method.as_str().to_lowercase()];
        for code in route.error_codes() {
            used.insert(code.as_str());
            let response = &operation["responses"][code.status().to_string()];
            let words = response["description"].as_str().unwrap_or_default();
            let told = words.trim_start_matches("code: ").split(", ").any(|it| it == code.as_str());
            assert!(told, "{} {} does not document {}", route.method, route.path, code.as_str());
            assert_eq!(
                response["content"]["application/json"]["schema"]["$ref"],
                "#/components/schemas/ErrorBody"
            );
        }
    }
    let unused: BTreeSet<_> =
        ErrorCode::ALL.iter().map(|it| it.as_str()).filter(|it| !used.contains(it)).collect();
    assert!(unused.is_empty(), "codes without a route: {unused:?}");
}

/// A change of the operations must be confirmed in the snapshot.
#[test]
fn operations_equal_the_snapshot() {
    let routes = features::routes();
    let mut lines: Vec<_> = routes.iter().map(|it| format!("{} {}", it.path, it.method)).collect();
    lines.sort_unstable();
    insta::assert_snapshot!(lines.join("\n"));
}

/// Requests an LLM evaluation of an existing trace.
async fn judged(key: &Caller) -> Value {
    let trace = key.post("/v1/ingest", &json!({"input": "a", "output": "b"})).await.ok()["id"].clone();
    json!({"trace_id": trace, "metric_name": "answer_relevance"})
}

/// Sends a request that leads to this error code.
async fn provoke(app: &TestApp, code: ErrorCode) -> Reply {
    let (key, owner) = (app.full_key(), app.session(Role::Owner));
    let other_project = async |name: &str| {
        key.post("/v1/ingest", &json!({"project_name": name})).await.ok();
        let list = key.get("/v1/projects").await.ok();
        let found = list["projects"].as_array().unwrap().iter().find(|it| it["name"] == name).cloned();
        found.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let archive = async |id: &str| owner.post(&format!("/v1/projects/{id}/archive"), &json!({})).await;
    match code {
        ErrorCode::InvalidRequest => {
            key.send(key.request(Method::GET, "/v1/me").header("host", "a host with spaces")).await
        }
        ErrorCode::HeadersTooLarge => {
            key.send(key.request(Method::GET, "/v1/me").header("x-large", "x".repeat(17_000))).await
        }
        ErrorCode::InvalidJson => key.post_bytes("/v1/ingest", "application/json", b"{".to_vec()).await,
        ErrorCode::InvalidBody => key.post("/v1/ingest", &json!([])).await,
        ErrorCode::InvalidQuery => key.get("/v1/traces?limit=0").await,
        ErrorCode::InvalidCursor => key.get("/v1/traces?cursor=x").await,
        ErrorCode::TagsFilterIncomplete => key.get("/v1/traces?tag_key=x").await,
        ErrorCode::Unauthorized => app.anonymous().get("/v1/traces").await,
        ErrorCode::PlanUpgradeRequired => owner.get("/v1/provider-credentials").await,
        ErrorCode::ForbiddenRole => app.session(Role::Viewer).get("/v1/apikeys").await,
        ErrorCode::ScopeForbidden => {
            app.new_key(Role::Owner, &["query"]).await.post("/v1/ingest", &json!({})).await
        }
        ErrorCode::SessionRequired => key.get("/v1/apikeys").await,
        ErrorCode::UnknownTenant => app.session_of(Uuid::nil(), Role::Owner).get("/v1/me").await,
        ErrorCode::ProjectArchived => {
            archive(&other_project("closed").await).await.ok();
            key.post("/v1/ingest", &json!({"project_name": "closed"})).await
        }
        ErrorCode::NotFound => key.get(&format!("/v1/traces/{}", Uuid::nil())).await,
        ErrorCode::MethodNotAllowed => key.delete("/v1/ingest").await,
        ErrorCode::Conflict => {
            key.post("/v1/ingest", &json!({"id": "twice"})).await.ok();
            key.post("/v1/ingest", &json!({"id": "twice"})).await
        }
        ErrorCode::InvalidState => {
            app.set_plan(Plan::Team).await;
            let trace = key.post("/v1/ingest", &json!({"input": "a"})).await.ok()["id"].clone();
            let action = json!({"trace_id": trace, "action_type": "retry"});
            let action = owner.post("/v1/control/actions", &action).await.ok()["id"].clone();
            owner.post(&format!("/v1/control/actions/{}/reject", action.as_str().unwrap()), &json!({})).await
        }
        ErrorCode::CannotArchiveLast => archive(&app.project.to_string()).await,
        ErrorCode::PayloadTooLarge => {
            key.post_bytes("/v1/ingest", "application/json", vec![b' '; 5_000]).await
        }
        ErrorCode::UnsupportedMediaType => key.post_bytes("/v1/ingest", "text/plain", b"{}".to_vec()).await,
        ErrorCode::ValidationFailed => key.post("/v1/ingest", &json!({"latency_ms": -1})).await,
        ErrorCode::Internal => {
            // An internal error, which no request can cause: a table is missing.
            app.app.db.write.execute_unprepared("DROP TABLE model_price").await.unwrap();
            key.get("/v1/models").await
        }
        ErrorCode::UpstreamFailed => {
            // No provider embeds the query.
            app.set_plan(Plan::Pro).await;
            key.get("/v1/search/spans?q=parcel").await
        }
        ErrorCode::IngestQuotaExceeded => {
            app.use_traces(50_000).await;
            key.post("/v1/ingest", &json!({})).await
        }
        ErrorCode::PlanForbidden => key.post(&format!("/v1/webhooks/{}/test", Uuid::nil()), &json!({})).await,
        ErrorCode::WebhookUrlNotHttps
        | ErrorCode::WebhookUrlPrivateIp
        | ErrorCode::WebhookUrlUnresolvable => {
            app.set_plan(Plan::Pro).await;
            let url = match code {
                ErrorCode::WebhookUrlNotHttps => "http://example.com/",
                ErrorCode::WebhookUrlPrivateIp => "https://10.0.0.1/",
                _ => "https://nowhere.example/",
            };
            key.post("/v1/webhooks", &json!({"url": url, "secret": "0123456789abcdef"})).await
        }
        ErrorCode::JudgeNotConfigured => key.post("/v1/eval", &judged(&key).await).await,
        ErrorCode::ProviderCredentialsMissing => {
            app.set_plan(Plan::Team).await;
            key.post("/v1/eval", &judged(&key).await).await
        }
        ErrorCode::EvalQuotaExceeded => {
            app.use_evaluations(2_500).await;
            key.post("/v1/eval", &judged(&key).await).await
        }
        ErrorCode::EvalRulesQuotaExceeded => {
            let config = json!({"max_latency_ms": 1});
            let rule = json!({"project_id": app.project, "metric_name": "latency_threshold", "evaluator_type": "rule", "config": config});
            for _ in 0..3 {
                key.post("/v1/eval-rules", &rule).await.ok();
            }
            key.post("/v1/eval-rules", &rule).await
        }
        ErrorCode::SeatLimitExceeded => {
            for n in 0..3 {
                app.session_as(&format!("seat-{n}"), Role::Member).get("/v1/me").await.ok();
            }
            app.session_as("one-more", Role::Owner).get("/v1/me").await
        }
        ErrorCode::MemberRemoved => {
            let viewer = app.session(Role::Viewer);
            viewer.get("/v1/me").await.ok();
            let members = owner.get("/v1/members").await.ok();
            let rows = members["members"].as_array().unwrap();
            let row = rows.iter().find(|it| it["role"] == "viewer").unwrap();
            owner.delete(&format!("/v1/members/{}", row["id"].as_str().unwrap())).await.ok();
            viewer.get("/v1/me").await
        }
        ErrorCode::IdempotencyKeyReused => {
            let post =
                |body| key.request(Method::POST, "/v1/ingest").header("idempotency-key", "k").json(&body);
            key.send(post(json!({"name": "a"}))).await.ok();
            key.send(post(json!({"name": "b"}))).await
        }
        ErrorCode::IdempotencyInFlight => {
            let post =
                || key.request(Method::POST, "/v1/ingest").header("idempotency-key", "k").json(&json!({}));
            let decoders = u32::try_from(app.app.config.decoder_count()).unwrap();
            // Without permits to decode, the first request cannot complete.
            let held = app.app.decoding_permits.acquire_many(decoders).await.unwrap();
            let first = tokio::spawn({
                let (key, post) = (key.clone(), post());
                async move { key.send(post).await }
            });
            // The first request must have claimed the key before the second one is sent.
            while entities::idempotency::Entity::find().count(&app.app.db.write).await.unwrap() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let second = key.send(post()).await;
            drop(held);
            first.await.unwrap().ok();
            second
        }
        ErrorCode::RateLimited => {
            for _ in 0..3 {
                app.anonymous().get("/v1/traces").await.is(401, "unauthorized");
            }
            app.anonymous().get("/v1/traces").await
        }
        ErrorCode::Overloaded => {
            // The tenant's share, plus the part that one large request may use beyond it.
            let memory = app.app.memory.clone();
            let mut held = memory.reservation(server::memory::MemoryHolder::Tenant(app.tenant));
            held.try_grow(memory.total() * 3 / 4).unwrap();
            key.post("/v1/ingest", &json!({})).await
        }
    }
}

async fn every_error_code_can_be_provoked_on(database: On) {
    for code in ErrorCode::ALL {
        let mut flags = vec!["--max-body-bytes", "4096", "--unauthenticated-per-minute", "3"];
        if *code == ErrorCode::EvalQuotaExceeded {
            // No request is sent to this address.
            flags.extend([
                "--judge-openai-api-key",
                "sk-none",
                "--judge-openai-base-url",
                "http://127.0.0.1:1",
            ]);
        }
        let app = TestApp::with(database, Plan::Starter, &flags).await;
        let reply = provoke(&app, *code).await;
        reply.is(code.status(), code.as_str());
        let about = reply.json();
        match code {
            ErrorCode::Internal => {
                let text = reply.text().to_lowercase();
                assert!(!text.contains("model_price") && !text.contains("sql"), "{text}");
            }
            ErrorCode::Overloaded => assert_eq!(reply.headers["retry-after"], "1"),
            ErrorCode::RateLimited => assert_eq!(reply.headers["retry-after"], "60"),
            ErrorCode::Unauthorized => assert_eq!(reply.headers["www-authenticate"], "Bearer"),
            ErrorCode::ValidationFailed => assert_eq!(about["fields"][0]["field"], "latency_ms"),
            ErrorCode::ProjectArchived => assert_eq!(about["message"], about["error"]),
            ErrorCode::PlanUpgradeRequired | ErrorCode::PlanForbidden => {
                assert_eq!(about["required_plan"], "pro");
            }
            ErrorCode::WebhookUrlNotHttps
            | ErrorCode::WebhookUrlPrivateIp
            | ErrorCode::WebhookUrlUnresolvable => {
                assert_eq!(about["error"], code.as_str());
                assert!(about["message"].is_string());
            }
            ErrorCode::Conflict => assert!(about["trace_id"].is_string() && about["identical"] == true),
            _ => {}
        }
        app.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_error_code_can_be_provoked_on_sqlite() {
    every_error_code_can_be_provoked_on(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_error_code_can_be_provoked_on_postgres() {
    every_error_code_can_be_provoked_on(On::Postgres).await;
}

on_both_databases! {
    async fn document_and_docs_page_need_no_token(app: TestApp) {
        let anyone = app.anonymous();
        let served = anyone.get("/v1/openapi.json").await;
        assert_eq!(served.ok(), document());
        assert_eq!(served.headers["content-type"], "application/json");
        let page = anyone.get("/docs/").await;
        assert!(page.status == 200 && page.text().contains("swagger"), "{}", page.text());
        // The page works offline: the server itself serves everything that it loads.
        assert!(!page.text().contains("https://"), "{}", page.text());
        assert_eq!(anyone.get("/docs/swagger-ui-bundle.js").await.status, 200);
        assert!(anyone.get("/").await.text().contains("/docs"));
        let ready = anyone.get("/readyz").await.ok();
        assert_eq!((ready, anyone.get("/healthz").await.ok()), (json!({"status": "ok"}), json!({"status": "ok"})));
    }

    async fn valid_request_id_of_the_client_is_returned(app: TestApp) {
        let anyone = app.anonymous();
        let longest = "x".repeat(128);
        for id in ["a", "trace-1/2#3", "~!@$%^&*(){}[]|\\:;\"'<>,.?", longest.as_str()] {
            for path in ["/healthz", "/v1/traces", "/nowhere"] {
                let reply = anyone.send(anyone.request(Method::GET, path).header("x-request-id", id)).await;
                assert_eq!(reply.headers["x-request-id"], id, "{path}");
            }
        }
        let too_long = "x".repeat(129);
        for id in ["", "a b", "tab\there", "caf\u{e9}", too_long.as_str()] {
            let value = reqwest::header::HeaderValue::from_bytes(id.as_bytes()).unwrap();
            let reply = anyone.send(anyone.request(Method::GET, "/v1/traces").header("x-request-id", value)).await;
            reply.is(401, "unauthorized");
            let own = reply.headers["x-request-id"].to_str().unwrap();
            assert!(own.parse::<Uuid>().is_ok(), "{id:?} became {own:?}");
        }
    }
}
