//! Vector search, with the same results on both databases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod exact;
mod filters;
mod graph_search;
mod index_updates;
mod invalid_input;
mod migrated;
mod pages;
mod similar_spans;

use serde_json::{Value, json};
use tests::{Reply, TestApp};

/// Number of components of a vector.
const DIMENSIONS: usize = api::search::DIMENSIONS;

/// Returns a vector with only a few components other than zero, so that it is generated quickly.
fn vector(random: &mut fastrand::Rng) -> Vec<f32> {
    let mut numbers = vec![0.0; DIMENSIONS];
    for _ in 0..40 {
        numbers[random.usize(..64)] = random.f32() - 0.3;
    }
    numbers
}

/// Computes the cosine distance in the simplest way.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let dot =
        |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum() };
    1.0 - dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Builds a trace with one span with this vector.
fn item(id: &str, vector: &[f32]) -> Value {
    json!({"id": id, "spans": [{"id": format!("{id}-span"), "name": id, "input": format!("in {id}"), "embedding": vector}]})
}

async fn store(app: &TestApp, items: &[Value]) {
    for items in items.chunks(100) {
        let stored = app.full_key().post("/v1/ingest/batch", &json!({"traces": items})).await.ok();
        assert_eq!(stored["accepted"], items.len(), "{stored}");
    }
}

async fn search(app: &TestApp, body: &Value) -> Reply {
    app.full_key().post("/v1/search/spans", body).await
}

/// Returns the names of the spans on a page.
fn names(page: &Value) -> Vec<String> {
    let results = page["results"].as_array().unwrap();
    results.iter().map(|it| it["span"]["name"].as_str().unwrap().to_owned()).collect()
}
