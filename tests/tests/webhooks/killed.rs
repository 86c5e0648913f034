//! The built server is killed during deliveries: no event is lost, and one that is repeated has the same ID.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use serde_json::Value;
use tests::{Caller, On};

use crate::{
    process::Process,
    receiver::{Receiver, Response},
};

/// Number of evaluations that fail before each kill.
const EVENTS_PER_KILL: usize = 20;
/// Time that the receiver takes for a response, so that a kill interrupts an attempt.
const RESPONSE_TIME: Duration = Duration::from_millis(20);
/// Maximum number of kills: each repeats deliveries 30 seconds later, and a test ends after five minutes.
const MAX_KILLS: u64 = 20;
/// Maximum time until another process sends the deliveries of a killed one: a lease, a search for lost jobs, and the
/// attempts after it.
const WAIT_TIMEOUT: Duration = Duration::from_secs(150);

/// Returns how often the server is killed.
fn kills() -> u64 {
    std::env::var("LOUPE_TEST_KILLS").ok().map_or(3, |it| it.parse().unwrap()).min(MAX_KILLS)
}

/// Whether deliveries of the only webhook are pending.
async fn has_pending_deliveries(key: &Caller) -> bool {
    let webhooks = key.get("/v1/webhooks").await.ok();
    let id = webhooks["webhooks"][0]["id"].as_str().unwrap().to_owned();
    let mut cursor = String::new();
    loop {
        let page = key.get(&format!("/v1/webhooks/{id}/deliveries?limit=200{cursor}")).await.ok();
        if page["deliveries"].as_array().unwrap().iter().any(|it| it["status"] == "pending") {
            return true;
        }
        let Value::String(next) = &page["next_cursor"] else { return false };
        cursor = format!("&cursor={next}");
    }
}

async fn kill_during_deliveries(database: On) {
    let mut process = Process::start(database).await;
    let receiver =
        Receiver::start(&process.authority, &["127.0.0.1"], 2099, |_, _| Response::Late(RESPONSE_TIME, 200))
            .await;
    process.webhook(&receiver).await;
    for round in 0..kills() {
        let before = receiver.received().len();
        process.fail_evaluations(&format!("round {round}"), EVENTS_PER_KILL).await;
        // A request has arrived, and its response has not been sent.
        while receiver.received().len() == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        process.restart();
    }
    let failed: BTreeSet<String> = process.failed_evaluations().await;
    let event_count = EVENTS_PER_KILL * usize::try_from(kills()).unwrap();
    assert_eq!(failed.len(), event_count);
    let (key, began) = (process.key(), Instant::now());
    while has_pending_deliveries(&key).await {
        assert!(began.elapsed() < WAIT_TIMEOUT, "deliveries are pending: {}", process.server().log());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let mut delivered: BTreeMap<String, BTreeSet<(String, Vec<u8>)>> = BTreeMap::new();
    for request in receiver.received() {
        let evaluation = request.json()["data"]["evaluation"]["id"].as_str().unwrap().to_owned();
        delivered.entry(evaluation).or_default().insert((request.event(), request.body));
    }
    let received: BTreeSet<String> = delivered.keys().cloned().collect();
    assert_eq!(received, failed, "an event was lost");
    assert!(delivered.values().all(|it| it.len() == 1), "an event has two IDs or two payloads");
    // All responses are successes, so a request is repeated only if a kill interrupted its attempt.
    let repeated = receiver.received().len() - event_count;
    println!("{database:?}: {} kills, {event_count} events, {repeated} requests repeated", kills());
    assert!(repeated > 0, "no kill interrupted a delivery");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_server_loses_no_event_on_sqlite() {
    kill_during_deliveries(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_server_loses_no_event_on_postgres() {
    kill_during_deliveries(On::Postgres).await;
}
