//! A search finds the same spans as an exhaustive comparison, and shows them completely.

use std::collections::HashSet;

use api::Plan;
use serde_json::{Value, json};
use store::vectors::{self, UnitVector};
use tests::{On, TestApp, on_both_databases};
use uuid::Uuid;

use super::{distance, item, names, search, store, vector};

const SPAN_COUNT: usize = 150;

async fn check_search(app: &TestApp) {
    let mut random = fastrand::Rng::with_seed(7);
    let vectors: Vec<Vec<f32>> = (0..SPAN_COUNT).map(|_| vector(&mut random)).collect();
    let items: Vec<Value> = vectors.iter().enumerate().map(|(i, it)| item(&format!("t{i}"), it)).collect();
    store(app, &items).await;
    for _ in 0..5 {
        let question = vector(&mut random);
        let mut expected: Vec<(f64, String)> =
            vectors.iter().enumerate().map(|(i, it)| (distance(&question, it), format!("t{i}"))).collect();
        expected.sort_by(|a, b| a.0.total_cmp(&b.0));
        let page = search(app, &json!({"vector": question, "limit": 60})).await.ok();
        let names = names(&page);
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), 60);
        for (i, (result, (distance, _))) in
            page["results"].as_array().unwrap().iter().zip(&expected).enumerate()
        {
            assert!((result["distance"].as_f64().unwrap() - distance).abs() < 3e-4, "{result}");
            // Of two almost equally near spans, either may be first.
            let own = expected.iter().find(|it| it.1 == names[i]).unwrap().0;
            assert!((own - distance).abs() < 3e-4, "{result}");
            let score = (1.0 - distance).clamp(0.0, 1.0);
            assert!((result["score"].as_f64().unwrap() - score).abs() < 3e-4, "{result}");
        }
        assert_eq!(
            (page["searched"].as_i64(), page["not_searched"].as_i64()),
            (Some(SPAN_COUNT as i64), Some(0))
        );
        assert_eq!(page["has_more"], true);
    }
}

