//! Slow regular expressions of a tenant on long texts, in evaluators and in schemas.

use std::time::Duration;

use serde_json::{Value, json};
use tests::{Caller, On};

use super::installation::{Installation, MAX_RESIDENT_MIB, full_size};

/// An expression whose search takes several thousand steps for each byte.
const SLOW_PATTERN: &str = "(?:a[ab]{900}|b[ab]{901}|[ab]{3}a[ab]{700})+c";
/// Length of the searched text in bytes, for minutes of work.
const TEXT_BYTES: usize = 8_000_000;
/// Number of evaluations that the attacker requests at once.
const ATTACKER_EVALUATIONS: usize = 12;
/// Number of the attacker's evaluations that may have ended before the other tenant's: each takes the whole
/// processor time that it is allowed, so more would mean that the other tenant waited for them.
const MAX_ENDED_EARLIER: usize = 3;
/// Limits the time of a graceful stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Limits the time of any step of the test.
const STEP_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns a text without a match; all of its pieces differ.
fn text() -> String {
    let mut random = 1_u64;
    let letter = |_| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if random >> 63 == 0 { 'a' } else { 'b' }
    };
    (0..TEXT_BYTES).map(letter).collect()
}

async fn trace(key: &Caller, output: &str) -> String {
    let reply = key.post("/v1/ingest", &json!({"name": "t", "output": output})).await;
    reply.ok()["id"].as_str().unwrap().to_owned()
}

async fn evaluate(key: &Caller, trace: &str, metric: &str, config: Value) -> String {
    let body = json!({"trace_id": trace, "metric_name": metric, "config": config});
    let reply = key.post("/v1/eval", &body).await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    reply.ok()["id"].as_str().unwrap().to_owned()
}

/// Counts the evaluations of a tenant that have ended.
async fn ended_evaluations(key: &Caller) -> Vec<Value> {
    let list = key.get("/v1/eval?limit=200").await.ok()["evaluations"].as_array().unwrap().clone();
    list.into_iter().filter(|it| it["status"] == "failed" || it["status"] == "complete").collect()
}

