//! Updates of metrics: immediate, exactly once, by any number of processes, and for old rows.

use entities::{metric_delta, metric_node, trace};
use sea_orm::{ActiveValue::Set, ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, sea_query::Expr};
use serde_json::{Value, json};
use server::metric_folding;
use tests::{Caller, TestApp, app::TEST_START_MICROS, on_both_databases};
use tokio::task::JoinSet;

/// Returns the number of the tenant's deltas.
async fn count_deltas(app: &TestApp) -> u64 {
    let own = metric_delta::Column::TenantId.eq(app.tenant);
    metric_delta::Entity::find().filter(own).count(&app.app.db.write).await.unwrap()
}

/// Returns the number of the tenant's nodes.
async fn count_nodes(app: &TestApp) -> u64 {
    let own = metric_node::Column::TenantId.eq(app.tenant);
    metric_node::Entity::find().filter(own).count(&app.app.db.write).await.unwrap()
}

on_both_databases! {
    /// While two processes fold deltas, every response counts the traces that were acknowledged before the
    /// request, and no others.
    async fn acknowledged_traces_are_counted_during_folding(app: TestApp) {
        let beside = app.beside().await;
        let key = app.full_key();
        let mut folders = JoinSet::new();
        let stop = tokio_util::sync::CancellationToken::new();
        for app in [app.app.clone(), beside.app.clone()] {
            let stop = stop.clone();
            folders.spawn(async move {
                while !stop.is_cancelled() {
                    metric_folding::run_round(&app, i64::MAX).await.unwrap();
                }
            });
        }
        for round in 1..=tests::rounds(30) {
            let traces: Vec<Value> = (0..7).map(|_| json!({"latency_ms": 5, "cost": 0.25})).collect();
            key.post("/v1/ingest/batch", &json!({"traces": traces})).await.ok();
            let metrics = &key.get("/v1/metrics").await.ok()["metrics"];
            assert_eq!(metrics["trace_count"], 7 * round);
            assert_eq!(metrics["total_cost"], 1.75 * round as f64);
        }
        stop.cancel();
        while let Some(folder) = folders.join_next().await {
            folder.unwrap();
        }
        metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
        assert_eq!(count_deltas(app).await, 0);
        beside.stop().await;
    }

    async fn few_deltas_are_folded_later_and_many_immediately(app: TestApp) {
        let key = app.full_key();
        let old = || app.app.clock.now() - 15_000_000;
        ingest(&key, 3).await;
        metric_folding::run_round(&app.app, old()).await.unwrap();
        assert_eq!(count_nodes(app).await, 0);
        app.advance(15);
        metric_folding::run_round(&app.app, old()).await.unwrap();
        assert_eq!(count_nodes(app).await, 1);
        ingest(&key, 32).await;
        metric_folding::run_round(&app.app, old()).await.unwrap();
        assert_eq!(count_deltas(app).await, 0);
        assert_eq!(key.get("/v1/metrics").await.ok()["metrics"]["trace_count"], 35);
    }

    /// Removing more traces than one fold processes leaves no nodes behind.
    async fn removed_traces_leave_no_nodes(app: TestApp) {
        let (key, owner) = (app.full_key(), app.session(api::Role::Owner));
        for round in 0..2 {
            let item = |i: i64| {
                let hour = i % 2 * 3_600_000_000;
                json!({"started_at": api::Timestamp::from_micros(TEST_START_MICROS - 8 * 3_600_000_000 + hour + i * 1_000_000)})
            };
            let traces: Vec<Value> = (0..300).map(item).collect();
            let stored = key.post("/v1/ingest/batch", &json!({"traces": traces})).await.ok();
            metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
            assert!(count_nodes(app).await > 3, "round {round}");
            assert_eq!(key.get("/v1/metrics").await.ok()["metrics"]["trace_count"], 300, "round {round}");
            for result in stored["results"].as_array().unwrap() {
                owner.delete(&format!("/v1/traces/{}", result["id"].as_str().unwrap())).await;
            }
            metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
            assert_eq!(count_deltas(app).await, 0, "round {round}");
            assert_eq!(count_nodes(app).await, 0, "round {round}");
        }
    }

    /// Traces from before metrics existed are counted once, when metrics are requested.
    async fn unmeasured_traces_are_counted_once(app: TestApp) {
        let key = app.full_key();
        ingest(&key, 40).await;
        let db = &app.app.db.write;
        // The state that an older version leaves.
        metric_delta::Entity::delete_many().filter(metric_delta::Column::TenantId.eq(app.tenant)).exec(db).await.unwrap();
        trace::Entity::update_many()
            .col_expr(trace::Column::Measured, Expr::value(false))
            .col_expr(trace::Column::TokensMeasured, Expr::value(false))
            .filter(trace::Column::TenantId.eq(app.tenant))
            .exec(db)
            .await
            .unwrap();
        ingest(&key, 2).await;
        assert_eq!(key.get("/v1/metrics").await.ok()["metrics"]["trace_count"], 42);
        // One trace is removed, and one gets feedback.
        let ids: Vec<Value> = key.get("/v1/traces?limit=200").await.ok()["traces"].as_array().unwrap().clone();
        let old = |at: usize| ids[ids.len() - at]["id"].as_str().unwrap().to_owned();
        app.session(api::Role::Owner).delete(&format!("/v1/traces/{}", old(1))).await;
        key.post("/v1/feedback", &json!({"trace_id": old(2), "label": "good"})).await.ok();
        for _ in 0..2 {
            let metrics = &key.get("/v1/metrics").await.ok()["metrics"];
            assert_eq!((&metrics["trace_count"], &metrics["feedback_good_rate"]), (&json!(41), &json!(1.0)));
            server::housekeeping::run_round(&app.app, server::features::ALL).await.unwrap();
            metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
        }
        let left = trace::Entity::find().filter(trace::Column::TenantId.eq(app.tenant));
        assert_eq!(left.filter(trace::Column::Measured.eq(false)).count(db).await.unwrap(), 0);
    }

    /// With too many of them to read on demand, the caller must retry later.
    async fn many_unmeasured_traces_give_503_until_counted(app: TestApp) {
        let row = |i: u128| trace::ActiveModel {
            tenant_id: Set(app.tenant), key: Set(i64::try_from(i).unwrap()), id: Set(uuid::Uuid::from_u128(i)), project_id: Set(app.project),
            failure_types: Set(0), started_at: Set(TEST_START_MICROS), total_tokens: Set(0), token_class: Set(0), span_count: Set(0),
            ready_at: Set(TEST_START_MICROS), ready: Set(true), body_index: Set(0), created_at: Set(TEST_START_MICROS), updated_at: Set(TEST_START_MICROS),
            ..Default::default()
        };
        for block in 0..51 {
            let rows = (0..100).map(|it| row(block * 100 + it));
            trace::Entity::insert_many(rows).exec_without_returning(&app.app.db.write).await.unwrap();
        }
        let key = app.full_key();
        let reply = key.get("/v1/metrics").await;
        reply.is(503, "overloaded");
        assert_eq!(reply.headers["retry-after"], "1");
        server::housekeeping::run_round(&app.app, server::features::ALL).await.unwrap();
        assert_eq!(key.get("/v1/metrics").await.ok()["metrics"]["trace_count"], 5_100);
    }
}

async fn ingest(key: &Caller, requests: usize) {
    for _ in 0..requests {
        key.post("/v1/ingest", &json!({"latency_ms": 20, "name": "one"})).await.ok();
    }
}
