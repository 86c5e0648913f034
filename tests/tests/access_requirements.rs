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
enum ExpectedAccess {
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

use ExpectedAccess::{Nothing as X, Pass as P, Role as R, Scope as S, Session as K, Tenant as N, Token as T};

/// The expected responses to the [`personas`], in their order.
type Row = [ExpectedAccess; 11];

//                 Callers: anonymous, garbage, expired, stranger | keys: owner, member, viewer, query | sessions:
//                 viewer, member, owner
const OPEN_ROUTE: Row = [P, P, P, P, /**/ P, P, P, P, /**/ P, P, P];
const READ_ROUTE: Row = [T, T, T, N, /**/ P, P, P, P, /**/ P, P, P];
const INGEST_ROUTE: Row = [T, T, T, N, /**/ P, P, R, S, /**/ R, P, P];
const SESSION_MEMBER_ROUTE: Row = [T, T, T, N, /**/ K, K, K, S, /**/ R, P, P];
const SESSION_ROUTE: Row = [T, T, T, N, /**/ K, K, K, S, /**/ P, P, P];
const SESSION_OWNER_ROUTE: Row = [T, T, T, N, /**/ K, K, K, S, /**/ R, R, P];
const KEY_ONLY_ROUTE: Row = [T, T, T, N, /**/ P, P, P, P, /**/ X, X, X];
const FULL_KEY_READ_ROUTE: Row = [T, T, T, N, /**/ P, P, P, S, /**/ P, P, P];
const OWNER_ROUTE: Row = [T, T, T, N, /**/ P, R, R, S, /**/ R, R, P];

/// A request to one route.
struct Case {
    method: Method,
    /// The path as in the route table.
    path: &'static str,
    expected: Row,
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

const JSON_TYPE: &str = "application/json";
const PROTOBUF_TYPE: &str = "application/x-protobuf";
/// An unknown id.
const UNKNOWN_ID: &str = "0190a000-0000-7000-8000-000000000000";

/// Feedback on an unknown trace.
const FEEDBACK_BODY: &str = r#"{"trace_id":"0190a000-0000-7000-8000-000000000000","label":"good"}"#;

/// An evaluation of an unknown trace.
const EVALUATION_BODY: &str = r#"{"trace_id":"0190a000-0000-7000-8000-000000000000","metric_name":"latency_threshold","config":{"max_latency_ms":1}}"#;

/// An eval rule for an unknown project.
const EVAL_RULE_BODY: &str = r#"{"project_id":"0190a000-0000-7000-8000-000000000000","metric_name":"latency_threshold","evaluator_type":"rule","config":{"max_latency_ms":1}}"#;

/// The test of an eval rule on an unknown trace.
const RULE_TEST_BODY: &str = r#"{"trace_id":"0190a000-0000-7000-8000-000000000000"}"#;

/// A failure rule for an unknown project.
const FAILURE_RULE_BODY: &str = r#"{"name":"n","project_id":"0190a000-0000-7000-8000-000000000000"}"#;

/// A policy for an unknown project.
const POLICY_BODY: &str = r#"{"project_id":"0190a000-0000-7000-8000-000000000000","action_type":"retry"}"#;

/// A prompt deployment in an unknown project.
const DEPLOYMENT_BODY: &str =
    r#"{"project_id":"0190a000-0000-7000-8000-000000000000","prompt_name":"p","template":"t"}"#;

/// A control action on an unknown trace.
const ACTION_BODY: &str = r#"{"trace_id":"0190a000-0000-7000-8000-000000000000","action_type":"retry"}"#;

/// A webhook with an address that is not https.
const WEBHOOK_BODY: &str = r#"{"url":"http://example.com/","secret":"0123456789abcdef"}"#;

/// The route whose lowest plan is Pro, and which has another error for it.
const WEBHOOK_TEST_ROUTE: &str = "/v1/webhooks/{id}/test";

/// An evaluator without checks.
const EVALUATOR_BODY: &str = r#"{"name":"n","evaluator_type":"rule","checks":[]}"#;

fn cases() -> Vec<Case> {
    let send = |method, path, expected, answer, body| Case {
        method,
        path,
        expected,
        answer,
        body,
        plan: Plan::Starter,
    };
    let get = |path, expected, answer| send(Method::GET, path, expected, answer, ("", ""));
    let ok = (200, "");
    let missing = (404, "not_found");
    vec![
        get("/", OPEN_ROUTE, ok),
        get("/healthz", OPEN_ROUTE, ok),
        get("/readyz", OPEN_ROUTE, ok),
        get("/metrics", OPEN_ROUTE, ok),
        get("/v1/openapi.json", OPEN_ROUTE, ok),
        send(Method::POST, "/v1/ingest", INGEST_ROUTE, (201, ""), (JSON_TYPE, "{}")),
        send(Method::POST, "/v1/ingest/batch", INGEST_ROUTE, ok, (JSON_TYPE, r#"{"traces":[]}"#)),
        send(Method::POST, "/v1/otlp/traces", INGEST_ROUTE, ok, (PROTOBUF_TYPE, "")),
        send(Method::POST, "/v1/otlp/v1/traces", INGEST_ROUTE, ok, (PROTOBUF_TYPE, "")),
        send(Method::POST, "/v1/traces", INGEST_ROUTE, ok, (JSON_TYPE, "{}")),
        send(Method::POST, "/api/public/otel/v1/traces", INGEST_ROUTE, ok, (JSON_TYPE, "{}")),
        send(Method::POST, "/v1/otlp/v1/metrics", INGEST_ROUTE, ok, (PROTOBUF_TYPE, "")),
        send(Method::POST, "/v1/metrics", INGEST_ROUTE, ok, (JSON_TYPE, "{}")),
        send(Method::POST, "/v1/otlp/v1/logs", INGEST_ROUTE, ok, (PROTOBUF_TYPE, "")),
        send(Method::POST, "/v1/logs", INGEST_ROUTE, ok, (JSON_TYPE, "{}")),
        get("/v1/traces", READ_ROUTE, ok),
        get("/v1/traces/stream", READ_ROUTE, ok),
        get("/v1/traces/export", READ_ROUTE, ok),
        get("/v1/traces/{id}", READ_ROUTE, missing),
        send(Method::DELETE, "/v1/traces/{id}", OWNER_ROUTE, missing, ("", "")),
        get("/v1/traces/{id}/spans", READ_ROUTE, missing),
        get("/v1/metrics", READ_ROUTE, ok),
        get("/v1/projects/{id}/metrics", READ_ROUTE, (400, "invalid_query")),
        get("/v1/sessions", READ_ROUTE, ok),
        get("/v1/search/spans", READ_ROUTE, (400, "invalid_query")).from(Plan::Pro),
        send(
            Method::POST,
            "/v1/search/spans",
            READ_ROUTE,
            (422, "validation_failed"),
            (JSON_TYPE, r#"{"vector":[]}"#),
        )
        .from(Plan::Pro),
        get("/v1/feedback", READ_ROUTE, ok),
        get("/v1/anomalies", READ_ROUTE, ok),
        get("/v1/rejections", READ_ROUTE, ok),
        send(Method::POST, "/v1/feedback", INGEST_ROUTE, missing, (JSON_TYPE, FEEDBACK_BODY)),
        get("/v1/eval", READ_ROUTE, ok),
        send(Method::POST, "/v1/eval", INGEST_ROUTE, missing, (JSON_TYPE, EVALUATION_BODY)),
        send(
            Method::POST,
            "/v1/eval/bulk",
            INGEST_ROUTE,
            (422, "validation_failed"),
            (JSON_TYPE, r#"{"metric_name":"none"}"#),
        ),
        get("/v1/eval/bulk/{id}", READ_ROUTE, missing),
        get("/v1/eval/{id}", READ_ROUTE, missing),
        get("/v1/evaluators", READ_ROUTE, ok),
        send(
            Method::POST,
            "/v1/evaluators",
            INGEST_ROUTE,
            (422, "validation_failed"),
            (JSON_TYPE, EVALUATOR_BODY),
        ),
        get("/v1/evaluators/{name}", READ_ROUTE, missing),
        send(Method::PATCH, "/v1/evaluators/{name}", INGEST_ROUTE, missing, (JSON_TYPE, "{}")),
        send(Method::DELETE, "/v1/evaluators/{name}", OWNER_ROUTE, missing, ("", "")),
        get("/v1/eval-rules", READ_ROUTE, ok),
        send(Method::POST, "/v1/eval-rules", INGEST_ROUTE, missing, (JSON_TYPE, EVAL_RULE_BODY)),
        get("/v1/eval-rules/{id}", READ_ROUTE, missing),
        send(Method::PATCH, "/v1/eval-rules/{id}", INGEST_ROUTE, missing, (JSON_TYPE, "{}")),
        send(Method::DELETE, "/v1/eval-rules/{id}", INGEST_ROUTE, missing, ("", "")),
        get("/v1/eval-rules/{id}/decisions", READ_ROUTE, missing),
        send(Method::POST, "/v1/eval-rules/{id}/test", INGEST_ROUTE, missing, (JSON_TYPE, RULE_TEST_BODY)),
        send(Method::POST, "/v1/eval-rules/{id}/backfill", INGEST_ROUTE, missing, (JSON_TYPE, "{}")),
        get("/v1/failures", SESSION_ROUTE, ok).from(Plan::Team),
        get("/v1/failures/clusters", SESSION_ROUTE, ok).from(Plan::Team),
        get("/v1/failures/clusters/{id}", SESSION_ROUTE, missing).from(Plan::Team),
        send(
            Method::PATCH,
            "/v1/failures/clusters/{id}",
            SESSION_MEMBER_ROUTE,
            missing,
            (JSON_TYPE, r#"{"status":"open"}"#),
        )
        .from(Plan::Team),
        get("/v1/failure-rules", FULL_KEY_READ_ROUTE, ok).from(Plan::Pro),
        send(Method::POST, "/v1/failure-rules", INGEST_ROUTE, missing, (JSON_TYPE, FAILURE_RULE_BODY))
            .from(Plan::Pro),
        get("/v1/failure-rules/{id}", FULL_KEY_READ_ROUTE, missing).from(Plan::Pro),
        send(Method::PATCH, "/v1/failure-rules/{id}", INGEST_ROUTE, missing, (JSON_TYPE, "{}"))
            .from(Plan::Pro),
        send(Method::DELETE, "/v1/failure-rules/{id}", OWNER_ROUTE, missing, ("", "")),
        get("/v1/policies", SESSION_ROUTE, ok).from(Plan::Team),
        send(Method::POST, "/v1/policies", SESSION_OWNER_ROUTE, missing, (JSON_TYPE, POLICY_BODY))
            .from(Plan::Team),
        get("/v1/policies/{id}", SESSION_ROUTE, missing).from(Plan::Team),
        send(Method::PATCH, "/v1/policies/{id}", SESSION_OWNER_ROUTE, missing, (JSON_TYPE, "{}"))
            .from(Plan::Team),
        send(Method::DELETE, "/v1/policies/{id}", SESSION_OWNER_ROUTE, missing, ("", "")),
        get("/v1/control/actions", SESSION_ROUTE, ok).from(Plan::Team),
        send(Method::POST, "/v1/control/actions", SESSION_MEMBER_ROUTE, missing, (JSON_TYPE, ACTION_BODY))
            .from(Plan::Team),
        get("/v1/control/actions/{id}", SESSION_ROUTE, missing).from(Plan::Team),
        get("/v1/control/actions/{id}/diff", SESSION_ROUTE, missing).from(Plan::Team),
        send(Method::POST, "/v1/control/actions/{id}/approve", SESSION_OWNER_ROUTE, missing, ("", ""))
            .from(Plan::Team),
        send(Method::POST, "/v1/control/actions/{id}/reject", SESSION_OWNER_ROUTE, missing, ("", ""))
            .from(Plan::Team),
        get("/v1/webhooks", FULL_KEY_READ_ROUTE, ok).from(Plan::Pro),
        send(
            Method::POST,
            "/v1/webhooks",
            INGEST_ROUTE,
            (422, "webhook.url.not_https"),
            (JSON_TYPE, WEBHOOK_BODY),
        )
        .from(Plan::Pro),
        get("/v1/webhooks/{id}", FULL_KEY_READ_ROUTE, missing).from(Plan::Pro),
        send(Method::PATCH, "/v1/webhooks/{id}", INGEST_ROUTE, missing, (JSON_TYPE, "{}")).from(Plan::Pro),
        send(Method::DELETE, "/v1/webhooks/{id}", OWNER_ROUTE, missing, ("", "")),
        send(Method::POST, WEBHOOK_TEST_ROUTE, INGEST_ROUTE, missing, ("", "")),
        send(Method::POST, "/v1/webhooks/{id}/rotate-secret", INGEST_ROUTE, missing, (JSON_TYPE, "{}"))
            .from(Plan::Pro),
        get("/v1/webhooks/{id}/deliveries", FULL_KEY_READ_ROUTE, missing).from(Plan::Pro),
        send(
            Method::POST,
            "/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver",
            INGEST_ROUTE,
            missing,
            ("", ""),
        )
        .from(Plan::Pro),
        get("/v1/prompts/deployments", SESSION_ROUTE, ok).from(Plan::Team),
        send(
            Method::POST,
            "/v1/prompts/deployments",
            SESSION_MEMBER_ROUTE,
            missing,
            (JSON_TYPE, DEPLOYMENT_BODY),
        )
        .from(Plan::Team),
        get("/v1/prompts/deployments/{id}", SESSION_ROUTE, missing).from(Plan::Team),
        send(Method::POST, "/v1/prompts/deployments/{id}/approve", SESSION_OWNER_ROUTE, missing, ("", ""))
            .from(Plan::Team),
        send(Method::POST, "/v1/prompts/deployments/{id}/reject", SESSION_OWNER_ROUTE, missing, ("", ""))
            .from(Plan::Team),
        send(Method::POST, "/v1/prompts/deployments/{id}/rollback", SESSION_OWNER_ROUTE, missing, ("", ""))
            .from(Plan::Team),
        get("/v1/prompts/{name}", READ_ROUTE, missing),
        get("/v1/apikeys", SESSION_MEMBER_ROUTE, ok),
        send(Method::POST, "/v1/apikeys", SESSION_MEMBER_ROUTE, (201, ""), (JSON_TYPE, r#"{"name":"n"}"#)),
        send(Method::DELETE, "/v1/apikeys/{id}", SESSION_MEMBER_ROUTE, missing, ("", "")),
        get("/v1/apikeys/current", KEY_ONLY_ROUTE, ok),
        get("/v1/projects", READ_ROUTE, ok),
        get("/v1/projects/{id}", READ_ROUTE, missing),
        send(
            Method::POST,
            "/v1/projects",
            INGEST_ROUTE,
            (409, "conflict"),
            (JSON_TYPE, r#"{"name":"default"}"#),
        ),
        send(Method::PATCH, "/v1/projects/{id}", OWNER_ROUTE, missing, (JSON_TYPE, "{}")),
        send(Method::POST, "/v1/projects/{id}/archive", OWNER_ROUTE, missing, ("", "")),
        send(Method::POST, "/v1/projects/{id}/unarchive", OWNER_ROUTE, missing, ("", "")),
        get("/v1/projects/{id}/redaction", READ_ROUTE, missing),
        send(
            Method::PUT,
            "/v1/projects/{id}/redaction",
            OWNER_ROUTE,
            missing,
            (JSON_TYPE, r#"{"detectors":[]}"#),
        ),
        get("/v1/models", READ_ROUTE, ok),
        send(
            Method::PUT,
            "/v1/models/{name}",
            OWNER_ROUTE,
            ok,
            (JSON_TYPE, r#"{"input_per_million":1,"output_per_million":2}"#),
        ),
        get("/v1/me", READ_ROUTE, ok),
        get("/v1/members", SESSION_ROUTE, ok),
        send(Method::DELETE, "/v1/members/{id}", SESSION_OWNER_ROUTE, missing, ("", "")),
        send(
            Method::PATCH,
            "/v1/members/{id}",
            SESSION_OWNER_ROUTE,
            missing,
            (JSON_TYPE, r#"{"status":"active"}"#),
        ),
        get("/v1/provider-credentials", SESSION_OWNER_ROUTE, ok).from(Plan::Pro),
        send(
            Method::PUT,
            "/v1/provider-credentials/{provider}",
            SESSION_OWNER_ROUTE,
            ok,
            (JSON_TYPE, r#"{"api_key":"sk-0123456789","embedding_model":"m"}"#),
        )
        .from(Plan::Pro),
        send(Method::DELETE, "/v1/provider-credentials/{provider}", SESSION_OWNER_ROUTE, missing, ("", "")),
        get("/v1/audit-log", OWNER_ROUTE, ok),
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
        .replace("{id}", UNKNOWN_ID)
        .replace("{delivery_id}", UNKNOWN_ID)
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
#[allow(clippy::disallowed_methods, reason = "an environment variable selects whether the page is written")]
fn access_page_equals_route_table() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/access.md");
    let page = access_page::render(features::routes());
    if std::env::var_os("LOUPE_UPDATE_DOCS").is_some() {
        std::fs::write(file, &page).unwrap();
    }
    let written = std::fs::read_to_string(file).unwrap_or_default();
    assert!(written == page, "docs/access.md differs from the route table: see its first lines");
}

#[test]
fn every_route_has_an_access_case() {
    let routes = features::routes();
    let routes: BTreeSet<_> = routes.iter().map(|it| (it.method.as_str(), it.path.as_str())).collect();
    let cases = cases();
    let tabled: BTreeSet<_> = cases.iter().map(|it| (it.method.as_str(), it.path)).collect();
    assert_eq!(tabled.len(), cases.len(), "two cases have the same route");
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
            for ((name, caller), expected) in personas.iter().zip(case.expected) {
                let expected = match expected {
                    // Every caller that passes the earlier checks gets 402 for a feature that the plan lacks.
                    P | R | X if *plan < case.plan => (402, "plan_upgrade_required"),
                    P if case.path == WEBHOOK_TEST_ROUTE && *plan < Plan::Pro => (403, "plan_forbidden"),
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
    async fn access_checks_run_in_documented_order(app: TestApp) {
        let query = app.new_key(Role::Owner, &["query"]).await;
        let full = app.full_key();
        let (viewer, member, owner) = (app.session(Role::Viewer), app.session(Role::Member), app.session(Role::Owner));
        let broken = || b"{".to_vec();
        let archive = format!("/v1/projects/{UNKNOWN_ID}/archive");

        // The token is checked first, even before the content type.
        app.anonymous().post_bytes("/v1/ingest", "text/plain", broken()).await.is(401, "unauthorized");
        app.bearer("x").post_bytes("/v1/apikeys", JSON_TYPE, broken()).await.is(401, "unauthorized");
        // The scope is checked before the token kind, the role and the body.
        query.post_bytes("/v1/apikeys", "text/plain", broken()).await.is(403, "scope_forbidden");
        query.post_bytes("/v1/ingest", JSON_TYPE, broken()).await.is(403, "scope_forbidden");
        let viewers_query = app.new_key(Role::Viewer, &["query"]).await;
        viewers_query.post_bytes(&archive, JSON_TYPE, Vec::new()).await.is(403, "scope_forbidden");
        // The token kind is checked before the role and the body.
        let viewers = app.new_key(Role::Viewer, &[]).await;
        viewers.post_bytes("/v1/apikeys", JSON_TYPE, broken()).await.is(403, "session_required");
        full.delete("/v1/apikeys/no-uuid").await.is(403, "session_required");
        // The role is checked before the body and existence.
        viewer.post_bytes("/v1/ingest", "text/plain", broken()).await.is(403, "forbidden_role");
        viewer.post_bytes("/v1/apikeys", JSON_TYPE, broken()).await.is(403, "forbidden_role");
        member.post_bytes(&archive, JSON_TYPE, Vec::new()).await.is(403, "forbidden_role");
        member.put("/v1/models/x", &json!([])).await.is(403, "forbidden_role");
        // The body is checked before existence, and existence before the state.
        let elsewhere = json!({"name": "", "project_id": UNKNOWN_ID});
        owner.post("/v1/apikeys", &elsewhere).await.is(422, "validation_failed");
        owner.post("/v1/apikeys", &json!({"name": "n", "project_id": UNKNOWN_ID})).await.is(404, "not_found");
        owner.post("/v1/projects/no-uuid/archive", &json!({})).await.is(400, "invalid_query");
        owner.post(&archive, &json!({})).await.is(404, "not_found");
        let own = format!("/v1/projects/{}/archive", app.project);
        owner.post(&own, &json!({})).await.is(409, "error.project.cannot_archive_last");
    }

    /// An id of another tenant gets the same response as an unknown id.
    async fn id_of_another_tenant_equals_an_unknown_id(app: TestApp) {
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

        let failing = json!({"name": "t", "spans": [{"name": "s", "error": "request timed out"}]});
        others_key.post("/v1/ingest", &failing).await.ok();
        app.drain().await;
        let clusters = app.session_of(other, Role::Owner).get("/v1/failures/clusters").await.ok();
        let cluster = clusters["clusters"][0]["id"].as_str().unwrap().to_owned();
        let rules = others_key.get("/v1/failure-rules").await.ok();
        let failure_rule = rules["failure_rules"][0]["id"].as_str().unwrap().to_owned();

        let webhook = json!({"url": "https://93.184.216.34/", "secret": "0123456789abcdef"});
        let others_owner = app.session_of(other, Role::Owner);
        let policy = json!({"project_id": project, "action_type": "retry", "require_approval": true});
        let deployment = json!({"project_id": project, "prompt_name": "p", "template": "t"});
        let deployment = others_owner.post("/v1/prompts/deployments", &deployment).await.ok();
        let deployment = deployment["id"].as_str().unwrap().to_owned();
        let policy = others_owner.post("/v1/policies", &policy).await.ok()["id"].as_str().unwrap().to_owned();
        let action = json!({"trace_id": trace, "action_type": "retry", "policy_id": policy});
        let action = others_owner.post("/v1/control/actions", &action).await.ok();
        let action = action["id"].as_str().unwrap().to_owned();

        let webhook = others_key.post("/v1/webhooks", &webhook).await.ok()["id"].as_str().unwrap().to_owned();

        let targets = [
            (Method::GET, "/v1/failures/clusters/{id}", &cluster),
            (Method::PATCH, "/v1/failures/clusters/{id}", &cluster),
            (Method::GET, "/v1/failure-rules/{id}", &failure_rule),
            (Method::PATCH, "/v1/failure-rules/{id}", &failure_rule),
            (Method::DELETE, "/v1/failure-rules/{id}", &failure_rule),
            (Method::GET, "/v1/prompts/deployments/{id}", &deployment),
            (Method::POST, "/v1/prompts/deployments/{id}/approve", &deployment),
            (Method::POST, "/v1/prompts/deployments/{id}/reject", &deployment),
            (Method::POST, "/v1/prompts/deployments/{id}/rollback", &deployment),
            (Method::GET, "/v1/policies/{id}", &policy),
            (Method::PATCH, "/v1/policies/{id}", &policy),
            (Method::DELETE, "/v1/policies/{id}", &policy),
            (Method::GET, "/v1/control/actions/{id}", &action),
            (Method::GET, "/v1/control/actions/{id}/diff", &action),
            (Method::POST, "/v1/control/actions/{id}/approve", &action),
            (Method::POST, "/v1/control/actions/{id}/reject", &action),
            (Method::GET, "/v1/webhooks/{id}", &webhook),
            (Method::PATCH, "/v1/webhooks/{id}", &webhook),
            (Method::DELETE, "/v1/webhooks/{id}", &webhook),
            (Method::POST, "/v1/webhooks/{id}/test", &webhook),
            (Method::POST, "/v1/webhooks/{id}/rotate-secret", &webhook),
            (Method::GET, "/v1/webhooks/{id}/deliveries", &webhook),
            (Method::POST, "/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver", &webhook),
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
            (Method::GET, "/v1/projects/{id}/redaction", &project),
            (Method::PUT, "/v1/projects/{id}/redaction", &project),
        ];
        for route in features::routes().iter().filter(|it| it.path.contains("{id}")) {
            let known = targets.iter().any(|it| (&it.0, it.1) == (&route.method, route.path.as_str()));
            assert!(known, "{} {} has no case", route.method, route.path);
        }
        let owner = app.session(Role::Owner);
        for (method, path, id) in targets {
            let mut answers = Vec::new();
            for id in [id.as_str(), UNKNOWN_ID] {
                // Parameters that one of the routes needs and the others ignore.
                let path = format!("{}?metric=retry_cap_hit&window=7d", path.replace("{id}", id).replace("{delivery_id}", UNKNOWN_ID));
                let mut request = owner.request(method.clone(), &path).header("x-request-id", "same");
                if method == Method::PATCH && path.starts_with("/v1/failures/") {
                    request = request.json(&json!({"status": "open"}));
                } else if method == Method::PATCH {
                    request = request.json(&json!({"status": "active"}));
                } else if method == Method::PUT {
                    request = request.json(&json!({"detectors": []}));
                } else if method == Method::POST
                    && (path.starts_with("/v1/eval-rules/") || path.contains("/rotate-secret"))
                {
                    request = request.json(&json!({"trace_id": UNKNOWN_ID}));
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
        owner.post("/v1/failure-rules", &json!({"name": "n", "project_id": project})).await.is(404, "not_found");
        // The rows of the other tenant are unchanged.
        others_key.get(&format!("/v1/traces/{trace}")).await.ok();
        others_key.get(&format!("/v1/eval-rules/{rule}")).await.ok();
        assert_eq!(others_key.get(&format!("/v1/projects/{project}")).await.ok()["status"], "active");
    }

    /// Two tenants may use the same id; each sees only its own rows.
    async fn same_trace_id_of_two_tenants_stays_separate(app: TestApp) {
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

    async fn unknown_path_is_404_and_wrong_method_is_405(app: TestApp) {
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
