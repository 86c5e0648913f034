//! Callbacks of policies: control actions that the tenant's own receiver executes, signed like deliveries.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    installation::{Installation, WEBHOOK_SECRET},
    receiver::{Receiver, response},
    signed, with_receivers,
};

/// A response with an output.
const CALLBACK_OUTPUT: &[u8] = br#"{"output": "On Monday.", "model": "own-model", "prompt_tokens": 7, "completion_tokens": 3, "cost_usd": 0.25}"#;

/// Sends the request for a retry policy with this configuration.
async fn new_policy(home: &Installation, config: Value) -> tests::Reply {
    let body = json!({"project_id": home.app.project, "action_type": "retry", "action_config": config});
    home.app.session(api::Role::Owner).post("/v1/policies", &body).await
}

/// Creates a policy whose callback is a receiver. Returns its ID.
async fn policy(home: &Installation, receiver: &Receiver) -> String {
    let config = json!({"callback_url": receiver.url(), "callback_secret": WEBHOOK_SECRET});
    let reply = new_policy(home, config).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    assert!(!reply.text().contains(WEBHOOK_SECRET), "{}", reply.text());
    reply.json()["id"].as_str().unwrap().to_owned()
}

async fn change(home: &Installation, policy: &str, change: Value) -> tests::Reply {
    let owner = home.app.session(api::Role::Owner);
    owner.send(owner.request(Method::PATCH, &format!("/v1/policies/{policy}")).json(&change)).await
}

/// Requests a retry of a new trace by a policy. Returns the action.
async fn requested(home: &Installation, policy: &str) -> Value {
    let span = json!({"name": "answer", "type": "llm", "model": "gpt-4o", "input": "Where is my parcel?", "output": "?",
        "metadata": {"gen_ai.request.temperature": 0.5}});
    let trace = home.key().post("/v1/ingest", &json!({"spans": [span]})).await.ok()["id"].clone();
    let body = json!({"trace_id": trace, "action_type": "retry", "policy_id": policy});
    home.app.session(api::Role::Member).post("/v1/control/actions", &body).await.ok()
}

/// Executes a retry by a policy. Returns the ended action.
async fn executed(home: &Installation, policy: &str) -> Value {
    let action = requested(home, policy).await;
    home.app.drain().await;
    let path = format!("/v1/control/actions/{}", action["id"].as_str().unwrap());
    let mut ended = home.app.session(api::Role::Viewer).get(&path).await.ok();
    while ended["status"] == "queued" {
        home.app.clock.advance(60_000_000);
        home.app.drain().await;
        ended = home.app.session(api::Role::Viewer).get(&path).await.ok();
    }
    ended
}

