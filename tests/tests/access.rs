//! Access to every route of the server, by every kind of caller.
//!
//! The table below states the expected responses by hand: a table derived from the route table would prove
//! nothing. A route without a case fails, and so does a case without a route.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use api::{Plan, Role};
use reqwest::{Method, header::CONTENT_TYPE};
use serde_json::json;
use server::{access::session::Claims, clock::Clock, features, http::access_page};
use tests::{Caller, TestApp, on_both_databases};
use uuid::Uuid;

/// The expected response to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// The caller passes; the case states the response.
    Pass,
    /// 401 `unauthorized`.
    Token,
    /// 403 `unknown_tenant`.
    Tenant,
    /// 403 `scope_forbidden`.
    Scope,
    /// 403 `session_required`.
    Session,
    /// 403 `forbidden_role`.
    Role,
    /// 404 `not_found`, because the caller's tenant has no such row.
    Nothing,
}

use Told::{Nothing as X, Pass as P, Role as R, Scope as S, Session as K, Tenant as N, Token as T};

/// The expected responses to the [`personas`], in their order.
type Row = [Told; 11];

//                 anonymous, garbage, expired, stranger | keys: owner, member, viewer, query | sessions: viewer, member, owner
const OPEN: Row = [P, P, P, P, /**/ P, P, P, P, /**/ P, P, P];
const READ: Row = [T, T, T, N, /**/ P, P, P, P, /**/ P, P, P];
const SEND: Row = [T, T, T, N, /**/ P, P, R, S, /**/ R, P, P];
const KEYS: Row = [T, T, T, N, /**/ K, K, K, S, /**/ R, P, P];
const HERE: Row = [T, T, T, N, /**/ K, K, K, S, /**/ P, P, P];
const HOME: Row = [T, T, T, N, /**/ K, K, K, S, /**/ R, R, P];
const SELF: Row = [T, T, T, N, /**/ P, P, P, P, /**/ X, X, X];
const RULE: Row = [T, T, T, N, /**/ P, R, R, S, /**/ R, R, P];

