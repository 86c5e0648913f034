//! Several processes, and jobs that run more than once.

use std::collections::BTreeSet;

use queue::{Job, JobResult, RunJob};
use serde_json::json;
use server::failures::record::RecordFailures;
use tests::on_both_databases;

use super::*;

/// Returns the waiting jobs that record failures.
async fn recording_jobs(app: &TestApp) -> Vec<entities::job::Model> {
    let jobs = entities::job::Entity::find().all(&app.app.db.write).await.unwrap();
    jobs.into_iter().filter(|it| it.kind == RecordFailures::KIND).collect()
}

async fn run(app: &TestApp, job: &entities::job::Model) -> JobResult {
    let payload: RecordFailures = serde_json::from_str(&job.payload).unwrap();
    payload.run(&app.app, job).await
}

on_both_databases! {
    /// The job runs twice: its worker dies after the transaction, and another worker runs it at the same
    /// time.
    async fn job_that_runs_twice_counts_once(app: TestApp) {
        subscribe(app, app.tenant).await;
        for message in [TIMEOUT_MESSAGE, RATE_LIMIT_MESSAGE, TIMEOUT_MESSAGE] {
            ingest(&app.full_key(), message).await;
        }
        let jobs = recording_jobs(app).await;
        assert_eq!(jobs.len(), 3);
        let second = app.beside().await;
        for job in &jobs {
            let (one, two) = tokio::join!(run(app, job), run(&second, job));
            let retried = |it: &JobResult| matches!(it, JobResult::Done | JobResult::Retry { .. });
            assert!(retried(&one) && retried(&two), "{one:?} {two:?}");
            assert_eq!(run(&second, job).await, JobResult::Done);
        }
        app.drain().await;
        assert_eq!((failures(app, "").await.len(), events(app).await.len()), (3, 3));
        let timeouts = clusters(app, "failure_type=timeout").await;
        assert_eq!((timeouts.len(), &timeouts[0]["count"], &timeouts[0]["trace_count"], trend_sum(&timeouts[0])), (1, &json!(2), &json!(2), 2));
        second.stop().await;
    }

    /// Two processes record for one project at the same time, with clusters that are new to both.
    async fn two_processes_record_without_duplicates(app: TestApp) {
        subscribe(app, app.tenant).await;
        let second = app.beside().await;
        let (servers, key) = ([app, &second], app.full_key());
        let mut expected = 0;
        for round in 0..8 {
            for n in 0..6 {
                let message = format!("the {} is on fire", ["disk", "roof", "sofa", "car"][(round + n) % 4]);
                let spans = json!([{"name": "call", "error": message}, {"name": "call", "error": TIMEOUT_MESSAGE}]);
                ingest_item(&key, json!({"name": "t", "spans": spans})).await;
                expected += 2;
            }
            let jobs = recording_jobs(app).await;
            let work = jobs.iter().enumerate().map(|(i, job)| run(servers[i % 2], job));
            futures::future::join_all(work).await;
            app.drain().await;
        }
        let all = failures(app, "").await;
        assert_eq!(all.len(), expected);
        let spans: BTreeSet<&str> = all.iter().map(|it| it["span_id"].as_str().unwrap()).collect();
        assert_eq!(spans.len(), expected);
        let listed = clusters(app, "").await;
        for it in &listed {
            let of: Vec<&Value> = all.iter().filter(|failure| failure["cluster_id"] == it["id"]).collect();
            let traces: BTreeSet<&str> = of.iter().map(|it| it["trace_id"].as_str().unwrap()).collect();
            assert_eq!((&it["count"], &it["trace_count"], trend_sum(it)), (&json!(of.len()), &json!(traces.len()), of.len() as i64), "{it}");
        }
        let titles: BTreeSet<(&str, &str)> =
            listed.iter().map(|it| (it["failure_type"].as_str().unwrap(), it["signature"].as_str().unwrap())).collect();
        assert_eq!(titles.len(), listed.len(), "two clusters of the same template: {titles:?}");
        assert_eq!(events(app).await.len(), expected / 2);
        second.stop().await;
    }

    /// Rules with a threshold count the matches of both processes.
    async fn threshold_is_exact_across_processes(app: TestApp) {
        subscribe(app, app.tenant).await;
        without_rules(app).await;
        rule(app, json!({"min_count": 10})).await;
        let second = app.beside().await;
        let (servers, key) = ([app, &second], app.full_key());
        for n in 0..20 {
            let item = json!({"project_name": format!("p{}", n % 4), "name": "t", "spans": [{"name": "s", "error": TIMEOUT_MESSAGE}]});
            ingest_item(&key, item).await;
        }
        let mut jobs = recording_jobs(app).await;
        while !jobs.is_empty() {
            futures::future::join_all(jobs.iter().enumerate().map(|(i, job)| run(servers[i % 2], job))).await;
            app.drain().await;
            jobs = recording_jobs(app).await;
        }
        assert_eq!((failures(app, "").await.len(), events(app).await.len()), (20, 11));
        second.stop().await;
    }
}
