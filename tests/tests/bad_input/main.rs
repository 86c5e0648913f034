//! Bad input is either accepted according to the documentation or rejected with a code and a request id. The
//! result is the same on both databases, never a 5xx, and nothing is stored in part.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod authorization;
mod batches;
mod bodies;
mod extremes;
mod fields;
mod otlp;
mod queries;
mod span_trees;
mod texts;
mod transport;

use serde_json::{Value, json};
use tests::{Caller, Reply, TestApp};

/// The expected result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// 201.
    Stored,
    /// 400 `invalid_json`.
    NoJson,
    /// 400 `invalid_body`.
    WrongShape,
    /// 422 `validation_failed`.
    NotAllowed,
}

use Verdict::{NoJson, NotAllowed, Stored, WrongShape};

/// Posts each body and compares the response with the expected result. Reports all failures at once.
async fn check_all(app: &TestApp, cases: Vec<(String, Verdict)>) {
    let key = app.full_key();
    let (mut wrong, mut stored) = (Vec::new(), 0);
    let before = count(&key).await;
    for (body, verdict) in cases {
        let reply = key.post_bytes("/v1/ingest", "application/json", body.clone().into_bytes()).await;
        let expected = match verdict {
            Stored => (201, None),
            NoJson => (400, Some("invalid_json")),
            WrongShape => (400, Some("invalid_body")),
            NotAllowed => (422, Some("validation_failed")),
        };
        stored += usize::from(verdict == Stored);
        if (reply.status, reply.code().as_deref()) != expected {
            wrong.push(format!(
                "{} is not {verdict:?}: {} {}",
                start(&body),
                reply.status,
                start(&reply.text())
            ));
        }
        if verdict != Stored {
            check_error_body(&reply);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(count(&key).await - before, stored, "a rejected request stored a trace");
    check_health(app).await;
}

fn start(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Panics unless an error has a message, a code and the id of the request.
fn check_error_body(reply: &Reply) {
    let body = reply.json();
    assert!(body["error"].as_str().is_some_and(|it| !it.is_empty() && it.len() < 8_000), "{body}");
    assert!(body["code"].is_string(), "{body}");
    assert_eq!(body["request_id"].as_str(), reply.headers["x-request-id"].to_str().ok(), "{body}");
    assert_eq!(reply.status == 422, body["fields"].is_array(), "{body}");
}

/// Returns the number of the tenant's traces. The tests of this suite stay below one large page.
async fn count(caller: &Caller) -> usize {
    let (mut count, mut cursor) = (0, String::new());
    loop {
        let page = caller.get(&format!("/v1/traces?limit=200&preview=true{cursor}")).await.ok();
        count += page["traces"].as_array().unwrap().len();
        match &page["next_cursor"] {
            Value::String(next) => cursor = format!("&cursor={next}"),
            _ => return count,
        }
    }
}

/// Panics unless the server still stores and shows a trace.
async fn check_health(app: &TestApp) {
    let key = app.full_key();
    let made = key.post("/v1/ingest", &json!({"name": "still here", "spans": [{"name": "s"}]})).await.ok();
    let shown = key.get(&format!("/v1/traces/{}", made["id"].as_str().unwrap())).await.ok();
    assert_eq!((&shown["name"], shown["spans"].as_array().unwrap().len()), (&json!("still here"), 1));
    assert_eq!(app.anonymous().get("/readyz").await.status, 200);
}
