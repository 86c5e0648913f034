//! The server is killed while rules evaluate new traces: no evaluation is lost, repeated or left pending.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use tests::{Caller, On, hang::wait_until};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Home, kill::kill_count};

/// Number of traces per request.
const TRACES_PER_REQUEST: u128 = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_process_leaves_every_trace_evaluated_once_on_sqlite() {
    kills(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_process_leaves_every_trace_evaluated_once_on_postgres() {
    kills(On::Postgres).await;
}

async fn kills(database: On) {
    let home = Home::on(database).await;
    let mut server = home.setup.start();
    let key = home.caller(&server.url);
    let project = key.get("/v1/projects").await.ok()["projects"][0]["id"].clone();
    let rule = |limit: u32| json!({"project_id": project, "metric_name": "latency_threshold", "evaluator_type": "rule", "config": {"max_latency_ms": limit}});
    let mut rules = Vec::new();
    for limit in [10, 100] {
        let made = key.post("/v1/eval-rules", &rule(limit)).await.ok();
        rules.push(made["id"].as_str().unwrap().to_owned());
    }
    let mut acknowledged = Vec::new();
    for round in 0..kill_count().clamp(4, 20) {
        let mut sending = JoinSet::new();
        sending.spawn(send_on(home.caller(&server.url), u128::from(round + 1) << 64));
        tokio::time::sleep(Duration::from_millis(200 + round * 173 % 500)).await;
        server.kill();
        acknowledged.append(&mut sending.join_next().await.unwrap().unwrap());
        server = home.setup.start();
    }
    assert!(acknowledged.len() > 100, "no load: {}", acknowledged.len());
    let began = std::time::Instant::now();
    // A worker executes the evaluations of a killed one after its lease has expired.
    wait_until("all jobs are executed", async || home.unfinished_jobs().await == 0).await;
    assert_eq!(home.jobs("dead").await, 0);
    let key = home.caller(&server.url);
    for rule in rules {
        let mut evaluations: BTreeMap<String, u32> = BTreeMap::new();
        for evaluation in all(&key, &rule).await {
            assert_eq!(
                (&evaluation["status"], &evaluation["error"]),
                (&json!("complete"), &Value::Null),
                "{evaluation}"
            );
            *evaluations.entry(evaluation["trace_id"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        assert!(evaluations.values().all(|it| *it == 1), "a trace was evaluated twice");
        for trace in &acknowledged {
            assert!(
                evaluations.contains_key(&Uuid::from_u128(*trace).to_string()),
                "never evaluated: {trace:032x}"
            );
        }
    }
    println!(
        "{database:?}: {} traces acknowledged, all evaluated within {:?}",
        acknowledged.len(),
        began.elapsed()
    );
}

/// Sends traces until the server is gone. Returns the acknowledged ones.
async fn send_on(key: Caller, first: u128) -> Vec<u128> {
    let mut acknowledged = Vec::new();
    for request in 0.. {
        let ids: Vec<u128> =
            (0..TRACES_PER_REQUEST).map(|it| first + request * TRACES_PER_REQUEST + it).collect();
        let items: Vec<Value> =
            ids.iter().map(|it| json!({"id": Uuid::from_u128(*it), "latency_ms": it % 200})).collect();
        let sent = key
            .request(reqwest::Method::POST, "/v1/ingest/batch")
            .json(&json!({"traces": items}))
            .send()
            .await;
        match sent {
            Ok(response) if response.status().is_success() => acknowledged.extend(ids),
            Ok(response) if response.status() == 503 => {}
            Ok(response) => panic!("{}: {}", response.status(), response.text().await.unwrap_or_default()),
            Err(_) => return acknowledged,
        }
    }
    acknowledged
}

/// Returns all evaluations of a rule.
async fn all(key: &Caller, rule: &str) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = key.get(&format!("/v1/eval?rule_id={rule}&limit=200{cursor}")).await.ok();
        rows.extend(page["evaluations"].as_array().unwrap().clone());
        let Some(next) = page["next_cursor"].as_str() else { return rows };
        cursor = format!("&cursor={next}");
    }
}
