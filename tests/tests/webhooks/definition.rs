//! Creating, showing, changing and deleting webhooks.

use api::Role;
use entities::webhook;
use sea_orm::EntityTrait;
use serde_json::json;
use server::{
    access::{master_key::MasterKey, seal::Sealer},
    audit::Actor,
    clock::Clock,
    reseal,
};
use tests::app::MASTER_KEY;

use crate::{
    installation::{WEBHOOK_SECRET, all},
    receiver::Response,
    signed::verify,
    with_receivers,
};

with_receivers! {
    async fn webhook_is_created_listed_changed_and_deleted(home: Installation) {
        let key = home.key();
        home.app.resolver.set("other.example", &["127.0.0.1".parse().unwrap()]);
        let body = json!({"url": "https://hook.example/a", "secret": WEBHOOK_SECRET, "unknown": 1});
        let reply = key.post("/v1/webhooks", &body).await;
        assert_eq!(reply.status, 201);
        let made = reply.json();
        assert_eq!(made["url"], "https://hook.example/a");
        assert_eq!(made["events"], json!(["failure.detected"]));
        assert_eq!((&made["enabled"], &made["disabled_reason"], &made["last_delivery_at"]), (&json!(true), &json!(null), &json!(null)));
        let id = made["id"].as_str().unwrap();
        assert_eq!(home.shown(id).await, made);

        let all_events: Vec<&str> = api::webhook::EventType::ALL.iter().map(|it| it.as_str()).collect();
        let body = json!({"url": "https://other.example/b", "secret": WEBHOOK_SECRET, "events": all_events, "enabled": false});
        let second = key.post("/v1/webhooks", &body).await.ok();
        assert_eq!((&second["events"], &second["enabled"]), (&json!(all_events), &json!(false)));
        let page = key.get("/v1/webhooks?limit=1").await.ok();
        assert_eq!((&page["webhooks"], &page["has_more"]), (&json!([second]), &json!(true)));
        let next = format!("/v1/webhooks?limit=1&cursor={}", page["next_cursor"].as_str().unwrap());
        assert_eq!(key.get(&next).await.ok()["webhooks"], json!([made]));

        home.app.advance(5);
        let changed = home.change(id, json!({"url": "https://other.example/c", "events": ["ping", "ping", "evaluation.failed"]})).await;
        assert_eq!((&changed["url"], &changed["events"]), (&json!("https://other.example/c"), &json!(["ping", "evaluation.failed"])));
        assert!(changed["updated_at"].as_str() > changed["created_at"].as_str());
        assert_eq!(home.shown(id).await, changed);
        assert_eq!(home.change(id, json!({"enabled": false})).await["enabled"], false);

        assert_eq!(key.delete(&format!("/v1/webhooks/{id}")).await.status, 204);
        key.get(&format!("/v1/webhooks/{id}")).await.is(404, "not_found");
        key.delete(&format!("/v1/webhooks/{id}")).await.is(404, "not_found");
        assert_eq!(all(key.get("/v1/webhooks").await.ok()["webhooks"].as_array().unwrap(), "id"), [&second["id"]]);

        let log = home.app.session(Role::Owner).get("/v1/audit-log").await.ok();
        let rows = log["audit_log"].as_array().unwrap();
        let actions: Vec<&str> = rows.iter().filter(|it| it["target"]["id"] == *id).map(|it| it["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["webhook.delete", "webhook.update", "webhook.update", "webhook.create"]);
    }

    async fn invalid_webhooks_are_rejected(home: Installation) {
        let key = home.key();
        let url = "https://hook.example/";
        let with = |field: &str, value: serde_json::Value| {
            let mut body = json!({"url": url, "secret": WEBHOOK_SECRET});
            body[field] = value;
            body
        };
        for secret in ["", "0123456789abcde", &"x".repeat(1_001), "ünïcödé-fifteen"] {
            let reply = key.post("/v1/webhooks", &with("secret", json!(secret))).await;
            reply.is(422, "validation_failed");
            assert_eq!(reply.json()["fields"][0]["field"], "secret");
            assert!(secret.is_empty() || !reply.text().contains(secret));
        }
        for events in [json!(["unknown"]), json!(["failure.detected", "Failure.Detected"]), json!([]), json!([""])] {
            let reply = key.post("/v1/webhooks", &with("events", events)).await;
            reply.is(422, "validation_failed");
            assert_eq!(reply.json()["fields"][0]["field"], "events");
        }
        for (field, value) in [("url", json!(1)), ("secret", json!(null)), ("events", json!("ping")), ("events", json!([1])), ("enabled", json!("yes"))] {
            key.post("/v1/webhooks", &with(field, value)).await.is(400, "invalid_body");
        }
        key.post("/v1/webhooks", &json!({"secret": WEBHOOK_SECRET})).await.is(400, "invalid_body");
        key.post("/v1/webhooks", &json!({"url": url})).await.is(400, "invalid_body");
        assert_eq!(key.get("/v1/webhooks").await.ok()["webhooks"], json!([]));

        for _ in 0..100 {
            key.post("/v1/webhooks", &with("enabled", json!(true))).await.ok();
        }
        key.post("/v1/webhooks", &with("enabled", json!(true))).await.is(409, "conflict");
    }

    /// Secrets are sealed at rest, no response contains them, and a rotation of the master key seals them
    /// again.
    async fn secret_is_sealed_and_never_returned(home: Installation) {
        let (key, app) = (home.key(), &home.app.app);
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        let made = key.post("/v1/webhooks", &json!({"url": receiver.url(), "secret": "canary-canary-canary"})).await;
        let id = made.json()["id"].as_str().unwrap().to_owned();
        let changed = key.post(&format!("/v1/webhooks/{id}/rotate-secret"), &json!({"secret": "canary-of-the-new-secret"})).await;
        for reply in [made, changed, key.get("/v1/webhooks").await, home.app.session(Role::Owner).get("/v1/audit-log").await] {
            assert!(!reply.text().contains("canary"), "{}", reply.text());
        }
        let own = (home.app.tenant, id.parse().unwrap());
        let row = || async { webhook::Entity::find_by_id(own).one(&app.db.write).await.unwrap().unwrap() };
        let before = row().await;
        let holds_canary = |bytes: &[u8]| bytes.windows(6).any(|it| it == b"canary");
        assert!(!holds_canary(&before.secret) && !holds_canary(before.previous_secret.as_deref().unwrap()));

        let new = MasterKey::generate().unwrap();
        let both = Sealer::new(&MasterKey::parse(&format!("new:{new},{MASTER_KEY}")).unwrap());
        let actor = |tenant_id| Actor { tenant_id, kind: api::audit::ActorKind::Operator, id: "test".to_owned(), request_id: None };
        let done = reseal::run(&app.db, &both, actor, home.app.clock.now()).await.unwrap();
        assert_eq!((done.secrets, done.resealed), (2, 2));
        let after = row().await;
        assert!(both.is_current(&after.secret) && both.is_current(after.previous_secret.as_deref().unwrap()));
        let place = id.replace('-', "");
        let location = store::sealed::WEBHOOK_SECRET.location(home.app.tenant, &place);
        assert_eq!(both.unseal(location, &after.secret).unwrap(), "canary-of-the-new-secret");
        assert!(both.unseal(location, after.previous_secret.as_deref().unwrap()).is_err(), "sealed for another column");
    }

    /// The receiver's address and subscriptions can change between the attempts of a delivery.
    async fn changed_address_receives_pending_deliveries(home: Installation) {
        let old = home.receiver(|_, _| Response::Status(500)).await;
        let new = home.receiver(|_, _| Response::Status(200)).await;
        let id = home.webhook(&old).await;
        home.publish(0..1).await;
        home.app.drain().await;
        home.change(&id, json!({"url": new.url(), "events": ["ping"]})).await;
        home.app.advance(10);
        home.app.drain().await;
        assert_eq!((old.received().len(), new.received().len()), (1, 1));
        verify(&new.received()[0], WEBHOOK_SECRET);
        // The webhook is no longer subscribed to failures.
        home.publish(1..2).await;
        home.app.drain().await;
        assert_eq!(new.received().len(), 1);
    }
}
