//! A server that may reach receivers on this machine, and what tests do with it.

use std::time::Duration;

use api::{Plan, webhook::EventType};
use serde_json::{Value, json};
use server::{
    clock::Clock,
    webhooks::{NewEvent, publish},
};
use tests::{Caller, On, TestApp, authority::Authority};

use crate::receiver::{Received, Receiver, Response};

/// The secret of webhooks, with the lowest number of characters.
pub const WEBHOOK_SECRET: &str = "0123456789abcdef";

/// A server, and an authority that it trusts.
pub struct Installation {
    pub app: TestApp,
    pub authority: Authority,
    folder: tempfile::TempDir,
}

impl Installation {
    pub async fn on(database: On) -> Self {
        let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, &authority.pem).unwrap();
        let flags = ["--egress-allow-cidrs", "127.0.0.1/32", "--egress-ca-file", file.to_str().unwrap()];
        let app = TestApp::with(database, Plan::Enterprise, &flags).await;
        app.resolver.set("hook.example", &["127.0.0.1".parse().unwrap()]);
        Self { app, authority, folder }
    }

    pub async fn stop(self) {
        self.app.stop().await;
    }

    /// Returns the path of the authority's certificate.
    pub fn ca_file(&self) -> String {
        self.folder.path().join("ca.pem").to_str().unwrap().to_owned()
    }

    /// Starts a receiver that `hook.example` leads to.
    pub async fn receiver(
        &self,
        respond: impl Fn(&Received, usize) -> Response + Send + Sync + 'static,
    ) -> Receiver {
        Receiver::start(&self.authority, &["hook.example"], 2099, respond).await
    }

    pub fn key(&self) -> Caller {
        self.app.full_key()
    }

    /// Creates a webhook for a receiver. Returns its ID.
    pub async fn webhook(&self, receiver: &Receiver) -> String {
        self.webhook_with(receiver, json!({})).await
    }

    /// Creates a webhook with further fields.
    pub async fn webhook_with(&self, receiver: &Receiver, more: Value) -> String {
        let mut body = json!({"url": receiver.url(), "secret": WEBHOOK_SECRET});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.key().post("/v1/webhooks", &body).await.ok()["id"].as_str().unwrap().to_owned()
    }

    /// Publishes failures, each with a number, in one transaction.
    pub async fn publish(&self, numbers: std::ops::Range<u32>) {
        self.publish_all(numbers.map(|it| event(json!({"number": it}))).collect()).await;
    }

    /// Publishes events in one transaction.
    pub async fn publish_all(&self, events: Vec<NewEvent>) {
        let (app, tenant) = (&self.app.app, self.app.tenant);
        let subscriptions = app.access_cache.subscriptions(tenant).await.unwrap();
        let txn = app.db.begin().await.unwrap();
        publish(&txn, &subscriptions, tenant, &events, self.app.clock.now()).await.unwrap();
        txn.commit().await.unwrap();
    }

    /// Waits, and lets the clock of the server advance as much: a job that met a busy database runs again later.
    pub async fn wait(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
        self.app.clock.advance(i64::try_from(duration.as_micros()).unwrap());
    }

    /// Returns the deliveries to a webhook, newest first.
    pub async fn deliveries(&self, webhook: &str) -> Vec<Value> {
        let list = self.key().get(&format!("/v1/webhooks/{webhook}/deliveries?limit=200")).await.ok();
        list["deliveries"].as_array().unwrap().clone()
    }

    /// Returns a webhook.
    pub async fn shown(&self, webhook: &str) -> Value {
        self.key().get(&format!("/v1/webhooks/{webhook}")).await.ok()
    }

    /// Changes a webhook.
    pub async fn change(&self, webhook: &str, change: Value) -> Value {
        let path = format!("/v1/webhooks/{webhook}");
        let request = self.key().request(reqwest::Method::PATCH, &path).json(&change);
        self.key().send(request).await.ok()
    }
}

/// Returns a failure.
pub fn event(data: Value) -> NewEvent {
    NewEvent { event_type: EventType::FailureDetected, project_id: None, trace_id: None, data }
}

/// Returns a field of each value.
pub fn all<'a>(rows: &'a [Value], field: &str) -> Vec<&'a Value> {
    rows.iter().map(|it| &it[field]).collect()
}
