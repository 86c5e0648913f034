//! Pages of traces, newest first, and the changes since a position.
//!
//! Statements are SQL, because sea-orm has no index hints.

use api::trace_filter::TraceConditions;
use entities::trace;
use sea_orm::DbErr;
use uuid::Uuid;

use super::text::{Counted, TextBlocks, Texts};
use crate::{
    bulk::{self, Bulk},
    db::Db,
    error::Result,
    memory::MemoryAccount,
    trace_filters::{ListPosition, SessionScope, Sql, add_conditions, position},
    trace_index::search::{self, IndexSearch},
};

/// Rows of a list, with their texts.
#[derive(Debug, Default)]
pub struct Page {
    /// The traces with their texts, newest first.
    pub rows: Vec<(trace::Model, Texts)>,
    /// The position at which the next page begins; none on the last page.
    pub next: Option<ListPosition>,
}

/// Changed traces, and the position up to which they were read.
#[derive(Debug, Default)]
pub struct Changes {
    /// The traces, oldest change first.
    pub rows: Vec<trace::Model>,
    /// Time and ID of the last change read; none if there was none.
    pub last: Option<(i64, Uuid)>,
    /// Whether there may be more changes after the position.
    pub more: bool,
}

/// Number of bytes of text after which a page ends early.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Number of traces whose rows and small texts are read at once.
const ROWS_PER_READ: usize = 50;
/// Like [`ROWS_PER_READ`], for a search for words.
const SEARCHED_ROWS_PER_READ: usize = 100;
/// Maximum number of traces whose texts one request searches for words.
const MAX_SEARCHED_TRACES: usize = 2_000;

/// Reads the traces of a list one by one, newest first, with their texts.
pub struct TraceReader<'a> {
    db: &'a Db,
    tenant: Uuid,
    filter: &'a TraceConditions,
    /// Number of rows read at once.
    block: usize,
    rows: std::vec::IntoIter<trace::Model>,
    texts: Option<TextBlocks>,
    /// The last trace read.
    position: Option<ListPosition>,
    searched: usize,
    /// Whether the database may have more rows.
    more: bool,
}

/// A trace with its texts, and the number of bytes reserved for them.
pub type CountedTrace = (trace::Model, Counted<Texts>);

impl<'a> TraceReader<'a> {
    /// Opens a reader after the position `after`. The reader returns at most `limit` traces.
    ///
    /// # Errors
    /// Fails when the database fails.
    pub async fn open(
        db: &'a Db,
        tenant: Uuid,
        filter: &'a TraceConditions,
        after: Option<ListPosition>,
        limit: usize,
    ) -> Result<Self, DbErr> {
        let block = if filter.words.is_empty() { limit.min(ROWS_PER_READ) } else { SEARCHED_ROWS_PER_READ };
        let rows = Vec::new().into_iter();
        Ok(Self { db, tenant, filter, block, rows, texts: None, position: after, searched: 0, more: true })
    }

    /// Returns the position of the last trace read.
    pub fn position(&self) -> Option<ListPosition> {
        self.position
    }

    /// Returns whether unread traces are left.
    pub fn has_more(&self) -> bool {
        self.more || self.rows.len() > 0
    }

    /// Returns the next trace; none at the end, or when enough traces were searched for words. Memory for
    /// large texts is reserved.
    ///
    /// # Errors
    /// Fails with `overloaded` when there is no memory for large texts; internal when the database fails.
    pub async fn next(&mut self, memory: &mut impl MemoryAccount) -> Result<Option<CountedTrace>> {
        loop {
            let Some(row) = self.rows.next() else {
                if !self.more || self.searched >= MAX_SEARCHED_TRACES {
                    return Ok(None);
                }
                self.read_block().await?;
                continue;
            };
            let counted = match &self.texts {
                Some(texts) => texts.of_trace(self.db, &row, memory).await?,
                None => Counted::default(),
            };
            self.position = Some(position(&row));
            if holds(&row, &counted.texts, &self.filter.words) {
                return Ok(Some((row, counted)));
            }
            memory.release(counted.reserved);
        }
    }

