//! Events of deleted traces.

use entities::{webhook_delivery, webhook_event};
use sea_orm::EntityTrait;
use serde_json::{Value, json};

use crate::{
    installation::{Installation, all},
    receiver::Response,
    with_receivers,
};

const DAY: i64 = 86_400;
/// The error of the span, which the default failure rule matches.
const ERROR_TEXT: &str = "Request timed out.";

/// Stores a trace with a failing span and an evaluation that fails, and waits until both are events. Returns its ID.
async fn fail(home: &Installation, more: Value) -> String {
    let mut item = json!({"name": "t", "spans": [{"name": "s", "type": "llm", "error": ERROR_TEXT}]});
    item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let key = home.key();
    let id = key.post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned();
    let evaluation =
        json!({"trace_id": id, "metric_name": "latency_threshold", "config": {"max_latency_ms": 10}});
    key.post("/v1/eval", &evaluation).await.ok();
    home.app.drain().await;
    id
}

/// Creates a webhook for the events of traces.
async fn webhook(home: &Installation, receiver: &crate::receiver::Receiver) -> String {
    home.webhook_with(
        receiver,
        json!({"events": ["failure.detected", "evaluation.failed", "anomaly.detected"]}),
    )
    .await
}

async fn delete(home: &Installation, trace: &str) {
    let owner = home.app.session(api::Role::Owner);
    assert_eq!(owner.delete(&format!("/v1/traces/{trace}")).await.status, 204);
}

/// Returns the stored events.
async fn events(home: &Installation) -> Vec<webhook_event::Model> {
    webhook_event::Entity::find().all(&home.app.app.db.write).await.unwrap()
}

fn redelivery(webhook: &str, delivery: &Value) -> String {
    format!("/v1/webhooks/{webhook}/deliveries/{}/redeliver", delivery["id"].as_str().unwrap())
}

with_receivers! {
    async fn deleted_trace_leaves_no_event(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        let id = webhook(home, &receiver).await;
        let (gone, kept) = (fail(home, json!({})).await, fail(home, json!({})).await);
        home.publish(0..1).await;
        home.app.drain().await;
        let before = home.deliveries(&id).await;
        assert_eq!((events(home).await.len(), before.len(), receiver.received().len()), (5, 5, 5));
        assert_eq!(events(home).await.iter().filter(|it| it.payload.contains(ERROR_TEXT)).count(), 2);
        delete(home, &gone).await;
        let left = events(home).await;
        assert_eq!(left.len(), 3);
        assert!(left.iter().all(|it| !it.payload.contains(&gone)), "{left:?}");
        assert_eq!(left.iter().filter(|it| it.payload.contains(&kept)).count(), 2);
        // The log of the deliveries stays.
        assert_eq!(home.deliveries(&id).await, before);
        let is_left = |it: &&Value| left.iter().any(|event| it["event_id"] == json!(event.id));
        let (repeatable, others): (Vec<_>, Vec<_>) = before.iter().partition(is_left);
        assert_eq!((repeatable.len(), others.len()), (3, 2));
        for it in others {
            let reply = home.key().post(&redelivery(&id, it), &json!({})).await;
            assert!(reply.text().contains("its trace was deleted"), "{}", reply.text());
            reply.is(409, "conflict");
        }
        for it in repeatable {
            home.key().post(&redelivery(&id, it), &json!({})).await.ok();
        }
        home.app.drain().await;
        assert_eq!(receiver.received().len(), 8);
    }

    /// The cancelled deliveries do not delay the others, and do not count as failures of the receiver.
    async fn pending_deliveries_of_a_deleted_trace_are_cancelled(home: Installation) {
        let receiver = home.receiver(|_, before| Response::Status(if before < 2 { 500 } else { 200 })).await;
        let id = webhook(home, &receiver).await;
        let gone = fail(home, json!({})).await;
        home.app.advance(1);
        home.publish(0..1).await;
        assert_eq!(receiver.received().len(), 2);
        delete(home, &gone).await;
        let pending = home.deliveries(&id).await;
        assert_eq!(all(&pending, "status"), ["pending"; 3]);
        for it in &pending[1..] {
            home.key().post(&redelivery(&id, it), &json!({})).await.is(409, "conflict");
        }
        home.app.advance(120);
        home.app.drain().await;
        let log = home.deliveries(&id).await;
        assert_eq!(all(&log, "status"), ["delivered", "cancelled", "cancelled"]);
        assert_eq!(receiver.received().len(), 3);
        let attempts: usize = log[1..].iter().map(|it| it["attempts"].as_array().unwrap().len()).sum();
        assert_eq!(attempts, 2, "a cancelled delivery has an attempt that was not made");
        for it in &log[1..] {
            assert_eq!((&it["next_attempt_at"], it["completed_at"].is_string()), (&Value::Null, true));
        }
        assert_eq!(home.shown(&id).await["enabled"], true);
        home.app.advance(5 * DAY);
        home.app.drain().await;
        let rows = webhook_delivery::Entity::find().all(&home.app.app.db.write).await.unwrap();
        assert!(rows.iter().all(|it| it.status != "pending"));
    }

    /// If they ended it, a webhook whose traces are deleted now and then would never be disabled.
    async fn cancelled_deliveries_do_not_end_the_time_of_failures(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(500)).await;
        let id = webhook(home, &receiver).await;
        let gone = fail(home, json!({})).await;
        delete(home, &gone).await;
        home.app.advance(120);
        home.app.drain().await;
        assert_eq!(all(&home.deliveries(&id).await, "status"), ["cancelled"; 2]);
        assert_eq!(receiver.received().len(), 2);
        home.app.advance(5 * DAY);
        home.publish(0..1).await;
        home.app.drain().await;
        let shown = home.shown(&id).await;
        assert!(shown["disabled_reason"].as_str().is_some_and(|it| it.contains("five days")), "{shown}");
    }

    async fn retention_removes_events(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        webhook(home, &receiver).await;
        let at = api::Timestamp::from_micros(home.app.app.clock.now() - 6 * DAY * 1_000_000);
        fail(home, json!({"started_at": at})).await;
        fail(home, json!({})).await;
        assert_eq!(events(home).await.len(), 4);
        let project = format!("/v1/projects/{}", home.app.project);
        let owner = home.app.session(api::Role::Owner);
        let request = owner.request(reqwest::Method::PATCH, &project).json(&json!({"retention_days": 7}));
        owner.send(request).await.ok();
        home.app.advance(2 * DAY);
        server::housekeeping::run_round(&home.app.app, server::features::ALL).await.unwrap();
        home.app.drain().await;
        assert_eq!(events(home).await.len(), 2);
    }
}