/// A request to one route.
struct Case {
    method: Method,
    /// The path as in the route table.
    path: &'static str,
    told: Row,
    /// The response to a caller that passes.
    answer: (u16, &'static str),
    /// Content type and body.
    body: (&'static str, &'static str),
    /// The lowest plan that includes the route.
    plan: Plan,
}

impl Case {
    fn from(self, plan: Plan) -> Self {
        Self { plan, ..self }
    }
}

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/x-protobuf";
/// An unknown id.
const NOBODY: &str = "0190a000-0000-7000-8000-000000000000";

/// Feedback on an unknown trace.
const SAID: &str = r#"{"trace_id":"0190a000-0000-7000-8000-000000000000","label":"good"}"#;

/// An evaluation of an unknown trace.
const JUDGED: &str = r#"{"trace_id":"0190a000-0000-7000-8000-000000000000","metric_name":"latency_threshold","config":{"max_latency_ms":1}}"#;

/// An eval rule for an unknown project.
const JUDGING: &str = r#"{"project_id":"0190a000-0000-7000-8000-000000000000","metric_name":"latency_threshold","evaluator_type":"rule","config":{"max_latency_ms":1}}"#;

/// The test of an eval rule on an unknown trace.
const TRIED: &str = r#"{"trace_id":"0190a000-0000-7000-8000-000000000000"}"#;

/// An evaluator without checks.
const EVALUATOR: &str = r#"{"name":"n","evaluator_type":"rule","checks":[]}"#;

fn cases() -> Vec<Case> {
    let send =
        |method, path, told, answer, body| Case { method, path, told, answer, body, plan: Plan::Starter };
    let get = |path, told, answer| send(Method::GET, path, told, answer, ("", ""));
    let ok = (200, "");
    let missing = (404, "not_found");
    vec![
        get("/", OPEN, ok),
        get("/healthz", OPEN, ok),
        get("/readyz", OPEN, ok),
        get("/metrics", OPEN, ok),
        get("/v1/openapi.json", OPEN, ok),
        send(Method::POST, "/v1/ingest", SEND, (201, ""), (JSON, "{}")),
        send(Method::POST, "/v1/ingest/batch", SEND, ok, (JSON, r#"{"traces":[]}"#)),
        send(Method::POST, "/v1/otlp/traces", SEND, ok, (PROTOBUF, "")),
        send(Method::POST, "/v1/otlp/v1/traces", SEND, ok, (PROTOBUF, "")),
        send(Method::POST, "/v1/traces", SEND, ok, (JSON, "{}")),
        send(Method::POST, "/api/public/otel/v1/traces", SEND, ok, (JSON, "{}")),
        send(Method::POST, "/v1/otlp/v1/metrics", SEND, ok, (PROTOBUF, "")),
        send(Method::POST, "/v1/metrics", SEND, ok, (JSON, "{}")),
        send(Method::POST, "/v1/otlp/v1/logs", SEND, ok, (PROTOBUF, "")),
        send(Method::POST, "/v1/logs", SEND, ok, (JSON, "{}")),
        get("/v1/traces", READ, ok),
        get("/v1/traces/stream", READ, ok),
        get("/v1/traces/export", READ, ok),
        get("/v1/traces/{id}", READ, missing),
        send(Method::DELETE, "/v1/traces/{id}", RULE, missing, ("", "")),
        get("/v1/traces/{id}/spans", READ, missing),
        get("/v1/metrics", READ, ok),
        get("/v1/projects/{id}/metrics", READ, (400, "invalid_query")),
        get("/v1/sessions", READ, ok),
        get("/v1/search/spans", READ, (400, "invalid_query")).from(Plan::Pro),
        send(Method::POST, "/v1/search/spans", READ, (422, "validation_failed"), (JSON, r#"{"vector":[]}"#))
            .from(Plan::Pro),
        get("/v1/feedback", READ, ok),
        send(Method::POST, "/v1/feedback", SEND, missing, (JSON, SAID)),
        get("/v1/eval", READ, ok),
        send(Method::POST, "/v1/eval", SEND, missing, (JSON, JUDGED)),
        send(
            Method::POST,
            "/v1/eval/bulk",
            SEND,
            (422, "validation_failed"),
            (JSON, r#"{"metric_name":"none"}"#),
        ),
        get("/v1/eval/bulk/{id}", READ, missing),
        get("/v1/eval/{id}", READ, missing),
        get("/v1/evaluators", READ, ok),
        send(Method::POST, "/v1/evaluators", SEND, (422, "validation_failed"), (JSON, EVALUATOR)),
        get("/v1/evaluators/{name}", READ, missing),
        send(Method::PATCH, "/v1/evaluators/{name}", SEND, missing, (JSON, "{}")),
        send(Method::DELETE, "/v1/evaluators/{name}", RULE, missing, ("", "")),
        get("/v1/eval-rules", READ, ok),
        send(Method::POST, "/v1/eval-rules", SEND, missing, (JSON, JUDGING)),
        get("/v1/eval-rules/{id}", READ, missing),
        send(Method::PATCH, "/v1/eval-rules/{id}", SEND, missing, (JSON, "{}")),
        send(Method::DELETE, "/v1/eval-rules/{id}", SEND, missing, ("", "")),
        get("/v1/eval-rules/{id}/decisions", READ, missing),
        send(Method::POST, "/v1/eval-rules/{id}/test", SEND, missing, (JSON, TRIED)),
        send(Method::POST, "/v1/eval-rules/{id}/backfill", SEND, missing, (JSON, "{}")),
        get("/v1/apikeys", KEYS, ok),
        send(Method::POST, "/v1/apikeys", KEYS, (201, ""), (JSON, r#"{"name":"n"}"#)),
        send(Method::DELETE, "/v1/apikeys/{id}", KEYS, missing, ("", "")),
        get("/v1/apikeys/current", SELF, ok),
        get("/v1/projects", READ, ok),
        get("/v1/projects/{id}", READ, missing),
        send(Method::POST, "/v1/projects", SEND, (409, "conflict"), (JSON, r#"{"name":"default"}"#)),
        send(Method::PATCH, "/v1/projects/{id}", RULE, missing, (JSON, "{}")),
        send(Method::POST, "/v1/projects/{id}/archive", RULE, missing, ("", "")),
        send(Method::POST, "/v1/projects/{id}/unarchive", RULE, missing, ("", "")),
        get("/v1/models", READ, ok),
        send(
            Method::PUT,
            "/v1/models/{name}",
            RULE,
            ok,
            (JSON, r#"{"input_per_million":1,"output_per_million":2}"#),
        ),
        get("/v1/me", READ, ok),
        get("/v1/members", HERE, ok),
        send(Method::DELETE, "/v1/members/{id}", HOME, missing, ("", "")),
        send(Method::PATCH, "/v1/members/{id}", HOME, missing, (JSON, r#"{"status":"active"}"#)),
        get("/v1/provider-credentials", HOME, ok).from(Plan::Pro),
        send(
            Method::PUT,
            "/v1/provider-credentials/{provider}",
            HOME,
            ok,
            (JSON, r#"{"api_key":"sk-0123456789","embedding_model":"m"}"#),
        )
        .from(Plan::Pro),
        send(Method::DELETE, "/v1/provider-credentials/{provider}", HOME, missing, ("", "")),
        get("/v1/audit-log", RULE, ok),
    ]
}

/// Returns every kind of caller, in the order of a [`Row`].
async fn personas(app: &TestApp) -> [(&'static str, Caller); 11] {
    let expired = Claims {
        sub: "late".to_owned(),
        tenant_id: app.tenant.to_string(),
        role: "owner".to_owned(),
        exp: app.clock.now() / 1_000_000 - 60,
        nbf: None,
    };
    [
        ("anonymous", app.anonymous()),
        ("garbage", app.bearer("lp_not-a-key.nor.a-token")),
        ("expired session", app.bearer(&app.app.sessions.issue(&expired).unwrap())),
        ("session of an unknown tenant", app.session_of(Uuid::from_u128(7), Role::Owner)),
        ("owner's key", app.new_key(Role::Owner, &[]).await),
        ("member's key", app.new_key(Role::Member, &[]).await),
        ("viewer's key", app.new_key(Role::Viewer, &[]).await),
        ("query key", app.new_key(Role::Owner, &["query"]).await),
        ("viewer", app.session(Role::Viewer)),
        ("member", app.session(Role::Member)),
        ("owner", app.session(Role::Owner)),
    ]
}

/// Returns the status and the code of a response. The body of a success is not read, because a stream has no
/// end.
async fn answer(caller: &Caller, case: &Case) -> (u16, String) {
    let path = case
        .path
        .replace("{id}", NOBODY)
        .replace("{name}", "some-model")
        .replace("{provider}", if case.method == Method::DELETE { "anthropic" } else { "openai" });
    let mut request = caller.request(case.method.clone(), &path);
    if !case.body.0.is_empty() {
        request = request.header(CONTENT_TYPE, case.body.0).body(case.body.1);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    if status < 400 {
        return (status, String::new());
    }
    // A protobuf response has the code only in a header.
    let header = response.headers().get("x-error-code").map(|it| it.to_str().unwrap().to_owned());
    let body = response.bytes().await.unwrap();
    let in_body = || serde_json::from_slice::<api::ErrorBody>(&body).unwrap().code;
    (status, header.unwrap_or_else(in_body))
}

#[test]
#[allow(clippy::disallowed_methods, reason = "whether to write the page is for whoever runs the test")]
fn access_page_equals_route_table() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/access.md");
    let page = access_page::page(features::routes());
    if std::env::var_os("LOUPE_UPDATE_DOCS").is_some() {
        std::fs::write(file, &page).unwrap();
    }
    let written = std::fs::read_to_string(file).unwrap_or_default();
    assert!(written == page, "docs/access.md is not what the routes say: see its first lines");
}

#[test]
fn every_route_has_an_access_case() {
    let routes = features::routes();
    let routes: BTreeSet<_> = routes.iter().map(|it| (it.method.as_str(), it.path.as_str())).collect();
    let cases = cases();
    let tabled: BTreeSet<_> = cases.iter().map(|it| (it.method.as_str(), it.path)).collect();
    assert_eq!(tabled.len(), cases.len(), "a case stands twice");
    let without: Vec<_> = routes.difference(&tabled).collect();
    assert!(without.is_empty(), "routes without a case: {without:?}");
    let stale: Vec<_> = tabled.difference(&routes).collect();
    assert!(stale.is_empty(), "cases without a route: {stale:?}");
}

on_both_databases! {
    async fn every_route_rejects_callers_without_access(app: TestApp) {
        let (mut wrong, personas) = (Vec::new(), personas(app).await);
        for plan in Plan::ALL {
          app.set_plan(*plan).await;
          for case in &cases() {
            for ((name, caller), told) in personas.iter().zip(case.told) {
                let expected = match told {
                    // Every caller that passes the earlier checks gets 402 for a feature that the plan lacks.
                    P | R | X if *plan < case.plan => (402, "plan_upgrade_required"),
                    P => case.answer,
                    T => (401, "unauthorized"),
                    N => (403, "unknown_tenant"),
                    S => (403, "scope_forbidden"),
                    K => (403, "session_required"),
                    R => (403, "forbidden_role"),
                    X => (404, "not_found"),
                };
                let (status, code) = answer(caller, case).await;
                if (status, code.as_str()) != expected {
                    wrong.push(format!("{} {} as {name} on {plan}: {status} {code}, not {expected:?}", case.method, case.path));
                }
            }
          }
          app.advance(60);
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// Token, scope, token kind, role, body, existence, state: the response names the first check that fails.
    async fn checks_come_in_their_order(app: TestApp) {
        let query = app.new_key(Role::Owner, &["query"]).await;
        let full = app.full_key();
        let (viewer, member, owner) = (app.session(Role::Viewer), app.session(Role::Member), app.session(Role::Owner));
        let broken = || b"{".to_vec();
        let archive = format!("/v1/projects/{NOBODY}/archive");

        // The token is checked first, even before the content type.
        app.anonymous().post_bytes("/v1/ingest", "text/plain", broken()).await.is(401, "unauthorized");
        app.bearer("x").post_bytes("/v1/apikeys", JSON, broken()).await.is(401, "unauthorized");
        // The scope is checked before the token kind, the role and the body.
        query.post_bytes("/v1/apikeys", "text/plain", broken()).await.is(403, "scope_forbidden");
        query.post_bytes("/v1/ingest", JSON, broken()).await.is(403, "scope_forbidden");
        let viewers_query = app.new_key(Role::Viewer, &["query"]).await;
        viewers_query.post_bytes(&archive, JSON, Vec::new()).await.is(403, "scope_forbidden");
        // The token kind is checked before the role and the body.
        let viewers = app.new_key(Role::Viewer, &[]).await;
        viewers.post_bytes("/v1/apikeys", JSON, broken()).await.is(403, "session_required");
        full.delete("/v1/apikeys/no-uuid").await.is(403, "session_required");
        // The role is checked before the body and existence.
        viewer.post_bytes("/v1/ingest", "text/plain", broken()).await.is(403, "forbidden_role");
        viewer.post_bytes("/v1/apikeys", JSON, broken()).await.is(403, "forbidden_role");
        member.post_bytes(&archive, JSON, Vec::new()).await.is(403, "forbidden_role");
        member.put("/v1/models/x", &json!([])).await.is(403, "forbidden_role");
        // The body is checked before existence, and existence before the state.
        let elsewhere = json!({"name": "", "project_id": NOBODY});
        owner.post("/v1/apikeys", &elsewhere).await.is(422, "validation_failed");
        owner.post("/v1/apikeys", &json!({"name": "n", "project_id": NOBODY})).await.is(404, "not_found");
        owner.post("/v1/projects/no-uuid/archive", &json!({})).await.is(400, "invalid_query");
        owner.post(&archive, &json!({})).await.is(404, "not_found");
        let own = format!("/v1/projects/{}/archive", app.project);
        owner.post(&own, &json!({})).await.is(409, "error.project.cannot_archive_last");
    }

    /// An id of another tenant gets the same response as an unknown id.
    async fn ids_of_others_can_not_be_told_from_unknown_ones(app: TestApp) {
        let (other, others_key) = app.other_tenant(Plan::Enterprise).await;
        let trace = others_key.post("/v1/ingest", &json!({"name": "canary", "spans": [{"name": "s"}]})).await.ok();
        let trace = trace["id"].as_str().unwrap().to_owned();
        let projects = others_key.get("/v1/projects").await.ok();
        let project = projects["projects"][0]["id"].as_str().unwrap().to_owned();
        let keys = app.session_of(other, Role::Owner).get("/v1/apikeys").await.ok();
        let key = keys["apikeys"][0]["id"].as_str().unwrap().to_owned();
        let members = app.session_of(other, Role::Owner).get("/v1/members").await.ok();
        let member = members["members"][0]["id"].as_str().unwrap().to_owned();

        let config = json!({"max_latency_ms": 1});
        let rule = json!({"project_id": project, "metric_name": "latency_threshold", "evaluator_type": "rule", "config": config});
        let rule = others_key.post("/v1/eval-rules", &rule).await.ok()["id"].as_str().unwrap().to_owned();
        let asked = json!({"trace_id": trace, "metric_name": "latency_threshold", "config": config});
        let evaluation = others_key.post("/v1/eval", &asked).await.ok()["id"].as_str().unwrap().to_owned();
        let many = json!({"metric_name": "latency_threshold", "config": config});
        let bulk = others_key.post("/v1/eval/bulk", &many).await.ok()["bulk_id"].as_str().unwrap().to_owned();

        let targets = [
            (Method::GET, "/v1/eval/{id}", &evaluation),
            (Method::GET, "/v1/eval/bulk/{id}", &bulk),
            (Method::GET, "/v1/eval-rules/{id}", &rule),
            (Method::PATCH, "/v1/eval-rules/{id}", &rule),
            (Method::DELETE, "/v1/eval-rules/{id}", &rule),
            (Method::GET, "/v1/eval-rules/{id}/decisions", &rule),
            (Method::POST, "/v1/eval-rules/{id}/test", &rule),
            (Method::POST, "/v1/eval-rules/{id}/backfill", &rule),
            (Method::GET, "/v1/traces/{id}", &trace),
            (Method::DELETE, "/v1/traces/{id}", &trace),
            (Method::GET, "/v1/traces/{id}/spans", &trace),
            (Method::DELETE, "/v1/apikeys/{id}", &key),
            (Method::GET, "/v1/projects/{id}", &project),
            (Method::PATCH, "/v1/projects/{id}", &project),
            (Method::GET, "/v1/projects/{id}/metrics", &project),
            (Method::PATCH, "/v1/members/{id}", &member),
            (Method::DELETE, "/v1/members/{id}", &member),
            (Method::POST, "/v1/projects/{id}/archive", &project),
            (Method::POST, "/v1/projects/{id}/unarchive", &project),
        ];
        for route in features::routes().iter().filter(|it| it.path.contains("{id}")) {
            let known = targets.iter().any(|it| (&it.0, it.1) == (&route.method, route.path.as_str()));
            assert!(known, "{} {} has no case", route.method, route.path);
        }
        let owner = app.session(Role::Owner);
        for (method, path, id) in targets {
            let mut answers = Vec::new();
            for id in [id.as_str(), NOBODY] {
                // Parameters that one of the routes needs and the others ignore.
                let path = format!("{}?metric=retry_cap_hit&window=7d", path.replace("{id}", id));
                let mut request = owner.request(method.clone(), &path).header("x-request-id", "same");
                if method == Method::PATCH {
                    request = request.json(&json!({"status": "active"}));
                } else if path.starts_with("/v1/eval-rules/") && method == Method::POST {
                    request = request.json(&json!({"trace_id": NOBODY}));
                }
                let reply = owner.send(request).await;
                reply.is(404, "not_found");
                answers.push(reply.text());
            }
            assert_eq!(answers[0], answers[1], "{method} {path}");
        }
        owner.post("/v1/apikeys", &json!({"name": "n", "project_id": project})).await.is(404, "not_found");
        owner.post("/v1/eval", &asked).await.is(404, "not_found");
        let theirs = json!({"project_id": project, "metric_name": "latency_threshold", "evaluator_type": "rule", "config": config});
        owner.post("/v1/eval-rules", &theirs).await.is(404, "not_found");
        // The rows of the other tenant are unchanged.
        others_key.get(&format!("/v1/traces/{trace}")).await.ok();
        others_key.get(&format!("/v1/eval-rules/{rule}")).await.ok();
        assert_eq!(others_key.get(&format!("/v1/projects/{project}")).await.ok()["status"], "active");
    }

    /// Two tenants may use the same id; each sees only its own rows.
    async fn tenants_may_meet_on_an_id(app: TestApp) {
        let (_, theirs) = app.other_tenant(Plan::Starter).await;
        let ours = app.full_key();
        let id = Uuid::from_u128(42);
        ours.post("/v1/ingest", &json!({"id": id, "name": "ours"})).await.ok();
        theirs.post("/v1/ingest", &json!({"id": id, "name": "theirs"})).await.ok();
        for (caller, name) in [(&ours, "ours"), (&theirs, "theirs")] {
            assert_eq!(caller.get(&format!("/v1/traces/{id}")).await.ok()["name"], name);
            let list = caller.get("/v1/traces").await.ok();
            assert_eq!((list["traces"].as_array().unwrap().len(), &list["traces"][0]["name"]), (1, &json!(name)));
        }
    }

    async fn paths_and_methods_that_do_not_exist(app: TestApp) {
        let key = app.full_key();
        for path in ["/v1", "/v1/nothing", "/v2/traces", "/v1/traces/a/b/c", "/v1//traces", "/favicon.ico"] {
            key.get(path).await.is(404, "not_found");
            app.anonymous().get(path).await.is(404, "not_found");
        }
        let wrong = [(Method::DELETE, "/v1/traces"), (Method::PATCH, "/v1/projects"), (Method::GET, "/v1/ingest"), (Method::PUT, "/v1/me")];
        for (method, path) in wrong {
            let reply = key.send(key.request(method.clone(), path)).await;
            reply.is(405, "method_not_allowed");
            assert!(reply.headers.contains_key("allow"), "{method} {path}");
        }
    }
}
