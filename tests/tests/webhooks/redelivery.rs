//! Redelivery of an event.

use serde_json::json;
use uuid::Uuid;

use crate::{installation::WEBHOOK_SECRET, receiver::Response, signed::verify, with_receivers};

with_receivers! {
    async fn finished_delivery_is_repeated_by_a_new_one(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        let id = home.webhook(&receiver).await;
        home.publish(0..1).await;
        home.app.drain().await;
        let first = home.deliveries(&id).await[0].clone();
        home.app.advance(3_600);
        let path = format!("/v1/webhooks/{id}/deliveries/{}/redeliver", first["id"].as_str().unwrap());
        let reply = home.key().post(&path, &json!({})).await;
        assert_eq!(reply.status, 202);
        let again = reply.json();
        assert_ne!(again["id"], first["id"]);
        assert_eq!((&again["event_id"], &again["status"], &again["attempts"]), (&first["event_id"], &json!("pending"), &json!([])));
        home.app.drain().await;
        let received = receiver.received();
        assert_eq!(received.len(), 2);
        verify(&received[1], WEBHOOK_SECRET);
        assert_eq!((received[0].event(), &received[0].body), (received[1].event(), &received[1].body));
        assert_eq!(received[1].headers["x-service-delivery"], again["id"]);
        let log = home.deliveries(&id).await;
        assert_eq!((log.len(), &log[0]["id"], &log[0]["status"], &log[1]), (2, &again["id"], &json!("delivered"), &first));
        let audit = home.app.session(api::Role::Owner).get("/v1/audit-log").await.ok();
        let redelivered = |it: &&serde_json::Value| it["action"] == "webhook.redeliver" && it["target"]["id"] == *id;
        assert_eq!(audit["audit_log"].as_array().unwrap().iter().filter(redelivered).count(), 1);
    }

    async fn pending_delivery_is_attempted_now(home: Installation) {
        let receiver = home.receiver(|_, before| Response::Status(if before < 4 { 500 } else { 200 })).await;
        let id = home.webhook(&receiver).await;
        home.publish(0..1).await;
        for _ in 0..4 {
            home.app.drain().await;
            home.app.advance(400);
        }
        assert_eq!(receiver.received().len(), 4);
        let delivery = home.deliveries(&id).await[0].clone();
        assert_eq!(delivery["status"], "pending");
        let path = format!("/v1/webhooks/{id}/deliveries/{}/redeliver", delivery["id"].as_str().unwrap());
        assert_eq!(home.key().post(&path, &json!({})).await.ok()["id"], delivery["id"]);
        home.app.drain().await;
        let log = home.deliveries(&id).await;
        assert_eq!((log.len(), &log[0]["status"], receiver.received().len()), (1, &json!("delivered"), 5));
    }

    async fn impossible_redeliveries_are_rejected(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        let (id, other) = (home.webhook(&receiver).await, home.webhook(&receiver).await);
        home.publish(0..1).await;
        home.app.drain().await;
        let delivery = home.deliveries(&id).await[0]["id"].as_str().unwrap().to_owned();
        let path = |webhook: &str, delivery: &str| format!("/v1/webhooks/{webhook}/deliveries/{delivery}/redeliver");
        let key = home.key();
        let nobody = Uuid::nil().to_string();
        for wrong in [path(&other, &delivery), path(&nobody, &delivery), path(&id, &nobody)] {
            key.post(&wrong, &json!({})).await.is(404, "not_found");
        }
        key.post(&path(&id, "x"), &json!({})).await.is(400, "invalid_query");
        home.change(&id, json!({"enabled": false})).await;
        key.post(&path(&id, &delivery), &json!({})).await.is(409, "conflict");
    }
}
