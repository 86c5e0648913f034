//! The count of tokens that migration 18 requires: metrics are available and equal the rows before, during and after it,
//! whatever changes meanwhile.

use entities::{metric_delta, metric_node, trace};
use migrations::{Migrator, MigratorTrait, SchemaManager};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, PaginatorTrait, QueryFilter};
use serde_json::json;
use server::{features, housekeeping, metric_folding};
use store::{
    check,
    metrics::{self, delta::Delta},
    quotas::month,
};
use tests::{
    TestApp,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
};

use super::reference::{MetricsQuery, stored_traces};

const DAY: i64 = 86_400_000_000;
const MINUTE: i64 = 60_000_000;
const TRACE_COUNT: u64 = 40;
/// The traces whose tokens are counted before the process is interrupted: the oldest ones.
const COUNTED_FIRST: u64 = 10;

on_both_databases! {
    async fn metrics_equal_the_rows_while_tokens_are_counted(app: TestApp) {
        let (key, owner) = (app.full_key(), app.session(api::Role::Owner));
        for number in 1..=TRACE_COUNT {
            key.post("/v1/otlp/traces", &request([&root(number)])).await.ok();
        }
        metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
        check_metrics(app, "before the migration").await;
        restore_earlier_version(app).await;
        migrate(app).await;
        assert_eq!(count_uncounted(app).await, TRACE_COUNT);
        check_metrics(app, "after the migration").await;

        // The process ends between two transactions of the count.
        let counted = metrics::measure(&app.app.db, app.tenant, COUNTED_FIRST, TEST_START_MICROS).await.unwrap();
        assert_eq!((counted as u64, count_uncounted(app).await), (COUNTED_FIRST, TRACE_COUNT - COUNTED_FIRST));
        check_metrics(app, "during the count").await;

        // Each change concerns a counted and an uncounted trace.
        let mut rows = stored_traces(app).await;
        rows.sort_by_key(|it| it.started_at);
        let trace = |number: u64| rows[(TRACE_COUNT - number) as usize].id;
        for number in [TRACE_COUNT, 1] {
            key.post("/v1/otlp/traces", &request([&root(number)])).await.ok();
        }
        check_metrics(app, "after repeated exports").await;
        for number in [TRACE_COUNT - 1, 2] {
            let late = Span::new(u128::from(number), 2, "late", started_at(number)).under(1).calls("gpt-4o", 7_000, 70);
            key.post("/v1/otlp/traces", &request([&late])).await.ok();
        }
        check_metrics(app, "after late spans").await;
        for number in [TRACE_COUNT - 2, 3] {
            owner.delete(&format!("/v1/traces/{}", trace(number))).await;
        }
        for number in [TRACE_COUNT - 3, 4] {
            key.post("/v1/feedback", &json!({"trace_id": trace(number), "label": "good"})).await.ok();
        }
        assert_eq!(stored_traces(app).await.len() as u64, TRACE_COUNT - 2);
        check_metrics(app, "after deletions and feedback").await;

        // Another process completes the count.
        let beside = app.beside().await;
        housekeeping::run_round(&beside.app, features::ALL).await.unwrap();
        beside.stop().await;
        assert_eq!(count_uncounted(app).await, 0);
        check_metrics(app, "after the count").await;
        metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
        check_metrics(app, "after folding").await;

        // A deletion subtracts what the count added.
        for row in stored_traces(app).await.iter().skip(1) {
            owner.delete(&format!("/v1/traces/{}", row.id)).await;
        }
        metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
        check_metrics(app, "after the deletion of all traces but one").await;
    }
}

fn started_at(number: u64) -> i64 {
    TEST_START_MICROS - i64::try_from(number).unwrap() * MINUTE
}

/// Returns the root span of a trace, with a different number of tokens for each.
fn root(number: u64) -> Span {
    let tokens = i64::try_from(number).unwrap() * 100;
    Span::new(u128::from(number), 1, "root", started_at(number)).calls("gpt-4o", tokens, 10)
}

/// Turns the database into that of a version whose metrics have no tokens.
async fn restore_earlier_version(app: &TestApp) {
    let db = &app.app.db.write;
    let mut delta = Delta::default();
    for row in stored_traces(app).await {
        delta.add(&trace::Model { tokens_measured: false, ..row });
    }
    metric_delta::Entity::delete_many().exec(db).await.unwrap();
    metric_node::Entity::delete_many().exec(db).await.unwrap();
    metrics::add(db, app.tenant, delta, TEST_START_MICROS).await.unwrap();
    metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
    for sql in ["DROP INDEX ix_trace_tokens_unmeasured", "ALTER TABLE trace DROP COLUMN tokens_measured"] {
        db.execute_unprepared(sql).await.unwrap();
    }
}

/// Applies migration 18, as the start of a server does, and as one does that was interrupted.
async fn migrate(app: &TestApp) {
    let migration = Migrator::migrations().into_iter().find(|it| it.name() == "m0018_token_metrics").unwrap();
    for _ in 0..2 {
        migration.up(&SchemaManager::new(&app.app.db.write)).await.unwrap();
    }
    let uncounted = trace::Entity::find().filter(trace::Column::Measured.eq(false));
    assert_eq!(uncounted.count(&app.app.db.write).await.unwrap(), 0, "metrics stay available");
}

async fn count_uncounted(app: &TestApp) -> u64 {
    let rows = trace::Entity::find().filter(trace::Column::TenantId.eq(app.tenant));
    rows.filter(trace::Column::TokensMeasured.eq(false)).count(&app.app.db.write).await.unwrap()
}

/// Compares `GET /v1/metrics` with all rows, and the stored totals, which include the tokens, with the counted rows.
async fn check_metrics(app: &TestApp, what: &str) {
    let query = MetricsQuery {
        from: TEST_START_MICROS - DAY,
        to: TEST_START_MICROS + DAY,
        ..MetricsQuery::default()
    };
    query.check(&app.full_key(), &stored_traces(app).await, what).await;
    let findings =
        check::run(&app.app.db, month(TEST_START_MICROS), ["long_trace", "remove_traces"]).await.unwrap();
    let of_metrics: Vec<_> = findings.described.iter().filter(|it| it.check == "metrics").collect();
    assert!(of_metrics.is_empty(), "{what}: {of_metrics:?}");
}
