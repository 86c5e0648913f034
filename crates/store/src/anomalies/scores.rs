//! Totals of evaluation scores by project, metric name and interval.
//!
//! The statement is SQL, because it groups by an expression and selects an index.

use sea_orm::{ConnectionTrait, DbErr, Statement, Value};
use uuid::Uuid;

use crate::db::Db;

/// The scores of one metric name, of one project, that were computed within an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreTotals {
    /// The project.
    pub project_id: Uuid,
    /// The metric name of the evaluator.
    pub metric_name: String,
    /// Start of the interval, microseconds.
    pub start: i64,
    /// Number of scores.
    pub count: i64,
    /// Sum of the scores.
    pub sum: f64,
}

/// Returns totals of the scores that were computed from `from` to before `end` (microseconds), by intervals of this
/// length; at most `limit`, those with the most scores first. Evaluations of remediated outputs do not count.
///
/// The index contains all columns that the statement reads.
///
/// # Errors
/// Fails when the database fails.
pub async fn scores(
    db: &Db,
    tenant: Uuid,
    projects: &[Uuid],
    (from, end): (i64, i64),
    interval: i64,
    limit: u32,
) -> Result<Vec<ScoreTotals>, DbErr> {
    let mut values: Vec<Value> = vec![tenant.into(), from.into(), end.into()];
    values.extend(projects.iter().map(|it| Value::from(*it)));
    let places: Vec<String> = (4..=values.len()).map(|it| format!("${it}")).collect();
    let sql = format!(
        "SELECT project_id, metric_name, completed_at - completed_at % {interval} AS interval_start, \
         COUNT(*), SUM(score) FROM evaluation{} \
         WHERE tenant_id = $1 AND status = 'complete' AND context = 'fresh' AND score IS NOT NULL \
         AND completed_at >= $2 AND completed_at < $3 AND project_id IN ({}) \
         GROUP BY project_id, metric_name, interval_start \
         ORDER BY COUNT(*) DESC, project_id, metric_name, interval_start LIMIT {limit}",
        db.dialect.index_hint("ix_evaluation_score"),
        places.join(",")
    );
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    let rows = db.current().query_all_raw(statement).await?;
    let totals = rows.iter().map(|it| {
        Ok(ScoreTotals {
            project_id: it.try_get_by_index(0)?,
            metric_name: it.try_get_by_index(1)?,
            start: it.try_get_by_index(2)?,
            count: it.try_get_by_index(3)?,
            sum: it.try_get_by_index(4)?,
        })
    });
    totals.collect()
}
