//! Measures the processor time of the lists of failures and clusters with a growing number of rows. The server runs in
//! this process, on an empty SQLite database. See docs/benchmarks.md.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[allow(dead_code, reason = "shared with other benchmarks, which use the rest")]
mod measure;

use entities::{failure, failure_cluster};
use measure::Processor;
use sea_orm::EntityTrait;
use serde_json::json;
use store::{failure_clusters, failures, new_id};
use tests::{Caller, On, TestApp};

/// Numbers of failures at which the lists are measured.
const FAILURE_COUNTS: [usize; 3] = [1_000, 10_000, 100_000];
/// Number of failures per cluster.
const FAILURES_PER_CLUSTER: usize = 50;
/// Number of rows that are stored at once.
const ROWS_PER_TRANSACTION: usize = 5_000;
const REQUESTS_PER_LIST: u32 = 200;
const PAGE_QUERY: &str = "limit=50";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let app = TestApp::on(On::Sqlite).await;
    let item = json!({"name": "trip", "spans": [{"name": "call", "model": "gpt-4o", "error": "the disk is on fire"}]});
    app.full_key().post("/v1/ingest", &item).await.ok();
    app.drain().await;
    let db = &app.app.db.write;
    let failure = failure::Entity::find().one(db).await.unwrap().unwrap();
    let cluster = failure_cluster::Entity::find().one(db).await.unwrap().unwrap();
    let viewer = app.session(api::Role::Viewer);
    let processor = Processor::of(std::process::id(), None);
    let lists = [
        "/v1/failures".to_owned(),
        "/v1/failures?model=rare".to_owned(),
        "/v1/failures?type=other".to_owned(),
        format!("/v1/failures?cluster_id={}", cluster.id),
        "/v1/failures/clusters".to_owned(),
        "/v1/failures/clusters?status=open".to_owned(),
    ];
    println!("{:>10} {:<52} {:>8} {:>6}", "failures", "list", "CPU ms", "rows");
    let mut stored = 1;
    for size in FAILURE_COUNTS {
        store(&app, (&failure, &cluster), size - stored).await;
        stored = size;
        for path in &lists {
            measure(&processor, &viewer, size, path).await;
        }
    }
    app.stop().await;
}

/// Stores copies of a failure and of a cluster.
async fn store(app: &TestApp, pattern: (&failure::Model, &failure_cluster::Model), count: usize) {
    let mut left = count;
    while left > 0 {
        let block = left.min(ROWS_PER_TRANSACTION);
        let mut clusters: Vec<failure_cluster::Model> = Vec::new();
        let mut rows = Vec::with_capacity(block);
        for number in 0..block {
            if number % FAILURES_PER_CLUSTER == 0 {
                let last_seen = pattern.1.last_seen + i64::try_from(left - number).unwrap();
                clusters.push(failure_cluster::Model { id: new_id(), last_seen, ..pattern.1.clone() });
            }
            let cluster_id = clusters.last().unwrap().id;
            let model = Some(format!("model {}", number % 5));
            rows.push(failure::Model {
                id: new_id(),
                trace_id: new_id(),
                span_id: new_id(),
                cluster_id,
                model,
                ..pattern.0.clone()
            });
        }
        let txn = app.app.db.begin().await.unwrap();
        failure_clusters::save(&txn, &clusters).await.unwrap();
        failures::add(&txn, &rows).await.unwrap();
        txn.commit().await.unwrap();
        left -= block;
    }
}

/// Prints the processor time of a request for a list.
async fn measure(processor: &Processor, viewer: &Caller, size: usize, path: &str) {
    let path = format!("{path}{}{PAGE_QUERY}", if path.contains('?') { '&' } else { '?' });
    let list = viewer.get(&path).await.ok();
    let rows = ["failures", "clusters"].iter().find_map(|it| list[it].as_array()).unwrap().len();
    let before = processor.seconds();
    for _ in 0..REQUESTS_PER_LIST {
        assert_eq!(viewer.get(&path).await.status, 200);
    }
    let cpu = (processor.seconds() - before) * 1_000.0 / f64::from(REQUESTS_PER_LIST);
    println!("{size:>10} {path:<52.52} {cpu:>8.2} {rows:>6}");
}
