//! Traces that were stored before the trace index existed.

use entities::{dialect::Dialect, eval_bulk, span, trace, trace_tail};
use migrations::{Migrator, MigratorTrait, SchemaManager};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IdenStatic, IntoActiveModel, Iterable,
    PaginatorTrait, QueryFilter, Statement,
};
use serde_json::Value;
use store::{new_id, trace_index};
use tests::{Caller, TestApp, on_both_databases, stored_spans};

use super::{
    filters::{compare_lists, project_ids},
    model::{Row, in_list_order, store},
};

/// Turns the tables into those of the version before the trace index, with the same traces.
async fn restore_earlier_version(app: &TestApp) {
    let db = &app.app.db;
    let columns: Vec<_> = trace::Column::iter().map(|it| it.as_str()).filter(|it| *it != "key").collect();
    let span_columns: Vec<_> =
        span::Column::iter().map(|it| it.as_str()).filter(|it| *it != "trace_key").collect();
    let rebuilt = match db.dialect {
        Dialect::Sqlite => format!(
            "DROP VIEW trace_key_by_id; DROP TABLE trace_id_new; DROP TABLE trace_id_recent; DROP TABLE trace_id_old; \
             CREATE TABLE earlier AS SELECT {} FROM trace; DROP TABLE trace; ALTER TABLE earlier RENAME TO trace; \
             CREATE INDEX ix_trace_time ON trace (tenant_id, started_at, id); \
             CREATE TABLE earlier AS SELECT {} FROM span; DROP TABLE span; ALTER TABLE earlier RENAME TO span; \
             ALTER TABLE eval_bulk ADD COLUMN position_id uuid_text;",
            columns.join(","),
            span_columns.join(",")
        ),
        // The primary key and the indexes with the key are dropped together with it.
        Dialect::Postgres => "ALTER TABLE trace DROP COLUMN key; DROP INDEX ux_trace_id; \
             ALTER TABLE trace ADD CONSTRAINT trace_pkey PRIMARY KEY (tenant_id, id); \
             ALTER TABLE span DROP COLUMN trace_key; \
             ALTER TABLE span ADD CONSTRAINT span_pkey PRIMARY KEY (tenant_id, trace_id, id); \
             ALTER TABLE eval_bulk ADD COLUMN position_id uuid;"
            .to_owned(),
    };
    db.write.execute_unprepared(&rebuilt).await.unwrap();
    let old = "CREATE TABLE trace_tag (tenant_id integer); DROP TABLE trace_tail; DROP TABLE trace_run; \
         DROP TABLE trace_run_block; \
         UPDATE eval_bulk SET position_id = (SELECT id FROM trace WHERE started_at = position_at); \
         ALTER TABLE eval_bulk DROP COLUMN position_key;";
    db.write.execute_unprepared(old).await.unwrap();
}

async fn migrate(app: &TestApp, name: &str) {
    let migration = Migrator::migrations().into_iter().find(|it| it.name() == name).unwrap();
    migration.up(&SchemaManager::new(&app.app.db.write)).await.unwrap();
}

/// Returns the responses for all traces, in the order of the list.
async fn details(key: &Caller, rows: &[Row]) -> Vec<Value> {
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        found.push(key.get(&format!("/v1/traces/{}", row.id)).await.ok());
    }
    found
}

