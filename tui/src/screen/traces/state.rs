//! The loaded traces: a bounded, ordered set with a cursor, sorting and find.
//!
//! Rows are kept newest first. While the list is paused, new traces are held back, so that no
//! row moves while it is read. The requests are in [`super::feed`].

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use api::{Timestamp, trace::Trace};
use uuid::Uuid;

use crate::{
    find,
    net::TraceQuery,
    screen::traces::detail::Detail,
    shell::{Older, Pending, RequestPurpose, Shell},
};

/// Maximum number of traces that are kept; older ones are dropped.
pub const MAX_TRACES: usize = 5_000;

/// The purpose of an open request of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracesRequest {
    /// The first page of the list.
    First,
    /// An older page, with a filter whose times count from this instant.
    Older(Timestamp),
    /// The newest page again.
    Newest,
    /// A page between the newest one and the known rows, with a filter whose times count from this instant.
    Gap(Timestamp),
    /// The opened trace.
    Trace(Uuid),
    /// More spans of the opened trace.
    Spans(Uuid),
    /// The evaluations of the opened trace.
    TraceEvals(Uuid),
    /// The rules of the opened trace's project.
    TraceRules(Uuid),
    /// The decision of a rule on the opened trace.
    TraceDecision(Uuid),
}

impl TracesRequest {
    /// Returns whether the response shows that the list is current.
    pub const fn is_of_feed(self) -> bool {
        matches!(self, Self::First | Self::Newest | Self::Gap(_))
    }
}

impl RequestPurpose for TracesRequest {
    fn is_shown(self) -> bool {
        matches!(
            self,
            Self::First
                | Self::Older(_)
                | Self::Trace(_)
                | Self::Spans(_)
                | Self::TraceEvals(_)
                | Self::TraceRules(_)
        )
    }
}

/// The filter of the list.
#[derive(Debug, Default)]
pub struct TraceFilter {
    /// The filter text that is applied.
    pub text: String,
    /// Texts used before, oldest first.
    pub history: Vec<String>,
}

/// The state of the screen.
#[derive(Debug)]
pub struct Traces {
    /// The loaded traces.
    pub list: TraceRows,
    /// The opened trace.
    pub detail: Option<Detail>,
    /// The filter of the list.
    pub filter: TraceFilter,
    /// Open requests.
    pub pending: Pending<TracesRequest>,
}

impl Default for Traces {
    fn default() -> Self {
        Self {
            list: TraceRows::new(),
            detail: None,
            filter: TraceFilter::default(),
            pending: Pending::default(),
        }
    }
}

impl Traces {
    /// Returns the query of the list.
    pub fn query(&self, shell: &Shell) -> TraceQuery {
        self.query_at(shell, shell.now)
    }

    /// Returns the query of the list, with times that count from the given instant. The filter was checked
    /// before, so it parses.
    pub fn query_at(&self, shell: &Shell, at: Timestamp) -> TraceQuery {
        let filter = shell.parse_at(&self.filter.text, at).unwrap_or_default();
        TraceQuery { filter, project: shell.project_id() }
    }

    /// Returns whether the filter selects failed traces only.
    pub fn failures_only(&self, shell: &Shell) -> bool {
        shell.parse(&self.filter.text).is_ok_and(|filter| filter.param("error") == Some("true"))
    }
}

/// Order of the rows on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Newest first, the only order in which the list can be followed.
    #[default]
    Time,
    /// Slowest first.
    Latency,
    /// Most tokens first.
    Tokens,
    /// Highest cost first.
    Cost,
    /// Failed ones first.
    Errors,
}

impl Sort {
    /// Returns the order after this one; the first follows the last.
    pub const fn next(self) -> Self {
        match self {
            Self::Time => Self::Latency,
            Self::Latency => Self::Tokens,
            Self::Tokens => Self::Cost,
            Self::Cost => Self::Errors,
            Self::Errors => Self::Time,
        }
    }

    /// Returns the name in the status line.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Time => "newest",
            Self::Latency => "slowest",
            Self::Tokens => "most tokens",
            Self::Cost => "dearest",
            Self::Errors => "errors first",
        }
    }
}

