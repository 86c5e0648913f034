//! Invalid vectors and parameters.

use serde_json::{Value, json};
use tests::on_both_databases;

use super::{DIMENSIONS, names, search};

/// Builds a body with this text as its vector and more fields.
fn body(vector: &str, rest: &str) -> Vec<u8> {
    format!(r#"{{"vector": {vector}{rest}}}"#).into_bytes()
}

/// Returns a list with the required number of components, beginning with `first`.
fn list(first: &str) -> String {
    format!("[{first}{}]", ",1".repeat(DIMENSIONS - 1))
}

/// Returns vectors that are rejected with 422.
fn hostile() -> Vec<String> {
    let zeros = format!("[0{}]", ",-0.0".repeat(DIMENSIONS - 1));
    let tiny = format!("[1e-400{}]", ",0".repeat(DIMENSIONS - 1));
    let mut hostile = vec!["[]".to_owned(), "[1]".to_owned(), zeros, tiny];
    hostile.push(format!("[1{}]", ",1".repeat(DIMENSIONS)));
    hostile.extend(["1e999", "-1e39", "null", "\"1\"", "[1]", "{}", "true"].map(list));
    hostile
}

on_both_databases! {
    async fn invalid_vector_is_rejected_by_field(app: TestApp) {
        let key = app.full_key();
        for vector in hostile() {
            let reply = key.post_bytes("/v1/search/spans", "application/json", body(&vector, "")).await;
            assert_eq!(reply.is(422, "validation_failed").json()["fields"][0]["field"], "vector", "{vector:.40}");
            let item = format!(r#"{{"spans":[{{"name":"a"}},{{"name":"b","embedding":{vector}}}]}}"#);
            let reply = key.post_bytes("/v1/ingest", "application/json", item.clone().into_bytes()).await;
            assert_eq!(reply.is(422, "validation_failed").json()["fields"][0]["field"], "spans[1].embedding");
            let batch = format!(r#"{{"traces":[{item},{{"name":"good"}}]}}"#);
            let verdicts = key.post_bytes("/v1/ingest/batch", "application/json", batch.into_bytes()).await.ok();
            assert_eq!((&verdicts["accepted"], &verdicts["rejected"]), (&json!(1), &json!(1)), "{verdicts}");
            assert_eq!(verdicts["results"][0]["code"], "validation_failed", "{verdicts}");
        }
        for shape in ["null", "1", "\"[1]\"", "{}"] {
            key.post_bytes("/v1/search/spans", "application/json", body(shape, "")).await.is(400, "invalid_body");
        }
        for neither in ["{}", r#"{"near":null}"#] {
            key.post_bytes("/v1/search/spans", "application/json", neither.into()).await.is(400, "invalid_body");
        }
        key.post_bytes("/v1/search/spans", "application/json", body("[NaN]", "")).await.is(400, "invalid_json");
        let page = search(app, &json!({"vector": vec![1; DIMENSIONS]})).await.ok();
        assert_eq!((names(&page).len(), &page["searched"]), (0, &json!(0)));
    }

    async fn vector_with_extreme_components_is_normalized(app: TestApp) {
        let key = app.full_key();
        for (i, first) in ["3e38", "1e-45", "1e38"].into_iter().enumerate() {
            let vector = format!("[{first}{}]", ",0".repeat(DIMENSIONS - 1));
            let item = format!(r#"{{"spans":[{{"name":"s{i}","embedding":{vector}}}]}}"#);
            key.post_bytes("/v1/ingest", "application/json", item.into_bytes()).await.ok();
            let reply = key.post_bytes("/v1/search/spans", "application/json", body(&vector, "")).await.ok();
            let results = reply["results"].as_array().unwrap();
            assert_eq!(results.len(), i + 1);
            assert!(results.iter().all(|it| it["distance"] == 0.0), "{reply}");
        }
    }

    async fn invalid_search_parameter_is_rejected(app: TestApp) {
        let key = app.full_key();
        for query in ["", "?q=", "?q=%20%09", "?q=%ff", "?q=a%C3", "?q=a&limit=", "?q=a&type=", "?q=a&project_id=", "?q=a&from=", "?q=a&limit=0", "?q=a&project_id=x", "?q=a&from=x", "?q=a%00",
            "?q=a&from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z"] {
            key.get(&format!("/v1/search/spans{query}")).await.is(400, "invalid_query");
        }
        key.get(&format!("/v1/search/spans?q={}", "x".repeat(4_001))).await.is(400, "invalid_query");
        let vector = list("1");
        for (rest, field) in [
            (r#","limit":0"#, "limit"),
            (r#","limit":-1"#, "limit"),
            (r#","limit":201"#, "limit"),
            (r#","from":"2026-01-02T00:00:00Z","to":"2026-01-01T00:00:00Z""#, "to"),
            (r#","embedding_model":"a\u0000""#, "embedding_model"),
            (r#","model":"\u0000""#, "model"),
            (r#","type":"\u0000a""#, "type"),
        ] {
            let reply = key.post_bytes("/v1/search/spans", "application/json", body(&vector, rest)).await;
            let told: Value = reply.is(422, "validation_failed").json();
            assert_eq!(told["fields"][0]["field"], field);
        }
        for rest in [r#","limit":1.5"#, r#","project_id":"x""#, r#","from":1"#, r#","type":[]"#] {
            key.post_bytes("/v1/search/spans", "application/json", body(&vector, rest)).await.is(400, "invalid_body");
        }
    }
}
