//! Bulk runs in progress: the traces that they cover, the reasons to stop, and the work that they leave to
//! judges.

use api::{Plan, Role};
use queue::{JobResult, RunJob, new_job};
use serde_json::{Value, json};
use server::evals::{bulk_fill::FillBulk, rules::PAUSE_MICROS};
use store::eval_rules;
use tests::{Caller, TestApp, on_both_databases};
use uuid::Uuid;

use super::{create_rule, evaluations, timed, trace};

/// Puts the tenant on the plan Team, with a provider that gets no requests.
async fn configure_judge(app: &TestApp) {
    app.set_plan(Plan::Team).await;
    let body = json!({"api_key": "sk-of-the-tenant", "judge_model_cheap": "gpt-4o"});
    app.session(Role::Owner).put("/v1/provider-credentials/openai", &body).await.ok();
}

/// Stores `count` traces, which are ready afterwards.
async fn store_traces(app: &TestApp, count: usize) {
    let traces: Vec<Value> = (0..count).map(|_| json!({"output": "Done.", "latency_ms": 1})).collect();
    for some in traces.chunks(1_000) {
        let reply = app.full_key().post("/v1/ingest/batch", &json!({"traces": some})).await.ok();
        assert_eq!(reply["accepted"], some.len());
    }
    app.drain().await;
}

/// Creates a rule with an LLM evaluator.
async fn create_llm_rule(app: &TestApp) -> String {
    create_rule(app, json!({"metric_name": "toxicity", "evaluator_type": "llm", "config": {}})).await
}

/// Requests a run. Returns its id.
async fn start_run(key: &Caller, path: &str, body: Value) -> String {
    let reply = key.post(path, &body).await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    reply.ok()["bulk_id"].as_str().unwrap().to_owned()
}

async fn progress(app: &TestApp, bulk: &str) -> Value {
    app.full_key().get(&format!("/v1/eval/bulk/{bulk}")).await.ok()
}

/// Runs one execution of the job.
async fn run_job_once(app: &TestApp, bulk: &str) -> JobResult {
    let payload = || FillBulk { bulk: bulk.parse().unwrap() };
    payload().run(&app.app, &new_job(app.tenant, &payload(), 0, 0)).await
}

async fn used_quota(app: &TestApp) -> i64 {
    app.full_key().get("/v1/me").await.ok()["usage"]["llm_evaluations"].as_i64().unwrap()
}

