//! Tests of a webhook: the `ping`.

use serde_json::json;

use crate::{
    installation::WEBHOOK_SECRET,
    receiver::{Response, response},
    signed::verify,
    with_receivers,
};

with_receivers! {
    async fn ping_is_signed_and_not_logged(home: Installation) {
        let receiver = home.receiver(|_, _| response(201, &[], b"pong")).await;
        let id = home.webhook(&receiver).await;
        let path = format!("/v1/webhooks/{id}/test");
        let reply = home.key().post_bytes(&path, "text/plain", Vec::new()).await.ok();
        assert_eq!(reply, json!({"status": 201, "body": "pong"}));
        // A disabled webhook can be tested, too.
        home.change(&id, json!({"enabled": false})).await;
        home.key().post(&path, &json!({})).await.ok();
        home.app.drain().await;
        let received = receiver.received();
        assert_eq!(received.len(), 2);
        for request in &received {
            verify(request, WEBHOOK_SECRET);
            assert_eq!(request.headers["x-service-event"], "ping");
            let body = request.json();
            assert_eq!((&body["type"], &body["data"]["webhook_id"]), (&json!("ping"), &json!(id)));
        }
        assert_ne!(received[0].event(), received[1].event());
        assert!(home.deliveries(&id).await.is_empty());
        assert_eq!(home.shown(&id).await["last_delivery_at"], serde_json::Value::Null);
    }

    async fn any_status_is_returned_with_four_kib_of_the_body(home: Installation) {
        for status in [200, 204, 302, 400, 401, 404, 410, 429, 500, 503, 599] {
            let receiver = home.receiver(move |_, _| Response::Status(status)).await;
            let id = home.webhook(&receiver).await;
            let reply = home.key().post(&format!("/v1/webhooks/{id}/test"), &json!({})).await.ok();
            assert_eq!(reply, json!({"status": status, "body": ""}));
            assert_eq!(home.shown(&id).await["enabled"], true);
        }
        for (length, expected) in [(4_095, 4_095), (4_096, 4_096), (4_097, 4_096), (1_000_000, 4_096)] {
            let receiver = home.receiver(move |_, _| response(200, &[], &vec![b'a'; length])).await;
            let id = home.webhook(&receiver).await;
            let reply = home.key().post(&format!("/v1/webhooks/{id}/test"), &json!({})).await.ok();
            assert_eq!(reply["body"].as_str().unwrap().len(), expected, "{length}");
        }
        // Bytes that are not UTF-8, and a character that the limit cuts.
        for (body, expected) in [(vec![0, 0xff, b'x'], "\u{fffd}\u{fffd}x".to_owned()), ("€".repeat(2_000).into_bytes(), "€".repeat(1_365))] {
            let receiver = home.receiver(move |_, _| response(200, &[], &body)).await;
            let id = home.webhook(&receiver).await;
            let reply = home.key().post(&format!("/v1/webhooks/{id}/test"), &json!({})).await.ok();
            assert_eq!(reply["body"], expected);
        }
    }
}
