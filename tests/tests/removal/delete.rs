//! `DELETE /v1/traces/{id}`.

use api::Role;
use entities::trace;
use sea_orm::{ConnectionTrait, QuerySelect, Statement};
use serde_json::{Value, json};
use server::trace_removal;
use store::traces;
use tests::{
    TestApp,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
};
use uuid::Uuid;

use crate::{orphans, rows};

const LONG_TRACE_ID: u128 = 0x10;
/// Number of spans of the long trace: more than one transaction removes, with texts on both sides of its
/// limit.
const LONG_TRACE_SPANS: u64 = 4_500;

async fn send(app: &TestApp, spans: &[Span]) {
    app.full_key().post("/v1/otlp/traces", &request(spans)).await.ok();
}

async fn send_long(app: &TestApp) {
    for first in (1..=LONG_TRACE_SPANS).step_by(900) {
        let spans: Vec<Span> = (first..first + 900)
            .map(|it| {
                let span = Span::new(LONG_TRACE_ID, it, "step", TEST_START_MICROS)
                    .with("input.value", format!("{it} ").repeat(20));
                if it == 1 {
                    span.with("tag.tags", json!(["env:prod"]))
                } else {
                    span.under(1).noting("seen")
                }
            })
            .collect();
        send(app, &spans).await;
    }
}

fn item(id: &str) -> Value {
    json!({"id": id, "name": "item", "input": "in", "tags": {"env": "prod", "vip": ""}, "metadata": {"k": 1},
        "spans": [{"id": "s", "name": "s", "input": "text"}], "events": [{"message": "noted"}]})
}

on_both_databases! {
    async fn deleted_trace_is_removed_with_all_its_rows(app: TestApp) {
        let owner = app.session(Role::Owner);
        let keep = app.full_key().post("/v1/ingest", &item("keep")).await.ok();
        let kept = rows(app).await;
        let gone = app.full_key().post("/v1/ingest", &item("gone")).await.ok();
        send(app, &[
            Span::new(7, 1, "root", TEST_START_MICROS).with("tag.tags", json!(["env:prod"])).noting("began"),
            Span::new(7, 2, "call", TEST_START_MICROS).under(1).with("input.value", "hello"),
        ]).await;
        let path = format!("/v1/traces/{}", gone["id"].as_str().unwrap());
        assert_eq!(owner.delete(&path).await.status, 204);
        owner.delete(&path).await.is(404, "not_found");
        owner.get(&path).await.is(404, "not_found");
        // The trace is deleted by its hexadecimal OpenTelemetry id.
        assert_eq!(owner.delete(&format!("/v1/traces/{:032x}", 7)).await.status, 204);
        assert_eq!(rows(app).await, kept);
        for filter in ["", "?tag=env:prod", "?tag=vip", "?name=item"] {
            let list = owner.get(&format!("/v1/traces{filter}")).await.ok();
            assert_eq!(list["traces"].as_array().unwrap().len(), 1, "{filter}");
            assert_eq!(list["traces"][0]["id"], keep["id"]);
        }
        // The enqueued jobs of the removed traces have nothing to do.
        app.advance(10);
        app.drain().await;
        assert_eq!(rows(app).await, kept);
        let again = app.full_key().post("/v1/ingest", &item("gone")).await;
        assert_eq!((again.status, &again.json()["id"]), (201, &gone["id"]));
    }

    async fn deleted_long_trace_frees_its_id(app: TestApp) {
        send_long(app).await;
        let before = rows(app).await;
        assert_eq!((before[1], before[2]), (4_500, 4_499));
        let path = format!("/v1/traces/{LONG_TRACE_ID:032x}");
        assert_eq!(app.session(Role::Owner).delete(&path).await.status, 204);
        assert_eq!(rows(app).await, [0; 4]);
        app.advance(1);
        send(app, &[Span::new(LONG_TRACE_ID, 1, "second", TEST_START_MICROS)]).await;
        // The job that would have completed the removal does not touch the new trace.
        app.advance(100);
        app.drain().await;
        assert_eq!(app.full_key().get(&path).await.ok()["name"], "second");
    }

    async fn interrupted_removal_is_completed_by_its_job(app: TestApp) {
        send_long(app).await;
        let id = Uuid::from_u128(LONG_TRACE_ID);
        let now = app.app.clock.now();
        let job = |row: &trace::Model| trace_removal::job(app.tenant, row, now);
        let removal = traces::remove(&app.app.db, app.tenant, &[id], |_| true, None, job, now).await.unwrap();
        assert_eq!((removal.traces, removal.more), (0, true));
        assert_eq!(rows(app).await[0], 1, "the trace's row is deleted last");
        assert_eq!(app.full_key().get(&format!("/v1/traces/{id}")).await.status, 200);
        // A span that arrives meanwhile is removed with the trace.
        send(app, &[Span::new(LONG_TRACE_ID, 9_999, "late", TEST_START_MICROS).under(1).with("input.value", "late")]).await;
        app.advance(61);
        app.drain().await;
        assert_eq!(rows(app).await, [0; 4]);
    }

    /// The late span conflicts with the row and waits for it until the row is removed.
    async fn span_waiting_for_a_deletion_starts_a_new_trace(app: TestApp) {
        let id = Uuid::from_u128(7);
        send(app, &[Span::new(7, 1, "old", TEST_START_MICROS).with("input.value", "text")]).await;
        let txn = app.app.db.begin().await.unwrap();
        traces::by_id(&txn, app.tenant, id).lock_exclusive().one(&txn).await.unwrap().unwrap();
        let remove = async {
            wait_for_lock(app).await;
            for table in ["span_block", "body", "trace"] {
                let sql = format!("DELETE FROM {table} WHERE tenant_id = $1");
                let statement = Statement::from_sql_and_values(txn.get_database_backend(), sql, [app.tenant.into()]);
                txn.execute_raw(statement).await.unwrap();
            }
            txn.commit().await.unwrap();
        };
        let late = [Span::new(7, 2, "late", TEST_START_MICROS).with("input.value", "text")];
        tokio::join!(send(app, &late), remove);
        assert_eq!((rows(app).await, orphans(app).await), ([1, 1, 0, 1], [0; 3]));
        assert_eq!(app.full_key().get(&format!("/v1/traces/{id}")).await.ok()["name"], "late");
    }

    async fn late_spans_and_deletes_leave_no_orphans(app: TestApp) {
        let owner = app.session(Role::Owner);
        for round in 1..=12 {
            let span = |id: u64| {
                let span = Span::new(round, id, "s", TEST_START_MICROS).with("input.value", "text").noting("e");
                if id == 1 { span.with("tag.tags", json!(["a:b"])) } else { span.under(1) }
            };
            send(app, &[span(1)]).await;
            let late = async {
                for id in 2..6 {
                    send(app, &[span(id)]).await;
                }
            };
            let path = format!("/v1/traces/{round:032x}");
            let (_, reply) = tokio::join!(late, owner.delete(&path));
            assert_eq!(reply.status, 204);
        }
        assert_eq!(orphans(app).await, [0; 3]);
    }
}

/// Waits until a statement waits for a lock. On SQLite a writer waits before its transaction begins.
async fn wait_for_lock(app: &TestApp) {
    let db = &app.app.db;
    let waiting = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND pid IN \
        (SELECT pid FROM pg_stat_activity WHERE datname = current_database())";
    while !db.commits_in_order() {
        let statement = Statement::from_string(db.dialect.backend(), waiting);
        let row = db.read.query_one_raw(statement).await.unwrap().unwrap();
        if row.try_get_by_index::<i64>(0).unwrap() > 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
