//! Bodies that take many times their size once decoded, and concurrent reads.

use futures::future::join_all;
use tests::On;

use crate::{
    bystander::Bystander,
    installation::{Installation, MAX_RESIDENT_MIB},
};

/// Bytes of each body: a little below the limit of 32 MiB.
const BODY_BYTES: usize = 30_000_000;

/// Builds a body of `start`, as many of `item` as fit, separated by commas, and `end`.
fn repeated(start: &str, item: &str, end: &str) -> Vec<u8> {
    let items = vec![item; (BODY_BYTES - start.len()) / (item.len() + 1)];
    format!("{start}{}{end}", items.join(",")).into_bytes()
}

/// Returns a trace with a text that compresses badly.
fn incompressible() -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    let text: String = (0..BODY_BYTES - 100).map(|_| random.alphanumeric()).collect();
    format!("{{\"input\":\"{text}\"}}").into_bytes()
}

async fn decoded_bodies_are_counted_against_memory(on: On) {
    let installation = Installation::on(on).await;
    let attacker = installation.attacker();
    let json = "application/json";
    let tags: Vec<String> = (0..BODY_BYTES / 13).map(|n| format!("\"{n:07}\":1")).collect();
    let bodies = [
        ("/v1/ingest", json, repeated("{\"spans\":[", "{\"name\":\"\"}", "]}"), 413),
        ("/v1/ingest", json, format!("{{\"tags\":{{{}}}}}", tags.join(",")).into_bytes(), 422),
        ("/v1/ingest", json, repeated("{\"name\":\"kept\",\"metadata\":{\"a\":[", "0", "]}}"), 201),
        ("/v1/ingest/batch", json, repeated("{\"traces\":[", "1", "]}"), 422),
        ("/v1/otlp/traces", json, repeated("{\"resourceSpans\":[", "{}", "]}"), 400),
        ("/v1/otlp/traces", "application/x-protobuf", [0x0a, 0].repeat(BODY_BYTES / 2), 400),
        ("/v1/ingest", json, incompressible(), 201),
        ("/v1/feedback", json, repeated("{\"metadata\":[", "0", "]}"), 413),
    ];
    let bystander = Bystander::start(&installation, false).await;
    for (path, content_type, body, status) in bodies {
        // Several at once: the others wait or are refused.
        let replies = join_all((0..3).map(|_| attacker.post_bytes(path, content_type, body.clone()))).await;
        let statuses: Vec<u16> = replies.iter().map(|it| it.status).collect();
        println!("{on:?}: POST {path}: {statuses:?}, peak {} MiB", installation.peak_resident_mib());
        assert!(statuses.iter().all(|it| [status, 503].contains(it)), "{}", replies[0].text());
        assert!(statuses.contains(&status), "{}", replies[0].text());
    }
    let figures = bystander.stop().await;
    println!("{on:?}: peak {} MiB; bystander {figures}", installation.peak_resident_mib());
    figures.assert_served();
    assert!(installation.peak_resident_mib() <= MAX_RESIDENT_MIB);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decoded_bodies_are_counted_against_memory_on_sqlite() {
    decoded_bodies_are_counted_against_memory(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decoded_bodies_are_counted_against_memory_on_postgres() {
    decoded_bodies_are_counted_against_memory(On::Postgres).await;
}
