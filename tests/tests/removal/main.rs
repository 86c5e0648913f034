//! Removal of traces, on request and by retention, with all their rows.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod delete;
mod housekeeping;
mod retention;

use sea_orm::{ConnectionTrait, Statement};
use tests::TestApp;
use uuid::Uuid;

/// Returns the number of the tenant's rows in each table of traces: trace, span, event, body.
async fn rows(app: &TestApp) -> [i64; 4] {
    let mut counts = [0; 4];
    for (count, table) in counts.iter_mut().zip(["trace", "span", "event", "body"]) {
        *count = number(app, &format!("SELECT COUNT(*) FROM {table} WHERE tenant_id = $1")).await;
    }
    counts
}

/// Returns the number of rows without a trace, in the same tables except the first.
async fn orphans(app: &TestApp) -> [i64; 3] {
    let mut counts = [0; 3];
    for (count, table) in counts.iter_mut().zip(["span", "event"]) {
        let sql = format!(
            "SELECT COUNT(*) FROM {table} c WHERE c.tenant_id = $1 AND NOT EXISTS (\
             SELECT 1 FROM trace t WHERE t.tenant_id = $1 AND t.id = c.trace_id)"
        );
        *count = number(app, &sql).await;
    }
    let bodies = "SELECT COUNT(*) FROM body b WHERE b.tenant_id = $1 \
        AND NOT EXISTS (SELECT 1 FROM span s WHERE s.tenant_id = $1 AND s.body_id = b.id) \
        AND NOT EXISTS (SELECT 1 FROM trace t WHERE t.tenant_id = $1 AND t.body_id = b.id)";
    counts[2] = number(app, bodies).await;
    counts
}

async fn number(app: &TestApp, sql: &str) -> i64 {
    number_of(app, app.tenant, sql).await
}

async fn number_of(app: &TestApp, tenant: Uuid, sql: &str) -> i64 {
    let db = &app.app.db;
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [tenant.into()]);
    db.write.query_one_raw(statement).await.unwrap().unwrap().try_get_by_index(0).unwrap()
}
