//! Measures the latency and the recall of vector search, in a project of 5,000 spans and one of 100,000, on
//! both databases. See docs/benchmarks.md.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "the environment names the databases")]

#[allow(dead_code, reason = "shared with other benchmarks, which use the rest")]
mod measure;

use std::{collections::HashMap, time::Instant};

use api::Plan;
use measure::Processor;
use serde_json::{Value, json};
use store::vectors::{self, UnitVector};
use tests::{On, TestApp, postgres::URL_VARIABLE_NAME};
use uuid::Uuid;

const DIMENSIONS: usize = api::search::DIMENSIONS;
/// Number of clusters of vectors, because real spans are of few kinds.
const VECTOR_CLUSTERS: usize = 200;
/// Number of queries per project.
const QUERIES_PER_PROJECT: usize = 100;
/// Number of results per query.
const RESULTS_PER_QUERY: usize = 20;
/// Number of spans per trace.
const SPANS_PER_TRACE: usize = 500;

/// What a query asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Query {
    /// Vectors of one cluster.
    Near,
    /// Vectors of one cluster, of spans that a filter selects, one in a hundred.
    Rare,
    /// A vector of no cluster.
    Unrelated,
}

/// Generator of clustered vectors.
struct Vectors {
    random: fastrand::Rng,
    centres: Vec<Vec<f32>>,
}

impl Vectors {
    fn new() -> Self {
        let mut random = fastrand::Rng::with_seed(1);
        let centres = (0..VECTOR_CLUSTERS).map(|_| noise(&mut random)).collect();
        Self { random, centres }
    }

    fn next(&mut self) -> Vec<f32> {
        let centre = &self.centres[self.random.usize(..VECTOR_CLUSTERS)];
        let noise = noise(&mut self.random);
        unit(centre.iter().zip(noise).map(|(a, b)| a + 0.9 * b).collect())
    }

    fn next_unrelated(&mut self) -> Vec<f32> {
        unit(noise(&mut self.random))
    }
}

fn unit(numbers: Vec<f32>) -> Vec<f32> {
    let length = numbers.iter().map(|it| it * it).sum::<f32>().sqrt();
    numbers.into_iter().map(|it| it / length).collect()
}

/// Returns numbers that are roughly normally distributed.
fn noise(random: &mut fastrand::Rng) -> Vec<f32> {
    (0..DIMENSIONS).map(|_| (0..6).map(|_| random.f32()).sum::<f32>() - 3.0).collect()
}

/// Creates a project of `spans` spans with vectors, every hundredth with the model `rare`. Returns the
/// vectors by span.
async fn fill(
    app: &TestApp,
    project: &str,
    spans: usize,
    made: &mut Vectors,
) -> (Uuid, HashMap<Uuid, (bool, Vec<f32>)>) {
    let mut known = HashMap::new();
    let began = Instant::now();
    let mut storing = 0.0;
    for first in (0..spans).step_by(SPANS_PER_TRACE) {
        let items: Vec<Value> = (first..first + SPANS_PER_TRACE)
            .map(|i| json!({"name": "call", "type": "llm", "model": if i % 100 == 0 { "rare" } else { "common" }, "input": format!("question {i}")}))
            .collect();
        let body = json!({"project_name": project, "spans": items});
        let trace: Uuid =
            app.full_key().post("/v1/ingest", &body).await.ok()["id"].as_str().unwrap().parse().unwrap();
        let bare = vectors::missing(&app.app.db, app.tenant, &[trace], 0, None, SPANS_PER_TRACE as u64)
            .await
            .unwrap();
        let mut rows = Vec::with_capacity(SPANS_PER_TRACE);
        for span in bare {
            let vector = made.next();
            let unit = UnitVector::of(&vector).unwrap();
            known.insert(span.id, (span.model.as_deref() == Some("rare"), vector));
            rows.push((span, unit));
        }
        let began = Instant::now();
        assert_eq!(vectors::insert(&app.app.db, app.tenant, "bench", &rows).await.unwrap(), SPANS_PER_TRACE);
        storing += began.elapsed().as_secs_f64();
    }
    println!(
        "  {spans} spans in {:.1} s, including {storing:.1} s for their vectors ({:.0} µs each)",
        began.elapsed().as_secs_f64(),
        storing / spans as f64 * 1e6
    );
    let projects = app.full_key().get("/v1/projects?limit=200").await.ok();
    let found =
        projects["projects"].as_array().unwrap().iter().find(|it| it["name"] == project).unwrap().clone();
    (found["id"].as_str().unwrap().parse().unwrap(), known)
}

