//! Servers that stop during the call of an action.

use serde_json::json;
use tests::hang::wait_until;

use crate::{provider::Behaviour, with_provider};

/// Seconds after which the lease of a lost worker has expired.
const LEASE_SECONDS: i64 = 31;

with_provider! {
    /// The call may have cost money, so it is not repeated.
    async fn action_of_a_stopped_server_fails_and_is_not_repeated(scene: Scene) {
        scene.provider.set_behaviours([Behaviour::Stalls, Behaviour::Replies("Monday.")]);
        let action = scene.retry(&scene.trace().await).await;
        let beside = scene.beside().await;
        beside.app.start_workers();
        wait_until("the provider is called", async || scene.provider.request_count() == 1).await;
        assert_eq!(scene.action(&action).await["status"], "running");
        beside.stop().await;
        scene.app.advance(LEASE_SECONDS);
        scene.app.drain().await;
        let ended = scene.action(&action).await;
        assert_eq!((&ended["status"], &ended["attempts"]), (&json!("failed"), &json!(1)), "{ended}");
        assert!(ended["error"].as_str().unwrap().contains("the server stopped"), "{ended}");
        assert!(ended["cost"].as_f64().unwrap() > 0.0, "the provider may have charged for the call: {ended}");
        assert_eq!(scene.provider.request_count(), 1);
        let next = scene.execute(ended["trace_id"].as_str().unwrap(), "retry", json!({})).await;
        assert_eq!(next["status"], "succeeded");
    }
}
