//! A server with a tenant whose provider is a [`Provider`], and what tests do with it.

use api::{Plan, Role, webhook::EventType};
use entities::webhook_event;
use reqwest::Method;
use sea_orm::{EntityTrait, QueryOrder};
use serde_json::{Value, json};
use tests::{Caller, On, Reply, TestApp};

use crate::provider::{JUDGE_MODEL, Provider};

/// The tenant's key, which only its provider may receive.
pub const TENANT_KEY: &str = "sk-canary-of-the-tenant";
/// The output of the original call.
pub const BAD_OUTPUT: &str = "I do not know.";

/// Stores a trace with one model call with these fields. Returns its ID.
pub async fn ingest_trace(caller: &Caller, call: Value) -> String {
    let messages = json!([{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Where is my parcel?"}]);
    let mut span = json!({"name": "answer", "type": "llm", "model": "gpt-4o", "input": messages.to_string(),
        "output": BAD_OUTPUT, "prompt_tokens": 10, "completion_tokens": 5,
        "start_time": "2026-06-15T11:59:00Z", "end_time": "2026-06-15T11:59:02Z"});
    span.as_object_mut().unwrap().extend(call.as_object().unwrap().clone());
    let trace = caller.post("/v1/ingest", &json!({"name": "chat", "spans": [span]})).await.ok();
    trace["id"].as_str().unwrap().to_owned()
}

/// A server and the tenant's own provider.
pub struct Scene {
    pub app: TestApp,
    pub provider: Provider,
}

impl Scene {
    /// Creates a scene with a tenant on the plan Team, whose provider has OpenAI's protocol.
    pub async fn on(database: On) -> Self {
        let provider = Provider::start().await;
        let address = provider.address.to_string();
        let app = TestApp::with(database, Plan::Team, &["--egress-allow-cidrs", &address]).await;
        let scene = Self { app, provider };
        scene.store_credential("openai").await;
        scene
    }

    /// Stores the credential of the provider.
    pub async fn store_credential(&self, provider: &str) {
        let url = self.provider.url();
        let body = json!({"api_key": TENANT_KEY, "base_url": url, "judge_model_cheap": JUDGE_MODEL});
        self.owner().put(&format!("/v1/provider-credentials/{provider}"), &body).await.ok();
    }

    pub async fn stop(self) {
        self.app.stop().await;
    }

    /// Starts another server on the same database that may reach the provider.
    pub async fn beside(&self) -> TestApp {
        self.app.beside_with(&["--egress-allow-cidrs", &self.provider.address.to_string()]).await
    }

    pub fn owner(&self) -> Caller {
        self.app.session(Role::Owner)
    }

    pub fn member(&self) -> Caller {
        self.app.session(Role::Member)
    }

    pub fn viewer(&self) -> Caller {
        self.app.session(Role::Viewer)
    }

    /// Returns the body of a resource.
    pub async fn get(&self, path: &str) -> Value {
        self.viewer().get(path).await.ok()
    }

    /// Stores a trace with one model call with these fields. Returns its ID.
    pub async fn trace_with(&self, call: Value) -> String {
        ingest_trace(&self.app.full_key(), call).await
    }

    /// Stores a trace with one successful model call. Returns its ID.
    pub async fn trace(&self) -> String {
        self.trace_with(json!({})).await
    }

    /// Stores a trace whose model call failed with a time-out. Returns its ID.
    pub async fn failing_trace(&self) -> String {
        self.trace_with(json!({"output": null, "error": "Request timed out."})).await
    }

    /// Returns a trace.
    pub async fn trace_detail(&self, trace: &str) -> Value {
        self.get(&format!("/v1/traces/{trace}")).await
    }

    /// Requests an action with further fields, as a member.
    pub async fn request(&self, trace: &str, action_type: &str, more: Value) -> Reply {
        self.member().post("/v1/control/actions", &action_body(trace, action_type, more)).await
    }

    /// Requests a retry. Returns the action.
    pub async fn retry(&self, trace: &str) -> Value {
        let reply = self.request(trace, "retry", json!({})).await;
        assert_eq!(reply.status, 202, "{}", reply.text());
        reply.json()
    }

    /// Requests an action and executes it. Returns the ended action.
    pub async fn execute(&self, trace: &str, action_type: &str, more: Value) -> Value {
        let requested = self.request(trace, action_type, more).await.ok();
        self.app.drain().await;
        self.action(&requested).await
    }

    /// Returns the current state of an action.
    pub async fn action(&self, action: &Value) -> Value {
        self.get(&format!("/v1/control/actions/{}", action["id"].as_str().unwrap())).await
    }

    /// Decides an action as this caller.
    pub async fn decide_as(&self, caller: &Caller, action: &Value, decision: &str) -> Reply {
        let path = format!("/v1/control/actions/{}/{decision}", action["id"].as_str().unwrap());
        caller.post(&path, &json!({})).await
    }

    /// Decides an action as an owner.
    pub async fn decide(&self, action: &Value, decision: &str) -> Reply {
        self.decide_as(&self.owner(), action, decision).await
    }

    /// Returns the actions of a list, newest first.
    pub async fn actions(&self, query: &str) -> Vec<Value> {
        let list = self.get(&format!("/v1/control/actions?limit=200&{query}")).await;
        list["actions"].as_array().unwrap().clone()
    }

    /// Creates a policy of the project with these fields. Returns its ID.
    pub async fn policy(&self, fields: Value) -> String {
        let reply = self.new_policy(fields).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.json()["id"].as_str().unwrap().to_owned()
    }

    /// Sends the request for a new retry policy of the project with these fields.
    pub async fn new_policy(&self, fields: Value) -> Reply {
        let mut body = json!({"project_id": self.app.project, "action_type": "retry"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.owner().post("/v1/policies", &body).await
    }

    /// Changes a policy.
    pub async fn change_policy(&self, id: &str, change: Value) -> Reply {
        let owner = self.owner();
        owner.send(owner.request(Method::PATCH, &format!("/v1/policies/{id}")).json(&change)).await
    }

    /// Creates an LLM eval rule with further fields. Returns its ID.
    pub async fn judged_rule(&self, more: Value) -> String {
        let mut body = json!({"project_id": self.app.project, "metric_name": "answer_relevance", "evaluator_type": "llm"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.member().post("/v1/eval-rules", &body).await.ok()["id"].as_str().unwrap().to_owned()
    }

    /// Creates an eval rule that passes if the output of the trace or span contains `parcel`. Returns its ID.
    pub async fn output_rule(&self) -> String {
        let checks = json!([{"kind": "contains", "text": "parcel"}]);
        let evaluator = json!({"name": "mentions_parcel", "evaluator_type": "rule", "checks": checks});
        self.member().post("/v1/evaluators", &evaluator).await.ok();
        let rule = json!({"project_id": self.app.project, "metric_name": "mentions_parcel", "evaluator_type": "rule"});
        self.member().post("/v1/eval-rules", &rule).await.ok()["id"].as_str().unwrap().to_owned()
    }

    /// Returns the evaluations of a list, newest first.
    pub async fn evaluations(&self, query: &str) -> Vec<Value> {
        let list = self.get(&format!("/v1/eval?limit=200&{query}")).await;
        list["evaluations"].as_array().unwrap().clone()
    }

    /// Creates a webhook for this event. Its host name no longer has an address, so deliveries fail at once: these
    /// tests read the events that are stored for it.
    pub async fn subscribe(&self, event: EventType) {
        self.app.resolver.set("receiver.example", &["93.184.216.34".parse().unwrap()]);
        let body =
            json!({"url": "https://receiver.example/", "secret": "0123456789abcdef", "events": [event]});
        self.owner().post("/v1/webhooks", &body).await.ok();
        self.app.resolver.set("receiver.example", &[]);
    }

    /// Returns the payloads of all stored webhook events, oldest first.
    pub async fn events(&self) -> Vec<Value> {
        let query = webhook_event::Entity::find().order_by_asc(webhook_event::Column::Id);
        let rows = query.all(&self.app.app.db.write).await.unwrap();
        rows.iter().map(|it| serde_json::from_str(&it.payload).unwrap()).collect()
    }
}

/// Returns the body of a request for an action.
pub fn action_body(trace: &str, action_type: &str, more: Value) -> Value {
    let mut body = json!({"trace_id": trace, "action_type": action_type});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Returns a field of each value.
pub fn all<'a>(rows: &'a [Value], field: &str) -> Vec<&'a Value> {
    rows.iter().map(|it| &it[field]).collect()
}
