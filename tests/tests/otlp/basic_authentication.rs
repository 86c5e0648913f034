//! Basic authentication on the path of Langfuse's exporter, and on no other.

use base64::{Engine, prelude::BASE64_STANDARD, prelude::BASE64_STANDARD_NO_PAD};
use reqwest::Method;
use serde_json::json;
use tests::{
    Caller, Reply,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
};

const LANGFUSE_PATH: &str = "/api/public/otel/v1/traces";

on_both_databases! {
    async fn basic_credentials_with_the_key_as_password_are_accepted(app: TestApp) {
        let (key, anyone) = (app.full_key(), app.anonymous());
        let padded = |user: &str| format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{}", app.key_text())));
        let unpadded = format!("basic  {}", BASE64_STANDARD_NO_PAD.encode(format!("pk-lf-1:{}", app.key_text())));
        for (trace, header) in [(1_u128, padded("pk-lf-1")), (2, padded("")), (3, padded("user")), (4, unpadded)] {
            post(&anyone, LANGFUSE_PATH, &header, trace).await.ok();
            let stored = key.get(&format!("/v1/traces/{trace:032x}")).await.ok();
            assert_eq!((&stored["name"], &stored["span_count"]), (&json!("sent"), &json!(1)), "{header}");
        }
    }

    async fn basic_credentials_are_limited_like_bearer_tokens(app: TestApp) {
        let query = app.new_key(api::Role::Owner, &["query"]).await;
        let text = query.token().unwrap();
        let header = format!("Basic {}", BASE64_STANDARD.encode(format!("pk:{text}")));
        let reply = post(&app.anonymous(), LANGFUSE_PATH, &header, 1).await;
        reply.is(403, "scope_forbidden");
        let bearer = post(&app.anonymous(), LANGFUSE_PATH, &format!("Bearer {text}"), 1).await;
        assert_eq!(reply.headers["x-ratelimit-limit"], bearer.headers["x-ratelimit-limit"]);
    }

    async fn wrong_basic_credentials_are_unauthorized(app: TestApp) {
        let anyone = app.anonymous();
        let wrong_token = post(&anyone, LANGFUSE_PATH, "Bearer lp_wrong", 1).await;
        wrong_token.is(401, "unauthorized");
        let owner = app.session(api::Role::Owner);
        let session = owner.token().unwrap();
        let key = app.key_text();
        let cut = &key[..key.len() - 1];
        for credentials in [
            "pk:".to_owned(), "pk".to_owned(), format!("{key}:"), key.to_owned(), format!("pk:{cut}"),
            format!("pk: {key}"), format!("pk:{key}\n"), format!("pk:sk:{key}"), "pk:lp_wrong".to_owned(), "\u{fc}:\u{fc}".to_owned(),
        ] {
            let reply = post(&anyone, LANGFUSE_PATH, &format!("Basic {}", BASE64_STANDARD.encode(&credentials)), 1).await;
            reply.is(401, "unauthorized");
            for header in ["www-authenticate", "x-ratelimit-limit", "content-type", "x-error-code"] {
                assert_eq!(reply.headers.get(header), wrong_token.headers.get(header), "{credentials:?} {header}");
            }
        }
        for header in ["Basic", "Basic ", "Basic ???", "Basic cGs6/w==", "Basic /////w==", &format!("Basic {key}"), &format!("Digest {key}")] {
            post(&anyone, LANGFUSE_PATH, header, 1).await.is(401, "unauthorized");
        }
        // The password must be an API key.
        let header = format!("Basic {}", BASE64_STANDARD.encode(format!("pk:{session}")));
        post(&anyone, LANGFUSE_PATH, &header, 1).await.is(401, "unauthorized");
        assert_eq!(app.full_key().get("/v1/traces").await.ok()["traces"], json!([]));
    }

    async fn basic_credentials_are_refused_elsewhere(app: TestApp) {
        let anyone = app.anonymous();
        let header = format!("Basic {}", BASE64_STANDARD.encode(format!("pk:{}", app.key_text())));
        for address in ["/v1/otlp/traces", "/v1/otlp/v1/traces", "/v1/traces", "/v1/otlp/v1/logs", "/v1/ingest"] {
            post(&anyone, address, &header, 1).await.is(401, "unauthorized");
        }
        for path in ["/v1/me", "/v1/traces", "/v1/apikeys/current"] {
            let asked = anyone.request(Method::GET, path).header("authorization", &header);
            anyone.send(asked).await.is(401, "unauthorized");
        }
    }
}

async fn post(caller: &Caller, address: &str, authorization: &str, trace: u128) -> Reply {
    let body = request([&Span::new(trace, 1, "sent", TEST_START_MICROS)]);
    caller
        .send(caller.request(Method::POST, address).header("authorization", authorization).json(&body))
        .await
}
