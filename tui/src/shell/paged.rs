//! A list whose pages are loaded as the cursor approaches its end, and whose first page is requested repeatedly.

use api::Timestamp;
use uuid::Uuid;

use super::{Older, Shell, notice::describe, trouble};
use crate::{keymap::Action, net::NetError, travel};

/// Maximum number of rows that are kept; further pages are not requested.
pub const MAX_PAGED_ROWS: usize = 2_000;
/// Older rows are requested when the cursor is this many rows from the last loaded one.
const PREFETCH_ROWS: usize = 10;

/// A row of a list that the server sorts by a time and an ID, in descending order.
pub trait PagedRow {
    /// Returns the ID.
    fn id(&self) -> Uuid;
    /// Returns the time by which the server sorts the list.
    fn time(&self) -> Timestamp;
}

/// A page of rows.
#[derive(Debug)]
pub struct RowPage<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// The cursor of the next page.
    pub next_cursor: Option<String>,
}

/// The loaded rows of a list, newest first.
#[derive(Debug)]
pub struct PagedRows<T> {
    /// The rows.
    pub items: Vec<T>,
    /// The row under the cursor.
    pub selected: usize,
    /// Whether a response has arrived.
    pub loaded: bool,
    /// The error of the last request for the first page, if it failed.
    pub error: Option<NetError>,
    /// The cursor of the older rows.
    pub older: Option<Older>,
    /// Time at which the first page last arrived.
    pub heard: Option<Timestamp>,
    /// Time at which to request the first page again.
    pub next: Option<Timestamp>,
    failures: u32,
}

impl<T> Default for PagedRows<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            selected: 0,
            loaded: false,
            error: None,
            older: None,
            heard: None,
            next: None,
            failures: 0,
        }
    }
}

impl<T: PagedRow> PagedRows<T> {
    /// Returns the row under the cursor.
    pub fn current(&self) -> Option<&T> {
        self.items.get(self.selected)
    }

    /// Stores a fresh first page. Older rows stay if the page reaches the loaded ones, and the cursor stays on its
    /// row. `sent` is the instant from which the times of the filter count.
    pub fn renew(&mut self, page: RowPage<T>, sent: Timestamp, now: Timestamp, interval: i64) {
        let current = self.current().map(PagedRow::id);
        let order = |row: &T| (row.time().micros(), row.id());
        let more = page.has_more && page.next_cursor.is_some();
        let is_loaded = |row: &T| self.items.iter().any(|it| it.id() == row.id());
        let reaches = more && page.rows.iter().any(is_loaded);
        let end = page.rows.last().map(order);
        let listed: Vec<Uuid> = page.rows.iter().map(PagedRow::id).collect();
        let mut rows = page.rows;
        // A row between the first and the last one of the page that the page does not contain is gone.
        let kept =
            |row: &T| reaches && end.is_some_and(|end| order(row) < end) && !listed.contains(&row.id());
        let before = rows.len();
        rows.extend(std::mem::take(&mut self.items).into_iter().filter(kept));
        rows.truncate(MAX_PAGED_ROWS);
        if rows.len() == before {
            self.older = Older::of(page.next_cursor, page.has_more, sent);
        }
        self.items = rows;
        let position = current.and_then(|id| self.items.iter().position(|row| row.id() == id));
        self.selected = position.unwrap_or_else(|| self.selected.min(self.items.len().saturating_sub(1)));
        self.loaded = true;
        self.error = None;
        self.failures = 0;
        self.heard = Some(now);
        self.next = Some(Timestamp::from_micros(now.micros() + interval));
    }

    /// Adds an older page.
    pub fn extend(&mut self, page: RowPage<T>, sent: Timestamp) {
        for row in page.rows {
            if !self.items.iter().any(|it| it.id() == row.id()) {
                self.items.push(row);
            }
        }
        self.items.truncate(MAX_PAGED_ROWS);
        self.older = Older::of(page.next_cursor, page.has_more && self.items.len() < MAX_PAGED_ROWS, sent);
    }

