//! Measures the cost of embedding in the background, and its effect on ingest: the same spans are sent to a
//! server without embedding and to one whose provider responds after 50 ms. See docs/benchmarks.md.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "the provider runs beside the measurement")]

#[allow(dead_code, reason = "shared with other benchmarks, which use the rest")]
mod measure;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Router, body::Bytes, http::header::CONTENT_TYPE, routing::post};
use base64::{Engine, engine::general_purpose::STANDARD};
use measure::{Processor, bytes_written};
use serde::Deserialize;
use serde_json::{Value, json};
use server::access::api_key::ApiKey;
use tests::{Caller, loopback::LoopbackServer, process::Setup};
use tokio::task::JoinSet;

/// Number of spans per request.
const SPANS_PER_REQUEST: usize = 50;
/// Response time of the provider.
const PROVIDER_LATENCY: Duration = Duration::from_millis(50);
/// Number of different vectors of the provider.
const DISTINCT_VECTORS: usize = 64;

/// The options on the command line.
#[derive(Clone, Debug)]
struct Options {
    /// Number of spans to send.
    spans: usize,
    /// Spans per second; 0 sends each request as soon as the previous one is answered.
    rate: usize,
    /// An empty PostgreSQL database for the server that embeds; without it, SQLite.
    database: Option<String>,
    /// The process ID of the PostgreSQL server, whose processor time counts too.
    postgres: Option<u32>,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let options = options(std::env::args().skip(1));
    println!("{options:?}");
    let provider = provider().await;
    if options.database.is_none() {
        run(&options, "without", None).await;
    }
    run(&options, "with", Some(&format!("{}/v1", provider.url()))).await;
}

/// Sends all spans to a new server. With a provider, waits until they are embedded.
async fn run(options: &Options, what: &str, provider: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let key = ApiKey::generate().unwrap().reveal().to_owned();
    let mut setup = Setup::new(folder.path()).with("LOUPE_BOOTSTRAP_API_KEY", &key).with("LOUPE_LOG", "warn");
    if let Some(url) = provider {
        setup = setup.with("LOUPE_EMBEDDING_BASE_URL", url);
    }
    if let Some(database) = &options.database {
        setup = setup.with_postgres(database);
    }
    let server = setup.start();
    let caller = Caller::new(&server.url, Some(&key));
    let processor = Processor::of(server.id(), options.postgres);
    let (before, began) = (processor.seconds(), Instant::now());
    let mut times = send(options, &caller).await;
    let sent = began.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    let quantile = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "ingest {what} embedding: {sent:.1} s, p50 {:.2} ms, p95 {:.2} ms",
        quantile(0.5),
        quantile(0.95)
    );
    if provider.is_some() {
        while embedded(&caller).await < options.spans {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        println!("all embedded {:.1} s after the first request", began.elapsed().as_secs_f64());
    }
    println!(
        "{what}: {:.2} CPU seconds, {:.0} bytes written a span, {:.0} MiB resident\n",
        processor.seconds() - before,
        bytes_written(server.id()) / options.spans as f64,
        processor.resident_mib()
    );
}

/// Sends the spans at the configured rate. Returns the latency of each request in milliseconds.
async fn send(options: &Options, caller: &Caller) -> Vec<f64> {
    let requests = options.spans.div_ceil(SPANS_PER_REQUEST);
    let pause = SPANS_PER_REQUEST
        .checked_div(options.rate)
        .map(|_| Duration::from_secs_f64(SPANS_PER_REQUEST as f64 / options.rate as f64));
    let (began, mut tasks) = (Instant::now(), JoinSet::new());
    let mut times = Vec::with_capacity(requests);
    for n in 0..requests {
        if let Some(pause) = pause {
            tokio::time::sleep_until((began + pause * u32::try_from(n).unwrap()).into()).await;
        } else if tasks.len() == 4 {
            times.push(tasks.join_next().await.unwrap().unwrap());
        }
        let caller = caller.clone();
        tasks.spawn(async move {
            let body = request(n);
            let began = Instant::now();
            caller.post("/v1/ingest/batch", &body).await.ok();
            began.elapsed().as_secs_f64() * 1_000.0
        });
    }
    times.extend(tasks.join_all().await);
    times
}

/// Builds a request with ten traces of five spans.
fn request(n: usize) -> Value {
    let text = "a customer asks where the parcel is that was to come last week; ".repeat(6);
    let span =
        |i: usize| json!({"name": "chat", "type": "llm", "input": format!("{n}.{i} {text}"), "output": text});
    let traces: Vec<Value> = (0..SPANS_PER_REQUEST / 5)
        .map(|t| json!({"spans": (0..5).map(|i| span(t * 5 + i)).collect::<Vec<_>>()}))
        .collect();
    json!({"traces": traces})
}

/// Returns the number of spans that the server has embedded, according to its metrics.
async fn embedded(caller: &Caller) -> usize {
    let page = caller.get("/metrics").await.text();
    let line = page.lines().find_map(|it| it.strip_prefix("loupe_embedding_spans_total ").map(str::to_owned));
    line.and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// Starts a provider of precomputed vectors.
async fn provider() -> LoopbackServer {
    #[derive(Deserialize)]
    struct EmbeddingRequest {
        input: Vec<serde::de::IgnoredAny>,
    }
    let mut random = fastrand::Rng::with_seed(1);
    let vector = |_| -> Vec<u8> { (0..1_536).flat_map(|_| (random.f32() - 0.5).to_le_bytes()).collect() };
    let vectors: Arc<Vec<String>> =
        Arc::new((0..DISTINCT_VECTORS).map(vector).map(|it| STANDARD.encode(it)).collect());
    let respond = move |body: Bytes| {
        let vectors = Arc::clone(&vectors);
        async move {
            let request: EmbeddingRequest = serde_json::from_slice(&body).unwrap();
            let data: Vec<String> = (0..request.input.len())
                .map(|n| {
                    format!(
                        r#"{{"object":"embedding","index":{n},"embedding":"{}"}}"#,
                        vectors[n % DISTINCT_VECTORS]
                    )
                })
                .collect();
            tokio::time::sleep(PROVIDER_LATENCY).await;
            let body = format!(r#"{{"object":"list","model":"m","data":[{}]}}"#, data.join(","));
            ([(CONTENT_TYPE, "application/json")], body)
        }
    };
    LoopbackServer::start(Router::new().route("/v1/embeddings", post(respond))).await
}

fn options(mut given: impl Iterator<Item = String>) -> Options {
    let mut options = Options { spans: 100_000, rate: 0, database: None, postgres: None };
    while let Some(flag) = given.next() {
        // `cargo bench` passes this flag.
        if flag == "--bench" {
            continue;
        }
        let value = given.next().unwrap_or_else(|| panic!("{flag} needs a value"));
        let number = || value.parse().unwrap_or_else(|_| panic!("{flag} needs a number"));
        match flag.as_str() {
            "--spans" => options.spans = number(),
            "--rate" => options.rate = number(),
            "--database" => options.database = Some(value),
            "--postgres-pid" => options.postgres = u32::try_from(number()).ok(),
            _ => panic!("unknown: {flag}; see docs/benchmarks.md"),
        }
    }
    options
}