on_both_databases! {
    async fn search_finds_all_nearest_sparse_vectors(app: TestApp) {
        let mut random = fastrand::Rng::with_seed(8);
        let mut sparse = || {
            let mut numbers = vec![0.0; crate::DIMENSIONS];
            for _ in 0..random.usize(1..6) {
                numbers[[0, 1, 2, 3, 700, 1_535][random.usize(..6)]] = random.f32() + 0.01;
            }
            numbers
        };
        let vectors: Vec<Vec<f32>> = (0..400).map(|_| sparse()).collect();
        let items: Vec<Value> = vectors.iter().enumerate().map(|(i, it)| item(&format!("t{i}"), it)).collect();
        store(app, &items).await;
        for _ in 0..20 {
            let question = sparse();
            let mut expected: Vec<f64> = vectors.iter().map(|it| distance(&question, it)).collect();
            expected.sort_by(f64::total_cmp);
            let page = search(app, &json!({"vector": question, "limit": 20})).await.ok();
            for (result, distance) in page["results"].as_array().unwrap().iter().zip(&expected) {
                assert!((result["distance"].as_f64().unwrap() - distance).abs() < 3e-4, "{result} {distance}");
            }
        }
    }

    async fn nearest_spans_are_found_in_order(app: TestApp) {
        check_search(app).await;
    }

    async fn search_result_equals_the_span_of_its_trace(app: TestApp) {
        let mut random = fastrand::Rng::with_seed(1);
        let one = vector(&mut random);
        store(app, &[item("one", &one)]).await;
        let longer: Vec<f32> = one.iter().map(|it| it * 1e20).collect();
        let page = search(app, &json!({"vector": longer})).await.ok();
        let found = &page["results"][0];
        assert!(found["distance"].as_f64().unwrap() < 1e-5, "{found}");
        assert!(found["score"].as_f64().unwrap() > 0.999_99, "{found}");
        let trace = found["span"]["trace_id"].as_str().unwrap();
        let detail = app.full_key().get(&format!("/v1/traces/{trace}")).await.ok();
        assert_eq!(found["span"], detail["spans"][0]);
        assert_eq!(found["span"]["input"], "in one");
        assert_eq!((&page["has_more"], &page["next_cursor"]), (&json!(false), &Value::Null));
    }

    async fn opposite_and_unrelated_vectors_have_no_score(app: TestApp) {
        let unit = |at: usize, by: f32| {
            let mut numbers = vec![0.0; crate::DIMENSIONS];
            numbers[at] = by;
            numbers
        };
        store(app, &[item("same", &unit(0, 1e-30)), item("unrelated", &unit(1_535, 3e30)), item("opposite", &unit(0, -1.0))]).await;
        let page = search(app, &json!({"vector": unit(0, 5.0)})).await.ok();
        let told: Vec<(f64, f64)> = page["results"].as_array().unwrap().iter()
            .map(|it| (it["distance"].as_f64().unwrap(), it["score"].as_f64().unwrap()))
            .collect();
        assert_eq!(names(&page), ["same", "unrelated", "opposite"]);
        assert_eq!(told, [(0.0, 1.0), (1.0, 0.0), (2.0, 0.0)]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn project_larger_than_memory_is_searched_completely() {
    let app = TestApp::with(On::Sqlite, Plan::Pro, &["--vector-cache-mib", "0"]).await;
    check_search(&app).await;
    assert_eq!(app.app.search.bytes(), 0);
    app.stop().await;
}

/// Stores traces of up to 500 spans with these vectors.
async fn store_many(app: &TestApp, vectors: &[Vec<f32>]) {
    for (number, vectors) in vectors.chunks(500).enumerate() {
        let spans: Vec<Value> = (0..vectors.len())
            .map(|it| json!({"name": format!("s{}", 500 * number + it), "input": "x"}))
            .collect();
        let stored = app.full_key().post("/v1/ingest", &json!({"spans": spans})).await.ok();
        let trace: Uuid = stored["id"].as_str().unwrap().parse().unwrap();
        let missing = vectors::missing(&app.app.db, app.tenant, &[trace], 0, None, 500).await.unwrap();
        let rows: Vec<_> = missing
            .into_iter()
            .map(|span| {
                let index: usize = span.name[1..].parse().unwrap();
                let vector = UnitVector::of(&vectors[index - 500 * number]).unwrap();
                (span, vector)
            })
            .collect();
        assert_eq!(vectors::insert(&app.app.db, app.tenant, "m", &rows).await.unwrap(), vectors.len());
    }
}

/// Enough vectors that each step of the search selects some of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_many_vectors_equal_an_exhaustive_comparison() {
    const STORED_SPANS: usize = 2_500;
    let app = TestApp::with(On::Sqlite, Plan::Pro, &[]).await;
    let mut random = fastrand::Rng::with_seed(9);
    let mut noise = || (0..48).map(|_| random.f32() - 0.5).collect::<Vec<f32>>();
    let centres: Vec<Vec<f32>> = (0..10).map(|_| noise()).collect();
    let mut near = |centre: usize| -> Vec<f32> {
        centres[centre % 10].iter().zip(noise()).map(|(a, b)| a + 0.7 * b).collect()
    };
    let stored: Vec<Vec<f32>> = (0..STORED_SPANS).map(&mut near).collect();
    store_many(&app, &stored).await;
    for query in [near(3), near(7), stored[0].iter().map(|it| -it).collect()] {
        let mut expected: Vec<f64> = stored.iter().map(|it| distance(&query, it)).collect();
        expected.sort_by(f64::total_cmp);
        let mut vector = query.clone();
        vector.resize(crate::DIMENSIONS, 0.0);
        let mut found: Vec<f64> = Vec::new();
        let mut body = json!({"vector": vector, "limit": 100});
        for _ in 0..3 {
            let page = search(&app, &body).await.ok();
            assert_eq!(page["searched"].as_u64(), Some(STORED_SPANS as u64));
            found.extend(
                page["results"].as_array().unwrap().iter().map(|it| it["distance"].as_f64().unwrap()),
            );
            body["cursor"] = page["next_cursor"].clone();
        }
        assert_eq!(found.len(), 300);
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 3e-4, "{found} instead of {expected}");
        }
    }
    app.stop().await;
}