/// Waits until the evaluation has ended, and returns it.
async fn wait_for_end(key: &Caller, id: &str) -> Value {
    let polled = async {
        loop {
            let evaluation = key.get(&format!("/v1/eval/{id}")).await.ok();
            if evaluation["status"] == "failed" || evaluation["status"] == "complete" {
                return evaluation;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(STEP_TIMEOUT, polled).await.expect("the evaluation does not end")
}

/// Waits until an evaluation of the tenant is running.
async fn wait_until_running(key: &Caller) {
    let running = async {
        while key.get("/v1/eval?status=running").await.ok()["evaluations"].as_array().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(STEP_TIMEOUT, running).await.expect("an evaluation runs");
}

async fn slow_regex_does_not_delay_other_tenants(database: On) {
    let mut it = Installation::on(database).await;
    let (attacker, bystander) = (it.attacker(), it.bystander());
    let checks = json!([{"kind": "regex", "pattern": SLOW_PATTERN}]);
    let evaluator = json!({"name": "slow", "evaluator_type": "rule", "checks": checks});
    assert_eq!(attacker.post("/v1/evaluators", &evaluator).await.status, 201);
    let attacked = trace(&attacker, &text()).await;
    let mut attacks = Vec::new();
    for _ in 0..ATTACKER_EVALUATIONS {
        attacks.push(evaluate(&attacker, &attacked, "slow", json!({})).await);
    }
    wait_until_running(&attacker).await;

    // The other tenant's evaluation, which has an expression too, overtakes the earlier ones.
    let harmless = trace(&bystander, "Your order 1234 has left.").await;
    let config = json!({"format": "regex", "pattern": r"order \d+"});
    let id = evaluate(&bystander, &harmless, "output_format_compliance", config).await;
    let end = wait_for_end(&bystander, &id).await;
    let before = ended_evaluations(&attacker).await.len();
    assert_eq!((&end["status"], &end["score"]), (&json!("complete"), &json!(1.0)), "{end}");
    assert!(before <= MAX_ENDED_EARLIER, "{before} evaluations of the attacker came first");

    // The attacker's evaluation ends with the reason.
    let end = wait_for_end(&attacker, &attacks[0]).await;
    assert_eq!(end["status"], "failed", "{end}");
    assert!(end["error"].as_str().unwrap().contains("processor time"), "{end}");
    assert_eq!(end["score"], Value::Null);
    if full_size() {
        for id in &attacks {
            assert_eq!(wait_for_end(&attacker, id).await["status"], "failed");
        }
        for _ in 0..ATTACKER_EVALUATIONS {
            evaluate(&attacker, &attacked, "slow", json!({})).await;
        }
    }
    let peak = it.peak_resident_mib();
    println!("{database:?}: {before} of {ATTACKER_EVALUATIONS} before the other tenant's, peak {peak} MiB");
    assert!(peak <= MAX_RESIDENT_MIB, "{peak} MiB");

    // The process stops despite running evaluations, and loses none of them.
    it.server.terminate();
    assert!(it.server.wait(STOP_TIMEOUT).success());
    it.server = it.setup.start();
    let left = it.attacker().get("/v1/eval?limit=200").await.ok();
    for evaluation in left["evaluations"].as_array().unwrap() {
        let error = evaluation["error"].as_str().unwrap_or_default();
        let is_kept = ["pending", "running"].contains(&evaluation["status"].as_str().unwrap());
        assert!(is_kept || error.contains("processor time"), "{evaluation}");
    }
}

#[tokio::test]
async fn slow_regex_does_not_delay_other_tenants_on_sqlite() {
    slow_regex_does_not_delay_other_tenants(On::Sqlite).await;
}

#[tokio::test]
async fn slow_regex_does_not_delay_other_tenants_on_postgres() {
    slow_regex_does_not_delay_other_tenants(On::Postgres).await;
}

/// Uses the same expression in a schema, in a rule's test that a request waits for.
async fn slow_schema_fails_with_the_reason(database: On) {
    let mut it = Installation::on(database).await;
    let attacker = it.attacker();
    let project = attacker.get("/v1/projects").await.ok()["projects"][0]["id"].clone();
    let output = format!("\"{}\"", text());
    let attacked = trace(&attacker, &output).await;
    let rule = json!({"project_id": project, "metric_name": "json_schema_conformance", "evaluator_type": "rule",
        "config": {"schema": {"pattern": SLOW_PATTERN}}, "enabled": false});
    let rule = attacker.post("/v1/eval-rules", &rule).await;
    assert_eq!(rule.status, 201, "{}", rule.text());
    let id = rule.ok()["id"].as_str().unwrap().to_owned();
    let tested =
        attacker.post(&format!("/v1/eval-rules/{id}/test"), &json!({"trace_id": attacked})).await.ok();
    assert_eq!(tested["status"], "failed", "{tested}");
    assert!(tested["error"].as_str().unwrap().contains("processor time"), "{tested}");

    // The validator matches member names and cannot be interrupted, so the work is bounded in advance.
    let names = trace(&attacker, &format!("{{{output}: 1}}")).await;
    let schema = json!({"schema": {"patternProperties": {SLOW_PATTERN: true}}});
    let end = evaluate(&attacker, &names, "json_schema_conformance", schema).await;
    let end = wait_for_end(&attacker, &end).await;
    assert_eq!(end["status"], "failed", "{end}");
    assert!(end["error"].as_str().unwrap().contains("too many steps"), "{end}");

    // Two signals end the process at once, even during an evaluation.
    evaluate(&attacker, &attacked, "json_schema_conformance", json!({"schema": {"pattern": SLOW_PATTERN}}))
        .await;
    wait_until_running(&attacker).await;
    it.server.terminate();
    tokio::time::sleep(Duration::from_millis(200)).await;
    it.server.terminate();
    it.server.wait(STOP_TIMEOUT);
}

#[tokio::test]
async fn slow_schema_fails_with_the_reason_on_sqlite() {
    slow_schema_fails_with_the_reason(On::Sqlite).await;
}

#[tokio::test]
async fn slow_schema_fails_with_the_reason_on_postgres() {
    slow_schema_fails_with_the_reason(On::Postgres).await;
}

/// An eval rule whose evaluator always runs out of time is paused until the rule is changed.
async fn rule_with_slow_evaluator_is_paused(database: On) {
    let it = Installation::on(database).await;
    let attacker = it.attacker();
    let project = attacker.get("/v1/projects").await.ok()["projects"][0]["id"].clone();
    let checks = json!([{"kind": "regex", "pattern": SLOW_PATTERN}]);
    let evaluator = json!({"name": "slow", "evaluator_type": "rule", "checks": checks});
    assert_eq!(attacker.post("/v1/evaluators", &evaluator).await.status, 201);
    let rule = json!({"project_id": project, "metric_name": "slow", "evaluator_type": "rule"});
    let rule = attacker.post("/v1/eval-rules", &rule).await.ok();
    let path = format!("/v1/eval-rules/{}", rule["id"].as_str().unwrap());
    for _ in 0..6 {
        trace(&attacker, &text()[..TEXT_BYTES / 4]).await;
    }
    let polled = async {
        loop {
            let rule = attacker.get(&path).await.ok();
            if !rule["paused_reason"].is_null() {
                return rule;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let rule = tokio::time::timeout(STEP_TIMEOUT, polled).await.expect("the rule is paused");
    assert_eq!(rule["paused_reason"], "evaluator_too_slow");
    assert!(rule["paused_detail"].as_str().unwrap().contains("processor time"), "{rule}");
    let failed = ended_evaluations(&attacker).await;
    assert!(failed.len() >= 5 && failed.iter().all(|it| it["status"] == "failed"), "{failed:?}");
    let changed =
        attacker.send(attacker.request(reqwest::Method::PATCH, &path).json(&json!({"sample_rate": 0.5})));
    assert_eq!(changed.await.ok()["paused_reason"], Value::Null);
}

#[tokio::test]
async fn rule_with_slow_evaluator_is_paused_on_sqlite() {
    rule_with_slow_evaluator_is_paused(On::Sqlite).await;
}

#[tokio::test]
async fn rule_with_slow_evaluator_is_paused_on_postgres() {
    rule_with_slow_evaluator_is_paused(On::Postgres).await;
}

/// Expressions that grow when compiled are refused, alone and in total.
#[tokio::test]
async fn large_regex_is_rejected_within_memory_limit() {
    let it = Installation::on(On::Sqlite).await;
    let attacker = it.attacker();
    let evaluator = |checks: Value| json!({"name": "large", "evaluator_type": "rule", "checks": checks});
    let alone = json!([{"kind": "regex", "pattern": r"(?:\w{1,200}){1,200}"}]);
    let refused = attacker.post("/v1/evaluators", &evaluator(alone)).await;
    refused.is(422, "validation_failed");
    assert!(refused.text().contains("grows too large"), "{}", refused.text());
    let nested = format!("{}a{}", "(".repeat(4_000), ")".repeat(4_000));
    attacker
        .post("/v1/evaluators", &evaluator(json!([{"kind": "regex", "pattern": nested}])))
        .await
        .is(422, "validation_failed");
    let one = json!({"kind": "regex", "pattern": r"[a-z]{15000}"});
    let many = attacker.post("/v1/evaluators", &evaluator(vec![one; 50].into())).await;
    many.is(422, "validation_failed");
    let peak = it.peak_resident_mib();
    println!("large expressions: peak {peak} MiB");
    assert!(peak <= MAX_RESIDENT_MIB, "{peak} MiB");
}