with_receivers! {
    async fn callback_gets_a_signed_request_and_its_output_is_a_span(home: Installation) {
        let receiver = home.receiver(|_, _| response(200, &[], CALLBACK_OUTPUT)).await;
        let policy = policy(home, &receiver).await;
        let action = executed(home, &policy).await;
        assert_eq!((&action["status"], &action["cost"], &action["attempts"]), (&json!("succeeded"), &json!(0.25), &json!(1)), "{action}");
        let received = receiver.received();
        let [request] = &received[..] else { panic!("{received:?}") };
        signed::verify(request, WEBHOOK_SECRET);
        assert_eq!(request.headers["x-service-event"], "control_action.execute");
        assert_eq!(request.headers["webhook-id"], action["id"].as_str().unwrap());
        let expected = json!({"action_id": action["id"], "action_type": "retry", "attempt": 1,
            "project_id": home.app.project, "trace_id": action["trace_id"], "span_id": action["span_id"], "model": "gpt-4o",
            "messages": [{"role": "user", "content": "Where is my parcel?"}], "tools": [], "parameters": {"temperature": 0.5}});
        assert_eq!(request.json(), expected);
        let trace = home.key().get(&format!("/v1/traces/{}", action["trace_id"].as_str().unwrap())).await.ok();
        let spans = trace["spans"].as_array().unwrap();
        let span = spans.iter().find(|it| it["id"] == action["remediated_span_id"]).unwrap();
        assert_eq!((&span["output"], &span["model"], &span["cost"]), (&json!("On Monday."), &json!("own-model"), &json!(0.25)));
        assert_eq!((&span["prompt_tokens"], &span["completion_tokens"]), (&json!(7), &json!(3)));
        assert_eq!(span["metadata"]["remediation"]["action_id"], action["id"]);
    }

    async fn temporary_failure_of_a_callback_is_retried_with_the_same_id(home: Installation) {
        let receiver = home.receiver(|_, before| match before {
            0 => response(500, &[], b"no"),
            1 => response(429, &["retry-after: 5"], b""),
            _ => response(200, &[], CALLBACK_OUTPUT),
        }).await;
        let policy = policy(home, &receiver).await;
        let action = executed(home, &policy).await;
        assert_eq!((&action["status"], &action["attempts"]), (&json!("succeeded"), &json!(3)), "{action}");
        let received = receiver.received();
        assert!(received.iter().all(|it| it.event() == action["id"].as_str().unwrap()));
        let attempts: Vec<Value> = received.iter().map(|it| it.json()["attempt"].clone()).collect();
        assert_eq!(attempts, [json!(1), json!(2), json!(3)]);
    }

    async fn callback_without_an_output_fails_the_action_with_the_reason(home: Installation) {
        for (status, body, reason) in [
            (200, &b"not JSON"[..], "not a JSON object with an output"),
            (200, br#"{"output": null}"#, "no output"),
            (200, br#"{"text": "Hello"}"#, "not a JSON object with an output"),
            (302, b"", "302"),
            (401, b"", "401"),
            (500, b"", "failed 3 times"),
        ] {
            let receiver = home.receiver(move |_, _| response(status, &["location: https://hook.example/"], body)).await;
            let policy = policy(home, &receiver).await;
            let action = executed(home, &policy).await;
            let error = action["error"].as_str().unwrap_or_default();
            assert_eq!(action["status"], "failed", "{status} {action}");
            assert!(error.starts_with("the callback") && error.contains(reason), "{status}: {error}");
            assert!(!error.contains(WEBHOOK_SECRET));
        }
    }

    async fn address_and_secret_of_a_callback_are_validated(home: Installation) {
        let code = async |config: Value| {
            let reply = new_policy(home, config).await;
            (reply.status, reply.json()["code"].as_str().unwrap().to_owned())
        };
        let with = |url: &str| json!({"callback_url": url, "callback_secret": WEBHOOK_SECRET});
        assert_eq!(code(with("http://hook.example/")).await, (422, "webhook.url.not_https".to_owned()));
        assert_eq!(code(with("https://10.0.0.1/")).await, (422, "webhook.url.private_ip".to_owned()));
        assert_eq!(code(with("https://nowhere.example/")).await, (422, "webhook.url.unresolvable".to_owned()));
        for config in [
            json!({"callback_url": "https://hook.example/"}),
            json!({"callback_url": "https://hook.example/", "callback_secret": "fifteen letters"}),
            json!({"callback_secret": WEBHOOK_SECRET}),
        ] {
            assert_eq!(code(config.clone()).await, (422, "validation_failed".to_owned()), "{config}");
        }
    }

    async fn secret_is_kept_only_for_the_same_address(home: Installation) {
        let receiver = home.receiver(|_, _| response(200, &[], CALLBACK_OUTPUT)).await;
        let policy = policy(home, &receiver).await;
        let same = json!({"action_config": {"callback_url": receiver.url(), "temperature": 0.1}});
        assert_eq!(change(home, &policy, same).await.status, 200);
        assert_eq!(executed(home, &policy).await["status"], "succeeded");
        signed::verify(&receiver.received()[0], WEBHOOK_SECRET);
        let other = json!({"action_config": {"callback_url": "https://hook.example/other"}});
        change(home, &policy, other).await.is(422, "validation_failed");
        let rotated = json!({"action_config": {"callback_url": receiver.url(), "callback_secret": "another secret 1"}});
        assert_eq!(change(home, &policy, rotated).await.status, 200);
        assert_eq!(executed(home, &policy).await["status"], "succeeded");
        signed::verify(&receiver.received()[1], "another secret 1");
        // A callback that was removed is not called any more.
        let action = requested(home, &policy).await;
        assert_eq!(change(home, &policy, json!({"action_config": {}})).await.status, 200);
        home.app.drain().await;
        let path = format!("/v1/control/actions/{}", action["id"].as_str().unwrap());
        let ended = home.app.session(api::Role::Viewer).get(&path).await.ok();
        assert_eq!((&ended["status"], &ended["error"]), (&json!("failed"), &json!("the policy has no callback any more")));
        assert_eq!(receiver.received().len(), 2);
    }

    async fn callback_cannot_be_set_for_a_single_action(home: Installation) {
        let trace = home.key().post("/v1/ingest", &json!({"input": "Hi"})).await.ok()["id"].clone();
        let config = json!({"callback_url": "https://hook.example/", "callback_secret": WEBHOOK_SECRET});
        let body = json!({"trace_id": trace, "action_type": "retry", "action_config": config});
        home.app.session(api::Role::Owner).post("/v1/control/actions", &body).await.is(422, "validation_failed");
    }
}
