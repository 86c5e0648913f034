//! The recount of all traces that migration 18 requires: metrics equal the rows before, during and after it, whatever
//! changes meanwhile.

use entities::trace;
use migrations::{Migrator, MigratorTrait, SchemaManager};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};
use serde_json::json;
use server::{features, housekeeping, metric_folding};
use store::{check, metrics, quotas::month};
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
/// The traces that are counted before the recount is interrupted: the oldest ones.
const COUNTED_FIRST: u64 = 10;

on_both_databases! {
    async fn recounted_metrics_equal_the_rows_after_any_change(app: TestApp) {
        let (key, owner) = (app.full_key(), app.session(api::Role::Owner));
        for number in 1..=TRACE_COUNT {
            key.post("/v1/otlp/traces", &request([&root(number)])).await.ok();
        }
        metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
        check_metrics(app, "before the migration").await;
        migrate(app).await;
        assert_eq!(count_uncounted(app).await, TRACE_COUNT);
        check_metrics(app, "after the migration").await;

        // The process ends between two transactions of the recount.
        let counted = metrics::measure(&app.app.db, app.tenant, COUNTED_FIRST, TEST_START_MICROS).await.unwrap();
        assert_eq!((counted as u64, count_uncounted(app).await), (COUNTED_FIRST, TRACE_COUNT - COUNTED_FIRST));
        check_metrics(app, "during the recount").await;

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

        // Another process completes the recount.
        let beside = app.beside().await;
        housekeeping::run_round(&beside.app, features::ALL).await.unwrap();
        beside.stop().await;
        assert_eq!(count_uncounted(app).await, 0);
        check_metrics(app, "after the recount").await;
        metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
        check_metrics(app, "after folding").await;

        // A deletion subtracts what the recount added.
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

/// Applies migration 18, as the start of a server does.
async fn migrate(app: &TestApp) {
    let migration = Migrator::migrations().into_iter().find(|it| it.name() == "m0018_token_metrics").unwrap();
    let txn = app.app.db.begin().await.unwrap();
    migration.up(&SchemaManager::new(&txn)).await.unwrap();
    txn.commit().await.unwrap();
}

async fn count_uncounted(app: &TestApp) -> u64 {
    let rows = trace::Entity::find().filter(trace::Column::TenantId.eq(app.tenant));
    rows.filter(trace::Column::Measured.eq(false)).count(&app.app.db.write).await.unwrap()
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
