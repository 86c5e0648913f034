//! Pages of traces, newest first, and the changes since a position.
//!
//! Statements are SQL, because sea-orm has no index hints and no unions of limited subqueries.

use api::trace_filter::{Bounds, FilterValue, Tag, TraceConditions};
use entities::trace;
use sea_orm::{ConnectionTrait, DbErr, IdenStatic, Statement, Value};
use uuid::Uuid;

use super::{
    access::{
        FilterAccess, MOST_SELECTIVE_FIRST, RangeColumns, TIME_INDEX, access, best_index, index_of,
        overlapping_classes,
    },
    conditions::{Sql, add_conditions},
    text::{Counted, TextBlocks, Texts},
};
use crate::{
    bulk::{self, Bulk},
    db::Db,
    error::Result,
    memory::MemoryAccount,
};

/// Rows of a list, with their texts.
#[derive(Debug, Default)]
pub struct Page {
    /// The traces with their texts, newest first.
    pub rows: Vec<(trace::Model, Texts)>,
    /// The position at which the next page begins; none on the last page.
    pub next: Option<(i64, Uuid)>,
}

/// Changed traces, and the position up to which they were read.
#[derive(Debug, Default)]
pub struct Changes {
    /// The traces, oldest change first.
    pub rows: Vec<trace::Model>,
    /// The position of the last change read; none if there was none.
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
/// Maximum number of values of a tag's key whose rows are merged; for more values, the list is scanned.
const MAX_MERGED_TAG_VALUES: i64 = 50;
/// Maximum number of classes of a range that is assumed to have rows in every class.
const MAX_ASSUMED_CLASSES: usize = 6;

/// Reads the traces of a list one by one, newest first, with their texts.
pub struct TraceReader<'a> {
    db: &'a Db,
    tenant: Uuid,
    filter: &'a TraceConditions,
    driver: Driver,
    /// Number of rows read at once.
    block: usize,
    rows: std::vec::IntoIter<trace::Model>,
    texts: Option<TextBlocks>,
    /// Start and id of the last trace read.
    position: Option<(i64, Uuid)>,
    searched: usize,
    /// Whether the database may have more rows.
    more: bool,
}

/// A trace with its texts, and the number of bytes reserved for them.
pub type CountedTrace = (trace::Model, Counted<Texts>);

impl<'a> TraceReader<'a> {
    /// Opens a reader after the (start, id) of `after`. The reader returns at most `limit` traces.
    ///
    /// # Errors
    /// Fails when the database fails.
    pub async fn open(
        db: &'a Db,
        tenant: Uuid,
        filter: &'a TraceConditions,
        after: Option<(i64, Uuid)>,
        limit: usize,
    ) -> Result<Self, DbErr> {
        let driver = driver(db, tenant, filter).await?;
        let block = if filter.words.is_empty() { limit.min(ROWS_PER_READ) } else { SEARCHED_ROWS_PER_READ };
        let rows = Vec::new().into_iter();
        Ok(Self {
            db,
            tenant,
            filter,
            driver,
            block,
            rows,
            texts: None,
            position: after,
            searched: 0,
            more: true,
        })
    }

