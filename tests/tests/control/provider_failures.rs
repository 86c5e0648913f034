//! Providers that fail, and requests that cannot be repeated.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{provider::Behaviour, scene::TENANT_KEY, with_provider};

/// Asserts that an action failed with this reason after some calls, and that the reason contains no key.
fn has_failed(action: &Value, reason: &str, attempts: i64) {
    assert_eq!((&action["status"], &action["attempts"]), (&json!("failed"), &json!(attempts)), "{action}");
    let error = action["error"].as_str().unwrap();
    assert!(error.contains(reason) && !error.contains(TENANT_KEY), "{error}");
    assert_eq!((&action["remediated_span_id"], &action["cost"]), (&Value::Null, &Value::Null));
    assert!(action["completed_at"].is_string());
}

with_provider! {
    async fn permanent_failure_of_the_provider_fails_the_action(scene: Scene) {
        for (behaviour, reason) in [
            (Behaviour::Status(401, None, "Incorrect API key provided"), "Incorrect API key"),
            (Behaviour::Status(402, None, "Insufficient Balance"), "Insufficient Balance"),
            (Behaviour::Status(404, None, "The model `gpt-4o` does not exist"), "does not exist"),
            (Behaviour::Status(400, None, "Invalid parameter: messages"), "Invalid parameter"),
            (Behaviour::Status(302, None, "moved"), "302"),
            (Behaviour::Body("<html>"), "not JSON"),
            (Behaviour::Body(""), "not JSON"),
            (Behaviour::Body("{}"), "no message"),
            (Behaviour::Body("[]"), "no message"),
            (Behaviour::Body("null"), "no message"),
            (Behaviour::Body(r#"{"choices":[]}"#), "no message"),
            (Behaviour::Body(r#"{"choices":[{"message":{"content":""}}]}"#), "no text"),
            (Behaviour::Body(r#"{"choices":[{"message":{"content":7,"tool_calls":"x"}}],"usage":"much"}"#), "no text"),
            (Behaviour::SendsEndlessly, "the provider"),
        ] {
            scene.provider.set_behaviours([behaviour]);
            let trace = scene.trace().await;
            let action = scene.execute(&trace, "retry", json!({})).await;
            has_failed(&action, reason, 1);
            let detail = scene.trace_detail(&trace).await;
            assert_eq!((&detail["span_count"], &detail["control_loop_depth"]), (&json!(1), &json!(1)), "it called the provider");
            scene.provider.take_requests();
        }
    }

    async fn rate_limited_action_waits_as_long_as_required(scene: Scene) {
        scene.provider.set_behaviours([Behaviour::Status(429, Some("20"), "Rate limit reached"), Behaviour::Replies("Monday.")]);
        let action = scene.execute(&scene.trace().await, "retry", json!({})).await;
        assert_eq!((&action["status"], &action["attempts"], &action["error"]), (&json!("queued"), &json!(1), &Value::Null));
        scene.app.advance(19);
        scene.app.drain().await;
        assert_eq!(scene.provider.request_count(), 1);
        scene.app.advance(1);
        scene.app.drain().await;
        let action = scene.action(&action).await;
        assert_eq!((&action["status"], &action["attempts"], &action["error"]), (&json!("succeeded"), &json!(2), &Value::Null));
    }

    async fn temporary_failure_is_tried_three_times(scene: Scene) {
        scene.provider.set_behaviours([Behaviour::Status(503, None, "away")]);
        let action = scene.execute(&scene.trace().await, "retry", json!({})).await;
        for _ in 0..5 {
            scene.app.advance(60);
            scene.app.drain().await;
        }
        has_failed(&scene.action(&action).await, "failed 3 times", 3);
        assert_eq!(scene.provider.request_count(), 3);
    }

    /// `Retry-After` may be an hour; the action is tried again after a minute.
    async fn long_retry_after_is_capped_at_a_minute(scene: Scene) {
        scene.provider.set_behaviours([Behaviour::Status(429, Some("3600"), "Rate limit reached"), Behaviour::Replies("Monday.")]);
        let action = scene.execute(&scene.trace().await, "retry", json!({})).await;
        scene.app.advance(60);
        scene.app.drain().await;
        assert_eq!(scene.action(&action).await["status"], "succeeded");
    }

    async fn action_without_credential_fails_with_the_remedy(scene: Scene) {
        scene.owner().delete("/v1/provider-credentials/openai").await.ok();
        has_failed(&scene.execute(&scene.trace().await, "retry", json!({})).await, "PUT /v1/provider-credentials/openai", 0);
        let claude = json!({"action_config": {"model": "claude-sonnet-4-5"}});
        has_failed(&scene.execute(&scene.trace().await, "fallback_model", claude).await, "PUT /v1/provider-credentials/anthropic", 0);
        scene.store_credential("openai_compatible").await;
        assert_eq!(scene.execute(&scene.trace().await, "retry", json!({})).await["status"], "succeeded");
    }

    async fn span_that_recorded_no_request_fails_the_action(scene: Scene) {
        for (call, reason) in [
            (json!({"input": null}), "no recorded messages"),
            (json!({"input": ""}), "no recorded messages"),
            (json!({"input": "[]"}), "no recorded messages"),
            (json!({"input": "{\"a\":1}"}), "no recorded messages"),
            (json!({"input": "[{\"role\":\"system\",\"content\":\"Be terse.\"}]"}), "no recorded messages"),
            (json!({"model": null}), "no recorded model"),
        ] {
            let trace = scene.trace_with(call.clone()).await;
            has_failed(&scene.execute(&trace, "retry", json!({})).await, reason, 0);
        }
        let empty = scene.app.full_key().post("/v1/ingest", &json!({"name": "no spans", "input": "Hi"})).await.ok();
        let action = scene.execute(empty["id"].as_str().unwrap(), "retry", json!({})).await;
        assert_eq!((&action["status"], &action["attempts"]), (&json!("failed"), &json!(0)), "{action}");
        assert_eq!(scene.provider.request_count(), 0);
    }

    /// The output of a call is dropped if its trace was deleted meanwhile, and the trace is not created
    /// again.
    async fn trace_deleted_during_a_call_stays_deleted(scene: Scene) {
        let told = Arc::new(Notify::new());
        scene.provider.set_behaviours([Behaviour::Waits(Arc::clone(&told))]);
        let trace = scene.trace().await;
        let action = scene.retry(&trace).await;
        let path = format!("/v1/traces/{trace}");
        let deletion = async {
            tests::hang::wait_until("the provider is called", async || scene.provider.request_count() == 1).await;
            assert_eq!(scene.action(&action).await["status"], "running");
            assert_eq!(scene.app.full_key().delete(&path).await.status, 204);
            told.notify_one();
        };
        tokio::join!(scene.app.drain(), deletion);
        scene.app.drain().await;
        scene.viewer().get(&path).await.is(404, "not_found");
        scene.viewer().get(&format!("/v1/control/actions/{}", action["id"].as_str().unwrap())).await.is(404, "not_found");
        assert_eq!(scene.get("/v1/traces").await["traces"], json!([]));
    }

    async fn trace_deleted_before_the_call_ends_the_action(scene: Scene) {
        let trace = scene.trace().await;
        let action = scene.retry(&trace).await;
        scene.app.full_key().delete(&format!("/v1/traces/{trace}")).await.ok();
        scene.app.drain().await;
        assert_eq!(scene.provider.request_count(), 0);
        scene.viewer().get(&format!("/v1/control/actions/{}", action["id"].as_str().unwrap())).await.is(404, "not_found");
        assert_eq!(scene.actions("").await, Vec::<Value>::new());
    }
}
