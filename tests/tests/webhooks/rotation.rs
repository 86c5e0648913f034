//! Replacing the secret of a webhook.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::json;

use crate::{
    installation::WEBHOOK_SECRET,
    receiver::Response,
    signed::{service, standard, verify},
    with_receivers,
};

with_receivers! {
    async fn both_secrets_sign_for_a_day(home: Installation) {
        const NEW_SECRET: &str = "the-new-secret-of-this-webhook";
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        let id = home.webhook(&receiver).await;
        let path = format!("/v1/webhooks/{id}/rotate-secret");
        let rotated = home.key().post(&path, &json!({"secret": NEW_SECRET})).await.ok();
        assert_eq!(rotated, json!({"id": id, "previous_secret_expires_at": "2026-06-16T12:00:00.000000Z"}));
        for (seconds, has_previous) in [(0, true), (86_399, true), (1, false)] {
            home.app.advance(seconds);
            home.publish(0..1).await;
            home.app.drain().await;
            let request = receiver.received().pop().unwrap();
            assert_eq!(request.headers["x-service-signature"], service(&request, NEW_SECRET));
            let (new, old) = (standard(&request, NEW_SECRET.as_bytes()), standard(&request, WEBHOOK_SECRET.as_bytes()));
            if has_previous {
                assert_eq!(request.headers["x-service-signature-previous"], service(&request, WEBHOOK_SECRET));
                assert_eq!(request.headers["webhook-signature"], format!("{new} {old}"));
            } else {
                assert!(!request.headers.contains_key("x-service-signature-previous"));
                verify(&request, NEW_SECRET);
            }
        }
        assert_eq!(receiver.received().len(), 3);
    }

    async fn generated_secret_is_shown_once_and_signs(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        let id = home.webhook(&receiver).await;
        let path = format!("/v1/webhooks/{id}/rotate-secret");
        let key = home.key();
        let request = || key.request(reqwest::Method::POST, &path).header("idempotency-key", "once").json(&json!({}));
        let first = key.send(request()).await.ok();
        let secret = first["secret"].as_str().unwrap().to_owned();
        let replayed = key.send(request()).await;
        assert_eq!(replayed.headers["idempotency-replayed"], "true");
        assert!(!replayed.text().contains(&secret));
        home.publish(0..1).await;
        home.app.drain().await;
        let request = receiver.received().pop().unwrap();
        let decoded = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        assert_eq!(decoded.len(), 32);
        assert_eq!(request.headers["x-service-signature"], service(&request, &secret));
        assert!(request.headers["webhook-signature"].starts_with(&standard(&request, &decoded)));
    }

    async fn invalid_rotations_are_rejected(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        let id = home.webhook(&receiver).await;
        let path = format!("/v1/webhooks/{id}/rotate-secret");
        home.key().post(&path, &json!({"secret": "0123456789abcde"})).await.is(422, "validation_failed");
        home.key().post(&path, &json!({"secret": 1})).await.is(400, "invalid_body");
        home.publish(0..1).await;
        home.app.drain().await;
        verify(&receiver.received()[0], WEBHOOK_SECRET);
    }
}