/// The loaded traces.
#[derive(Debug, Default)]
pub struct TraceRows {
    /// Newest first.
    rows: Vec<Arc<Trace>>,
    /// Traces that arrived while the list was paused, newest first.
    waiting: Vec<Arc<Trace>>,
    /// Indices of `rows` in the order of the screen.
    order: Vec<usize>,
    /// Position within `order`.
    selected: usize,
    /// The row order.
    pub sort: Sort,
    /// Whether the cursor stays on the newest trace.
    pub follow: bool,
    /// Whether new traces are held back.
    pub paused: bool,
    /// The cursor of the older rows.
    pub older: Option<Older>,
    /// Whether rows were dropped or not read because the list is full.
    pub full: bool,
    /// Whether a page has arrived.
    pub loaded: bool,
    /// The 95th percentile of the latencies, in milliseconds.
    pub p95: Option<i64>,
    /// Loaded rows that failed.
    pub errors: usize,
    /// Words that find looks for, in lower case.
    find: Option<String>,
    /// The rows that match. They are kept, because the texts of thousands of rows are too long to be
    /// searched for each frame.
    hits: HashSet<Uuid>,
}

impl TraceRows {
    /// Returns a list that follows the newest trace.
    pub fn new() -> Self {
        Self { follow: true, ..Self::default() }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns whether no trace is loaded.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the number of traces held back.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the row at a position of the screen's order.
    pub fn get(&self, at: usize) -> Option<&Arc<Trace>> {
        self.order.get(at).and_then(|index| self.rows.get(*index))
    }

    /// Returns the position of the cursor.
    pub fn selected(&self) -> usize {
        self.selected
    }

    /// Returns the row under the cursor.
    pub fn current(&self) -> Option<&Arc<Trace>> {
        self.get(self.selected)
    }

    /// Returns the position of a trace in the screen's order.
    pub fn position(&self, id: Uuid) -> Option<usize> {
        self.order.iter().position(|index| self.rows.get(*index).is_some_and(|row| row.id == id))
    }

    /// Returns whether a trace is slower than 19 of 20 loaded ones.
    pub fn slow(&self, trace: &Trace) -> bool {
        matches!((trace.latency_ms, self.p95), (Some(ms), Some(p95)) if ms > p95)
    }

    /// Puts the cursor on a row, or on the last one if the position is beyond it. Leaving the newest row
    /// pauses the list, so that the selected row does not move.
    pub fn select(&mut self, at: usize) {
        self.selected = at.min(self.len().saturating_sub(1));
        if self.selected > 0 {
            self.follow = false;
            self.paused = true;
        }
    }

    /// Puts the cursor on a trace, if it is loaded.
    pub fn select_id(&mut self, id: Uuid) {
        if let Some(at) = self.position(id) {
            self.select(at);
        }
    }

    /// Ends a pause: the traces held back join the list, and the cursor goes to the newest.
    pub fn resume(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        self.paused = false;
        self.follow = true;
        self.sort = Sort::Time;
        self.selected = 0;
        merge(&mut self.rows, waiting);
        self.settle(None);
    }

    /// Holds back new traces from now on.
    pub fn pause(&mut self) {
        self.paused = true;
        self.follow = false;
    }

    /// Changes the order of the rows and moves the cursor to the first one. Ordered by time, a list that is
    /// not paused follows new traces again.
    pub fn set_sort(&mut self, sort: Sort) {
        self.sort = sort;
        self.follow = sort == Sort::Time && !self.paused;
        self.selected = 0;
        self.settle(None);
    }

    /// Adds a page of older rows.
    pub fn extend(&mut self, traces: Vec<Trace>) {
        let current = self.current().map(|row| row.id);
        let traces: Vec<Arc<Trace>> = traces.into_iter().map(Arc::new).collect();
        self.check_hits(&traces);
        merge(&mut self.rows, traces);
        self.loaded = true;
        self.settle(if self.follow { None } else { current });
    }

    /// Stores traces that are new or changed. Returns how many are new.
    pub fn arrive(&mut self, traces: Vec<Trace>) -> usize {
        let current = self.current().map(|row| row.id);
        let known: HashMap<Uuid, usize> =
            self.rows.iter().enumerate().map(|(at, row)| (row.id, at)).collect();
        let mut fresh = Vec::new();
        let traces: Vec<Arc<Trace>> = traces.into_iter().map(Arc::new).collect();
        self.check_hits(&traces);
        for trace in traces {
            match known.get(&trace.id).and_then(|at| self.rows.get_mut(*at)) {
                Some(row) => *row = trace,
                None => fresh.push(trace),
            }
        }
        let waited = self.waiting.iter().filter(|row| fresh.iter().any(|it| it.id == row.id)).count();
        let count = fresh.len() - waited.min(fresh.len());
        if self.paused && self.loaded {
            merge(&mut self.waiting, fresh);
            self.waiting.truncate(MAX_TRACES);
        } else {
            merge(&mut self.rows, fresh);
        }
        self.loaded = true;
        self.settle(if self.follow { None } else { current });
        count
    }

    /// Returns whether a trace is loaded or held back.
    pub fn knows(&self, id: Uuid) -> bool {
        self.rows.iter().chain(&self.waiting).any(|row| row.id == id)
    }

    /// Returns the words that find looks for.
    pub fn find(&self) -> Option<&str> {
        self.find.as_deref()
    }

    /// Looks for other words, in lower case, or for none.
    pub fn set_find(&mut self, words: Option<String>) {
        self.find = words;
        self.hits = match &self.find {
            Some(words) => self.rows.iter().filter(|row| matches(row, words)).map(|row| row.id).collect(),
            None => HashSet::new(),
        };
    }

    /// Returns whether the words of find occur in the row at a position.
    pub fn hit(&self, at: usize) -> bool {
        self.get(at).is_some_and(|row| self.hits.contains(&row.id))
    }

    /// Updates the matches of find for rows that are added to the list.
    fn check_hits(&mut self, rows: &[Arc<Trace>]) {
        let Some(words) = &self.find else { return };
        for row in rows {
            if matches(row, words) {
                self.hits.insert(row.id);
            } else {
                self.hits.remove(&row.id);
            }
        }
    }

    /// Looks for the next row that matches the text of find, starting at the cursor and wrapping around at
    /// the end.
    pub fn find_from(&self, forward: bool) -> Option<usize> {
        self.find.as_ref()?;
        find::next(self.len(), self.selected, forward, |at| self.hit(at))
    }

    /// Returns the number of the match at or before the cursor, from 1, and the number of matches.
    pub fn hits(&self) -> Option<(usize, usize)> {
        self.find.as_ref()?;
        Some(find::counted(self.len(), self.selected, |at| self.hit(at)))
    }

    /// Recomputes everything that depends on the rows. The cursor goes to `current`, if given.
    fn settle(&mut self, current: Option<Uuid>) {
        self.rows.sort_by(newest_first);
        if self.rows.len() > MAX_TRACES {
            for gone in self.rows.drain(MAX_TRACES..) {
                self.hits.remove(&gone.id);
            }
            // The dropped rows lie between the kept ones and the cursor of the next page.
            self.older = None;
            self.full = true;
        }
        self.order = (0..self.rows.len()).collect();
        let rows = &self.rows;
        let by = |key: fn(&Trace) -> i64| move |a: &usize, b: &usize| key(&rows[*b]).cmp(&key(&rows[*a]));
        match self.sort {
            Sort::Time => {}
            Sort::Latency => self.order.sort_by(by(|row| row.latency_ms.unwrap_or(-1))),
            Sort::Tokens => self.order.sort_by(by(|row| row.total_token_count)),
            Sort::Errors => self.order.sort_by(by(|row| i64::from(row.error.is_some()))),
            Sort::Cost => self
                .order
                .sort_by(|a, b| rows[*b].cost.unwrap_or(-1.0).total_cmp(&rows[*a].cost.unwrap_or(-1.0))),
        }
        let mut latencies: Vec<i64> = self.rows.iter().filter_map(|row| row.latency_ms).collect();
        latencies.sort_unstable();
        self.p95 = latencies.get((latencies.len() * 95).div_ceil(100).saturating_sub(1)).copied();
        self.errors = self.rows.iter().filter(|row| row.error.is_some()).count();
        self.selected =
            current.and_then(|id| self.position(id)).unwrap_or(if current.is_none() && self.follow {
                0
            } else {
                self.selected.min(self.order.len().saturating_sub(1))
            });
    }
}

/// Returns whether the words of find occur in the columns of a row, its error or its tags.
fn matches(trace: &Trace, needle: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(needle);
    let texts = [
        &trace.name,
        &trace.model,
        &trace.error,
        &trace.external_id,
        &trace.session_id,
        &trace.input,
        &trace.output,
    ];
    texts.into_iter().flatten().any(|text| has(text))
        || trace.tags.iter().any(|tag| has(tag))
        || has(&trace.id.to_string())
}

fn newest_first(a: &Arc<Trace>, b: &Arc<Trace>) -> Ordering {
    (b.started_at, b.id).cmp(&(a.started_at, a.id))
}

/// Adds rows to an ordered list; a row of the same id is replaced.
fn merge(rows: &mut Vec<Arc<Trace>>, more: Vec<Arc<Trace>>) {
    let mut at: HashMap<Uuid, usize> = rows.iter().enumerate().map(|(at, row)| (row.id, at)).collect();
    for trace in more {
        match at.get(&trace.id).copied() {
            Some(known) => rows[known] = trace,
            None => {
                at.insert(trace.id, rows.len());
                rows.push(trace);
            }
        }
    }
    rows.sort_by(newest_first);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{BASE_MICROS, trace};

    fn seconds(list: &TraceRows) -> Vec<i64> {
        (0..list.len())
            .filter_map(|at| list.get(at))
            .map(|row| (row.started_at.micros() - BASE_MICROS) / 1_000_000)
            .collect()
    }

    #[test]
    fn arriving_rows_are_ordered_and_never_doubled() {
        let mut list = TraceRows::new();
        list.arrive(vec![trace(1), trace(3)]);
        assert_eq!(list.arrive(vec![trace(2), trace(3)]), 1);
        assert_eq!(seconds(&list), [3, 2, 1]);
        assert_eq!(list.selected(), 0);
    }

    #[test]
    fn moving_down_pauses_and_resuming_adds_the_waiting_rows() {
        let mut list = TraceRows::new();
        list.extend(vec![trace(3), trace(2), trace(1)]);
        list.select(1);
        assert_eq!(list.arrive(vec![trace(4), trace(5)]), 2);
        assert_eq!(list.arrive(vec![trace(5)]), 0);
        assert_eq!((list.waiting(), list.selected(), list.len()), (2, 1, 3));
        list.resume();
        assert_eq!(seconds(&list), [5, 4, 3, 2, 1]);
        assert_eq!((list.waiting(), list.selected()), (0, 0));
    }

    #[test]
    fn older_pages_leave_the_cursor_on_its_trace() {
        let mut list = TraceRows::new();
        list.extend(vec![trace(9), trace(8)]);
        list.select(1);
        list.extend(vec![trace(7), trace(6)]);
        assert_eq!(list.current().map(|row| row.id), Some(trace(8).id));
    }

    #[test]
    fn sorting_returns_to_the_top() {
        let mut list = TraceRows::new();
        let mut slow = trace(7);
        slow.latency_ms = Some(60_000);
        list.extend(vec![trace(9), trace(8), slow]);
        list.select(1);
        list.set_sort(Sort::Latency);
        assert_eq!((list.selected(), list.current().map(|row| row.id)), (0, Some(trace(7).id)));
        list.set_sort(Sort::Time);
        assert_eq!(list.selected(), 0);
        assert!(!list.follow, "the cursor was moved, so the list is paused");
        list.resume();
        list.set_sort(Sort::Latency);
        assert!(!list.follow, "rows that are not ordered by time can't be followed");
        list.set_sort(Sort::Time);
        assert!(list.follow);
    }

    #[test]
    fn full_list_drops_the_oldest_traces() {
        let mut list = TraceRows::new();
        list.older = Older::of(Some("older".into()), true, Timestamp::from_micros(BASE_MICROS));
        list.extend((0..MAX_TRACES as i64 + 5).map(trace).collect());
        assert_eq!(list.len(), MAX_TRACES);
        assert!(list.full && list.older.is_none());
        assert!(!list.knows(trace(0).id));
    }

    #[test]
    fn find_wraps_around_the_end() {
        let mut list = TraceRows::new();
        let mut odd = trace(2);
        odd.name = Some("Refund_Agent".into());
        list.extend(vec![trace(3), odd, trace(1)]);
        list.set_find(Some("refund".into()));
        assert_eq!(list.find_from(true), Some(1));
        list.select(1);
        assert_eq!(list.find_from(true), Some(1));
        assert_eq!(list.hits(), Some((1, 1)));
    }
}