on_both_databases! {
    /// Rules beyond the limit of a lowered plan stop, and so do their backfills.
    async fn lowered_plan_stops_backfill_of_excess_rule(app: TestApp) {
        store_traces(app, 3).await;
        let mut rule = String::new();
        for _ in 0..4 {
            rule = create_rule(app, json!({})).await;
            app.advance(1);
        }
        let bulk = start_run(&app.full_key(), &format!("/v1/eval-rules/{rule}/backfill"), json!({})).await;
        app.set_plan(Plan::Starter).await;
        app.drain().await;
        let ended = progress(app, &bulk).await;
        assert_eq!((&ended["status"], &ended["matched"], &ended["queued"]), (&json!("complete"), &json!(3), &json!(0)), "{ended}");
        assert!(ended["detail"].as_str().unwrap().contains("3 oldest rules"), "{ended}");
        assert!(evaluations(&app.full_key(), "").await.is_empty());
    }

    /// Without a judge, the run requests no evaluations and releases its quota.
    async fn missing_judge_stops_bulk_evaluation(app: TestApp) {
        configure_judge(app).await;
        store_traces(app, 3).await;
        let (key, rule) = (app.full_key(), create_llm_rule(app).await);
        let backfill = start_run(&key, &format!("/v1/eval-rules/{rule}/backfill"), json!({})).await;
        let by_hand = start_run(&key, "/v1/eval/bulk", json!({"metric_name": "toxicity"})).await;
        assert_eq!(used_quota(app).await, 3);
        app.session(Role::Owner).delete("/v1/provider-credentials/openai").await.ok();
        app.drain().await;
        for bulk in [backfill, by_hand] {
            let ended = progress(app, &bulk).await;
            assert_eq!((&ended["status"], &ended["queued"], &ended["pending"]), (&json!("complete"), &json!(0), &json!(0)), "{ended}");
            assert!(ended["detail"].as_str().unwrap().contains("credential"), "{ended}");
        }
        assert_eq!((used_quota(app).await, evaluations(&key, "").await.len()), (0, 0));
    }

    /// A judge is slower than its bulk run: a rule that is paused meanwhile stops its backfill.
    async fn paused_rule_stops_its_backfill(app: TestApp) {
        configure_judge(app).await;
        store_traces(app, 1_200).await;
        let rule = create_llm_rule(app).await;
        let bulk = start_run(&app.full_key(), &format!("/v1/eval-rules/{rule}/backfill"), json!({})).await;
        for _ in 0..2 {
            let until = app.app.clock.now() + 2_000_000;
            assert_eq!(run_job_once(app, &bulk).await, JobResult::Snooze { until });
            let now = progress(app, &bulk).await;
            assert_eq!((&now["status"], &now["queued"], &now["pending"]), (&json!("running"), &json!(1_000), &json!(1_000)), "{now}");
        }
        let (txn, now) = (app.app.db.begin().await.unwrap(), app.app.clock.now());
        let rule: Uuid = rule.parse().unwrap();
        assert!(eval_rules::pause(&txn, app.tenant, rule, "the key is refused", now, (now - PAUSE_MICROS, now)).await.unwrap());
        app.app.commit(txn).await.unwrap();
        assert_eq!(run_job_once(app, &bulk).await, JobResult::Done);
        let ended = progress(app, &bulk).await;
        assert_eq!((&ended["queued"], &ended["detail"]), (&json!(1_000), &json!("the key is refused")), "{ended}");
        assert_eq!(used_quota(app).await, 1_000);
    }

    /// The estimate of a backfill is an upper bound, and never exceeds the rest of the quota.
    async fn backfill_reports_upper_bound_within_quota(app: TestApp) {
        configure_judge(app).await;
        app.use_evaluations(249_999).await;
        store_traces(app, 5).await;
        let (key, rule) = (app.full_key(), create_llm_rule(app).await);
        let reply = key.post(&format!("/v1/eval-rules/{rule}/backfill"), &json!({})).await.ok();
        assert_eq!((&reply["matched"], &reply["queued"]), (&json!(5), &json!(1)));
        let bulk = reply["bulk_id"].as_str().unwrap();
        let now = progress(app, bulk).await;
        assert_eq!((&now["status"], &now["queued"], &now["pending"]), (&json!("running"), &json!(0), &json!(0)), "{now}");
        assert_eq!(run_job_once(app, bulk).await, JobResult::Done);
        let now = progress(app, bulk).await;
        assert_eq!((&now["status"], &now["queued"], &now["pending"]), (&json!("running"), &json!(1), &json!(1)), "{now}");
        assert!(now["detail"].as_str().unwrap().contains("used up"), "{now}");
        assert_eq!(used_quota(app).await, 250_000);
        key.post(&format!("/v1/eval-rules/{rule}/backfill"), &json!({})).await.is(402, "eval_quota_exceeded");
    }

    /// A run covers the traces stored when it began, whatever the clients' clocks say. It evaluates each
    /// trace once, even if a late span moves it.
    async fn bulk_evaluation_covers_traces_stored_at_its_start(app: TestApp) {
        let key = app.full_key();
        store_traces(app, 2_100).await;
        let moving = "0af7651916cd43dd8448eb211c80319c";
        let span = |id: u64, at: i64| {
            let (from, to) = ((at * 1_000).to_string(), ((at + 5_000) * 1_000).to_string());
            let span = json!({"traceId": moving, "spanId": format!("{id:016x}"), "name": "s", "startTimeUnixNano": from, "endTimeUnixNano": to});
            json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
        };
        // The sender's clock is ahead.
        key.post("/v1/otlp/traces", &span(1, tests::app::TEST_START_MICROS + 60_000_000)).await.ok();
        let body = json!({"metric_name": "latency_threshold", "config": {"max_latency_ms": 99}});
        let bulk = start_run(&key, "/v1/eval/bulk", body).await;
        assert_eq!(progress(app, &bulk).await["matched"], 2_101);
        assert!(matches!(run_job_once(app, &bulk).await, JobResult::Snooze { .. }));
        app.advance(1);
        key.post("/v1/otlp/traces", &span(2, tests::app::TEST_START_MICROS - 86_400_000_000)).await.ok();
        let late = trace(&key, json!({"started_at": "2026-06-13T12:00:00Z", "latency_ms": 1})).await;
        app.drain().await;
        let done = progress(app, &bulk).await;
        assert_eq!((&done["queued"], &done["status"], &done["detail"]), (&json!(2_101), &json!("complete"), &Value::Null), "{done}");
        assert_eq!(evaluations(&key, &format!("trace_id={late}")).await.len(), 0);
        let id: Uuid = moving.parse().unwrap();
        assert_eq!(evaluations(&key, &format!("trace_id={id}")).await.len(), 1);
    }

    /// Concurrent backfills of one rule use the quota once per evaluation.
    async fn concurrent_backfills_use_quota_once(app: TestApp) {
        configure_judge(app).await;
        store_traces(app, 500).await;
        let (key, rule) = (app.full_key(), create_llm_rule(app).await);
        let mut runs = Vec::new();
        for _ in 0..6 {
            runs.push(start_run(&key, &format!("/v1/eval-rules/{rule}/backfill"), json!({})).await);
        }
        futures::future::join_all(runs.iter().map(|it| run_job_once(app, it))).await;
        for bulk in &runs {
            run_job_once(app, bulk).await;
        }
        let mut queued = 0;
        for bulk in &runs {
            queued += progress(app, bulk).await["queued"].as_i64().unwrap();
        }
        assert_eq!((queued, used_quota(app).await), (500, 500));
    }

    /// One job makes the evaluations of several rules and runs, each with its own options.
    async fn evaluations_in_one_job_use_their_own_options(app: TestApp) {
        let key = app.full_key();
        let lax = create_rule(app, json!({"config": {"max_latency_ms": 100}})).await;
        let strict = create_rule(app, json!({"config": {"max_latency_ms": 10}})).await;
        for _ in 0..3 {
            timed(&key, 50).await;
        }
        app.drain().await;
        for (rule, label) in [(&lax, "pass"), (&strict, "fail")] {
            let labels: Vec<Value> = evaluations(&key, &format!("rule_id={rule}")).await.iter().map(|it| it["label"].clone()).collect();
            assert_eq!(labels, vec![json!(label); 3], "{rule}");
        }
    }
}