    /// Returns the start and the id of the last trace read.
    pub fn position(&self) -> Option<(i64, Uuid)> {
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
            self.position = Some((row.started_at, row.id));
            if holds(&row, &counted.texts, &self.filter.words) {
                return Ok(Some((row, counted)));
            }
            memory.release(counted.reserved);
        }
    }

    async fn read_block(&mut self) -> Result<(), DbErr> {
        let mut rows =
            rows(self.db, self.tenant, self.filter, &self.driver, self.position, self.block + 1).await?;
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

/// Returns a page of at most `limit` traces after the (start, id) of `after`. A page with large texts or a
/// search for words can be shorter and still have `next`. Memory for large texts is reserved.
///
/// # Errors
/// Fails with `overloaded` when there is no memory for large texts; internal when the database fails.
pub async fn page(
    db: &Db,
    tenant: Uuid,
    filter: &TraceConditions,
    after: Option<(i64, Uuid)>,
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
    after: Option<(i64, Uuid)>,
    limit: usize,
) -> Result<Vec<trace::Model>, DbErr> {
    let driver = driver(db, tenant, filter).await?;
    rows(db, tenant, filter, &driver, after, limit).await
}

/// Returns how many traces match a filter without words.
///
/// # Errors
/// Fails when the database fails.
pub async fn count(db: &Db, tenant: Uuid, filter: &TraceConditions) -> Result<i64, DbErr> {
    let hint = db.dialect.index_hint(best_index(filter));
    let mut sql = Sql::new(tenant);
    sql.push(&format!("SELECT COUNT(*) FROM trace t{hint} WHERE t.tenant_id = $1"));
    add_conditions(filter, &mut sql, "t", db.dialect);
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql.text, sql.values);
    let row = db.read.query_one_raw(statement).await?;
    row.ok_or_else(|| DbErr::RecordNotFound("the number of traces".to_owned()))?.try_get_by_index(0)
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

/// The index or the rows along which a page is read.
#[derive(Clone, Debug, PartialEq)]
enum Driver {
    /// One index of `trace`.
    Index(&'static str),
    /// The rows of these tags.
    Tags(Vec<(String, String)>),
    /// The classes of a range, each ordered by time.
    Classes {
        /// The name of the index.
        index: &'static str,
        /// The column of the class.
        column: &'static str,
        /// The classes.
        classes: Vec<i16>,
    },
}

/// Selects the index or the rows along which the page is read: those of the most selective filter.
async fn driver(db: &Db, tenant: Uuid, filter: &TraceConditions) -> Result<Driver, DbErr> {
    for key in MOST_SELECTIVE_FIRST {
        let Some(value) = filter.value(*key) else { continue };
        let driver = match (access(*key), value) {
            (FilterAccess::TagRows, FilterValue::Tags(tags)) => tag_driver(db, tenant, tags).await?,
            (FilterAccess::Range(columns), FilterValue::Range(bounds)) => {
                let classes = classes_with_rows(db, tenant, columns, bounds).await?;
                Some(Driver::Classes { index: columns.index, column: columns.class.as_str(), classes })
            }
            _ => index_of(*key, value).map(Driver::Index),
        };
        if let Some(driver) = driver {
            return Ok(driver);
        }
    }
    Ok(Driver::Index(TIME_INDEX))
}

/// Returns the rows of tags along which a page is read; `None` if no tag has few enough values.
async fn tag_driver(db: &Db, tenant: Uuid, tags: &[Tag]) -> Result<Option<Driver>, DbErr> {
    let pair = tags.iter().find_map(|it| match it {
        Tag::Pair(key, value) => Some((key.clone(), value.clone())),
        Tag::Key(_) | Tag::Written(_) => None,
    });
    if let Some(pair) = pair {
        return Ok(Some(Driver::Tags(vec![pair])));
    }
    let Some(Tag::Key(key)) = tags.first() else { return Ok(None) };
    let values = tag_values(db, tenant, key).await?;
    // Each value is a separate subquery, which repeats every other condition.
    let has_few = i64::try_from(values.len() * tags.len()).unwrap_or(i64::MAX) < MAX_MERGED_TAG_VALUES;
    Ok(has_few.then(|| Driver::Tags(values.into_iter().map(|it| (key.clone(), it)).collect())))
}

async fn rows(
    db: &Db,
    tenant: Uuid,
    filter: &TraceConditions,
    driver: &Driver,
    after: Option<(i64, Uuid)>,
    limit: usize,
) -> Result<Vec<trace::Model>, DbErr> {
    let mut sql = Sql::new(tenant);
    match driver {
        Driver::Index(name) => {
            let (columns, hint) = (trace::Model::select("t"), db.dialect.index_hint(name));
            sql.push(&format!("SELECT {columns} FROM trace t{hint} WHERE t.tenant_id = $1"));
            sql.and_older("t", "id", after);
            add_conditions(filter, &mut sql, "t", db.dialect);
        }
        Driver::Tags(tags) => {
            let ways: Vec<String> = tags
                .iter()
                .map(|(key, value)| {
                    let mut way = Sql { text: String::new(), values: std::mem::take(&mut sql.values) };
                    let (key, value) = (way.arg(key.as_str()), way.arg(value.as_str()));
                    way.push(&format!(
                        "SELECT g.started_at, g.trace_id AS id FROM trace_tag g \
                         CROSS JOIN trace t WHERE t.tenant_id = $1 AND t.id = g.trace_id \
                         AND g.tenant_id = $1 AND g.key = {key} AND g.value = {value}"
                    ));
                    way.and_older("g", "trace_id", after);
                    let mut rest = filter.clone();
                    rest.tags.retain(|it| {
                        tags.len() > 1 || !matches!(it, Tag::Pair(k, v) if (k, v) == (&tags[0].0, &tags[0].1))
                    });
                    add_conditions(&rest, &mut way, "t", db.dialect);
                    if let Some(from) = filter.from {
                        way.and("g", "started_at", ">=", from);
                    }
                    if let Some(to) = filter.to {
                        way.and("g", "started_at", "<=", to);
                    }
                    way.push(&format!(" ORDER BY g.started_at DESC, g.trace_id DESC LIMIT {limit}"));
                    sql.values = way.values;
                    way.text
                })
                .collect();
            merge(&mut sql, &ways, limit);
        }
        Driver::Classes { index, column, classes } => {
            let hint = db.dialect.index_hint(index);
            let ways: Vec<String> = classes
                .iter()
                .map(|class| {
                    let mut way = Sql { text: String::new(), values: std::mem::take(&mut sql.values) };
                    way.push(&format!(
                        "SELECT t.started_at, t.id FROM trace t{hint} WHERE t.tenant_id = $1 AND t.{column} = {class}"
                    ));
                    way.and_older("t", "id", after);
                    add_conditions(filter, &mut way, "t", db.dialect);
                    way.push(&format!(" ORDER BY t.started_at DESC, t.id DESC LIMIT {limit}"));
                    sql.values = way.values;
                    way.text
                })
                .collect();
            merge(&mut sql, &ways, limit);
        }
    }
    if sql.text.is_empty() {
        return Ok(Vec::new());
    }
    sql.push(&format!(" ORDER BY t.started_at DESC, t.id DESC LIMIT {limit}"));
    fetch(db, sql).await
}

/// Joins the newest rows of several subqueries with their traces.
///
/// `CROSS JOIN` makes SQLite keep the order of the tables. Otherwise it would read all traces by time to
/// avoid the sort.
fn merge(sql: &mut Sql, ways: &[String], limit: usize) {
    if ways.is_empty() {
        return;
    }
    let all: Vec<String> =
        ways.iter().enumerate().map(|(i, it)| format!("SELECT * FROM ({it}) w{i}")).collect();
    sql.push(&format!(
        "SELECT {} FROM (SELECT * FROM ({}) u ORDER BY u.started_at DESC, u.id DESC LIMIT {limit}) p \
         CROSS JOIN trace t WHERE t.tenant_id = $1 AND t.id = p.id",
        trace::Model::select("t"),
        all.join(" UNION ALL ")
    ));
}

/// Returns the values of a tag's key, at most one more than are merged.
async fn tag_values(db: &Db, tenant: Uuid, key: &str) -> Result<Vec<String>, DbErr> {
    let mut sql = Sql::new(tenant);
    let key = sql.arg(key);
    // Skips from value to value along the primary key of the table.
    sql.push(&format!(
        "WITH RECURSIVE v(value, n) AS (\
         SELECT (SELECT MIN(g.value) FROM trace_tag g WHERE g.tenant_id = $1 AND g.key = {key}), 1 \
         UNION ALL SELECT (SELECT MIN(g.value) FROM trace_tag g WHERE g.tenant_id = $1 AND g.key = {key} AND g.value > v.value), n + 1 \
         FROM v WHERE v.value IS NOT NULL AND n < {MAX_MERGED_TAG_VALUES}) SELECT value FROM v WHERE value IS NOT NULL"
    ));
    let rows = db.read.query_all_raw(statement(db, sql)).await?;
    rows.iter().map(|it| it.try_get("", "value")).collect()
}

/// Returns the classes of a range that have rows.
async fn classes_with_rows(
    db: &Db,
    tenant: Uuid,
    range: RangeColumns,
    bounds: Bounds,
) -> Result<Vec<i16>, DbErr> {
    let classes = overlapping_classes(bounds);
    if classes.clone().count() <= MAX_ASSUMED_CLASSES {
        return Ok(classes.collect());
    }
    let (low, high) = classes.into_inner();
    let (column, hint) = (range.class.as_str(), db.dialect.index_hint(range.index));
    let mut sql = Sql::new(tenant);
    sql.push(&format!(
        "WITH RECURSIVE c(class) AS (\
         SELECT (SELECT MIN(t.{column}) FROM trace t{hint} WHERE t.tenant_id = $1 AND t.{column} >= {low} AND t.{column} <= {high}) \
         UNION ALL SELECT (SELECT MIN(t.{column}) FROM trace t{hint} WHERE t.tenant_id = $1 AND t.{column} > c.class AND t.{column} <= {high}) \
         FROM c WHERE c.class IS NOT NULL) SELECT class FROM c WHERE class IS NOT NULL"
    ));
    let rows = db.read.query_all_raw(statement(db, sql)).await?;
    rows.iter().map(|it| it.try_get("", "class")).collect()
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

fn statement(db: &Db, sql: Sql) -> Statement {
    let values: Vec<Value> = sql.values;
    Statement::from_sql_and_values(db.dialect.backend(), sql.text, values)
}
