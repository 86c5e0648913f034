//! Searches for spans similar to a stored one.

use serde_json::{Value, json};
use tests::on_both_databases;

use super::{DIMENSIONS, item, names, search, store, vector};

/// Returns the ids of a stored trace's span, in the form of `near`.
async fn span_of(app: &tests::TestApp, name: &str) -> Value {
    let traces = app.full_key().get(&format!("/v1/traces?name={name}")).await.ok();
    let trace = traces["traces"][0]["id"].as_str().unwrap();
    let detail = app.full_key().get(&format!("/v1/traces/{trace}")).await.ok();
    json!({"trace_id": trace, "span_id": detail["spans"][0]["id"]})
}

on_both_databases! {
    async fn near_search_equals_vector_search(app: TestApp) {
        let mut random = fastrand::Rng::with_seed(7);
        let vectors: Vec<Vec<f32>> = (0..30).map(|_| vector(&mut random)).collect();
        let items: Vec<Value> = vectors.iter().enumerate().map(|(i, it)| item(&format!("n{i}"), it)).collect();
        store(app, &items).await;
        let near = span_of(app, "n7").await;
        let by_span = search(app, &json!({"near": near, "limit": 10})).await.ok();
        let by_vector = search(app, &json!({"vector": vectors[7], "limit": 10})).await.ok();
        assert_eq!(names(&by_span), names(&by_vector));
        assert_eq!((names(&by_span)[0].as_str(), &by_span["searched"]), ("n7", &json!(30)), "the span itself is the nearest");
        let cursor = &by_span["next_cursor"];
        let rest = search(app, &json!({"near": near, "limit": 10, "cursor": cursor})).await.ok();
        assert!(names(&rest).iter().all(|it| !names(&by_span).contains(it)), "{rest}");
        assert_eq!(names(&rest).len(), 10);
    }

    async fn near_search_without_vector_is_404(app: TestApp) {
        store(app, &[json!({"id": "bare", "name": "bare", "spans": [{"name": "bare"}]})]).await;
        let bare = span_of(app, "bare").await;
        search(app, &json!({"near": bare})).await.is(404, "not_found");
        store(app, &[item("full", &vec![1.0; DIMENSIONS])]).await;
        let full = span_of(app, "full").await;
        let swapped = json!({"trace_id": full["span_id"], "span_id": full["trace_id"]});
        search(app, &json!({"near": swapped})).await.is(404, "not_found");
        let (_, other) = app.other_tenant(api::Plan::Pro).await;
        other.post("/v1/search/spans", &json!({"near": full})).await.is(404, "not_found");
        let both = search(app, &json!({"near": full, "vector": vec![1; DIMENSIONS]})).await;
        assert_eq!(both.is(422, "validation_failed").json()["fields"][0]["field"], "near");
        for broken in [json!({}), json!("x"), json!({"trace_id": "x", "span_id": "y"})] {
            search(app, &json!({"near": broken})).await.is(400, "invalid_body");
        }
    }
}
