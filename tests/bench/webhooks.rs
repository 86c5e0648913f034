//! Measures what webhooks cost the built server at 3 % failing traces, and how long an event takes to its receiver.
//! See docs/benchmarks.md.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "receivers run beside the measurement")]

#[allow(dead_code, reason = "shared with other benchmarks, which use the rest")]
mod measure;
#[allow(dead_code, reason = "shared with the suite, which uses the rest")]
#[path = "../tests/webhooks/receiver.rs"]
mod receiver;
#[allow(dead_code, reason = "shared with other benchmarks, which use the rest")]
mod traces;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use measure::Processor;
use receiver::{Receiver, Response};
use serde_json::json;
use server::access::api_key::ApiKey;
use tests::{
    Caller,
    authority::Authority,
    process::{ServerProcess, Setup},
};
use traces::{Trace, body_otlp};

/// Number of webhooks.
const WEBHOOK_COUNT: usize = 50;
/// Number of traces per ingest request.
const TRACES_PER_REQUEST: usize = 12;
/// Number of requests that are sent at the same time.
const CONCURRENT_REQUESTS: usize = 4;
/// Time after which nothing more is delivered.
const QUIET_TIME: Duration = Duration::from_secs(3);
/// Maximum time that deliveries are awaited.
const MAX_WAIT: Duration = Duration::from_secs(300);

/// The options on the command line.
struct Options {
    /// Number of traces of the measurement of processor time.
    traces: usize,
    /// Duration in seconds of each measurement of delays.
    seconds: usize,
    /// Failing traces per second for one webhook. With [`WEBHOOK_COUNT`] webhooks, the rate is a fiftieth.
    rate: usize,
    /// Empty PostgreSQL databases, one for each of the seven servers; without them, SQLite.
    databases: Vec<String>,
}

/// A server that trusts the authority of the receivers.
struct Measured {
    server: ServerProcess,
    key: Caller,
    authority: Authority,
    _folder: tempfile::TempDir,
}

/// When requests arrived at a receiver, by the external ID of the trace.
type Arrivals = Arc<Mutex<HashMap<String, Instant>>>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut options = options(std::env::args().skip(1));
    for _ in 0..2 {
        let (without, _) = processor_time(&mut options, 0).await;
        let (with, deliveries) = processor_time(&mut options, WEBHOOK_COUNT).await;
        println!(
            "{:.2} times the processor time with {WEBHOOK_COUNT} webhooks: {:.0} µs a delivery",
            with / without,
            (with - without) * 1e6 / deliveries
        );
    }
    delays(&mut options, "1 webhook", 1, 0).await;
    delays(&mut options, "50 webhooks", WEBHOOK_COUNT, 0).await;
    delays(&mut options, "49 webhooks beside one that hangs", WEBHOOK_COUNT, 1).await;
}

fn start(options: &mut Options) -> Measured {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, &authority.pem).unwrap();
    let key = ApiKey::generate().unwrap().reveal().to_owned();
    let mut setup = Setup::new(folder.path())
        .with("LOUPE_BOOTSTRAP_API_KEY", &key)
        .with("LOUPE_LOG", "warn")
        .with("LOUPE_EGRESS_ALLOW_CIDRS", "127.0.0.1/32")
        .with("LOUPE_EGRESS_CA_FILE", file.to_str().unwrap());
    if let Some(database) = options.databases.pop() {
        setup = setup.with_postgres(&database);
    }
    let server = setup.start();
    let key = Caller::new(&server.url, Some(&key));
    Measured { server, key, authority, _folder: folder }
}

/// Starts a receiver with a webhook for failures. `respond` gets each request.
async fn webhook(
    measured: &Measured,
    respond: impl Fn(&receiver::Received) -> Response + Send + Sync + 'static,
) -> Receiver {
    let receiver = Receiver::start(&measured.authority, &["127.0.0.1"], 2099, move |it, _| respond(it)).await;
    let url = format!("https://127.0.0.1:{}/", receiver.port);
    let body = json!({"url": url, "secret": "0123456789abcdef", "events": ["failure.detected"]});
    measured.key.post("/v1/webhooks", &body).await.ok();
    receiver
}

