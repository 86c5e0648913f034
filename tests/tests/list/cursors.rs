//! Changed, foreign and invented cursors.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::json;
use tests::{Caller, on_both_databases};

/// Percent-encodes every byte, so that no byte is syntax.
fn encoded(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("%{it:02X}")).collect()
}

async fn cursor(caller: &Caller, path: &str) -> String {
    caller.get(path).await.ok()["next_cursor"].as_str().expect("a next page").to_owned()
}

async fn five_traces(caller: &Caller) -> String {
    let spans: Vec<_> = (0..5).map(|i| json!({"name": format!("s{i}")})).collect();
    let items: Vec<_> =
        (0..5).map(|i| json!({"name": format!("t{i}"), "model": "m", "spans": spans})).collect();
    let result = caller.post("/v1/ingest/batch", &json!({"traces": items})).await.ok();
    result["results"][0]["id"].as_str().unwrap().to_owned()
}

on_both_databases! {
    async fn cursor_with_flipped_bit_is_rejected(app: TestApp) {
        let key = app.full_key();
        let trace = five_traces(&key).await;
        app.new_key(api::Role::Owner, &[]).await;
        key.post("/v1/ingest", &json!({"project_name": "second"})).await.ok();
        let owner = app.session(api::Role::Owner);
        let lists = [
            (&key, "/v1/traces?limit=2".to_owned()),
            (&key, format!("/v1/traces/{trace}/spans?limit=2")),
            (&owner, "/v1/apikeys?limit=1".to_owned()),
            (&key, "/v1/projects?limit=1".to_owned()),
            (&owner, "/v1/members?limit=1".to_owned()),
            (&owner, "/v1/audit-log?limit=1".to_owned()),
            (&key, "/v1/sessions?limit=1".to_owned()),
        ];
        app.session(api::Role::Viewer).get("/v1/me").await.ok();
        for session in ["a", "b"] {
            key.post("/v1/ingest", &json!({"session_id": session})).await.ok();
        }
        for (caller, path) in lists {
            let good = cursor(caller, &path).await;
            assert!(good.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it)), "{good} needs encoding");
            caller.get(&format!("{path}&cursor={good}")).await.ok();
            for bit in 0..good.len() * 8 {
                let mut bytes = good.clone().into_bytes();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let code = if std::str::from_utf8(&bytes).is_ok() { "invalid_cursor" } else { "invalid_query" };
                caller.get(&format!("{path}&cursor={}", encoded(&bytes))).await.is(400, code);
            }
            for length in 1..good.len() {
                caller.get(&format!("{path}&cursor={}", &good[..length])).await.is(400, "invalid_cursor");
            }
        }
    }

    async fn cursor_is_valid_for_its_tenant_list_and_filters_only(app: TestApp) {
        let key = app.full_key();
        let trace = five_traces(&key).await;
        let (_, other) = app.other_tenant(api::Plan::Enterprise).await;
        let others_trace = five_traces(&other).await;
        let plain = cursor(&key, "/v1/traces?limit=2").await;
        let filtered = cursor(&key, "/v1/traces?limit=2&model=m").await;
        let spans = cursor(&key, &format!("/v1/traces/{trace}/spans?limit=2")).await;

        // The page size, the length of previews and the token may change between pages.
        let reader = app.new_key(api::Role::Owner, &["query"]).await;
        for caller in [&key, &reader, &app.session(api::Role::Viewer)] {
            caller.get(&format!("/v1/traces?limit=1&cursor={plain}&preview=true")).await.ok();
        }
        let refused = [
            (&key, format!("/v1/traces?model=m&cursor={plain}")),
            (&key, format!("/v1/traces?cursor={filtered}")),
            (&key, format!("/v1/traces?model=n&cursor={filtered}")),
            (&key, format!("/v1/traces?model=m&error=false&cursor={filtered}")),
            (&key, format!("/v1/traces?name=m&cursor={filtered}")),
            (&key, format!("/v1/traces?cursor={spans}")),
            (&key, format!("/v1/projects?cursor={plain}")),
            (&key, format!("/v1/traces/{trace}/spans?cursor={plain}")),
            (&key, format!("/v1/traces/{others_trace}/spans?cursor={spans}")),
            (&other, format!("/v1/traces?cursor={plain}")),
            (&other, format!("/v1/traces?model=m&cursor={filtered}")),
            (&other, format!("/v1/traces/{trace}/spans?cursor={spans}")),
        ];
        for (caller, path) in refused {
            caller.get(&path).await.is(400, "invalid_cursor");
        }
        let owner = app.session(api::Role::Owner);
        owner.get(&format!("/v1/apikeys?cursor={plain}")).await.is(400, "invalid_cursor");
        key.get(&format!("/v1/traces/{others_trace}/spans?limit=2")).await.is(404, "not_found");
    }

    async fn invented_cursor_is_always_rejected(app: TestApp) {
        let key = app.full_key();
        five_traces(&key).await;
        let good = cursor(&key, "/v1/traces?limit=2").await;
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&good).unwrap();
        let mut reordered = bytes.clone();
        reordered.reverse();
        let invented = [
            "0".to_owned(), "null".to_owned(), "1".repeat(40), "A".repeat(54), "A".repeat(4_000), "=".to_owned(),
            format!("{good}="), format!("{good}A"), format!(" {good}"), format!("{good}\n"), good.to_lowercase(),
            format!("{good}{good}"), BASE64_URL_SAFE_NO_PAD.encode(&bytes[..24]), BASE64_URL_SAFE_NO_PAD.encode(&bytes[24..]),
            BASE64_URL_SAFE_NO_PAD.encode(&reordered), BASE64_URL_SAFE_NO_PAD.encode([0_u8; 40]),
            BASE64_URL_SAFE_NO_PAD.encode([255_u8; 40]), BASE64_URL_SAFE_NO_PAD.encode("{\"at\":0,\"id\":\"\"}"),
            "' OR 1=1 --".to_owned(), "../../etc/passwd".to_owned(), "\u{1F600}".to_owned(), "2026-06-15T12:00:00Z".to_owned(),
            "-1".to_owned(), "9223372036854775807".to_owned(), "%00".to_owned(), "undefined".to_owned(),
        ];
        for text in invented {
            let path = format!("/v1/traces?cursor={}", encoded(text.as_bytes()));
            key.get(&path).await.is(400, "invalid_cursor");
        }
        key.get("/v1/traces?cursor=%00").await.is(400, "invalid_query");
        // An empty cursor is invalid, and of several the last one counts.
        key.get("/v1/traces?cursor=").await.is(400, "invalid_cursor");
        key.get(&format!("/v1/traces?cursor=x&cursor={good}")).await.ok();
        key.get(&format!("/v1/traces?cursor={good}&cursor=x")).await.is(400, "invalid_cursor");
        let stream = key.request(reqwest::Method::GET, "/v1/traces/stream").header("last-event-id", &good);
        key.send(stream).await.is(400, "invalid_cursor");
    }
}
