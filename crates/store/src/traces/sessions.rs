//! Pages of sessions, by the start of their newest trace.
//!
//! Traces with a session are read by time, newest first. The first trace of a session is its newest, unless
//! the session has a newer trace before the page and was listed there. One statement sums up the sessions of
//! a page.
//!
//! Statements are SQL, because sea-orm has no index hints and no unions of limited subqueries.

use std::collections::{HashMap, HashSet};

use api::trace_filter::TraceConditions;
use sea_orm::{ConnectionTrait, DbErr, QueryResult, Statement};
use uuid::Uuid;

use super::list::narrow_page;
use crate::{
    db::Db,
    trace_filters::{ListPosition, Sql, add_conditions, position},
};

/// Number of traces read at once.
const TRACES_PER_READ: usize = 1_000;
/// Maximum number of traces that one request reads.
const MAX_TRACES_READ: usize = 10_000;
/// Number of sessions per statement.
const SESSIONS_PER_STATEMENT: usize = 50;

/// The totals of a session's traces.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSums {
    /// The session ID that the application sent.
    pub session_id: String,
    /// Number of traces.
    pub traces: i64,
    /// Number of traces that ended in error.
    pub errors: i64,
    /// Start of the first trace, microseconds.
    pub first: i64,
    /// Start of the last trace, microseconds.
    pub last: i64,
    /// Cost in pico-dollars; none when no trace has a cost.
    pub cost: Option<f64>,
    /// Prompt and completion tokens.
    pub tokens: f64,
}

/// Sessions, newest first, and the position of the next page.
#[derive(Clone, Debug, Default)]
pub struct SessionPage {
    /// The sessions.
    pub rows: Vec<SessionSums>,
    /// The position of the next page; none on the last page.
    pub next: Option<ListPosition>,
}

/// Returns a page of at most `limit` sessions with matching traces; only these traces are summed up. A page
/// can be shorter and still have `next`, when sessions are long.
///
/// # Errors
/// Fails when the database fails.
pub async fn sessions(
    db: &Db,
    tenant: Uuid,
    filter: &TraceConditions,
    after: Option<ListPosition>,
    limit: usize,
) -> Result<SessionPage, DbErr> {
    let mut seen = HashSet::new();
    let mut listed: Vec<(ListPosition, String)> = Vec::new();
    let (mut at, mut traces_read) = (after, 0);
    let next = loop {
        let block = walk(db, tenant, filter, at).await?;
        let count = block.len();
        traces_read += count;
        at = block.last().map(|it| it.0).or(at);
        let of_sessions = block.into_iter().filter_map(|(at, session)| Some((at, session?)));
        let mut newest: Vec<(ListPosition, String)> =
            of_sessions.filter(|it| seen.insert(it.1.clone())).collect();
        if let Some(start) = after {
            let begun = begun_before(db, tenant, filter, &newest, start).await?;
            newest.retain(|it| !begun.contains(&it.1));
        }
        listed.append(&mut newest);
        if listed.len() > limit {
            listed.truncate(limit);
            break listed.last().map(|it| it.0);
        }
        if count < TRACES_PER_READ {
            break None;
        }
        if traces_read >= MAX_TRACES_READ {
            break at;
        }
    };
    let ids: Vec<String> = listed.into_iter().map(|it| it.1).collect();
    let mut sums = sum_up(db, tenant, filter, &ids).await?;
    Ok(SessionPage { rows: ids.iter().filter_map(|it| sums.remove(it)).collect(), next })
}