/// Prints the processor time until the last trace is stored, and until everything is delivered. Returns the
/// latter and the number of deliveries, both per 100,000 spans.
async fn processor_time(options: &mut Options, webhooks: usize) -> (f64, f64) {
    let measured = start(options);
    let mut receivers = Vec::new();
    for _ in 0..webhooks {
        receivers.push(webhook(&measured, |_| Response::Status(200)).await);
    }
    let traces: Vec<Trace> = (0..options.traces).map(Trace::random).collect();
    let spans: usize = traces.iter().map(|it| it.spans.len()).sum();
    let bodies: Vec<Vec<u8>> = traces.chunks(TRACES_PER_REQUEST).map(body_otlp).collect();
    let processor = Processor::of(measured.server.id(), None);
    let before = processor.seconds();
    let send = async |body| {
        measured.key.post_bytes("/v1/otlp/traces", "application/x-protobuf", body).await.ok();
    };
    stream::iter(bodies).for_each_concurrent(CONCURRENT_REQUESTS, send).await;
    let stored = processor.seconds() - before;
    let delivered = || -> usize { receivers.iter().map(|it| it.received().len()).sum() };
    let (mut last, began) = (usize::MAX, Instant::now());
    while last != delivered() && began.elapsed() < MAX_WAIT {
        last = delivered();
        tokio::time::sleep(QUIET_TIME).await;
    }
    let all = processor.seconds() - before;
    let per_100k = |it: f64| it * 100_000.0 / spans as f64;
    println!(
        "{webhooks} webhooks, CPU seconds per 100,000 spans: {:.2} until the traces are stored, {:.2} until {last} \
         deliveries have ended",
        per_100k(stored),
        per_100k(all)
    );
    (per_100k(all), per_100k(last as f64))
}

/// Prints the time from the response for a failing trace to its request at a receiver.
async fn delays(options: &mut Options, what: &str, webhooks: usize, hanging: usize) {
    let measured = start(options);
    let arrivals: Vec<Arrivals> = (hanging..webhooks).map(|_| Arrivals::default()).collect();
    let mut receivers = Vec::new();
    for _ in 0..hanging {
        receivers.push(webhook(&measured, |_| Response::Hang(Vec::new())).await);
    }
    for arrived in &arrivals {
        let arrived = Arc::clone(arrived);
        let respond = move |request: &receiver::Received| {
            let id = request.json()["data"]["trace"]["external_id"].as_str().unwrap().to_owned();
            arrived.lock().unwrap().entry(id).or_insert_with(Instant::now);
            Response::Status(200)
        };
        receivers.push(webhook(&measured, respond).await);
    }
    let rate = if webhooks > 1 { options.rate / WEBHOOK_COUNT } else { options.rate }.max(1);
    let (count, pause) = (rate * options.seconds, Duration::from_secs(1) / u32::try_from(rate).unwrap());
    let (mut stored, began) = (Vec::with_capacity(count), Instant::now());
    for n in 0..count {
        tokio::time::sleep_until((began + pause * u32::try_from(n).unwrap()).into()).await;
        let id = format!("trace-{n}");
        let item = json!({"id": id, "name": "t", "spans": [{"name": "s", "error": "request timed out"}]});
        measured.key.post("/v1/ingest", &item).await.ok();
        stored.push((id, Instant::now()));
    }
    while arrivals.iter().any(|it| it.lock().unwrap().len() < count) {
        assert!(began.elapsed() < MAX_WAIT, "not every event was delivered");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut delays: Vec<f64> = Vec::with_capacity(count * arrivals.len());
    for arrived in &arrivals {
        let arrived = arrived.lock().unwrap();
        // A request may arrive before the response for its trace.
        delays.extend(stored.iter().map(|(id, at)| arrived[id].saturating_duration_since(*at).as_secs_f64()));
    }
    delays.sort_by(f64::total_cmp);
    let quantile = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize] * 1_000.0;
    println!(
        "{what}, {rate} failing traces a second: p50 {:.0} ms, p95 {:.0} ms, p99 {:.0} ms of {} deliveries; sent in {:.1} s",
        quantile(0.5),
        quantile(0.95),
        quantile(0.99),
        delays.len(),
        stored.last().unwrap().1.duration_since(began).as_secs_f64()
    );
}

fn options(mut given: impl Iterator<Item = String>) -> Options {
    let mut options = Options { traces: 2_000, seconds: 10, rate: 100, databases: Vec::new() };
    while let Some(flag) = given.next() {
        // `cargo bench` passes this flag.
        if flag == "--bench" {
            continue;
        }
        let value = given.next().unwrap_or_else(|| panic!("{flag} needs a value"));
        let number = || value.parse().unwrap_or_else(|_| panic!("{flag} needs a number"));
        match flag.as_str() {
            "--traces" => options.traces = number(),
            "--seconds" => options.seconds = number(),
            "--rate" => options.rate = number(),
            "--databases" => options.databases = value.split(',').map(str::to_owned).collect(),
            _ => panic!("unknown: {flag}; see docs/benchmarks.md"),
        }
    }
    options
}
