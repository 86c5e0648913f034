//! Resident memory after a load has ended.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::{Caller, On, hang::wait_until};

use super::installation::{Installation, full_size};

/// Memory that an idle server may keep, in MiB: its caches.
const MAX_KEPT_MIB: u64 = 24;

fn text(words: usize) -> String {
    std::iter::repeat_with(|| format!("word{} ", fastrand::u16(..))).take(words).collect()
}

/// Returns a batch of about 500 KB.
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

async fn memory_is_released_after_a_load(database: On) {
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
    wait_until("the memory is released", async || installation.resident_mib() <= before + MAX_KEPT_MIB).await;
    let (idle, took) = (installation.resident_mib(), began.elapsed());
    println!(
        "{database:?}: {sent} batches: {before} MiB before, {peak} at most, {after} after, {idle} idle for {took:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_released_after_a_load_on_sqlite() {
    memory_is_released_after_a_load(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_released_after_a_load_on_postgres() {
    memory_is_released_after_a_load(On::Postgres).await;
}
