//! Resident memory after a load has ended.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::{Caller, On};

use super::installation::{Installation, full_size};

/// Memory that a server may keep after a minute without requests, in MiB: its caches.
const MAX_KEPT_MIB: u64 = 24;

fn text(words: usize) -> String {
    std::iter::repeat_with(|| format!("word{} ", fastrand::u16(..))).take(words).collect()
}

/// A batch of some 500 KB.
fn batch() -> Value {
    let span =
        || json!({"name": "call", "type": "llm", "model": "gpt-4o", "input": text(250), "output": text(200)});
    let trace = || json!({"name": "t", "input": text(100), "spans": [span(), span(), span(), span()]});
    json!({"traces": (0..20).map(|_| trace()).collect::<Vec<_>>()})
}

async fn load(caller: Caller, time: Duration) -> usize {
    let (batches, began, mut sent) = ([batch(), batch(), batch()], Instant::now(), 0);
    while began.elapsed() < time {
        let reply = caller.post("/v1/ingest/batch", &batches[sent % batches.len()]).await;
        assert!(reply.status < 300 || reply.status == 503, "{}", reply.text());
        caller.get("/v1/traces?limit=20").await.ok();
        sent += 1;
    }
    sent
}

async fn memory_is_returned(database: On) {
    let installation = Installation::on(database).await;
    let caller = installation.bystander();
    caller.get("/v1/traces").await.ok();
    let before = installation.resident_mib();
    let time = Duration::from_secs(if full_size() { 60 } else { 10 });
    let mut loads = tokio::task::JoinSet::new();
    for _ in 0..6 {
        loads.spawn(load(caller.clone(), time));
    }
    let sent: usize = loads.join_all().await.into_iter().sum();
    let (peak, after) = (installation.peak_resident_mib(), installation.resident_mib());
    let began = Instant::now();
    while installation.resident_mib() > before + MAX_KEPT_MIB && began.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let (idle, took) = (installation.resident_mib(), began.elapsed());
    println!(
        "{database:?}: {sent} batches: {before} MiB before, {peak} at most, {after} after, {idle} idle for {took:?}"
    );
    assert!(idle <= before + MAX_KEPT_MIB, "{before} -> {idle} MiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_of_a_load_is_returned_sqlite() {
    memory_is_returned(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_of_a_load_is_returned_postgres() {
    memory_is_returned(On::Postgres).await;
}
