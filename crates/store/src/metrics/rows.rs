//! Reads facts from the rows of traces, for queries that nodes cannot answer: groups by name or tag, a model
//! without separate totals, and traces that no node counts yet.
//!
//! The statement is SQL, because sea-orm has no index hints.

use std::sync::Arc;

use api::trace_filter::TraceConditions;
use sea_orm::{ConnectionTrait, DbErr, QueryResult, Statement, Value};
use uuid::Uuid;

use super::fact::Fact;
use crate::{
    db::Db,
    trace_filters::{ListPosition, SessionScope},
    trace_index::search::{self, IndexSearch, Selection},
};

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
    /// Only traces that follow this position in a list, newest first.
    pub before: Option<ListPosition>,
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

impl Label {
    /// Returns its expression over the row `t`.
    fn column(self) -> &'static str {
        match self {
            Self::None => "NULL",
            Self::Name => "t.name",
            Self::Tags => "t.tags",
        }
    }
}

/// A fact with its label.
#[derive(Clone, Debug)]
pub struct Grouped {
    /// The key of the trace.
    pub key: i64,
    /// The fact of the trace.
    pub fact: Fact,
    /// The label, if one was selected.
    pub label: Option<String>,
}

/// Returns the newest of the selected traces, at most `limit`. The rows are read with `connection`, which may have a
/// snapshot.
///
/// # Errors
/// Fails when the database fails.
pub async fn rows(
    db: &Db,
    connection: &impl ConnectionTrait,
    tenant: Uuid,
    which: &Rows<'_>,
    limit: usize,
) -> Result<Vec<Grouped>, DbErr> {
    let Rows { project, model, from, to, measured, before, label } = which;
    let selection = Selection {
        columns: format!(
            "t.key, t.started_at, t.model, t.error IS NOT NULL, t.feedback, t.latency_ms, t.cost, {}, t.total_tokens",
            label.column()
        ),
        condition: match measured {
            Some(true) => " AND t.measured",
            Some(false) => " AND NOT t.measured",
            None => "",
        },
        decode: grouped,
        position: |it| (it.fact.at, it.key),
    };
    if *measured != Some(false) || model.is_some() {
        let filter = TraceConditions {
            project_id: *project,
            model: model.map(str::to_owned),
            from: Some(*from),
            to: Some(*to),
            ..TraceConditions::default()
        };
        let search =
            IndexSearch { tenant, filter: &filter, sessions: SessionScope::AllTraces, after: *before, limit };
        return search::rows(db, connection, &search, &selection).await;
    }
    // Few traces are not measured, and they have an index.
    let mut values: Vec<Value> = vec![tenant.into(), (*from).into(), (*to).into()];
    let mut conditions = String::new();
    if let Some(project) = project {
        values.push((*project).into());
        conditions.push_str(&format!(" AND t.project_id = ${}", values.len()));
    }
    if let Some((at, key)) = before {
        values.extend([(*at).into(), (*key).into()]);
        let (at, key) = (values.len() - 1, values.len());
        conditions
            .push_str(&format!(" AND t.started_at <= ${at} AND (t.started_at < ${at} OR t.key < ${key})"));
    }
    let hint = db.dialect.index_hint("ix_trace_unmeasured");
    let Selection { columns, condition, .. } = selection;
    let sql = format!(
        "SELECT {columns} FROM trace t{hint} WHERE t.tenant_id = $1 AND t.started_at BETWEEN $2 AND $3{condition}{conditions} \
         ORDER BY t.started_at DESC, t.key DESC LIMIT {limit}"
    );
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    connection.query_all_raw(statement).await?.iter().map(grouped).collect()
}

fn grouped(row: &QueryResult) -> Result<Grouped, DbErr> {
    let model: Option<String> = row.try_get_by_index(2)?;
    let latency: Option<i64> = row.try_get_by_index(5)?;
    Ok(Grouped {
        key: row.try_get_by_index(0)?,
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