on_both_databases! {
    async fn traces_of_an_earlier_version_are_the_same_after_the_migration(app: TestApp) {
        let mut rng = fastrand::Rng::with_seed(21);
        let key = app.full_key();
        let items: Vec<_> = (0..250).map(|_| Row::random(&mut rng)).collect();
        let spans: Vec<_> = (0..20).map(|_| Row::random_otlp(&mut rng)).collect();
        store(&key, &items, &spans).await;
        let (other_tenant, other) = app.other_tenant(api::Plan::Enterprise).await;
        store(&other, &[Row::random(&mut rng)], &[]).await;
        let rows = in_list_order(&key, items.into_iter().chain(spans).collect()).await;
        let db = &app.app.db;
        let position = rows.iter().find(|it| rows.iter().filter(|other| other.started_at == it.started_at).count() == 1);
        let position = position.unwrap();
        let bulk_id = new_id();
        let bulk = eval_bulk::Model {
            tenant_id: app.tenant, id: bulk_id, rule_id: None, metric_name: "latency_threshold".to_owned(),
            evaluator_type: "rule".to_owned(), model_tier: None, config: "{}".to_owned(), filter: "{}".to_owned(),
            matched: 1, granted: 1, queued: 1, filled: true, position_at: Some(position.started_at), position_key: Some(1),
            quota_month: None, detail: None, created_at: 1,
        };
        eval_bulk::Entity::insert(bulk.into_active_model().reset_all()).exec_without_returning(&db.write).await.unwrap();
        let before = details(&key, &rows).await;

        for tenant in [app.tenant, other_tenant] {
            stored_spans::move_into_rows(app, tenant).await;
        }
        restore_earlier_version(app).await;
        migrate(app, "m0021_trace_index").await;
        migrate(app, "m0022_listed_by_runs").await;
        migrate(app, "m0024_trace_ids").await;
        if db.dialect == Dialect::Sqlite {
            // The migration m0021 recreates the table, without the columns of later migrations.
            migrate(app, "m0028_missing_roots").await;
        }

        assert_eq!(details(&key, &rows).await, before);
        let bulk = eval_bulk::Entity::find_by_id((app.tenant, bulk_id)).one(&db.write).await.unwrap().unwrap();
        let found = store::traces::get(db, app.tenant, position.id).await.unwrap();
        assert_eq!(bulk.position_key, Some(found.unwrap().key));
        let of_tenant = trace_tail::Entity::find().filter(trace_tail::Column::TenantId.eq(app.tenant));
        assert_eq!(of_tenant.count(&db.write).await.unwrap(), 1, "one range for each tenant");
        // Traces with the same start are in the order of their IDs now.
        let rows = in_list_order(&key, rows).await;
        // The tail, then runs of the migrated traces, then new traces beside them.
        let project_ids = project_ids(app).await;
        compare_lists(&key, &rows, &project_ids, &mut rng).await;
        let now = app.app.clock.now();
        // Only the first traces of the range are indexed at first.
        assert!(trace_index::index_tail(db, app.tenant, 100, now).await.unwrap() > 0);
        compare_lists(&key, &rows, &project_ids, &mut rng).await;
        while trace_index::index_tail(db, app.tenant, 0, now).await.unwrap() > 0 {}
        compare_lists(&key, &rows, &project_ids, &mut rng).await;
        // An earlier version made runs without the entries that lists without filters search for.
        let earlier = "CREATE INDEX ix_trace_time ON trace (started_at); CREATE INDEX ix_trace_project ON trace (started_at); \
             CREATE INDEX ix_trace_session ON trace (started_at); CREATE INDEX ix_trace_session_time ON trace (started_at); \
             DROP INDEX ix_trace_project_day;";
        db.write.execute_unprepared(earlier).await.unwrap();
        let entries = "UPDATE trace_run_block SET data = directory FROM trace_run r \
             WHERE trace_run_block.tenant_id = $1 AND r.tenant_id = $1 AND trace_run_block.run_id = r.id";
        let statement = Statement::from_sql_and_values(db.dialect.backend(), entries, [app.tenant.into()]);
        db.write.execute_raw(statement).await.unwrap();
        migrate(app, "m0022_listed_by_runs").await;
        compare_lists(&key, &rows, &project_ids, &mut rng).await;
        assert!(trace_index::index_tail(db, app.tenant, 0, now).await.unwrap() > 0);
        let new: Vec<_> = (0..20).map(|_| Row::random(&mut rng)).collect();
        store(&key, &new, &[]).await;
        let rows = in_list_order(&key, rows.into_iter().chain(new).collect()).await;
        compare_lists(&key, &rows, &project_ids, &mut rng).await;
    }
}
