//! Events of a project that redacts its traces.

use serde_json::json;
use tests::canaries::{assert_no_canary, canaries, redact_everything};

use crate::{
    receiver::{Received, Response},
    with_receivers,
};

with_receivers! {
    async fn events_have_no_masked_value(home: Installation) {
        redact_everything(&home.app).await;
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        home.webhook(&receiver).await;
        for (i, canary) in canaries().into_iter().enumerate() {
            let text = canary.text;
            let error = format!("Request timed out for {text}");
            let trace = json!({
                "id": format!("{i} {text}"), "session_id": format!("s {text}"), "user_id": text, "name": format!("n {text}"),
                "model": format!("m {text}"), "tags": {"note": text}, "error": error,
                "spans": [{"name": format!("span {text}"), "type": "llm", "error": error}],
            });
            home.key().post("/v1/ingest", &trace).await.ok();
        }
        home.app.drain().await;
        home.app.advance(60);
        home.app.drain().await;
        let received: Vec<Received> = receiver.received();
        assert_eq!(received.len(), canaries().len());
        for request in received {
            let body = String::from_utf8(request.body).unwrap();
            assert!(body.contains("[REDACTED:"), "{body}");
            assert_no_canary("the event", &body);
        }
    }
}
