//! Removal of traces, on request and by retention, with all their rows.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod delete;
mod housekeeping;
mod retention;
mod text_pages;

use std::collections::HashSet;

use sea_orm::{ConnectionTrait, Statement};
use store::text_page;
use tests::{TestApp, stored_spans};
use uuid::Uuid;

/// Returns the numbers of the tenant's traces, spans, events and rows with texts.
async fn rows(app: &TestApp) -> [i64; 4] {
    let mut counts = [0; 4];
    for (count, table) in [(0, "trace"), (2, "event"), (3, "body")] {
        counts[count] = number(app, &format!("SELECT COUNT(*) FROM {table} WHERE tenant_id = $1")).await;
    }
    counts[1] = stored_spans::all(app, app.tenant).await.len().try_into().unwrap();
    counts
}

/// Returns the numbers of spans, events and rows with texts that belong to no trace.
async fn orphans(app: &TestApp) -> [i64; 3] {
    let mut counts = [0; 3];
    let without_trace = "SELECT COUNT(*) FROM event c WHERE c.tenant_id = $1 AND NOT EXISTS (\
         SELECT 1 FROM trace t WHERE t.tenant_id = $1 AND t.id = c.trace_id)";
    counts[1] = number(app, without_trace).await;
    let traces: HashSet<Uuid> =
        ids(app, "SELECT id FROM trace WHERE tenant_id = $1").await.into_iter().collect();
    let spans = stored_spans::all(app, app.tenant).await;
    counts[0] = spans.iter().filter(|it| !traces.contains(&it.trace_id)).count().try_into().unwrap();
    let referred: HashSet<Uuid> = text_block_ids(app).await.into_iter().map(text_page::row_of).collect();
    let stored = ids(app, "SELECT id FROM body WHERE tenant_id = $1").await;
    counts[2] = stored.iter().filter(|it| !referred.contains(it)).count().try_into().unwrap();
    counts
}

/// Returns the IDs of the text blocks to which spans and traces refer.
async fn text_block_ids(app: &TestApp) -> Vec<Uuid> {
    let mut block_ids =
        ids(app, "SELECT body_id FROM trace WHERE tenant_id = $1 AND body_id IS NOT NULL").await;
    block_ids.extend(stored_spans::all(app, app.tenant).await.iter().filter_map(|it| it.body_id));
    block_ids
}

async fn ids(app: &TestApp, sql: &str) -> Vec<Uuid> {
    let db = &app.app.db;
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [app.tenant.into()]);
    let rows = db.write.query_all_raw(statement).await.unwrap();
    rows.iter().map(|it| it.try_get_by_index(0).unwrap()).collect()
}

async fn number(app: &TestApp, sql: &str) -> i64 {
    number_of(app, app.tenant, sql).await
}

async fn number_of(app: &TestApp, tenant: Uuid, sql: &str) -> i64 {
    let db = &app.app.db;
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [tenant.into()]);
    db.write.query_one_raw(statement).await.unwrap().unwrap().try_get_by_index(0).unwrap()
}
