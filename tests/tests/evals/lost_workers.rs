//! Lost workers: their evaluations are repeated, and none ends twice.

use entities::{body, evaluation};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, sea_query::Expr};
use serde_json::{Value, json};
use store::evaluations as store;
use tests::{TestApp, on_both_databases};
use uuid::Uuid;

use super::{evaluations, timed};

async fn request_evaluation(app: &TestApp) -> Uuid {
    let key = app.full_key();
    let id = timed(&key, 5).await;
    let body = json!({"trace_id": id, "metric_name": "latency_threshold", "config": {"max_latency_ms": 100}});
    let reply = key.post("/v1/eval", &body).await.ok();
    reply["id"].as_str().unwrap().parse().unwrap()
}

async fn row(app: &TestApp, id: Uuid) -> evaluation::Model {
    let query = evaluation::Entity::find().filter(evaluation::Column::TenantId.eq(app.tenant));
    query.filter(evaluation::Column::Id.eq(id)).one(&app.app.db.write).await.unwrap().unwrap()
}

on_both_databases! {
    /// A worker dies after it started an evaluation. Another one completes it, and the first one cannot change
    /// the result.
    async fn only_latest_worker_stores_the_result(app: TestApp) {
        let id = request_evaluation(app).await;
        let stale = store::start(&app.app.db, app.tenant, &[id]).await.unwrap();
        assert_eq!((stale.len(), row(app, id).await.status.as_str()), (1, "running"));
        app.drain().await;
        let done = row(app, id).await;
        assert_eq!((done.status.as_str(), done.score, done.attempts), ("complete", Some(1.0), 2));
        let txn = app.app.db.begin().await.unwrap();
        let late = vec![(stale[0].clone(), store::EvaluationResult::failed("late"))];
        let ended = store::end(&txn, app.tenant, late, app.app.clock.now()).await.unwrap();
        txn.commit().await.unwrap();
        assert_eq!(ended, []);
        store::return_to_pending(&app.app.db, app.tenant, &stale[0], Some(store::JudgeUsage::default())).await.unwrap();
        assert_eq!(row(app, id).await, done);
        assert!(store::start(&app.app.db, app.tenant, &[id]).await.unwrap().is_empty());
    }

    /// An evaluation that kills every worker fails after some attempts.
    async fn evaluation_fails_after_three_lost_workers(app: TestApp) {
        let id = request_evaluation(app).await;
        for _ in 0..3 {
            store::start(&app.app.db, app.tenant, &[id]).await.unwrap();
        }
        app.drain().await;
        let done = &evaluations(&app.full_key(), "").await[0];
        assert_eq!((&done["status"], &done["score"]), (&json!("failed"), &Value::Null));
        assert!(done["error"].as_str().unwrap().contains("workers were lost"), "{done}");
    }

    /// A trace with damaged texts fails its own evaluation and no other.
    async fn damaged_trace_fails_only_its_own_evaluation(app: TestApp) {
        let damaged = request_evaluation(app).await;
        body::Entity::update_many()
            .col_expr(body::Column::Data, Expr::value(vec![1_u8, 2, 3]))
            .filter(body::Column::TenantId.eq(app.tenant))
            .exec(&app.app.db.write)
            .await
            .unwrap();
        let key = app.full_key();
        timed(&key, 5).await;
        let body = json!({"metric_name": "latency_threshold", "config": {"max_latency_ms": 100}});
        let begun = key.post("/v1/eval/bulk", &body).await.ok();
        app.drain().await;
        let row = row(app, damaged).await;
        assert_eq!((row.status.as_str(), row.score), ("failed", None));
        assert!(row.error.unwrap().contains("report it"));
        let run = key.get(&format!("/v1/eval/bulk/{}", begun["bulk_id"].as_str().unwrap())).await.ok();
        assert_eq!((&run["complete"], &run["failed"], &run["status"]), (&json!(1), &json!(1), &json!("complete")), "{run}");
    }

    /// Two processes work on the same queue: each evaluation is executed by one of them.
    async fn concurrent_workers_execute_each_evaluation_once(app: TestApp) {
        let beside = app.beside().await;
        let key = app.full_key();
        let traces: Vec<Value> = (0..300).map(|it| json!({"latency_ms": it})).collect();
        key.post("/v1/ingest/batch", &json!({"traces": traces})).await.ok();
        let body = json!({"metric_name": "latency_threshold", "config": {"max_latency_ms": 99}});
        let begun = key.post("/v1/eval/bulk", &body).await.ok();
        futures::future::join(Box::pin(app.drain()), Box::pin(beside.drain())).await;
        app.drain().await;
        let done = key.get(&format!("/v1/eval/bulk/{}", begun["bulk_id"].as_str().unwrap())).await.ok();
        assert_eq!((&done["complete"], &done["failed"], &done["queued"]), (&json!(300), &json!(0), &json!(300)), "{done}");
        let rows = evaluation::Entity::find().filter(evaluation::Column::TenantId.eq(app.tenant));
        let rows = rows.all(&app.app.db.write).await.unwrap();
        assert!(rows.iter().all(|it| it.attempts == 1), "an evaluation was executed twice");
        beside.stop().await;
    }
}
