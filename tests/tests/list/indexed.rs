//! Lists of traces that the trace index has: in several runs, merged, changed after indexing, and removed.

use std::collections::BTreeSet;

use api::Role;
use sea_orm::{ConnectionTrait, Statement};
use serde_json::json;
use store::{check, trace_index};
use tests::{Caller, TestApp, on_both_databases, otlp};

use super::{
    filters::{compare_lists, project_ids},
    model::{Row, in_list_order, store},
};

/// Indexes the whole tail. Returns the number of traces.
async fn index_all(app: &TestApp) -> i64 {
    let now = app.app.clock.now();
    trace_index::index_tail(&app.app.db, app.tenant, 0, now).await.unwrap()
}

async fn merge(app: &TestApp) -> bool {
    trace_index::merge(&app.app.db, app.tenant, app.app.clock.now()).await.unwrap()
}

/// Fails if the index lacks a trace.
async fn assert_complete(app: &TestApp) {
    let found = check::run(&app.app.db, 202_606, ["", ""]).await.unwrap();
    let lacking: Vec<_> = found.described.iter().filter(|it| it.check == "trace_index").collect();
    assert!(lacking.is_empty(), "{lacking:?}");
    assert!(found.checks["trace_index"].compared > 100);
}

/// Returns the number of traces and of blocks of each ready run.
async fn ready_runs(app: &TestApp) -> Vec<(i64, i32)> {
    let db = &app.app.db;
    let sql = "SELECT traces, blocks FROM trace_run WHERE tenant_id = $1 AND state = 1 ORDER BY id";
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [app.tenant.into()]);
    let rows = db.write.query_all_raw(statement).await.unwrap();
    rows.iter().map(|it| (it.try_get_by_index(0).unwrap(), it.try_get_by_index(1).unwrap())).collect()
}

async fn stored_blocks(app: &TestApp) -> i64 {
    let db = &app.app.db;
    let sql = "SELECT COUNT(*) FROM trace_run_block WHERE tenant_id = $1";
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [app.tenant.into()]);
    db.write.query_one_raw(statement).await.unwrap().unwrap().try_get_by_index(0).unwrap()
}