/// Returns the next traces, each with its session; without a user filter only those that have a session.
async fn walk(
    db: &Db,
    tenant: Uuid,
    filter: &TraceConditions,
    after: Option<ListPosition>,
) -> Result<Vec<(ListPosition, Option<String>)>, DbErr> {
    if filter.user_id.is_some() {
        let rows = narrow_page(db, tenant, filter, after, TRACES_PER_READ).await?;
        return Ok(rows.into_iter().map(|it| (position(&it), it.session_id)).collect());
    }
    let mut sql = Sql::new(tenant);
    sql.push(&format!(
        "SELECT t.started_at, t.key, t.session_id FROM trace t{} WHERE t.tenant_id = $1 AND t.session_id IS NOT NULL",
        db.dialect.index_hint("ix_trace_session_time")
    ));
    sql.and_older("t", "key", after);
    add_conditions(filter, &mut sql, "t", db.dialect);
    sql.push(&format!(" ORDER BY t.started_at DESC, t.key DESC LIMIT {TRACES_PER_READ}"));
    let rows = fetch(db, sql).await?;
    rows.iter()
        .map(|it| Ok(((it.try_get_by_index(0)?, it.try_get_by_index(1)?), it.try_get_by_index(2)?)))
        .collect()
}

/// Returns the given sessions that have a matching trace at `start` or newer.
async fn begun_before(
    db: &Db,
    tenant: Uuid,
    filter: &TraceConditions,
    sessions: &[(ListPosition, String)],
    start: ListPosition,
) -> Result<HashSet<String>, DbErr> {
    let mut begun = HashSet::new();
    for some in sessions.chunks(SESSIONS_PER_STATEMENT) {
        let mut sql = Sql::new(tenant);
        let (at, key) = (sql.arg(start.0), sql.arg(start.1));
        for (i, (_, session)) in some.iter().enumerate() {
            let session = sql.arg(session.as_str());
            sql.push(&format!(
                "{}SELECT * FROM (SELECT t.session_id FROM trace t{} WHERE t.tenant_id = $1 AND t.session_id = {session} \
                 AND t.started_at >= {at} AND (t.started_at > {at} OR t.key >= {key})",
                if i > 0 { " UNION ALL " } else { "" },
                db.dialect.index_hint("ix_trace_session")
            ));
            add_conditions(filter, &mut sql, "t", db.dialect);
            // The order of the index, because PostgreSQL might otherwise search the whole table for the row.
            sql.push(&format!(" ORDER BY t.started_at DESC, t.key DESC LIMIT 1) s{i}"));
        }
        for row in fetch(db, sql).await? {
            begun.insert(row.try_get_by_index(0)?);
        }
    }
    Ok(begun)
}

async fn sum_up(
    db: &Db,
    tenant: Uuid,
    filter: &TraceConditions,
    sessions: &[String],
) -> Result<HashMap<String, SessionSums>, DbErr> {
    if sessions.is_empty() {
        return Ok(HashMap::new());
    }
    let mut sql = Sql::new(tenant);
    let places: Vec<String> = sessions.iter().map(|it| sql.arg(it.as_str())).collect();
    // As floating-point numbers, because a sum of integers may overflow.
    sql.push(&format!(
        "SELECT t.session_id, COUNT(*), COUNT(t.error), MIN(t.started_at), MAX(t.started_at), \
         SUM(CAST(t.cost AS DOUBLE PRECISION)), SUM(CAST(t.total_tokens AS DOUBLE PRECISION)) \
         FROM trace t{} WHERE t.tenant_id = $1 AND t.session_id IN ({})",
        db.dialect.index_hint("ix_trace_session"),
        places.join(",")
    ));
    add_conditions(filter, &mut sql, "t", db.dialect);
    sql.push(" GROUP BY t.session_id");
    let sums = |it: &QueryResult| {
        let session_id: String = it.try_get_by_index(0)?;
        let sums = SessionSums {
            session_id: session_id.clone(),
            traces: it.try_get_by_index(1)?,
            errors: it.try_get_by_index(2)?,
            first: it.try_get_by_index(3)?,
            last: it.try_get_by_index(4)?,
            cost: it.try_get_by_index(5)?,
            tokens: it.try_get_by_index(6)?,
        };
        Ok((session_id, sums))
    };
    fetch(db, sql).await?.iter().map(sums).collect()
}

async fn fetch(db: &Db, sql: Sql) -> Result<Vec<QueryResult>, DbErr> {
    db.read.query_all_raw(Statement::from_sql_and_values(db.dialect.backend(), sql.text, sql.values)).await
}
