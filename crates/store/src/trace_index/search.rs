//! Finds traces by the trace index and compares their rows with the filter.
//!
//! The tail is read first: a trace that is indexed meanwhile is then found twice and not missed.

use std::{cmp::Reverse, collections::HashSet};

use api::trace_filter::TraceConditions;
use entities::{dialect::Dialect, trace};
use sea_orm::{ConnectionTrait, DbErr, QueryResult, Statement};
use uuid::Uuid;

use super::{AnyOf, Candidates, Terms, tail};
use crate::{
    bulk::{self, Bulk},
    db::Db,
    trace_filters::{ListPosition, SessionScope, Sql, add_conditions, add_session_condition, position},
};

/// Maximum number of candidates whose rows are read at once.
const MAX_CANDIDATES_PER_READ: usize = 500;

/// Selects traces by the trace index.
#[derive(Clone, Copy)]
pub struct IndexSearch<'a> {
    /// The owner.
    pub tenant: Uuid,
    /// The conditions of the traces.
    pub filter: &'a TraceConditions,
    /// Their sessions.
    pub sessions: SessionScope<'a>,
    /// Only traces that follow this position in a list, newest first.
    pub after: Option<ListPosition>,
    /// Maximum number of traces.
    pub limit: usize,
}

impl IndexSearch<'_> {
    fn terms(&self) -> Vec<AnyOf> {
        Terms::of(self.tenant).of_conditions(self.filter, self.sessions)
    }

    /// Adds the conditions on the row `t`.
    fn add_conditions(&self, sql: &mut Sql, dialect: Dialect) {
        add_conditions(self.filter, sql, "t", dialect);
        add_session_condition(self.sessions, sql, "t");
    }
}

/// The columns of the traces that a search returns.
pub struct Selection<T> {
    /// Expressions over the row `t`.
    pub columns: String,
    /// A further condition on the row `t`, with its `AND`.
    pub condition: &'static str,
    /// Decodes a row.
    pub decode: fn(&QueryResult) -> Result<T, DbErr>,
    /// Returns the position of a decoded row.
    pub position: fn(&T) -> ListPosition,
}

/// Returns the newest of the selected traces. Rows and index are read with `connection`, which may have a snapshot.
///
/// # Errors
/// Fails when the database fails or the trace index is damaged.
pub async fn rows<T>(
    db: &Db,
    connection: &impl ConnectionTrait,
    search: &IndexSearch<'_>,
    selection: &Selection<T>,
) -> Result<Vec<T>, DbErr> {
    let IndexSearch { tenant, filter, after, limit, .. } = *search;
    if limit == 0 {
        return Ok(Vec::new());
    }
    let terms = search.terms();
    let position = selection.position;
    let mut found = fetch(connection, tail_rows(db, search, selection), selection.decode).await?;
    // The join with the rows need not keep their order.
    found.sort_unstable_by_key(|it| Reverse(position(it)));
    let mut candidates = Candidates::open(db, connection, tenant, &terms, before(filter, after)).await?;
    let mut wanted = limit;
    loop {
        // Candidates older than a full page cannot be on it.
        let oldest = match found.get(limit - 1) {
            Some(last) => position(last),
            None => oldest(filter),
        };
        wanted = wanted.min(MAX_CANDIDATES_PER_READ);
        let block = candidates.next(wanted, oldest).await?;
        if !block.is_empty() {
            // A row may have another start than the index says, because a late span has changed it; it is listed where
            // it is now.
            let sql = select_candidates(db, search, &selection.columns, selection.condition, &block);
            found.append(&mut fetch(connection, sql, selection.decode).await?);
        }
        found.retain(|it| after.is_none_or(|after| position(it) < after));
        found.sort_unstable_by_key(|it| Reverse(position(it)));
        // A trace is in the tail and in a run if it was indexed between the two reads, and in several runs after a change.
        let mut keys = HashSet::with_capacity(found.len());
        found.retain(|it| keys.insert(position(it).1));
        found.truncate(limit);
        if block.len() < wanted {
            return Ok(found);
        }
        // Few candidates match, so more are compared at once.
        wanted *= 2;
    }
}

/// Returns the position of a row that begins with its start and its key.
///
/// # Errors
/// Fails when the columns have other types.
pub fn read_position(row: &QueryResult) -> Result<ListPosition, DbErr> {
    Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?))
}

