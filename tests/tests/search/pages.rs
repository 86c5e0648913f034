//! Pages contain every span once and in a fixed order, even at equal distances.

use serde_json::{Value, json};
use tests::{TestApp, on_both_databases};

use super::{item, search, store, vector};

/// Returns all results, page by page.
async fn all(app: &TestApp, question: &[f32], limit: usize) -> Vec<(String, String, f64)> {
    let (mut cursor, mut found) = (Value::Null, Vec::new());
    loop {
        let page = search(app, &json!({"vector": question, "limit": limit, "cursor": cursor})).await.ok();
        for it in page["results"].as_array().unwrap() {
            let id = |name: &str| it["span"][name].as_str().unwrap().to_owned();
            found.push((id("trace_id"), id("id"), it["distance"].as_f64().unwrap()));
        }
        assert_eq!(page["searched"], 120);
        assert_eq!(page["has_more"], !page["next_cursor"].is_null());
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            return found;
        }
        assert_eq!(page["results"].as_array().unwrap().len(), limit);
    }
}

on_both_databases! {
    async fn search_pages_contain_every_span_once(app: TestApp) {
        let mut random = fastrand::Rng::with_seed(11);
        let same = vector(&mut random);
        let mut items: Vec<Value> =
            (0..70).map(|i| item(&format!("t{i}"), &vector(&mut random))).collect();
        // All spans have equal distances, and some have the same id in different traces.
        let id = "0190a000-0000-7000-8000-000000000001";
        items.extend((0..50).map(|i| {
            let mut span = json!({"name": "same", "embedding": same});
            if i % 2 == 0 {
                span["id"] = id.into();
            }
            json!({"spans": [span]})
        }));
        store(app, &items).await;
        for question in [same, vector(&mut random)] {
            let whole = all(app, &question, 200).await;
            assert_eq!(whole.len(), 120);
            assert!(whole.is_sorted_by(|a, b| (a.2, &a.0, &a.1) < (b.2, &b.0, &b.1)), "{whole:?}");
            for limit in [1, 7, 50] {
                assert_eq!(all(app, &question, limit).await, whole, "{limit}");
            }
        }
    }

    /// Sparse vectors, many of them equal: the case in which coarse codes are least precise.
    async fn equal_sparse_vectors_are_paged_completely(app: TestApp) {
        let of = |numbers: &[(usize, f32)]| {
            let mut vector = vec![0.0; crate::DIMENSIONS];
            numbers.iter().for_each(|(at, number)| vector[*at] = *number);
            vector
        };
        let ones = of(&[(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)]);
        let ends = of(&[(0, 5.0), (1_535, 12.0)]);
        let items: Vec<Value> =
            (0..60).flat_map(|i| [item(&format!("a{i}"), &ones), item(&format!("b{i}"), &ends)]).collect();
        store(app, &items).await;
        for question in [&ones, &ends] {
            let whole = all(app, question, 200).await;
            assert_eq!(whole.len(), 120);
            for limit in [7, 40, 50] {
                assert_eq!(all(app, question, limit).await, whole, "{limit}");
            }
        }
    }

    async fn search_cursor_is_valid_for_its_search_only(app: TestApp) {
        let mut random = fastrand::Rng::with_seed(12);
        let items: Vec<Value> = (0..5).map(|i| item(&format!("t{i}"), &vector(&mut random))).collect();
        store(app, &items).await;
        let question = vector(&mut random);
        let page = search(app, &json!({"vector": question, "limit": 2})).await.ok();
        let cursor = &page["next_cursor"];
        let bad = async |body: Value| {
            search(app, &body).await.is(400, "invalid_cursor");
        };
        bad(json!({"vector": vector(&mut random), "cursor": cursor})).await;
        bad(json!({"vector": question, "cursor": cursor, "type": "llm"})).await;
        bad(json!({"vector": question, "cursor": cursor, "project_id": app.project})).await;
        bad(json!({"vector": question, "cursor": cursor, "embedding_model": "x"})).await;
        bad(json!({"vector": question, "cursor": "x"})).await;
        let list = app.full_key().get("/v1/traces?limit=1").await.ok();
        bad(json!({"vector": question, "cursor": list["next_cursor"]})).await;
        let next = search(app, &json!({"vector": question, "cursor": cursor})).await.ok();
        assert_eq!(next["results"].as_array().unwrap().len(), 3);
    }
}