/// Returns the spans that an exhaustive comparison finds.
fn plainly(known: &HashMap<Uuid, (bool, Vec<f32>)>, question: &[f32], rare: bool) -> Vec<Uuid> {
    let mut all: Vec<(f32, Uuid)> = known
        .iter()
        .filter(|(_, it)| it.0 || !rare)
        .map(|(id, it)| (it.1.iter().zip(question).map(|(a, b)| a * b).sum(), *id))
        .collect();
    all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    all.into_iter().take(RESULTS_PER_QUERY).map(|it| it.1).collect()
}

/// Runs the queries, and prints their latency and recall.
async fn ask(
    app: &TestApp,
    what: &str,
    project: Uuid,
    known: &HashMap<Uuid, (bool, Vec<f32>)>,
    made: &mut Vectors,
    query: Query,
) {
    let rare = query == Query::Rare;
    let (mut times, mut pages) = (Vec::new(), Vec::new());
    let processor = Processor::of(std::process::id(), None);
    let mut after_first = processor.seconds();
    for _ in 0..QUERIES_PER_PROJECT {
        let question = if query == Query::Unrelated { made.next_unrelated() } else { made.next() };
        let mut body = json!({"vector": question, "project_id": project, "limit": RESULTS_PER_QUERY});
        if rare {
            body["model"] = "rare".into();
        }
        let began = Instant::now();
        let page = app.full_key().post("/v1/search/spans", &body).await.ok();
        times.push(began.elapsed().as_secs_f64() * 1e3);
        if times.len() == 1 {
            after_first = processor.seconds();
        }
        pages.push((question, page));
    }
    let spent = (processor.seconds() - after_first) / (QUERIES_PER_PROJECT - 1) as f64 * 1e3;
    let mut found = 0;
    for (question, page) in pages {
        let expected = plainly(known, &question, rare);
        let results = page["results"].as_array().unwrap();
        assert_eq!(results.len(), RESULTS_PER_QUERY, "fewer results than requested");
        let ids = results.iter().map(|it| it["span"]["id"].as_str().unwrap().parse::<Uuid>().unwrap());
        found += ids.filter(|it| expected.contains(it)).count();
    }
    let first = times[0];
    times.sort_by(f64::total_cmp);
    println!(
        "  {what:<24} first {first:>8.1} ms   p50 {:>6.1} ms   p95 {:>6.1} ms   {spent:.1} ms of CPU   recall@{RESULTS_PER_QUERY} {:.4}",
        times[QUERIES_PER_PROJECT / 2],
        times[QUERIES_PER_PROJECT * 95 / 100],
        found as f64 / (QUERIES_PER_PROJECT * RESULTS_PER_QUERY) as f64
    );
}

async fn run(on: On) {
    let app = TestApp::with(on, Plan::Enterprise, &[]).await;
    let mut made = Vectors::new();
    println!("{on:?}");
    for (name, spans) in [("small", 5_000), ("large", 100_000)] {
        let (project, known) = fill(&app, name, spans, &mut made).await;
        ask(&app, name, project, &known, &mut made, Query::Near).await;
        ask(&app, &format!("{name}, 1 % by a filter"), project, &known, &mut made, Query::Rare).await;
        ask(&app, &format!("{name}, unrelated"), project, &known, &mut made, Query::Unrelated).await;
    }
    println!("  vectors in memory: {:.0} MiB", app.app.search.bytes() as f64 / 1_048_576.0);
    app.stop().await;
}

#[tokio::main]
async fn main() {
    run(On::Sqlite).await;
    if std::env::var_os(URL_VARIABLE_NAME).is_some() {
        run(On::Postgres).await;
    }
}
