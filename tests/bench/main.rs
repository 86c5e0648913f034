//! Measures the cost of ingest, lists and details: the processor time of the built server on an empty
//! database, under the load of this program. See docs/benchmarks.md.
//!
//! Processor time is comparable between runs. Elapsed time depends on the other load of the machine, which
//! includes this program.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod measure;
mod traces;

use std::time::{Duration, Instant};

use measure::{Processor, bytes_written, median};
use reqwest::Method;
use serde_json::{Value, json};
use server::access::api_key::ApiKey;
use tests::{
    Caller,
    process::{ServerProcess, Setup},
};
use tokio::task::JoinSet;
use traces::{Trace, body_otlp};

/// Approximate number of spans per request.
const SPANS_PER_REQUEST: usize = 50;

/// The options on the command line.
#[derive(Clone, Debug)]
struct Options {
    /// Number of traces to ingest.
    traces: usize,
    /// Number of requests of each kind of read.
    requests: usize,
    /// Number of connections that ingest.
    connections: usize,
    /// The plan of the tenant. A plan with limits makes the server count what the tenant sends.
    plan: String,
    /// Number of enabled eval rules with code evaluators, all without a matching trace.
    rules: usize,
    /// Seconds after the last response whose work counts too: traces become ready after five seconds.
    settle: u64,
    /// An empty PostgreSQL database; without it, SQLite.
    database: Option<String>,
    /// The process ID of the PostgreSQL server, whose processor time counts too.
    postgres: Option<u32>,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let options = options(std::env::args().skip(1));
    println!("{options:?}");
    let traces: Vec<Trace> = (0..options.traces).map(Trace::random).collect();
    let spans: usize = traces.iter().map(|it| it.spans.len()).sum();
    let otlp: Vec<Vec<u8>> = requests(&traces).map(body_otlp).collect();
    let bytes: usize = otlp.iter().map(Vec::len).sum();
    println!("{} traces, {spans} spans, {} bytes a span as OTLP\n", traces.len(), bytes / spans);