/// Selects complete rows.
pub fn complete_rows() -> Selection<trace::Model> {
    Selection { columns: trace::Model::select("t"), condition: "", decode: bulk::decode, position }
}

/// Returns the number of traces that match a filter without words.
///
/// # Errors
/// Fails when the database fails or the trace index is damaged.
pub async fn count(db: &Db, tenant: Uuid, filter: &TraceConditions) -> Result<i64, DbErr> {
    let limit = MAX_CANDIDATES_PER_READ;
    let search = IndexSearch { tenant, filter, sessions: SessionScope::AllTraces, after: None, limit };
    let terms = search.terms();
    let mut sql = Sql::new(tenant);
    sql.push(&format!("SELECT DISTINCT t.key FROM {}", tail::from_tail(db.dialect)));
    search.add_conditions(&mut sql, db.dialect);
    let in_tail: Vec<i64> = fetch(&db.read, sql, |it| it.try_get_by_index(0)).await?;
    let in_tail: HashSet<i64> = in_tail.into_iter().collect();
    let mut candidates = Candidates::open(db, &db.read, tenant, &terms, before(filter, None)).await?;
    let mut count = i64::try_from(in_tail.len()).unwrap_or(i64::MAX);
    loop {
        let block = candidates.next(limit, oldest(filter)).await?;
        if block.is_empty() {
            return Ok(count);
        }
        let sql = select_candidates(db, &search, "t.started_at, t.key", "", &block);
        let places: HashSet<&ListPosition> = block.iter().collect();
        let matching: Vec<ListPosition> = fetch(&db.read, sql, read_position).await?;
        let indexed = matching.iter().filter(|it| places.contains(it) && !in_tail.contains(&it.1));
        count += i64::try_from(indexed.count()).unwrap_or(i64::MAX);
    }
}

/// Returns the position before which candidates are read.
fn before(filter: &TraceConditions, after: Option<ListPosition>) -> Option<ListPosition> {
    let latest = filter.to.map(|it| (it.saturating_add(1), i64::MIN));
    after.into_iter().chain(latest).min()
}

/// Returns the oldest position that the filter permits.
fn oldest(filter: &TraceConditions) -> ListPosition {
    (filter.from.unwrap_or(i64::MIN), i64::MIN)
}

/// Selects the newest matching rows of the tail.
fn tail_rows<T>(db: &Db, search: &IndexSearch<'_>, selection: &Selection<T>) -> Sql {
    let IndexSearch { tenant, after, limit, .. } = *search;
    let Selection { columns, condition, .. } = selection;
    let mut sql = Sql::new(tenant);
    let tail = tail::from_tail(db.dialect);
    sql.push(&format!("SELECT {columns} FROM (SELECT DISTINCT t.started_at, t.key FROM {tail}{condition}"));
    sql.and_older("t", "key", after);
    search.add_conditions(&mut sql, db.dialect);
    // `CROSS JOIN` makes SQLite keep the order of the tables.
    sql.push(&format!(
        " ORDER BY t.started_at DESC, t.key DESC LIMIT {limit}) p CROSS JOIN trace t{} \
         WHERE t.tenant_id = $1 AND t.key = p.key",
        db.dialect.primary_key_hint()
    ));
    sql
}

/// Selects the candidates that match the filter.
fn select_candidates(
    db: &Db,
    search: &IndexSearch<'_>,
    columns: &str,
    condition: &str,
    candidates: &[ListPosition],
) -> Sql {
    let mut sql = Sql::new(search.tenant);
    let hint = db.dialect.primary_key_hint();
    let places: Vec<String> = candidates.iter().map(|it| sql.arg(it.1)).collect();
    sql.push(&format!(
        "SELECT {columns} FROM trace t{hint} WHERE t.tenant_id = $1 AND t.key IN ({}){condition}",
        places.join(",")
    ));
    search.add_conditions(&mut sql, db.dialect);
    sql
}

async fn fetch<T>(
    connection: &impl ConnectionTrait,
    sql: Sql,
    decode: fn(&QueryResult) -> Result<T, DbErr>,
) -> Result<Vec<T>, DbErr> {
    let statement = Statement::from_sql_and_values(connection.get_database_backend(), sql.text, sql.values);
    connection.query_all_raw(statement).await?.iter().map(decode).collect()
}