    /// Records that the request for the first page failed, and when to repeat it. Each problem is logged once; a panel
    /// explains a plan or a role that is too low.
    pub fn fail(&mut self, shell: &mut Shell, interval: i64, error: NetError) {
        self.failures = self.failures.saturating_add(1);
        let wait = trouble::backoff(shell, interval, self.failures, &error);
        self.next = shell.after(wait);
        if trouble::is_new(self.error.as_ref(), &error) && !matches!(error.status, Some(402 | 403)) {
            shell.report(describe(&error));
        }
        self.error = Some(error);
    }

    /// Returns whether the first page is to be requested again.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.next.is_some_and(|at| at <= now)
    }

    /// Moves the cursor. Returns whether the action is a movement.
    pub fn travel(&mut self, action: Action, page: usize) -> bool {
        let last = self.items.len().saturating_sub(1);
        let to = travel::to(action, self.selected, last, page);
        self.selected = to.unwrap_or(self.selected);
        to.is_some()
    }

    /// Returns where the older rows begin, if the cursor is near the last loaded row.
    pub fn missing_older(&self) -> Option<Older> {
        self.older.clone().filter(|_| self.selected + PREFETCH_ROWS >= self.items.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::id;

    #[derive(Debug, PartialEq)]
    struct NumberedRow(i64);

    impl PagedRow for NumberedRow {
        fn id(&self) -> Uuid {
            id(self.0.unsigned_abs().into())
        }

        fn time(&self) -> Timestamp {
            Timestamp::from_micros(self.0)
        }
    }

    fn page(numbers: &[i64], next: Option<&str>) -> RowPage<NumberedRow> {
        let rows = numbers.iter().copied().map(NumberedRow).collect();
        RowPage { rows, has_more: next.is_some(), next_cursor: next.map(str::to_owned) }
    }

    fn loaded() -> PagedRows<NumberedRow> {
        let mut rows = PagedRows::default();
        let now = Timestamp::from_micros(100);
        rows.renew(page(&[9, 8, 7], Some("a")), now, now, 10);
        rows.extend(page(&[6, 5], Some("b")), now);
        rows
    }

    fn renewed(numbers: &[i64], next: Option<&str>) -> (Vec<i64>, Option<String>) {
        let mut rows = loaded();
        let now = Timestamp::from_micros(200);
        rows.renew(page(numbers, next), now, now, 10);
        (rows.items.iter().map(|row| row.0).collect(), rows.older.map(|it| it.cursor))
    }

    #[test]
    fn renewed_page_keeps_older_rows_that_it_reaches() {
        let older = |cursor: &str| Some(cursor.to_owned());
        assert_eq!(renewed(&[10, 9, 8], Some("c")), (vec![10, 9, 8, 7, 6, 5], older("b")));
        assert_eq!(renewed(&[9, 7, 6], Some("c")), (vec![9, 7, 6, 5], older("b")), "8 is gone");
        assert_eq!(
            renewed(&[20, 19, 18], Some("c")),
            (vec![20, 19, 18], older("c")),
            "rows are missing between"
        );
        assert_eq!(renewed(&[9, 6], None), (vec![9, 6], None), "the page is the whole list");
    }

    #[test]
    fn cursor_stays_on_its_row_or_within_the_list() {
        let mut rows = loaded();
        assert!(rows.travel(Action::Down, 5) && !rows.travel(Action::Sort, 5));
        let now = Timestamp::from_micros(200);
        rows.renew(page(&[11, 10, 9, 8], None), now, now, 10);
        assert_eq!(rows.current(), Some(&NumberedRow(8)));
        rows.renew(page(&[11], None), now, now, 10);
        assert_eq!(rows.current(), Some(&NumberedRow(11)));
        rows.renew(page(&[], None), now, now, 10);
        assert!(rows.current().is_none() && rows.loaded);
    }
}