    let folder = tempfile::tempdir().unwrap();
    let (server, key, owner) = start(&options, folder.path());
    rules(&options, &key).await;
    let processor = Processor::of(server.id(), options.postgres);
    ingest(
        &options,
        (&processor, server.id()),
        "OTLP",
        &key,
        "/v1/otlp/traces",
        "application/x-protobuf",
        otlp,
        spans,
    )
    .await;
    reads(&options, &processor, &key, &traces).await;
    prompts(&options, &processor, &key, &owner).await;
    drop(server);
    if options.database.is_some() {
        println!(
            "\nThe JSON ingest needs an empty database too: only SQLite is measured with both in one run."
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (server, key, _) = start(&options, folder.path());
    rules(&options, &key).await;
    let processor = Processor::of(server.id(), None);
    let items = requests(&traces).map(|it| json!({"traces": it.iter().map(Trace::item).collect::<Vec<_>>()}));
    let items = items.map(|it| it.to_string().into_bytes()).collect();
    ingest(
        &options,
        (&processor, server.id()),
        "JSON",
        &key,
        "/v1/ingest/batch",
        "application/json",
        items,
        spans,
    )
    .await;
}

/// Groups the traces into requests.
fn requests(traces: &[Trace]) -> impl Iterator<Item = &[Trace]> {
    let a_trace = traces.iter().map(|it| it.spans.len()).sum::<usize>().div_ceil(traces.len());
    traces.chunks((SPANS_PER_REQUEST / a_trace).max(1))
}

/// Starts the server. Returns it with the clients of a key and of an owner.
fn start(options: &Options, folder: &std::path::Path) -> (ServerProcess, Caller, Caller) {
    let key = ApiKey::generate().unwrap().reveal().to_owned();
    let mut setup = Setup::new(folder).with("LOUPE_BOOTSTRAP_API_KEY", &key).with("LOUPE_LOG", "warn");
    if let Some(database) = &options.database {
        setup = setup.with_postgres(database);
    }
    let server = setup.start();
    let told = setup.run(&["admin", "list-tenants", "--json"]).stdout;
    let tenants: Value = serde_json::from_slice(&told).unwrap();
    let tenant = tenants["tenants"][0]["id"].as_str().unwrap();
    assert!(setup.run(&["admin", "set-plan", "--tenant", tenant, "--plan", &options.plan]).status.success());
    let issued = setup.run(&["admin", "issue-token", "--tenant", tenant, "--role", "owner", "--json"]).stdout;
    let issued: Value = serde_json::from_slice(&issued).unwrap();
    let owner = Caller::new(&server.url, issued["token"].as_str());
    let key = Caller::new(&server.url, Some(&key));
    (server, key, owner)
}

/// Creates the eval rules.
async fn rules(options: &Options, key: &Caller) {
    let project = key.get("/v1/projects").await.ok()["projects"][0]["id"].clone();
    for n in 0..options.rules {
        // The filters differ, so that each must be compared.
        let filter = match n % 3 {
            0 => json!({"model": "none of these"}),
            1 => json!({"tag": "none:of these"}),
            _ => json!({"name": "none of these", "span_type": "tool"}),
        };
        let rule = json!({"project_id": project, "metric_name": "latency_threshold", "evaluator_type": "rule",
            "config": {"max_latency_ms": 1}, "filter": filter});
        key.post("/v1/eval-rules", &rule).await.ok();
    }
}

#[expect(clippy::too_many_arguments, reason = "JSON and OTLP ingest differ in all of these")]
async fn ingest(
    options: &Options,
    (processor, server): (&Processor, u32),
    what: &str,
    key: &Caller,
    path: &'static str,
    content_type: &'static str,
    bodies: Vec<Vec<u8>>,
    spans: usize,
) {
    let (before, started) = (processor.seconds(), Instant::now());
    let written_before = bytes_written(server);
    let mut shares: Vec<Vec<Vec<u8>>> = vec![Vec::new(); options.connections];
    for (n, body) in bodies.into_iter().enumerate() {
        shares[n % options.connections].push(body);
    }
    let mut tasks = JoinSet::new();
    for share in shares {
        let key = key.clone();
        tasks.spawn(async move {
            for body in share {
                let request = key.request(Method::POST, path).header("content-type", content_type).body(body);
                let response = request.send().await.unwrap();
                assert!(response.status().is_success(), "{}", response.text().await.unwrap());
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let wall = started.elapsed().as_secs_f64();
    tokio::time::sleep(Duration::from_secs(options.settle)).await;
    let cpu = processor.seconds() - before;
    let count = f64::from(u32::try_from(spans).unwrap());
    println!(
        "ingest {what}: {:.2} CPU seconds per 100,000 spans, {:.0} spans a second, {:.0} bytes written a span, \
         {:.0} MiB resident",
        cpu * 100_000.0 / count,
        count / wall,
        (bytes_written(server) - written_before) / count,
        processor.resident_mib(),
    );
}

async fn reads(options: &Options, processor: &Processor, key: &Caller, traces: &[Trace]) {
    println!("\n{:<52} {:>10} {:>12} {:>6}", "read", "CPU ms", "median ms", "rows");
    for query in traces::queries(traces) {
        let path = format!("/v1/traces?limit=50&{query}");
        let what = if query.is_empty() { "no filter" } else { query.as_str() };
        read(options, processor, key, what, |_| path.clone()).await;
    }
    let ids: Vec<String> = traces.iter().map(|it| format!("/v1/traces/{:032x}", it.id)).collect();
    read(options, processor, key, "one trace with its spans", |n| ids[n * 7919 % ids.len()].clone()).await;
}

/// Reads a shipped prompt, and a prompt whose candidate is tested with a share of the requests.
async fn prompts(options: &Options, processor: &Processor, key: &Caller, owner: &Caller) {
    let project = key.get("/v1/projects").await.ok()["projects"][0]["id"].clone();
    let template = "Answer the question of the customer in two sentences.".repeat(20);
    let version = json!({"project_id": project, "prompt_name": "answer", "template": template});
    let shipped = owner.post("/v1/prompts/deployments", &version).await.ok();
    let approval = format!("/v1/prompts/deployments/{}/approve", shipped["id"].as_str().unwrap());
    owner.post(&approval, &json!({})).await.ok();
    read(options, processor, key, "a shipped prompt", |_| "/v1/prompts/answer".to_owned()).await;
    let mut candidate = version;
    candidate["ab"] = json!({"metric_name": "answer_relevancy"});
    owner.post("/v1/prompts/deployments", &candidate).await.ok();
    read(options, processor, key, "a tested prompt, by subject", |n| {
        format!("/v1/prompts/answer?subject=user-{n}")
    })
    .await;
}

async fn read(
    options: &Options,
    processor: &Processor,
    key: &Caller,
    what: &str,
    path: impl Fn(usize) -> String,
) {
    let mut rows = 0;
    // The first requests fill caches.
    for n in 0..3 {
        let response: Value = key.get(&path(n)).await.ok();
        rows = ["traces", "spans"].iter().find_map(|it| response[it].as_array()).map_or(1, Vec::len);
    }
    let before = processor.seconds();
    let mut times = Vec::with_capacity(options.requests);
    for n in 0..options.requests {
        let started = Instant::now();
        assert_eq!(key.get(&path(n)).await.status, 200);
        times.push(started.elapsed().as_secs_f64() * 1_000.0);
    }
    let count = f64::from(u32::try_from(options.requests).unwrap());
    let cpu = (processor.seconds() - before) * 1_000.0 / count;
    println!("{what:<52} {cpu:>10.2} {:>12.2} {rows:>6}", median(times));
}

fn options(mut given: impl Iterator<Item = String>) -> Options {
    let mut options = Options {
        traces: 2_000,
        requests: 200,
        connections: 4,
        plan: "enterprise".to_owned(),
        rules: 0,
        settle: 0,
        database: None,
        postgres: None,
    };
    while let Some(flag) = given.next() {
        // `cargo bench` passes this flag.
        if flag == "--bench" {
            continue;
        }
        let value = given.next().unwrap_or_else(|| panic!("{flag} needs a value"));
        let number = || value.parse().unwrap_or_else(|_| panic!("{flag} needs a number"));
        match flag.as_str() {
            "--traces" => options.traces = number(),
            "--requests" => options.requests = number(),
            "--connections" => options.connections = number(),
            "--plan" => options.plan = value,
            "--rules" => options.rules = number(),
            "--settle" => options.settle = number() as u64,
            "--database" => options.database = Some(value),
            "--postgres-pid" => options.postgres = u32::try_from(number()).ok(),
            _ => panic!("unknown: {flag}; see docs/benchmarks.md"),
        }
    }
    options
}
