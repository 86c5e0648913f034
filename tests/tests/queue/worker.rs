//! Execution of jobs by workers, with jobs that the server knows.

use entities::job;
use queue::{JobResult, claim, finish, worker};
use sea_orm::EntityTrait;
use serde_json::json;
use tests::{app::TEST_START_MICROS, hang::wait_until, on_both_databases};
use uuid::Uuid;

use super::{POOL, Work, enqueue, insert, now, stored};

on_both_databases! {
    async fn job_of_unknown_kind_is_left_for_newer_version(app: TestApp) {
        enqueue(app, app.tenant, 1, now(app)).await;
        assert_eq!(app.drain().await, 1);
        let job = stored(app).await.remove(0);
        assert_eq!((job.status.as_str(), job.attempts, job.kind.as_str()), ("ready", 0, "test_work"));
        assert!(job.run_at > now(app));
        assert_eq!(app.drain().await, 0, "a job ran before it was due");
    }

    async fn unreadable_job_is_dead_letter_and_blocks_no_other(app: TestApp) {
        let key = app.full_key();
        let mut row = queue::new_job(app.tenant, &Work { n: 1 }, now(app) - 1, now(app));
        row.kind = "trace_ready".to_owned();
        insert(app, row).await;
        key.post("/v1/ingest", &json!({"id": "r"})).await.ok();
        assert_eq!(app.drain().await, 2);
        let jobs = stored(app).await;
        assert_eq!((jobs.len(), jobs[0].status.as_str()), (1, "dead"));
        assert!(jobs[0].last_error.as_deref().unwrap().contains("unreadable payload"));
        assert_eq!(key.get("/v1/traces").await.ok()["traces"][0]["ready"], true);
    }

    /// Earlier versions enqueued the IDs of traces instead of their keys, in jobs of two kinds.
    async fn readiness_jobs_of_earlier_versions_mark_their_traces(app: TestApp) {
        let key = app.full_key();
        for (name, kind) in [("one", "trace_ready"), ("two", "traces_ready")] {
            let id: Uuid = key.post("/v1/ingest", &json!({"id": name})).await.ok()["id"].as_str().unwrap().parse().unwrap();
            let row = store::traces::get(&app.app.db, app.tenant, id).await.unwrap().unwrap();
            job::Entity::delete_many().exec(&app.app.db.write).await.unwrap();
            let group = json!({"ready_at": row.ready_at, "traces": [id]});
            let payload = if kind == "trace_ready" { group } else { json!({"groups": [group]}) };
            let job = queue::new_job(app.tenant, &Work { n: 1 }, row.ready_at, now(app));
            insert(app, job::Model { kind: kind.to_owned(), payload: payload.to_string(), ..job }).await;
            app.advance(60);
            app.drain().await;
            assert_eq!(key.get(&format!("/v1/traces/{id}")).await.ok()["ready"], true, "{kind}");
        }
    }

    async fn running_workers_execute_new_jobs(app: TestApp) {
        worker::start(&app.app);
        let key = app.full_key();
        for n in 0..30 {
            key.post("/v1/ingest", &json!({"id": format!("r{n}")})).await.ok();
        }
        wait_until("every trace is ready and no job is left", async || {
            let list = key.get("/v1/traces").await.ok();
            let all_ready = list["traces"].as_array().unwrap().iter().all(|it| it["ready"] == true);
            all_ready && stored(app).await.is_empty()
        }).await;
    }

    async fn job_with_expired_lease_is_executed_again(app: TestApp) {
        let row = job::Model {
            kind: "trace_ready".to_owned(),
            payload: json!({"ready_at": TEST_START_MICROS, "traces": [Uuid::from_u128(1)]}).to_string(),
            ..queue::new_job(app.tenant, &Work { n: 1 }, now(app), now(app))
        };
        insert(app, row).await;
        let held = claim(&app.app.db, app.tenant, POOL, now(app), 1).await.unwrap().remove(0);
        assert_eq!(app.drain().await, 0);
        app.advance(31);
        assert_eq!(queue::release_expired(&app.app.db, now(app)).await.unwrap(), 1);
        assert_eq!(app.drain().await, 1);
        assert!(!finish(&app.app.db, &held, &JobResult::Done, now(app)).await.unwrap());
        assert_eq!(stored(app).await, []);
    }
}
