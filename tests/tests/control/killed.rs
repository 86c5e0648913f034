//! The built server is killed during actions: no call is made twice unless the action records it, and every action
//! ends.

use std::time::{Duration, Instant};

use serde_json::json;
use tests::On;

use crate::{
    processes::{Processes, actions, is_open},
    provider::{Behaviour, Provider},
};

/// Number of actions before each kill.
const ACTIONS_PER_KILL: usize = 12;
/// Time that the provider takes, so that a kill interrupts calls.
const REPLY_TIME: Duration = Duration::from_millis(100);
/// Maximum time until another process has ended the actions of a killed one: a lease, and a search for lost jobs.
const WAIT_TIMEOUT: Duration = Duration::from_secs(150);

/// Returns how often the server is killed.
#[allow(clippy::disallowed_methods, reason = "the size of a test run comes from the environment")]
fn kills() -> u64 {
    std::env::var("LOUPE_TEST_KILLS").ok().map_or(3, |it| it.parse().unwrap())
}

async fn kill_during_actions(database: On) {
    let provider = Provider::start().await;
    provider.set_behaviours([Behaviour::Late(REPLY_TIME)]);
    let mut processes = Processes::start(database, &provider).await;
    for round in 0..kills() {
        let owner = processes.owner();
        for n in 0..ACTIONS_PER_KILL {
            // The input names the action, so that the provider's log of calls can be compared with the records.
            let span = json!({"name": "call", "type": "llm", "model": "gpt-4o", "input": format!("{round}/{n}"), "output": "x"});
            let trace = owner
                .post("/v1/ingest", &json!({"name": format!("{round}/{n}"), "spans": [span]}))
                .await
                .ok();
            owner
                .post("/v1/control/actions", &json!({"trace_id": trace["id"], "action_type": "retry"}))
                .await
                .ok();
        }
        // The kill comes before, during or after a call, in a different order each time.
        tokio::time::sleep(Duration::from_millis(37 * (round % 7))).await;
        processes.restart();
    }
    let (owner, began) = (processes.owner(), Instant::now());
    let ended = loop {
        let found = actions(&owner, "").await;
        if !found.iter().any(is_open) {
            break found;
        }
        assert!(
            began.elapsed() < WAIT_TIMEOUT,
            "open: {:?}",
            found.iter().filter(|it| is_open(it)).collect::<Vec<_>>()
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    assert_eq!(ended.len(), ACTIONS_PER_KILL * usize::try_from(kills()).unwrap());
    let calls = provider.take_requests();
    let (mut succeeded, mut interrupted) = (0, 0);
    for action in &ended {
        let detail = owner.get(&format!("/v1/traces/{}", action["trace_id"].as_str().unwrap())).await.ok();
        let name = detail["name"].as_str().unwrap();
        let calls = calls.iter().filter(|it| it.body["messages"][0]["content"] == name).count();
        let attempts = usize::try_from(action["attempts"].as_i64().unwrap()).unwrap();
        assert!(calls <= attempts, "{calls} calls of {action}");
        let expected_spans = match action["status"].as_str().unwrap() {
            "succeeded" => {
                succeeded += 1;
                assert_eq!(calls, attempts, "{action}");
                2
            }
            _ => {
                interrupted += 1;
                assert!(action["error"].as_str().unwrap().contains("the server stopped"), "{action}");
                1
            }
        };
        assert_eq!(detail["span_count"], expected_spans, "{action}");
    }
    println!(
        "{database:?}: {} kills, {succeeded} actions succeeded, {interrupted} interrupted, {} calls",
        kills(),
        calls.len()
    );
    assert!(succeeded > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_server_repeats_no_call_on_sqlite() {
    kill_during_actions(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_server_repeats_no_call_on_postgres() {
    kill_during_actions(On::Postgres).await;
}
