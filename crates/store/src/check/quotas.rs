//! Compares the counters of monthly quotas with the stored rows.
//!
//! Statements are SQL, because sums are cast to 64 bits, which PostgreSQL needs.

use std::collections::BTreeMap;

use sea_orm::{ConnectionTrait, DbErr, Statement};
use uuid::Uuid;

use super::Findings;
use crate::{db::Db, quotas::Quota};

/// Compares the counters of a tenant. `traces` are the traces by the month in which they arrived.
///
/// A counter may exceed the number of rows, because deleted rows stay counted. It is never lower and never
/// negative.
pub(super) async fn of_tenant(
    db: &Db,
    tenant: Uuid,
    traces: BTreeMap<i32, i64>,
    this_month: i32,
    findings: &mut Findings,
) -> Result<(), DbErr> {
    let judged = "SELECT quota_month, COUNT(*) FROM evaluation \
        WHERE tenant_id = $1 AND quota_month IS NOT NULL AND status <> 'failed' GROUP BY quota_month";
    let judged = by_month(db, tenant, judged).await?;
    for (quota, stored) in [(Quota::Traces, traces), (Quota::LlmEvaluations, judged)] {
        let word = quota.as_str();
        let used = format!(
            "SELECT month, CAST(SUM(used) AS BIGINT) FROM quota_use WHERE tenant_id = $1 AND quota = '{word}' GROUP BY month"
        );
        // Read after the rows were counted: traces that arrive meanwhile can only raise the counter.
        let used = by_month(db, tenant, &used).await?;
        let mut months: Vec<i32> = used.keys().copied().chain([this_month]).collect();
        months.dedup();
        for month in months {
            findings.compared("quotas", 1);
            let counter = used.get(&month).copied().unwrap_or(0);
            let rows = stored.get(&month).copied().unwrap_or(0);
            // A trace that arrives in the last seconds of a month may be counted in the next one.
            let crossed = month != this_month && counter >= 0 && rows - counter <= rows / 100;
            if counter < rows.max(0) && !crossed {
                let problem = format!("the counter is {counter}, and {rows} are stored");
                findings.add("quotas", Some(tenant), format!("{word} of {month}"), problem);
            }
        }
    }
    Ok(())
}

async fn by_month(db: &Db, tenant: Uuid, sql: &str) -> Result<BTreeMap<i32, i64>, DbErr> {
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [tenant.into()]);
    let rows = db.read.query_all_raw(statement).await?;
    rows.iter().map(|it| Ok((it.try_get_by_index(0)?, it.try_get_by_index(1)?))).collect()
}
