//! Reads facts from the rows of traces, for queries that nodes cannot answer: groups by name or tag, a model
//! without separate totals, and traces that no node counts yet.
//!
//! The statement is SQL, because sea-orm has no index hints.

use std::sync::Arc;

use entities::dialect::Dialect;
use sea_orm::{ConnectionTrait, DbErr, QueryResult, Statement, Value};
use uuid::Uuid;

use super::fact::Fact;

/// Selects traces, and the label that is read with each fact.
#[derive(Clone, Debug, Default)]
pub struct Rows<'a> {
    /// Only traces of this project.
    pub project: Option<Uuid>,
    /// Only traces of this model.
    pub model: Option<&'a str>,
    /// Started at or after this time, in microseconds.
    pub from: i64,
    /// Started at or before this time, in microseconds.
    pub to: i64,
    /// Only traces that the metrics count (`true`), or only those that they do not count (`false`).
    pub measured: Option<bool>,
    /// Only traces that follow this (start, id) in a list, newest first.
    pub before: Option<(i64, Uuid)>,
    /// The label that is read with each fact.
    pub label: Label,
}

/// The property by which traces are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Label {
    /// No property.
    #[default]
    None,
    /// The name of the trace.
    Name,
    /// The tags of the trace, a JSON object.
    Tags,
}

/// A fact with its label.
#[derive(Clone, Debug)]
pub struct Grouped {
    /// The ID of the trace.
    pub id: Uuid,
    /// The fact of the trace.
    pub fact: Fact,
    /// The label, if one was selected.
    pub label: Option<String>,
}

/// Returns the newest of the selected traces, at most `limit`.
///
/// # Errors
/// Fails when the database fails.
pub async fn rows(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    which: &Rows<'_>,
    limit: usize,
) -> Result<Vec<Grouped>, DbErr> {
    let Rows { project, model, from, to, measured, before, label } = which;
    let mut values: Vec<Value> = vec![tenant.into(), (*from).into(), (*to).into()];
    let mut conditions = String::new();
    if let Some(project) = project {
        values.push((*project).into());
        conditions.push_str(&format!(" AND t.project_id = ${}", values.len()));
    }
    if let Some(model) = model {
        values.push((*model).into());
        conditions.push_str(&format!(" AND t.model = ${}", values.len()));
    }
    match measured {
        Some(true) => conditions.push_str(" AND t.measured"),
        Some(false) => conditions.push_str(" AND NOT t.measured"),
        None => {}
    }
    if let Some((at, id)) = before {
        values.extend([(*at).into(), (*id).into()]);
        let (at, id) = (values.len() - 1, values.len());
        conditions
            .push_str(&format!(" AND t.started_at <= ${at} AND (t.started_at < ${at} OR t.id < ${id})"));
    }
    let index = match (measured, model, project) {
        (Some(false), _, _) => "ix_trace_unmeasured",
        (_, Some(_), _) => "ix_trace_model",
        (_, None, Some(_)) => "ix_trace_project",
        (_, None, None) => "ix_trace_time",
    };
    let label = match label {
        Label::None => "NULL",
        Label::Name => "t.name",
        Label::Tags => "t.tags",
    };
    let dialect = Dialect::of(db.get_database_backend());
    let sql = format!(
        "SELECT t.id, t.started_at, t.model, t.error IS NOT NULL, t.feedback, t.latency_ms, t.cost, {label}, \
         t.total_tokens \
         FROM trace t{} WHERE t.tenant_id = $1 AND t.started_at BETWEEN $2 AND $3{conditions} \
         ORDER BY t.started_at DESC, t.id DESC LIMIT {limit}",
        dialect.index_hint(index)
    );
    let statement = Statement::from_sql_and_values(dialect.backend(), sql, values);
    db.query_all_raw(statement).await?.iter().map(grouped).collect()
}

fn grouped(row: &QueryResult) -> Result<Grouped, DbErr> {
    let model: Option<String> = row.try_get_by_index(2)?;
    let latency: Option<i64> = row.try_get_by_index(5)?;
    Ok(Grouped {
        id: row.try_get_by_index(0)?,
        fact: Fact {
            at: row.try_get_by_index(1)?,
            model: model.map(Arc::from),
            error: row.try_get_by_index(3)?,
            feedback: row.try_get_by_index(4)?,
            latency_ms: latency.map(|it| it.max(0)),
            cost: row.try_get_by_index::<Option<i64>>(6)?.unwrap_or(0),
            tokens: row.try_get_by_index(8)?,
        },
        label: row.try_get_by_index(7)?,
    })
}
