//! A successful delivery: the request, its signatures, and the log.

use api::webhook::EventType;
use serde_json::json;
use server::{
    clock::Clock,
    webhooks::{NewEvent, publish},
};
use tests::app::TEST_START_MICROS;
use uuid::Uuid;

use crate::{
    installation::{WEBHOOK_SECRET, all, event},
    receiver::{Response, response},
    signed::verify,
    with_receivers,
};

with_receivers! {
    async fn event_is_delivered_signed_and_logged(home: Installation) {
        let receiver = home.receiver(|_, _| response(202, &[], "thanks, grüße".as_bytes())).await;
        let id = home.webhook(&receiver).await;
        let project = Some(home.app.project);
        let data = json!({"text": "ünïcödé \u{1}\u{7f}\" 漢字 🦀", "n": 1.5});
        home.publish_all(vec![NewEvent { event_type: EventType::FailureDetected, project_id: project, trace_id: None, data: data.clone() }]).await;
        assert_eq!(home.deliveries(&id).await[0]["status"], "pending");
        home.app.drain().await;

        let [request] = &receiver.received()[..] else { panic!("{:?}", receiver.received()) };
        verify(request, WEBHOOK_SECRET);
        assert_eq!(request.line, "POST /in?from=loupe HTTP/1.1");
        let body = request.json();
        let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["created_at", "data", "id", "project_id", "tenant_id", "type"]);
        assert_eq!((&body["type"], &body["data"]), (&json!("failure.detected"), &data));
        assert_eq!((&body["tenant_id"], &body["project_id"]), (&json!(home.app.tenant), &json!(project)));
        assert_eq!(body["created_at"], "2026-06-15T12:00:00.000000Z");
        let header = |name: &str| request.headers[name].clone();
        assert_eq!(header("content-type"), "application/json");
        assert!(header("user-agent").starts_with("loupe-server/"));
        assert_eq!(header("x-service-event"), "failure.detected");
        assert_eq!(header("x-service-timestamp"), (TEST_START_MICROS / 1_000_000).to_string());
        assert_eq!(header("webhook-timestamp"), header("x-service-timestamp"));
        assert_eq!(header("webhook-id"), body["id"]);
        assert!(!request.headers.contains_key("x-service-signature-previous"));

        let [delivery] = &home.deliveries(&id).await[..] else { panic!("one delivery") };
        assert_eq!(delivery["id"], header("x-service-delivery"));
        assert_eq!((&delivery["webhook_id"], &delivery["event_id"], &delivery["event_type"]), (&json!(id), &body["id"], &body["type"]));
        assert_eq!((&delivery["status"], &delivery["next_attempt_at"]), (&json!("delivered"), &json!(null)));
        assert_eq!(delivery["completed_at"], "2026-06-15T12:00:00.000000Z");
        let expected = json!([{"attempt": 1, "started_at": "2026-06-15T12:00:00.000000Z", "status": 202,
            "latency_ms": 0, "error": null, "response_body": "thanks, grüße"}]);
        assert_eq!(delivery["attempts"], expected);
        assert_eq!(home.shown(&id).await["last_delivery_at"], "2026-06-15T12:00:00.000000Z");
    }

    async fn event_reaches_subscribed_and_enabled_webhooks_only(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        let first = home.webhook(&receiver).await;
        let second = home.webhook(&receiver).await;
        let disabled = home.webhook_with(&receiver, json!({"enabled": false})).await;
        let others = home.webhook_with(&receiver, json!({"events": ["anomaly.detected", "ping"]})).await;
        home.publish(0..2).await;
        home.app.drain().await;
        assert_eq!(receiver.received().len(), 4);
        for (webhook, expected) in [(&first, 2), (&second, 2), (&disabled, 0), (&others, 0)] {
            assert_eq!(home.deliveries(webhook).await.len(), expected);
        }
        // Both webhooks received the same events, in the order in which they were published.
        let (one, other) = (home.deliveries(&first).await, home.deliveries(&second).await);
        assert_eq!(all(&one, "event_id"), all(&other, "event_id"));
        for webhook in [&first, &second] {
            let ids = all(&home.deliveries(webhook).await, "id").into_iter().cloned().collect::<Vec<_>>();
            let numbers: Vec<_> = receiver.received().iter().filter(|it| ids.contains(&json!(it.headers["x-service-delivery"])))
                .map(|it| it.json()["data"]["number"].clone()).collect();
            assert_eq!(numbers, [0, 1]);
        }
    }

    async fn event_without_a_webhook_is_not_stored(home: Installation) {
        home.publish(0..3).await;
        assert_eq!(home.app.drain().await, 0);
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        let id = home.webhook(&receiver).await;
        home.app.drain().await;
        assert!(receiver.received().is_empty() && home.deliveries(&id).await.is_empty());
    }

    async fn event_of_a_transaction_that_failed_is_not_delivered(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        let id = home.webhook(&receiver).await;
        let (app, tenant) = (&home.app.app, home.app.tenant);
        let subscriptions = app.access_cache.subscriptions(tenant).await.unwrap();
        let txn = app.db.begin().await.unwrap();
        publish(&txn, &subscriptions, tenant, &[event(json!({}))], home.app.clock.now()).await.unwrap();
        txn.rollback().await.unwrap();
        home.app.drain().await;
        assert!(receiver.received().is_empty() && home.deliveries(&id).await.is_empty());
    }

    async fn texts_of_a_large_event_are_shortened(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        home.webhook(&receiver).await;
        let small = "é".repeat(10_000);
        let many: Vec<String> = (0..10_000).map(|it| format!("text {it}")).collect();
        home.publish_all(vec![event(json!({"text": small})), event(json!({"many": many})), event(json!({"text": "é".repeat(100_000), "list": ["x".repeat(2_000)], "n": 7}))]).await;
        home.app.drain().await;
        let received = receiver.received();
        assert_eq!(received[0].json()["data"]["text"], small);
        assert_eq!(received[1].json()["data"], json!({"truncated": true}));
        let data = received[2].json()["data"].clone();
        assert_eq!(data, json!({"text": format!("{}…", "é".repeat(512)), "list": [format!("{}…", "x".repeat(1_024))], "n": 7}));
        verify(&received[2], WEBHOOK_SECRET);
    }

    async fn delivery_log_has_pages(home: Installation) {
        let receiver = home.receiver(|_, before| response(200, &[], &vec![b'x'; if before % 2 == 0 { 5_000 } else { 3 }])).await;
        let id = home.webhook(&receiver).await;
        for n in 0..25 {
            home.publish(n..n + 1).await;
            home.app.advance(1);
        }
        home.app.drain().await;
        let path = format!("/v1/webhooks/{id}/deliveries");
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = home.key().get(&format!("{path}?limit=10{cursor}")).await.ok();
            seen.extend(page["deliveries"].as_array().unwrap().clone());
            assert_eq!(page["has_more"], page["next_cursor"].is_string());
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(seen.len(), 25);
        assert_eq!(seen, home.deliveries(&id).await);
        let created = all(&seen, "created_at");
        assert!(created.is_sorted_by(|newer, older| newer.as_str() > older.as_str()));
        let lengths: Vec<_> = seen.iter().map(|it| it["attempts"][0]["response_body"].as_str().unwrap().len()).collect();
        assert!(lengths.contains(&4_096) && lengths.contains(&3) && lengths.iter().all(|it| [4_096, 3].contains(it)));
        let other = home.webhook(&receiver).await;
        home.key().get(&format!("/v1/webhooks/{other}/deliveries?limit=10{cursor}")).await.is(400, "invalid_cursor");
        home.key().get(&format!("/v1/webhooks/{}/deliveries", Uuid::nil())).await.is(404, "not_found");
    }

    /// Deliveries are kept for 30 days, and events long enough for a redelivery on the last of them.
    async fn deliveries_expire_after_thirty_days(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        let id = home.webhook(&receiver).await;
        home.publish(0..1).await;
        home.app.drain().await;
        let round = || async { server::housekeeping::run_round(&home.app.app, server::features::ALL).await.unwrap() };
        home.app.advance(30 * 86_400 - 1);
        round().await;
        let kept = home.deliveries(&id).await;
        assert_eq!(kept[0]["attempts"].as_array().unwrap().len(), 1);
        let path = format!("/v1/webhooks/{id}/deliveries/{}/redeliver", kept[0]["id"].as_str().unwrap());
        home.key().post(&path, &json!({})).await.ok();
        home.app.advance(3 * 86_400);
        round().await;
        assert_eq!(home.deliveries(&id).await.len(), 1);
        home.app.drain().await;
        assert_eq!(receiver.received().len(), 2);
        assert_eq!(receiver.received()[0].body, receiver.received()[1].body);
    }
}