on_both_databases! {
    /// 20 runs, 16 of them merged into two, and a tail.
    async fn indexed_traces_are_listed_like_the_model(app: TestApp) {
        let mut rng = fastrand::Rng::with_seed(20_261_126);
        let key = app.full_key();
        let mut rows = Vec::new();
        for block in 0..21 {
            let items: Vec<_> = (0..14).map(|_| Row::random(&mut rng)).collect();
            let spans: Vec<_> = (0..2).map(|_| Row::random_otlp(&mut rng)).collect();
            store(&key, &items, &spans).await;
            rows.extend(items.into_iter().chain(spans));
            if block < 20 {
                assert_eq!(index_all(app).await, 16);
            }
        }
        assert!(merge(app).await && merge(app).await && !merge(app).await);
        let rows = in_list_order(&key, rows).await;
        let project_ids = project_ids(app).await;
        compare_lists(&key, &rows, &project_ids, &mut rng).await;
        assert_complete(app).await;
    }

    /// Late spans change names, models, users, starts and classes of indexed traces; then some traces are removed.
    async fn changes_after_indexing_are_listed_like_the_model(app: TestApp) {
        let mut rng = fastrand::Rng::with_seed(7);
        let key = app.full_key();
        let mut rows: Vec<_> = (0..250).map(|_| Row::random_otlp(&mut rng)).collect();
        for some in rows.chunks(50) {
            let spans: Vec<_> = some.iter().map(Row::span).collect();
            key.post("/v1/otlp/traces", &otlp::request(&spans)).await.ok();
            index_all(app).await;
        }
        for (at, row) in rows.iter_mut().enumerate().filter(|(at, _)| at % 3 == 0) {
            // The late span is the parent of the first one and begins earlier, so that it names the trace.
            let first = row.span().under(2);
            let start = row.started_at - 1_000_000 * rng.i64(1..30);
            let name = ["renamed", "Alpha"][rng.usize(..2)];
            let end = row.started_at + row.latency.unwrap() * 1_000;
            let late = otlp::Span::new(row.id.as_u128(), 2, name, start).until(Some(end)).with("user.id", "u-9");
            // Replays of stored spans change nothing.
            key.post("/v1/otlp/traces", &otlp::request(&[first, late])).await.ok();
            if at % 60 == 0 {
                index_all(app).await;
            }
        }
        let listed = key.get("/v1/traces?user_id=u-9&limit=200").await.ok();
        assert!(listed["traces"].as_array().unwrap().len() > 30, "{listed}");
        // The rows of the model are read back from the list without filters.
        let mut cursor = String::new();
        loop {
            let page = key.get(&format!("/v1/traces?limit=200{cursor}")).await.ok();
            for trace in page["traces"].as_array().unwrap() {
                let row = rows.iter_mut().find(|it| trace["id"] == it.id.to_string()).unwrap();
                let text = |name: &str| trace[name].as_str().map(str::to_owned);
                (row.name, row.user, row.session) = (text("name"), text("user_id"), text("session_id"));
                row.model = text("model");
                row.latency = trace["latency_ms"].as_i64();
                row.started_at = text("started_at").unwrap().parse::<api::Timestamp>().unwrap().micros();
            }
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        let rows = in_list_order(&key, rows).await;
        let project_ids = project_ids(app).await;
        compare_lists(&key, &rows, &project_ids, &mut rng).await;
        index_all(app).await;
        merge(app).await;
        compare_lists(&key, &rows, &project_ids, &mut rng).await;
        assert_complete(app).await;

        let owner = app.session(Role::Owner);
        let (removed, kept): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|_| rng.u8(..5) == 0);
        for row in &removed {
            owner.delete(&format!("/v1/traces/{}", row.id)).await;
        }
        compare_lists(&key, &kept, &project_ids, &mut rng).await;
        assert_complete(app).await;
    }

    /// A damaged block, a lost block, and runs that lists do not read.
    async fn check_finds_damage_of_the_index_and_the_rebuild_repairs_it(app: TestApp) {
        let mut rng = fastrand::Rng::with_seed(3);
        let key = app.full_key();
        let items: Vec<_> = (0..150).map(|_| Row::random(&mut rng)).collect();
        store(&key, &items, &[]).await;
        let rows = in_list_order(&key, items).await;
        let db = &app.app.db;
        for damage in [
            "UPDATE trace_run_block SET data = directory FROM trace_run r \
             WHERE trace_run_block.tenant_id = $1 AND r.tenant_id = $1 AND number = 0 AND r.state = 1",
            "DELETE FROM trace_run_block WHERE tenant_id = $1 AND number = 0",
            "UPDATE trace_run SET state = 2 WHERE tenant_id = $1",
        ] {
            while index_all(app).await > 0 {}
            assert_complete(app).await;
            let statement = Statement::from_sql_and_values(db.dialect.backend(), damage, [app.tenant.into()]);
            db.write.execute_raw(statement).await.unwrap();
            let found = check::run(db, 202_606, ["", ""]).await.unwrap();
            assert!(found.checks["trace_index"].problems > 0, "{damage}");
            assert_eq!(found.badly_indexed_tenants, BTreeSet::from([app.tenant]), "{damage}");
            trace_index::rebuild(db, app.tenant, app.app.clock.now()).await.unwrap();
            assert_complete(app).await;
            let project_ids = project_ids(app).await;
            compare_lists(&key, &rows, &project_ids, &mut rng).await;
        }
    }

    /// Three quarters of the traces of eight runs are removed, then most of the others, and then the rest.
    async fn entries_of_removed_traces_disappear(app: TestApp) {
        let mut rng = fastrand::Rng::with_seed(11);
        let (key, owner, db) = (app.full_key(), app.session(Role::Owner), &app.app.db);
        let mut rows = Vec::new();
        for _ in 0..8 {
            let items: Vec<_> = (0..20).map(|_| Row::random(&mut rng)).collect();
            store(&key, &items, &[]).await;
            rows.extend(items);
            assert_eq!(index_all(app).await, 20);
        }
        let remove = async |rows: &[Row]| {
            for row in rows {
                owner.delete(&format!("/v1/traces/{}", row.id)).await.ok();
            }
        };
        rng.shuffle(&mut rows);
        let (removed, kept) = rows.split_at(120);
        remove(removed).await;
        assert!(merge(app).await);
        let merged = ready_runs(app).await;
        assert!(matches!(merged[..], [(40, _)]), "{merged:?}");

        let (removed, last) = kept.split_at(30);
        remove(removed).await;
        trace_index::rewrite_sparse(db, app.tenant, app.app.clock.now()).await.unwrap();
        let rewritten = ready_runs(app).await;
        assert!(matches!(rewritten[..], [(10, _)]), "{rewritten:?}");
        trace_index::rewrite_sparse(db, app.tenant, app.app.clock.now()).await.unwrap();
        assert_eq!(ready_runs(app).await, rewritten, "a run without removed traces is not written again");
        let listed = key.get("/v1/traces?limit=200").await.ok();
        let listed: BTreeSet<String> =
            listed["traces"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(listed, last.iter().map(|it| it.id.to_string()).collect());
        let found = check::run(db, 202_606, ["", ""]).await.unwrap();
        assert_eq!(found.checks["trace_index"].problems, 0);

        remove(last).await;
        trace_index::rewrite_sparse(db, app.tenant, app.app.clock.now()).await.unwrap();
        assert_eq!(ready_runs(app).await, []);
        // Lists that began before may still read the retired runs.
        let now = app.app.clock.now();
        trace_index::remove_retired(db, app.tenant, now).await.unwrap();
        assert!(stored_blocks(app).await > 0);
        trace_index::remove_retired(db, app.tenant, now + 3_600_000_000).await.unwrap();
        assert_eq!(stored_blocks(app).await, 0);
    }

    /// A run is retired when all of its traces are older than the oldest stored trace.
    async fn runs_older_than_all_traces_are_retired(app: TestApp) {
        let (key, owner, db) = (app.full_key(), app.session(Role::Owner), &app.app.db);
        let old = json!({"name": "old", "started_at": "2026-05-01T11:00:00Z"});
        let old = key.post("/v1/ingest", &old).await.ok()["id"].as_str().unwrap().to_owned();
        assert_eq!(index_all(app).await, 1);
        key.post("/v1/ingest", &json!({"name": "new", "started_at": "2026-06-01T11:00:00Z"})).await.ok();
        assert_eq!(index_all(app).await, 1);
        let now = app.app.clock.now();
        trace_index::retire_expired(db, app.tenant, now).await.unwrap();
        assert_eq!(ready_runs(app).await.len(), 2);
        owner.delete(&format!("/v1/traces/{old}")).await.ok();
        trace_index::retire_expired(db, app.tenant, now).await.unwrap();
        assert_eq!(ready_runs(app).await.len(), 1);
        let listed = key.get("/v1/traces").await.ok();
        assert_eq!(listed["traces"].as_array().unwrap().len(), 1, "{listed}");
    }

    async fn traces_with_the_same_start_are_listed_newest_arrival_first(app: TestApp) {
        let key = app.full_key();
        let mut ids = Vec::new();
        for _ in 0..3 {
            let item = json!({"name": "same", "started_at": "2026-06-15T11:00:00Z"});
            ids.push(key.post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned());
        }
        ids.reverse();
        for is_indexed in [false, true] {
            if is_indexed {
                assert_eq!(index_all(app).await, 3);
            }
            for filter in ["", "&name=same"] {
                let page = key.get(&format!("/v1/traces?limit=9{filter}")).await.ok();
                let listed: Vec<_> = page["traces"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
                assert_eq!(listed, ids, "{filter}, indexed: {is_indexed}");
            }
        }
    }

    /// The clocks of the processes stand still, so on SQLite the second one derives keys that are in use.
    async fn processes_with_the_same_clock_store_all_traces(app: TestApp) {
        let beside = app.beside().await;
        let (one, other) = (app.full_key(), Caller::new(&beside.url, Some(app.key_text())));
        for at in 0..10 {
            for key in [&one, &other] {
                key.post("/v1/ingest", &json!({"name": format!("n{at}")})).await.ok();
            }
        }
        for at in 0..10 {
            let listed = other.get(&format!("/v1/traces?name=n{at}")).await.ok();
            assert_eq!(listed["traces"].as_array().unwrap().len(), 2, "{listed}");
        }
        beside.stop().await;
    }
}
