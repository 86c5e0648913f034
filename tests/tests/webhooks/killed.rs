//! The built server is killed during deliveries: no event is lost, and one that is repeated has the same ID.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use serde_json::Value;
use tests::On;

use crate::{
    process::Process,
    receiver::{Receiver, Response},
};

/// Number of evaluations that fail.
const EVENT_COUNT: usize = 300;
/// Maximum time until another process sends the deliveries of a killed one: a lease, a search for lost jobs, and the
/// attempts after it.
const WAIT_TIMEOUT: Duration = Duration::from_secs(150);

/// Returns how often the server is killed.
fn kills() -> u64 {
    std::env::var("LOUPE_TEST_KILLS").ok().map_or(3, |it| it.parse().unwrap())
}

async fn kill_during_deliveries(database: On) {
    let mut process = Process::start(database).await;
    // Some requests fail, and each takes some milliseconds, so that kills interrupt deliveries.
    let receiver = Receiver::start(&process.authority, &["127.0.0.1"], 2099, |_, before| {
        std::thread::sleep(Duration::from_millis(5));
        Response::Status(if before % 50 == 7 { 500 } else { 200 })
    })
    .await;
    process.webhook(&receiver).await;
    process.fail_evaluations(EVENT_COUNT).await;
    for round in 0..kills() {
        tokio::time::sleep(Duration::from_millis(150 + round * 137 % 400)).await;
        process.restart();
    }
    let key = process.key();
    let failed: BTreeSet<String> = process.failed_evaluations().await;
    assert_eq!(failed.len(), EVENT_COUNT);
    let began = Instant::now();
    let delivered = || -> BTreeMap<String, BTreeSet<(String, Vec<u8>)>> {
        let mut by_evaluation: BTreeMap<String, BTreeSet<(String, Vec<u8>)>> = BTreeMap::new();
        for request in receiver.received() {
            let evaluation = request.json()["data"]["evaluation"]["id"].as_str().unwrap().to_owned();
            by_evaluation.entry(evaluation).or_default().insert((request.event(), request.body));
        }
        by_evaluation
    };
    let pending = || async {
        let webhooks = key.get("/v1/webhooks").await.ok();
        let id = webhooks["webhooks"][0]["id"].as_str().unwrap().to_owned();
        let mut pending = 0;
        let mut cursor = String::new();
        loop {
            let page = key.get(&format!("/v1/webhooks/{id}/deliveries?limit=200{cursor}")).await.ok();
            let rows = page["deliveries"].as_array().unwrap();
            pending += rows.iter().filter(|it| it["status"] == "pending").count();
            let Value::String(next) = &page["next_cursor"] else { return pending };
            cursor = format!("&cursor={next}");
        }
    };
    while pending().await > 0 {
        assert!(began.elapsed() < WAIT_TIMEOUT, "deliveries are pending: {}", process.server().log());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let delivered = delivered();
    let received: BTreeSet<String> = delivered.keys().cloned().collect();
    assert_eq!(received, failed, "an event was lost");
    assert!(delivered.values().all(|it| it.len() == 1), "an event has two IDs or two payloads");
    let repeated = receiver.received().len() - EVENT_COUNT;
    println!("{database:?}: {} kills, {EVENT_COUNT} events, {repeated} requests repeated", kills());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_server_loses_no_event_on_sqlite() {
    kill_during_deliveries(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_server_loses_no_event_on_postgres() {
    kill_during_deliveries(On::Postgres).await;
}
