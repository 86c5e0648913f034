//! Retention of projects.

use entities::{job, project};
use sea_orm::{ActiveModelTrait, EntityTrait, QueryOrder, Set};
use serde_json::json;
use server::housekeeping;
use tests::{TestApp, on_both_databases};
use uuid::Uuid;

use crate::{orphans, rows};

const DAY: i64 = 86_400;

/// Sets the retention of a project directly in the database.
async fn set_retention(app: &TestApp, project: Uuid, days: Option<i32>) {
    let row = project::ActiveModel {
        tenant_id: Set(app.tenant),
        id: Set(project),
        retention_days: Set(days),
        ..Default::default()
    };
    row.update(&app.app.db.write).await.unwrap();
}

/// Stores a trace that started `age` seconds ago.
async fn send(app: &TestApp, name: &str, age: i64, project: Option<&str>) {
    let at = api::Timestamp::from_micros(app.app.clock.now() - age * 1_000_000);
    let item = json!({"name": name, "started_at": at, "project_name": project, "input": "text", "tags": {"a": "b"},
        "spans": [{"name": "s", "input": "text"}], "events": [{"message": "e"}]});
    app.full_key().post("/v1/ingest", &item).await.ok();
}

/// Returns the names of the stored traces, newest first.
async fn names(app: &TestApp) -> Vec<String> {
    let list = app.full_key().get("/v1/traces?limit=200").await.ok();
    list["traces"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

async fn run_housekeeping(app: &TestApp) {
    housekeeping::run_round(&app.app, server::features::ALL).await.unwrap();
}

async fn jobs(app: &TestApp) -> Vec<job::Model> {
    let all = job::Entity::find().order_by_asc(job::Column::Id).all(&app.app.db.write).await.unwrap();
    all.into_iter().filter(|it| it.kind == "retention").collect()
}

on_both_databases! {
    async fn expired_traces_are_purged_and_others_stay(app: TestApp) {
        send(app, "young", 29 * DAY, None).await;
        send(app, "just within", 30 * DAY, None).await;
        send(app, "just over", 30 * DAY + 1, None).await;
        send(app, "ancient", 4_000 * DAY, None).await;
        send(app, "elsewhere", 4_000 * DAY, Some("keeps all")).await;
        app.drain().await;
        run_housekeeping(app).await;
        assert!(jobs(app).await.is_empty(), "a project without retention has a purge job");

        set_retention(app, app.project, Some(30)).await;
        run_housekeeping(app).await;
        run_housekeeping(app).await;
        assert_eq!(jobs(app).await.len(), 1, "not one job per project");
        app.drain().await;
        assert_eq!(names(app).await, ["young", "just within", "elsewhere"]);
        assert_eq!((rows(app).await, orphans(app).await), ([3; 4], [0; 3]));

        run_housekeeping(app).await;
        assert!(jobs(app).await.is_empty(), "a finished purge left a job");
        app.advance(2 * DAY);
        run_housekeeping(app).await;
        app.drain().await;
        assert_eq!(names(app).await, ["elsewhere"]);
    }

    async fn many_expired_traces_are_purged_in_batches(app: TestApp) {
        for _ in 0..3 {
            let items: Vec<_> = (0..150).map(|it| json!({"started_at": "2020-01-01T00:00:00Z", "name": it.to_string(),
                "tags": {"n": it.to_string()}, "spans": [{"name": "a"}, {"name": "b", "input": "x"}]})).collect();
            app.full_key().post("/v1/ingest/batch", &json!({"traces": items})).await.ok();
        }
        set_retention(app, app.project, Some(1)).await;
        run_housekeeping(app).await;
        app.drain().await;
        assert_eq!(rows(app).await, [0; 4]);
    }

    async fn removed_retention_cancels_the_purge(app: TestApp) {
        send(app, "ancient", 4_000 * DAY, None).await;
        set_retention(app, app.project, Some(30)).await;
        run_housekeeping(app).await;
        assert_eq!(jobs(app).await.len(), 1);
        set_retention(app, app.project, None).await;
        app.drain().await;
        assert_eq!(names(app).await, ["ancient"]);
        assert!(jobs(app).await.is_empty());
    }
}
