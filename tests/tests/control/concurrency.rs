//! Concurrent requests from two server processes on one database never exceed a depth limit.

use std::time::Duration;

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tests::{Caller, On, hang::wait_until};

use crate::{
    processes::{Processes, actions, is_open},
    provider::Provider,
    scene::{action_body, all, ingest_trace},
};

/// Delay after a response that the server is overloaded.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// Numbers of rounds and of requests in a round: in full size with `LOUPE_TEST_FAULTS=full`.
#[allow(clippy::disallowed_methods, reason = "the size of a test run comes from the environment")]
fn size() -> (usize, usize) {
    match std::env::var("LOUPE_TEST_FAULTS").is_ok_and(|it| it == "full") {
        true => (100, 1_000),
        false => (3, 60),
    }
}

fn count(actions: &[Value], field: &str, word: &str) -> usize {
    actions.iter().filter(|it| it[field] == word).count()
}

/// Sends a request, again when the server is overloaded or closes the connection. The key makes it one request.
async fn request_until_accepted(caller: &Caller, body: &Value, key: &str) -> Value {
    loop {
        let request = caller.request(Method::POST, "/v1/control/actions").json(body);
        if let Ok(response) = request.header("idempotency-key", key).send().await {
            match response.status().as_u16() {
                202 => return response.json().await.unwrap(),
                // Overloaded; or the first request with the key is in flight.
                409 | 503 => {}
                status => panic!("{status}: {}", response.text().await.unwrap()),
            }
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

async fn request_concurrently(database: On) {
    let provider = Provider::start().await;
    let mut processes = Processes::start(database, &provider).await;
    processes.start_another();
    let callers = [processes.owner_at(0), processes.owner_at(1)];
    let (rounds, requests) = size();
    let began = std::time::Instant::now();
    for round in 0..rounds {
        let trace = ingest_trace(&callers[0], json!({})).await;
        // Every second round mixes the kinds, so that the cascade depth decides.
        let is_mixed = round % 2 == 1;
        let sent = (0..requests).map(|n| {
            let (kind, more) = match n % 3 {
                1 if is_mixed => ("fallback_model", json!({"action_config": {"model": "gpt-4o-mini"}})),
                2 if is_mixed => {
                    ("prompt_modification", json!({"action_config": {"system_suffix": "Be precise."}}))
                }
                _ => ("retry", json!({})),
            };
            let (caller, body) = (callers[n % 2].clone(), action_body(&trace, kind, more));
            async move { request_until_accepted(&caller, &body, &format!("{round}-{n}")).await }
        });
        let replies = join_all(sent).await;
        let queued = count(&replies, "status", "queued");
        let retries = count(&replies, "action_type", "retry");
        assert_eq!(queued + count(&replies, "action_type", "escalate"), requests);
        assert!(retries <= 3, "{retries} retries");
        match is_mixed {
            true => assert_eq!(queued, 5, "round {round}"),
            false => assert_eq!((queued, retries), (3, 3), "round {round}"),
        }
        let of_trace = format!("&trace_id={trace}");
        wait_until("all actions end", async || {
            !actions(&callers[round % 2], &of_trace).await.iter().any(is_open)
        })
        .await;
        let stored = actions(&callers[0], &of_trace).await;
        let failed: Vec<&Value> = stored.iter().filter(|it| it["status"] == "failed").collect();
        assert!(failed.is_empty(), "round {round}: {failed:?}");
        assert_eq!((stored.len(), count(&stored, "status", "succeeded")), (requests, queued));
        assert_eq!(provider.take_requests().len(), queued);
        assert!(all(&stored, "attempts").iter().all(|it| it.as_i64().unwrap() <= 1));
        let detail = callers[1].get(&format!("/v1/traces/{trace}")).await.ok();
        assert_eq!(
            (&detail["control_loop_depth"], &detail["span_count"]),
            (&json!(retries), &json!(1 + queued))
        );
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{database:?}: {rounds} rounds of {requests} concurrent requests to two processes in {seconds:.1} s"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_never_exceed_a_limit_on_sqlite() {
    request_concurrently(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_never_exceed_a_limit_on_postgres() {
    request_concurrently(On::Postgres).await;
}
