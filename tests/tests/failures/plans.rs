//! The query plans of lists with many rows: each page is read along one index, whatever the filter.

use api::{
    FailureType, Timestamp,
    failure::{ClusterFilter, ClusterStatus, FailureFilter},
};
use entities::{dialect::Dialect, failure, failure_cluster};
use sea_orm::{ActiveModelTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryTrait, Statement};
use store::{failure_clusters, failures as table, new_id, traces::bit_of};
use tests::{app::TEST_START_MICROS, on_both_databases};

use super::*;

/// Number of stored failures.
const FAILURE_COUNT: usize = 10_000;
/// Number of stored clusters.
const CLUSTER_COUNT: usize = 2_000;
const ROWS_PER_STATEMENT: usize = 500;
const PAGE_LIMIT: u64 = 51;

/// Returns the plan of a statement, as the database describes it.
async fn plan(app: &TestApp, mut statement: Statement) -> String {
    let db = &app.app.db;
    statement.sql = match db.dialect {
        Dialect::Sqlite => format!("EXPLAIN QUERY PLAN {}", statement.sql),
        Dialect::Postgres => format!("EXPLAIN {}", statement.sql),
    };
    let column = if db.dialect == Dialect::Sqlite { 3 } else { 0 };
    let rows = db.write.query_all_raw(statement).await.unwrap();
    rows.iter().map(|it| it.try_get_by_index::<String>(column).unwrap()).collect::<Vec<_>>().join("\n")
}

/// Checks that the rows come from an index in the order of the list, and not from a scan or a sort of the table.
async fn assert_reads_along(app: &TestApp, index: &str, statement: Statement) {
    let plan = plan(app, statement).await;
    assert!(plan.contains(index), "{index}\n{plan}");
    for costly in ["SCAN", "TEMP B-TREE", "Seq Scan", "Sort"] {
        assert!(!plan.contains(costly), "{index}\n{plan}");
    }
}

/// Stores failures of a few clusters, models and types, as many as a tenant has after an outage.
async fn store_many(app: &TestApp) {
    fail(app, OTHER_MESSAGE).await;
    let db = &app.app.db.write;
    let failure = failure::Entity::find().one(db).await.unwrap().unwrap();
    let cluster = failure_cluster::Entity::find().one(db).await.unwrap().unwrap();
    let failures: Vec<_> = (0..FAILURE_COUNT)
        .map(|it| {
            let model = Some(if it == 0 { "rare".to_owned() } else { format!("model {}", it % 3) });
            let failure_type = bit_of(if it == 0 { FailureType::Timeout } else { FailureType::RateLimit });
            failure::Model {
                id: new_id(),
                span_id: new_id(),
                trace_id: new_id(),
                model,
                failure_type,
                ..failure.clone()
            }
        })
        .collect();
    for block in failures.chunks(ROWS_PER_STATEMENT) {
        let rows = block.iter().map(|it| it.clone().into_active_model().reset_all());
        failure::Entity::insert_many(rows).exec_without_returning(db).await.unwrap();
    }
    let clusters: Vec<_> = (0..CLUSTER_COUNT)
        .map(|it| {
            let last_seen = TEST_START_MICROS - i64::try_from(it).unwrap();
            failure_cluster::Model { id: new_id(), last_seen, ..cluster.clone() }
        })
        .collect();
    for block in clusters.chunks(ROWS_PER_STATEMENT) {
        let rows = block.iter().map(|it| it.clone().into_active_model().reset_all());
        failure_cluster::Entity::insert_many(rows).exec_without_returning(db).await.unwrap();
    }
    if app.app.db.dialect == Dialect::Postgres {
        db.execute_unprepared("ANALYZE failure, failure_cluster").await.unwrap();
    }
}

on_both_databases! {
    async fn pages_of_failures_are_read_along_the_index_of_a_filter(app: TestApp) {
        store_many(app).await;
        let (model, rare_type) = (Some("rare".to_owned()), Some(FailureType::Timeout));
        let to = Some(Timestamp::from_micros(TEST_START_MICROS));
        let missing = Some(app.tenant);
        for (filter, index) in [
            (FailureFilter { model: model.clone(), ..FailureFilter::default() }, "ix_failure_model"),
            (FailureFilter { failure_type: rare_type, ..FailureFilter::default() }, "ix_failure_type"),
            (FailureFilter { model, failure_type: Some(FailureType::RateLimit), to, ..FailureFilter::default() }, "ix_failure_model"),
            (FailureFilter { project_id: missing, ..FailureFilter::default() }, "ix_failure_project"),
            (FailureFilter { cluster_id: missing, ..FailureFilter::default() }, "ix_failure_cluster"),
        ] {
            for after in [None, Some(new_id())] {
                let statement = table::page_statement(app.app.db.dialect, app.tenant, &filter, after, PAGE_LIMIT);
                assert_reads_along(app, index, statement).await;
            }
        }
        let primary_key = if app.app.db.dialect == Dialect::Sqlite { "PRIMARY KEY" } else { "failure_pkey" };
        let all = table::page_statement(app.app.db.dialect, app.tenant, &FailureFilter::default(), None, PAGE_LIMIT);
        assert_reads_along(app, primary_key, all).await;
        assert_eq!(failures(app, "model=rare").await.len(), 1);
    }

    async fn pages_of_clusters_are_read_along_the_index_by_time(app: TestApp) {
        store_many(app).await;
        let backend = app.app.db.dialect.backend();
        for (filter, index) in [
            (ClusterFilter::default(), "ix_failure_cluster_seen"),
            (ClusterFilter { status: Some(ClusterStatus::Open), ..ClusterFilter::default() }, "ix_failure_cluster_seen"),
            (ClusterFilter { project_id: Some(app.project), ..ClusterFilter::default() }, "ix_failure_cluster_"),
        ] {
            for after in [None, Some((TEST_START_MICROS - 100, new_id()))] {
                let query = failure_clusters::page_query(app.tenant, &filter, after, PAGE_LIMIT);
                assert_reads_along(app, index, query.build(backend)).await;
            }
        }
    }
}
