//! The server is killed while rules evaluate new traces: no evaluation is lost, repeated or left pending.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use tests::{Caller, On};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Home, kill::kills_asked_for};

/// Number of traces per request.
const TRACES: u128 = 20;
/// Maximum time until another worker does the evaluations of a killed one: a lease, and one search for lost
/// evaluations.
const PATIENCE: Duration = Duration::from_secs(75);

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
    for round in 0..kills_asked_for().clamp(4, 20) {
        let mut sending = JoinSet::new();
        sending.spawn(send_on(home.caller(&server.url), u128::from(round + 1) << 64));
        tokio::time::sleep(Duration::from_millis(200 + round * 173 % 500)).await;
        server.kill();
        acknowledged.append(&mut sending.join_next().await.unwrap().unwrap());
        server = home.setup.start();
    }
    assert!(acknowledged.len() > 100, "no load: {}", acknowledged.len());
    let began = std::time::Instant::now();
    while home.jobs("'ready', 'running'").await > 0 && began.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert_eq!(home.jobs("'dead'").await, 0);
    let key = home.caller(&server.url);
    for rule in rules {
        let mut judged: BTreeMap<String, u32> = BTreeMap::new();
        for evaluation in all(&key, &rule).await {
            assert_eq!(
                (&evaluation["status"], &evaluation["error"]),
                (&json!("complete"), &Value::Null),
                "{evaluation}"
            );
            *judged.entry(evaluation["trace_id"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        assert!(judged.values().all(|it| *it == 1), "judged twice");
        for trace in &acknowledged {
            assert!(judged.contains_key(&Uuid::from_u128(*trace).to_string()), "never judged: {trace:032x}");
        }
    }
    println!(
        "{database:?}: {} traces acknowledged, all judged within {:?}",
        acknowledged.len(),
        began.elapsed()
    );
}

/// Sends traces until the server is gone. Returns the acknowledged ones.
async fn send_on(key: Caller, first: u128) -> Vec<u128> {
    let mut acknowledged = Vec::new();
    for request in 0.. {
        let ids: Vec<u128> = (0..TRACES).map(|it| first + request * TRACES + it).collect();
        let items: Vec<Value> =
            ids.iter().map(|it| json!({"id": Uuid::from_u128(*it), "latency_ms": it % 200})).collect();
        let sent = key
            .request(reqwest::Method::POST, "/v1/ingest/batch")
            .json(&json!({"traces": items}))
            .send()
            .await;
        match sent {
            Ok(answer) if answer.status().is_success() => acknowledged.extend(ids),
            Ok(answer) if answer.status() == 503 => {}
            Ok(answer) => panic!("{}: {}", answer.status(), answer.text().await.unwrap_or_default()),
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
