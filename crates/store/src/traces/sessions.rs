//! Pages of sessions, by the start of their newest trace.
//!
//! Traces with a session are read by time, newest first. The first trace of a session is its newest, unless
//! the session has a newer trace before the page and was listed there. Then the traces of the sessions on the page are
//! summed up.

use std::collections::{HashMap, HashSet};

use api::trace_filter::TraceConditions;
use sea_orm::DbErr;
use uuid::Uuid;

use crate::{
    db::Db,
    trace_filters::{ListPosition, SessionScope},
    trace_index::search::{self, IndexSearch, Selection},
};

/// Number of traces read at once.
const TRACES_PER_READ: usize = 1_000;
/// Maximum number of traces that one request reads to find sessions.
const MAX_TRACES_READ: usize = 10_000;
/// Number of traces that are summed up at once.
const SUMMED_TRACES_PER_READ: usize = 5_000;
/// Number of sessions that one search looks for.
const SESSIONS_PER_SEARCH: usize = 50;
/// Number of searches for newer traces of sessions after which a request returns what it found.
const MAX_SEARCHES: usize = 100;

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

impl SessionSums {
    fn add(&mut self, other: &Self) {
        self.traces += other.traces;
        self.errors += other.errors;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.cost = match (self.cost, other.cost) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        self.tokens += other.tokens;
    }
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
    let traces = SessionTraces { db, tenant, filter };
    let mut seen = HashSet::new();
    let mut listed: Vec<(ListPosition, String)> = Vec::new();
    let (mut at, mut traces_read, mut searches) = (after, 0, 0);
    let next = 'pages: loop {
        let block = traces.read(SessionScope::InAnySession, at, TRACES_PER_READ, &session()).await?;
        let count = block.len();
        traces_read += count;
        at = block.last().map(|it| it.0).or(at);
        let newest: Vec<_> = block.into_iter().filter(|it| seen.insert(it.1.clone())).collect();
        for some in newest.chunks(SESSIONS_PER_SEARCH) {
            let begun = match after {
                Some(start) => traces.begun_before(some, start, &mut searches).await?,
                None => HashSet::new(),
            };
            listed.extend(some.iter().filter(|it| !begun.contains(&it.1)).cloned());
            if listed.len() > limit {
                break;
            }
            if searches >= MAX_SEARCHES {
                break 'pages some.last().map(|it| it.0);
            }
        }
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
    let mut sums = traces.sum_up(&ids).await?;
    Ok(SessionPage { rows: ids.iter().filter_map(|it| sums.remove(it)).collect(), next })
}

/// The traces that belong to sessions and match a filter.
struct SessionTraces<'a> {
    db: &'a Db,
    tenant: Uuid,
    filter: &'a TraceConditions,
}

impl SessionTraces<'_> {
    /// Returns the next traces of the scope after a position, newest first.
    async fn read<T>(
        &self,
        sessions: SessionScope<'_>,
        after: Option<ListPosition>,
        limit: usize,
        selection: &Selection<(ListPosition, T)>,
    ) -> Result<Vec<(ListPosition, T)>, DbErr> {
        let Self { db, tenant, filter } = *self;
        let search = IndexSearch { tenant, filter, sessions, after, limit };
        search::rows(db, &db.read, &search, selection).await
    }

    /// Returns the given sessions that have a matching trace at `start` or newer. Counts the searches.
    async fn begun_before(
        &self,
        sessions: &[(ListPosition, String)],
        start: ListPosition,
        searches: &mut usize,
    ) -> Result<HashSet<String>, DbErr> {
        let from = Some(self.filter.from.map_or(start.0, |it| it.max(start.0)));
        let filter = TraceConditions { from, ..self.filter.clone() };
        let traces = SessionTraces { filter: &filter, ..*self };
        let mut unknown: Vec<String> = sessions.iter().map(|it| it.1.clone()).collect();
        let (mut begun, mut after) = (HashSet::new(), None);
        while !unknown.is_empty() {
            *searches += 1;
            let scope = SessionScope::InSessions(&unknown);
            let rows = traces.read(scope, after, SESSIONS_PER_SEARCH, &session()).await?;
            after = rows.last().map(|it| it.0);
            let is_last = rows.len() < SESSIONS_PER_SEARCH;
            begun.extend(rows.into_iter().filter(|it| it.0 >= start).map(|it| it.1));
            if is_last {
                break;
            }
            // A session that was found is not searched for again, however many traces it has.
            unknown.retain(|it| !begun.contains(it));
        }
        Ok(begun)
    }

    async fn sum_up(&self, sessions: &[String]) -> Result<HashMap<String, SessionSums>, DbErr> {
        let mut sums: HashMap<String, SessionSums> = HashMap::with_capacity(sessions.len());
        for some in sessions.chunks(SESSIONS_PER_SEARCH) {
            let mut after = None;
            loop {
                let scope = SessionScope::InSessions(some);
                let rows = self.read(scope, after, SUMMED_TRACES_PER_READ, &summed()).await?;
                let is_last = rows.len() < SUMMED_TRACES_PER_READ;
                after = rows.last().map(|it| it.0);
                for (_, of_trace) in rows {
                    match sums.get_mut(&of_trace.session_id) {
                        Some(sum) => sum.add(&of_trace),
                        None => _ = sums.insert(of_trace.session_id.clone(), of_trace),
                    }
                }
                if is_last {
                    break;
                }
            }
        }
        Ok(sums)
    }
}

/// Selects the session of each trace.
fn session() -> Selection<(ListPosition, String)> {
    Selection {
        columns: "t.started_at, t.key, t.session_id".to_owned(),
        condition: "",
        decode: |row| Ok((search::read_position(row)?, row.try_get_by_index(2)?)),
        position: |it| it.0,
    }
}

/// Selects the values of each trace that are summed up.
fn summed() -> Selection<(ListPosition, SessionSums)> {
    Selection {
        columns: "t.started_at, t.key, t.session_id, t.error IS NOT NULL, t.cost, t.total_tokens".to_owned(),
        condition: "",
        decode: |row| {
            let at = search::read_position(row)?;
            // As floating-point numbers, because a sum of integers may overflow.
            let sums = SessionSums {
                session_id: row.try_get_by_index(2)?,
                traces: 1,
                errors: i64::from(row.try_get_by_index::<bool>(3)?),
                first: at.0,
                last: at.0,
                cost: row.try_get_by_index::<Option<i64>>(4)?.map(|it| it as f64),
                tokens: row.try_get_by_index::<i64>(5)? as f64,
            };
            Ok((at, sums))
        },
        position: |it| it.0,
    }
}
