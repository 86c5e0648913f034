//! Event streams that a client opens and does not read.

use std::time::Duration;

use serde_json::json;
use tests::On;

use crate::{
    attacker_connections::{ask_without_reading, responses},
    bystander::Bystander,
    installation::{Installation, MAX_RESIDENT_MIB, full_size},
};

/// Bytes of text of a trace that is stored while the streams are open.
const TEXT_BYTES: usize = 200_000;

async fn unread_streams_stay_within_memory_share(on: On) {
    let installation = Installation::on(on).await;
    let streams = if full_size() { 900 } else { 300 };
    let bystander = Bystander::start(&installation, false).await;
    let path = "/v1/traces/stream";
    let sockets = ask_without_reading(&installation, path, streams, Duration::from_secs(1)).await;
    let attacker = installation.attacker();
    for n in 0..40 {
        let text = if n % 2 == 0 { "x".repeat(TEXT_BYTES) } else { "\u{1}".repeat(TEXT_BYTES) };
        attacker.post("/v1/ingest", &json!({"id": format!("large-{n}"), "input": text})).await.ok();
    }
    tokio::time::sleep(Duration::from_secs(if full_size() { 15 } else { 8 })).await;
    let figures = bystander.stop().await;
    let statuses = responses(sockets, Duration::from_millis(20)).await;
    println!(
        "{on:?}: {streams} unread streams: peak {} MiB; {statuses:?}; bystander {figures}",
        installation.peak_resident_mib()
    );
    figures.assert_served();
    assert!(installation.peak_resident_mib() <= MAX_RESIDENT_MIB);
    assert!(
        statuses.get(&429).is_some_and(|it| *it >= streams / 2),
        "the number of streams of a tenant is not limited"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_streams_stay_within_memory_share_on_sqlite() {
    unread_streams_stay_within_memory_share(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_streams_stay_within_memory_share_on_postgres() {
    unread_streams_stay_within_memory_share(On::Postgres).await;
}
