//! Traces are found by ID in each of the tables of IDs that SQLite has.

use api::Role;
use entities::trace;
use sea_orm::{ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QueryTrait, Statement};
use store::{check, trace_ids, trace_index};
use tests::{On, TestApp, app::TEST_START_MICROS, otlp};

async fn execute(app: &TestApp, sql: &str) {
    app.app.db.write.execute_unprepared(sql).await.unwrap();
}

/// Inserts IDs of a tenant that does not exist.
async fn insert_unused_ids(app: &TestApp, table: &str, count: u32) {
    let sql = format!(
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) \
         INSERT INTO {table} (tenant_id, id, key) SELECT randomblob(16), randomblob(16), n FROM numbers"
    );
    execute(app, &sql).await;
}

/// Returns the numbers of new, recent and old IDs.
async fn counts(app: &TestApp) -> [i64; 3] {
    let db = &app.app.db;
    let sql = "SELECT (SELECT COUNT(*) FROM trace_id_new), (SELECT COUNT(*) FROM trace_id_recent), \
         (SELECT COUNT(*) FROM trace_id_old)";
    let row =
        db.write.query_one_raw(Statement::from_string(db.dialect.backend(), sql)).await.unwrap().unwrap();
    [0, 1, 2].map(|it| row.try_get_by_index(it).unwrap())
}

/// Adds a span to a trace, and sends it again. Returns the number of spans.
async fn add_span(app: &TestApp, trace: u128, number: u64) -> i64 {
    let span = otlp::Span::new(trace, number, "step", TEST_START_MICROS - 9_000_000);
    let span = if number > 1 { span.under(1) } else { span };
    for _ in 0..2 {
        app.full_key().post("/v1/otlp/traces", &otlp::request(std::slice::from_ref(&span))).await.ok();
    }
    let id = uuid::Uuid::from_u128(trace);
    let detail = app.full_key().get(&format!("/v1/traces/{id}")).await.ok();
    i64::try_from(detail["spans"].as_array().unwrap().len()).unwrap()
}

async fn id_problems(app: &TestApp) -> u64 {
    let found = check::run(&app.app.db, 202_606, ["", ""]).await.unwrap();
    found.checks.get("trace_ids").map_or(0, |it| it.problems)
}

#[tokio::test]
async fn trace_is_found_while_its_id_is_moved() {
    const STORED_TRACES: i64 = 3;
    let app = TestApp::on(On::Sqlite).await;
    let db = &app.app.db;
    for trace in 1..=STORED_TRACES {
        assert_eq!(add_span(&app, trace.unsigned_abs().into(), 1).await, 1);
    }
    trace_ids::move_many(db).await.unwrap();
    assert_eq!(counts(&app).await, [STORED_TRACES, 0, 0], "few IDs are not moved");

    insert_unused_ids(&app, "trace_id_new", 8_000).await;
    trace_ids::move_many(db).await.unwrap();
    assert_eq!(counts(&app).await, [0, STORED_TRACES + 8_000, 0]);
    assert_eq!(add_span(&app, 1, 2).await, 2);

    insert_unused_ids(&app, "trace_id_recent", 100_000).await;
    insert_unused_ids(&app, "trace_id_new", 8_000).await;
    trace_ids::move_many(db).await.unwrap();
    assert_eq!(counts(&app).await, [0, 0, STORED_TRACES + 116_000]);
    for trace in 1..=3 {
        assert_eq!(add_span(&app, trace, 3).await, if trace == 1 { 3 } else { 2 });
    }
    assert_eq!(id_problems(&app).await, 0);

    // The ID of a removed trace is free again.
    let id = uuid::Uuid::from_u128(1);
    app.session(Role::Owner).delete(&format!("/v1/traces/{id}")).await;
    assert_eq!(counts(&app).await, [0, 0, STORED_TRACES + 116_000 - 1]);
    assert_eq!(add_span(&app, 1, 1).await, 1);
    assert_eq!(id_problems(&app).await, 0);
}

#[tokio::test]
async fn check_finds_lost_ids_and_the_rebuild_repairs_them() {
    let app = TestApp::on(On::Sqlite).await;
    let db = &app.app.db;
    for trace in 1..=3 {
        add_span(&app, trace, 1).await;
    }
    let id = uuid::Uuid::from_u128(2);
    for damage in ["DELETE FROM trace_id_new", "UPDATE trace_id_old SET key = key + 1"] {
        execute(&app, damage).await;
        assert!(id_problems(&app).await > 0, "{damage}");
        assert_eq!(app.full_key().get(&format!("/v1/traces/{id}")).await.status, 404);
        trace_ids::rebuild(db, app.tenant).await.unwrap();
        assert_eq!(id_problems(&app).await, 0, "{damage}");
        app.full_key().get(&format!("/v1/traces/{id}")).await.ok();
    }
    trace_index::rebuild(db, app.tenant, app.app.clock.now()).await.unwrap();
    assert_eq!(id_problems(&app).await, 0);
}

/// SQLite's planner prefers an index of the tenant to a list of keys, and then reads all traces of the tenant.
#[tokio::test]
async fn traces_are_read_by_key_whatever_indexes_a_tenant_has() {
    let app = TestApp::on(On::Sqlite).await;
    let db = &app.app.db;
    let ids = [1, 2, 3].map(uuid::Uuid::from_u128);
    let found = trace::Entity::find().filter(trace_ids::are(&db.read, app.tenant, ids));
    let condition = trace_ids::condition(db.dialect, "t", "$2, $3");
    for statement in [
        found.clone().build(db.dialect.backend()).to_string(),
        found.order_by_asc(trace::Column::Id).build(db.dialect.backend()).to_string(),
        format!("SELECT * FROM trace t WHERE {condition} AND t.ready_at = 1 AND NOT t.ready"),
        format!(
            "UPDATE trace AS t SET ready = TRUE WHERE {condition} AND ready_at = 1 AND NOT ready RETURNING id"
        ),
    ] {
        let sql = format!("EXPLAIN QUERY PLAN {statement}");
        let rows = db.read.query_all_raw(Statement::from_string(db.dialect.backend(), sql)).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|it| it.try_get_by_index(3).unwrap()).collect();
        assert!(plan[0].ends_with("USING INTEGER PRIMARY KEY (rowid=?)"), "{statement}: {plan:?}");
        assert!(plan.iter().all(|it| !it.starts_with("SCAN")), "{statement}: {plan:?}");
    }
}
