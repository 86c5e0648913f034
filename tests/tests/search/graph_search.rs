//! Many vectors on PostgreSQL, where only candidates are compared.

use std::collections::HashSet;

use api::Plan;
use serde_json::{Value, json};
use server::housekeeping;
use store::vectors::{self, UnitVector};
use tests::{Caller, On, TestApp};
use uuid::Uuid;

use super::{DIMENSIONS, distance, vector};

const SPANS_PER_TRACE: usize = 200;

/// A stored vector: its span, whether its model is `rare`, and its components.
type StoredVector = (Uuid, bool, Vec<f32>);

/// Stores a trace of spans with these vectors, every fortieth with the model `rare`.
async fn fill(app: &TestApp, tenant: Uuid, key: &Caller, made: Vec<Vec<f32>>) -> Vec<StoredVector> {
    let spans: Vec<Value> = (0..made.len())
        .map(|it| json!({"name": "s", "model": if it % 40 == 0 { "rare" } else { "common" }}))
        .collect();
    let stored = key.post("/v1/ingest", &json!({"spans": spans})).await.ok();
    let trace: Uuid = stored["id"].as_str().unwrap().parse().unwrap();
    let bare = vectors::missing(&app.app.db, tenant, &[trace], 0, None, made.len() as u64).await.unwrap();
    let rows: Vec<_> =
        bare.into_iter().zip(&made).map(|(span, it)| (span, UnitVector::of(it).unwrap())).collect();
    assert_eq!(vectors::insert(&app.app.db, tenant, "m", &rows).await.unwrap(), made.len());
    rows.into_iter()
        .zip(made)
        .map(|(it, made)| (it.0.id, it.0.model.as_deref() == Some("rare"), made))
        .collect()
}

/// Returns the recall: the share of the 20 nearest vectors that the search finds.
async fn recall(key: &Caller, known: &[&StoredVector], questions: &[Vec<f32>], filter: &Value) -> f64 {
    let mut found = 0;
    for question in questions {
        let mut expected: Vec<(f64, Uuid)> =
            known.iter().map(|it| (distance(question, &it.2), it.0)).collect();
        expected.sort_by(|a, b| a.0.total_cmp(&b.0));
        let expected: HashSet<Uuid> = expected[..20].iter().map(|it| it.1).collect();
        let mut body = json!({"vector": question, "limit": 20});
        body.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
        let page = key.post("/v1/search/spans", &body).await.ok();
        let results = page["results"].as_array().unwrap();
        assert_eq!((results.len(), page["searched"].as_u64()), (20, Some(known.len() as u64)));
        let distances: Vec<f64> = results.iter().map(|it| it["distance"].as_f64().unwrap()).collect();
        assert!(distances.is_sorted(), "{distances:?}");
        let ids = results.iter().map(|it| it["span"]["id"].as_str().unwrap().parse().unwrap());
        found += ids.filter(|it: &Uuid| expected.contains(it)).count();
    }
    found as f64 / (20 * questions.len()) as f64
}

/// Returns the number of a tenant's vectors in the graph.
async fn indexed(app: &TestApp, tenant: Uuid) -> i64 {
    let count = "SELECT COUNT(*) FROM span_vector WHERE tenant_id = $1 AND indexed";
    sqlx::query_scalar(count)
        .bind(tenant)
        .fetch_one(app.app.db.write.get_postgres_connection_pool())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graph_search_has_high_recall_with_any_filter() {
    let app = TestApp::with(On::Postgres, Plan::Enterprise, &["--search-exact", "30"]).await;
    let mut random = fastrand::Rng::with_seed(31);
    let mut known = Vec::new();
    // Every second trace belongs to another tenant, so that the index contains many vectors that do not
    // match.
    let (other, others_key) = app.other_tenant(Plan::Enterprise).await;
    let (few, few_key) = app.other_tenant(Plan::Enterprise).await;
    let mut made = |spans: usize| (0..spans).map(|_| vector(&mut random)).collect::<Vec<_>>();
    for _ in 0..5 {
        fill(&app, other, &others_key, made(SPANS_PER_TRACE)).await;
        known.extend(fill(&app, app.tenant, &app.full_key(), made(SPANS_PER_TRACE)).await);
    }
    fill(&app, few, &few_key, made(30)).await;
    let questions = made(10);
    let all: Vec<&StoredVector> = known.iter().collect();
    let rare: Vec<&StoredVector> = known.iter().filter(|it| it.1).collect();
    for in_graph in [0, 500, 1_000] {
        match in_graph {
            0 => {}
            500 => {
                assert_eq!(vectors::put_into_graph(&app.app.db, app.tenant, 500).await.unwrap(), 500);
                assert_eq!(vectors::put_into_graph(&app.app.db, other, 500).await.unwrap(), 500);
            }
            _ => housekeeping::run_round(&app.app, server::features::ALL).await.unwrap(),
        }
        assert_eq!(indexed(&app, app.tenant).await, in_graph);
        let found = recall(&app.full_key(), &all, &questions, &json!({})).await;
        assert!(found >= 0.95, "{in_graph} in the graph: {found}");
        assert_eq!(
            recall(&app.full_key(), &rare, &questions, &json!({"model": "rare"})).await,
            1.0,
            "{in_graph}"
        );
    }
    assert_eq!((indexed(&app, other).await, indexed(&app, few).await), (1_000, 0));
    // Pages of a graph search contain no duplicates and are in order.
    let (mut cursor, mut seen, mut last) = (Value::Null, HashSet::new(), 0.0);
    for _ in 0..10 {
        let page =
            super::search(&app, &json!({"vector": questions[0], "limit": 50, "cursor": cursor})).await.ok();
        for it in page["results"].as_array().unwrap() {
            assert!(seen.insert(it["span"]["id"].as_str().unwrap().to_owned()));
            let distance = it["distance"].as_f64().unwrap();
            assert!(last <= distance);
            last = distance;
        }
        cursor = page["next_cursor"].clone();
    }
    assert_eq!(seen.len(), 500);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn coarse_candidates_have_high_recall_for_any_vectors() {
    let app = TestApp::with(On::Postgres, Plan::Enterprise, &[]).await;
    let mut random = fastrand::Rng::with_seed(5);
    // The number of components, as of models with fewer dimensions, and the minimum of their values: without
    // negative values, the signs carry no information.
    for (numbers, least) in [(DIMENSIONS, -0.5), (384, -0.5), (12, -0.5), (384, 0.0), (DIMENSIONS, 0.0)] {
        let (tenant, key) = app.other_tenant(Plan::Enterprise).await;
        let centres: Vec<Vec<f32>> =
            (0..20).map(|_| (0..numbers).map(|_| random.f32() + least).collect()).collect();
        let mut made = |vectors: usize| -> Vec<Vec<f32>> {
            (0..vectors)
                .map(|_| {
                    let centre = &centres[random.usize(..centres.len())];
                    let mut vector: Vec<f32> =
                        centre.iter().map(|it| it + 0.9 * (random.f32() + least)).collect();
                    vector.resize(DIMENSIONS, 0.0);
                    vector
                })
                .collect()
        };
        let known = fill(&app, tenant, &key, made(1_500)).await;
        let questions = made(10);
        let known: Vec<&StoredVector> = known.iter().collect();
        let found = recall(&key, &known, &questions, &json!({})).await;
        assert!(found >= 0.95, "{numbers} from {least}: {found}");
    }
    app.stop().await;
}
