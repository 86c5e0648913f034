//! Measures the cost of metrics queries for a growing number of traces: the processor time of the built
//! server, on an empty database. See docs/benchmarks.md.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[allow(dead_code, reason = "shared with other benchmarks, which use the rest")]
mod measure;

use std::time::{Duration, Instant};

use measure::{Processor, median};
use serde_json::{Value, json};
use server::access::api_key::ApiKey;
use tests::{
    Caller,
    process::{ServerProcess, Setup},
};

/// Number of traces per request.
const TRACES_PER_REQUEST: usize = 1_000;
/// Number of connections that ingest.
const INGEST_CONNECTIONS: usize = 4;
/// The period in which traces start, in microseconds.
const TRACE_PERIOD_MICROS: i64 = 30 * 86_400_000_000;

/// The queries.
const METRICS_QUERIES: [&str; 6] = [
    "window=24h",
    "window=7d",
    "window=30d",
    "window=30d&model=model-3",
    "window=30d&interval=hour",
    "window=30d&interval=hour&group_by=model",
];

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut sizes = vec![10_000, 100_000];
    let (mut requests, mut database, mut postgres) = (200, None, None);
    let mut given = std::env::args().skip(1).filter(|it| it != "--bench");
    while let Some(flag) = given.next() {
        let value = given.next().unwrap_or_else(|| panic!("{flag} needs a value"));
        match flag.as_str() {
            "--traces" => {
                sizes = value.split(',').map(|it| it.parse().expect("numbers with commas")).collect()
            }
            "--requests" => requests = value.parse().expect("a number"),
            "--database" => database = Some(value),
            "--postgres-pid" => postgres = Some(value.parse().expect("a number")),
            _ => panic!("unknown: {flag}; see docs/benchmarks.md"),
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (server, key) = start(folder.path(), database);
    let processor = Processor::of(server.id(), postgres);
    let mut rng = fastrand::Rng::with_seed(11);
    let mut stored = 0;
    for size in sizes {
        while stored < size {
            let round = (0..INGEST_CONNECTIONS).map(|_| batch(&mut rng)).collect::<Vec<_>>();
            stored += TRACES_PER_REQUEST * INGEST_CONNECTIONS;
            let sent = round.iter().map(|it| key.post("/v1/ingest/batch", it));
            for reply in futures::future::join_all(sent).await {
                reply.ok();
            }
        }
        settle(&processor).await;
        println!("\n{stored} traces, {:.0} MiB resident", processor.resident_mib());
        println!("{:<44} {:>10} {:>12} {:>10}", "question", "CPU ms", "median ms", "bytes");
        for question in METRICS_QUERIES {
            ask(&processor, &key, question, requests).await;
        }
    }
}

fn start(folder: &std::path::Path, database: Option<String>) -> (ServerProcess, Caller) {
    let key = ApiKey::generate().unwrap().reveal().to_owned();
    let mut setup = Setup::new(folder).with("LOUPE_BOOTSTRAP_API_KEY", &key).with("LOUPE_LOG", "warn");
    if let Some(database) = &database {
        setup = setup.with_postgres(database);
    }
    let server = setup.start();
    let caller = Caller::new(&server.url, Some(&key));
    (server, caller)
}

/// Builds a batch of traces with twelve models, log-normal latencies and three failures in a hundred.
#[expect(clippy::disallowed_methods, reason = "traces must start within the last thirty days")]
fn batch(rng: &mut fastrand::Rng) -> Value {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_micros()).unwrap();
    let items = (0..TRACES_PER_REQUEST).map(|_| {
        let noise: f64 = (0..6).map(|_| rng.f64()).sum::<f64>() - 3.0;
        json!({
            "started_at": api::Timestamp::from_micros(now - rng.i64(0..TRACE_PERIOD_MICROS)),
            "model": format!("model-{}", rng.u8(0..12)),
            "latency_ms": (7.0 + noise).exp() as i64,
            "cost": 0.0021,
            "error": (rng.u8(0..100) < 3).then_some("timed out"),
        })
    });
    json!({"traces": items.collect::<Vec<_>>()})
}

/// Waits until the server is idle.
async fn settle(processor: &Processor) {
    let mut quiet = 0;
    while quiet < 3 {
        let before = processor.seconds();
        tokio::time::sleep(Duration::from_secs(6)).await;
        quiet = if processor.seconds() - before < 0.05 { quiet + 1 } else { 0 };
    }
}

async fn ask(processor: &Processor, key: &Caller, question: &str, requests: usize) {
    let path = format!("/v1/metrics?{question}");
    let bytes = key.get(&path).await.body.len();
    let before = processor.seconds();
    let mut times = Vec::with_capacity(requests);
    for _ in 0..requests {
        let started = Instant::now();
        assert_eq!(key.get(&path).await.status, 200);
        times.push(started.elapsed().as_secs_f64() * 1_000.0);
    }
    let cpu = (processor.seconds() - before) * 1_000.0 / requests as f64;
    println!("{question:<44} {cpu:>10.2} {:>12.2} {bytes:>10}", median(times));
}
