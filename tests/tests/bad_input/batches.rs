//! Batches: the container, its items one by one, and their number.

use serde_json::{Value, json};
use tests::on_both_databases;

use super::{check_health, count};

on_both_databases! {
    async fn batch_with_malformed_container_is_rejected(app: TestApp) {
        let key = app.full_key();
        let misshapen = [
            "null", "[]", "1", "\"traces\"", "{}", r#"{"traces":null}"#, r#"{"traces":{}}"#, r#"{"traces":"x"}"#, r#"{"traces":1}"#,
            r#"{"trace":[]}"#, r#"{"Traces":[]}"#, r#"[{"traces":[]}]"#, r#"[[]]"#, r#"{"traces":[],"traces":[]}"#,
        ];
        for body in misshapen {
            key.post_bytes("/v1/ingest/batch", "application/json", body.into()).await.is(400, "invalid_body");
        }
        for body in ["", " ", "{", r#"{"traces":["#, r#"{"traces":[{]}"#, r#"{"traces":[]}x"#, "traces=[]", r#"{"traces":[1,]}"#, "\u{feff}{}"] {
            key.post_bytes("/v1/ingest/batch", "application/json", body.into()).await.is(400, "invalid_json");
        }
        let empty = key.post("/v1/ingest/batch", &json!({"traces": [], "more": 1})).await.ok();
        assert_eq!(empty, json!({"accepted": 0, "rejected": 0, "results": []}));
        assert_eq!(count(&key).await, 0);
    }

    async fn invalid_batch_item_does_not_affect_others(app: TestApp) {
        let key = app.full_key();
        let deep = format!("{{\"metadata\":{{\"k\":{}1{}}}}}", "[".repeat(1_000), "]".repeat(1_000));
        let bad = [
            ("null", "invalid_body"), ("[]", "invalid_body"), ("1", "invalid_body"), ("\"x\"", "invalid_body"), ("[\"id\"]", "invalid_body"),
            (r#"{"name":1}"#, "invalid_body"), (r#"{"spans":[{}]}"#, "invalid_body"), (r#"{"latency_ms":-1}"#, "validation_failed"),
            (r#"{"cost":-1}"#, "validation_failed"), (r#"{"tags":{"":"x"}}"#, "validation_failed"), (r#"{"cost":1e400}"#, "invalid_json"),
            (r#"{"name":"\ud800"}"#, "invalid_json"), (deep.as_str(), "invalid_body"), (r#"{"started_at":"10000-01-01T00:00:00Z"}"#, "invalid_body"),
            (r#"{"spans":[{"id":"a","name":"s"},{"id":"a","name":"s"}]}"#, "validation_failed"), (r#"{"project_name":""}"#, "validation_failed"),
        ];
        // Valid items before, between and after invalid ones.
        let items: Vec<String> = bad.iter().enumerate().map(|(i, (item, _))| format!(r#"{{"id":"good {i}"}},{item}"#)).collect();
        let body = format!(r#"{{"traces":[{},{{"id":"last"}}]}}"#, items.join(","));
        let result = key.post_bytes("/v1/ingest/batch", "application/json", body.into_bytes()).await.ok();
        assert_eq!((&result["accepted"], &result["rejected"]), (&json!(bad.len() + 1), &json!(bad.len())));
        for (i, (item, code)) in bad.iter().enumerate() {
            let (good, refused) = (&result["results"][2 * i], &result["results"][2 * i + 1]);
            assert_eq!((&good["index"], &good["status"]), (&json!(2 * i), &json!("accepted")), "{good}");
            assert!(good["id"].is_string() && good.get("code").is_none());
            let told = (&refused["index"], &refused["id"], &refused["status"], &refused["code"]);
            assert_eq!(told, (&json!(2 * i + 1), &Value::Null, &json!("rejected"), &json!(code)), "{}", &item[..item.len().min(80)]);
            assert!(refused["error"].as_str().is_some_and(|it| !it.is_empty()));
        }
        assert_eq!(count(&key).await, bad.len() + 1);
        check_health(app).await;
    }

    async fn batch_with_too_many_items_is_rejected(app: TestApp) {
        let key = app.full_key();
        let items = |n: usize| json!({"traces": (0..n).map(|i| json!({"id": format!("t{i}")})).collect::<Vec<_>>()});
        let refused = key.post("/v1/ingest/batch", &items(1_001)).await;
        assert_eq!(refused.is(422, "validation_failed").json()["fields"][0]["field"], "traces");
        assert_eq!(count(&key).await, 0, "a batch with too many items is rejected as a whole");
        let result = key.post("/v1/ingest/batch", &items(1_000)).await.ok();
        assert_eq!((&result["accepted"], &result["rejected"]), (&json!(1_000), &json!(0)));
        let again = key.post("/v1/ingest/batch", &items(1_000)).await.ok();
        assert_eq!((&again["accepted"], &again["rejected"]), (&json!(0), &json!(0)));
        assert!(again["results"].as_array().unwrap().iter().all(|it| it["status"] == "duplicate"));
        let same = key.post("/v1/ingest/batch", &json!({"traces": vec![json!({"id": "same"}); 1_000]})).await.ok();
        assert_eq!(same["accepted"], 1);
        key.post_bytes("/v1/ingest/batch", "application/json", format!(r#"{{"traces":[{}0]}}"#, "0,".repeat(1_000_000)).into_bytes())
            .await
            .is(422, "validation_failed");
        assert_eq!(count(&key).await, 1_001);
    }

    async fn truncated_json_body_is_rejected(app: TestApp) {
        let key = app.full_key();
        let item = r#"{"id":"cut","tags":{"k":"v"},"cost":0.5,"metadata":{"a":[1,{"b":null}]},"spans":[{"name":"\u00e4","latency_ms":12}]}"#;
        let batch = format!(r#"{{"traces":[{item}]}}"#);
        for (path, body) in [("/v1/ingest", item), ("/v1/ingest/batch", &batch)] {
            for length in 0..body.len() {
                key.post_bytes(path, "application/json", body[..length].into()).await.is(400, "invalid_json");
            }
        }
        assert_eq!(count(&key).await, 0);
        key.post_bytes("/v1/ingest", "application/json", item.into()).await.ok();
    }

    async fn json_body_with_flipped_bit_never_fails_internally(app: TestApp) {
        let key = app.full_key();
        let item = br#"{"tags":{"k":"v"},"cost":0.5,"metadata":{"a":[1,null]},"spans":[{"name":"s","latency_ms":12,"parent_span_id":"p"}]}"#;
        let mut accepted = 0;
        for bit in 0..item.len() * 8 {
            let mut body = item.to_vec();
            body[bit / 8] ^= 1 << (bit % 8);
            let reply = key.post_bytes("/v1/ingest", "application/json", body.clone()).await;
            assert!(matches!(reply.status, 201 | 400 | 422), "bit {bit}: {} {}", reply.status, reply.text());
            accepted += usize::from(reply.status == 201);
        }
        assert_eq!(count(&key).await, accepted);
        check_health(app).await;
    }
}