    async fn read_block(&mut self) -> Result<(), DbErr> {
        let mut rows = narrow_page(self.db, self.tenant, self.filter, self.position, self.block + 1).await?;
        self.more = rows.len() > self.block;
        rows.truncate(self.block);
        if !self.filter.words.is_empty() {
            self.searched += rows.len();
        }
        self.texts = Some(TextBlocks::of_traces(self.db, self.tenant, &rows).await?);
        self.rows = rows.into_iter();
        Ok(())
    }
}

/// Returns a page of at most `limit` traces after the position `after`. A page with large texts or a
/// search for words can be shorter and still have `next`. Memory for large texts is reserved.
///
/// # Errors
/// Fails with `overloaded` when there is no memory for large texts; internal when the database fails.
pub async fn page(
    db: &Db,
    tenant: Uuid,
    filter: &TraceConditions,
    after: Option<ListPosition>,
    limit: usize,
    memory: &mut impl MemoryAccount,
) -> Result<Page> {
    let mut reader = TraceReader::open(db, tenant, filter, after, limit).await?;
    let (mut page, mut bytes) = (Page::default(), 0);
    while page.rows.len() < limit && bytes <= PAGE_BYTES {
        let Some((row, counted)) = reader.next(memory).await? else { break };
        bytes += counted.texts.bytes() + row.error.as_ref().map_or(0, String::len);
        page.rows.push((row, counted.texts));
    }
    page.next = if reader.has_more() { reader.position() } else { None };
    Ok(page)
}

/// Returns a page like [`page`], but without texts and without a text filter.
///
/// # Errors
/// Fails when the database fails.
pub async fn narrow_page(
    db: &Db,
    tenant: Uuid,
    filter: &TraceConditions,
    after: Option<ListPosition>,
    limit: usize,
) -> Result<Vec<trace::Model>, DbErr> {
    let search = IndexSearch { tenant, filter, sessions: SessionScope::AllTraces, after, limit };
    search::rows(db, &db.read, &search, &search::complete_rows()).await
}

/// Returns how many traces match a filter without words.
///
/// # Errors
/// Fails when the database fails.
pub async fn count(db: &Db, tenant: Uuid, filter: &TraceConditions) -> Result<i64, DbErr> {
    search::count(db, tenant, filter).await
}

/// Reads at most `limit` traces committed or changed after the (time of change, id) of `after`. Ignores
/// words.
///
/// # Errors
/// Fails when the database fails.
pub async fn changed_since(
    db: &Db,
    tenant: Uuid,
    filter: &TraceConditions,
    after: (i64, Uuid),
    limit: usize,
) -> Result<Changes, DbErr> {
    let mut sql = Sql::new(tenant);
    let (at, id) = (sql.arg(after.0), sql.arg(after.1));
    sql.push(&format!(
        "SELECT {} FROM trace t{} WHERE t.tenant_id = $1 AND t.updated_at >= {at} AND (t.updated_at > {at} OR t.id > {id})",
        trace::Model::select("t"),
        db.dialect.index_hint("ix_trace_updated")
    ));
    add_conditions(filter, &mut sql, "t", db.dialect);
    sql.push(&format!(" ORDER BY t.updated_at, t.id LIMIT {limit}"));
    let rows = fetch(db, sql).await?;
    let (last, more) = (rows.last().map(|it| (it.updated_at, it.id)), rows.len() == limit);
    Ok(Changes { rows, last, more })
}

/// Returns whether every word is contained in the name, the error or one of the texts, ignoring case.
pub fn holds(row: &trace::Model, texts: &Texts, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let fields: Vec<String> = [&row.name, &row.error, &texts.input, &texts.output]
        .into_iter()
        .filter_map(|it| it.as_deref().map(str::to_lowercase))
        .collect();
    words.iter().all(|word| fields.iter().any(|it| it.contains(word.as_str())))
}

async fn fetch(db: &Db, sql: Sql) -> Result<Vec<trace::Model>, DbErr> {
    bulk::fetch(&db.read, sql.text, sql.values).await
}
