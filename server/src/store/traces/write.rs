//! Storing parts: one transaction a group.
//!
//! A part whose trace is new goes in as it is. Where something of the trace is stored already,
//! its new spans are added and its row is made again from all of its spans, under a lock on
//! the row; spans that were stored before change nothing. Rows are touched in the order of
//! their keys, so that two writers can't wait for each other.

use std::collections::{HashMap, HashSet};

use entities::{dialect::Dialect, event, job, span, trace};
use sqlx::Row;
use uuid::Uuid;

use super::super::{
    bulk::{self, Bulk, OnConflict},
    db::Db,
};
use crate::{
    ingest::part::{Part, summarise, tag_rows},
    queue::new_job,
    trace_ready,
};

/// What became of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Nothing was known of the trace.
    New,
    /// Something was known; what was new has been added.
    Merged,
    /// An item whose trace is stored already. Nothing changed.
    Duplicate {
        /// The stored one came from the same JSON text.
        identical: bool,
    },
}

/// Key of a trace.
type Key = (Uuid, Uuid);

/// Stores the parts in one transaction and answers what became of each, in their order.
///
/// # Errors
/// When the database fails; nothing is stored then.
pub async fn store(db: &Db, parts: &mut [Part], now: i64) -> sqlx::Result<Vec<Stored>> {
    let mut group = Group::of(parts, now);
    match db.dialect {
        Dialect::Sqlite => {
            let mut tx = db.sqlite().begin_with("BEGIN IMMEDIATE").await?;
            group.run(&mut SqliteStore(&mut tx)).await?;
            tx.commit().await?;
        }
        Dialect::Postgres => {
            let mut tx = db.postgres().begin().await?;
            group.run(&mut PostgresStore(&mut tx)).await?;
            tx.commit().await?;
        }
    }
    Ok(group.outcomes)
}

/// The few statements that a group needs, on either database.
trait Store {
    async fn insert<T: Bulk>(&mut self, rows: &[&T], on_conflict: OnConflict) -> sqlx::Result<()>;
    /// Inserts what is not there, and answers the keys of what was inserted: the key's last two columns.
    async fn insert_new<T: Bulk>(&mut self, rows: &[&T]) -> sqlx::Result<HashSet<Key>>;
    /// The stored rows of these traces of one tenant, locked.
    async fn lock_traces(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<trace::Model>>;
    /// All stored spans of these traces of one tenant.
    async fn spans_of(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<span::Model>>;
    /// Removes tags by their whole key.
    async fn remove_tags(&mut self, rows: &[entities::trace_tag::Model]) -> sqlx::Result<()>;
}

struct Group<'a> {
    parts: &'a mut [Part],
    outcomes: Vec<Stored>,
    now: i64,
    jobs: Vec<job::Model>,
}

impl<'a> Group<'a> {
    fn of(parts: &'a mut [Part], now: i64) -> Self {
        Self { outcomes: vec![Stored::New; parts.len()], parts, now, jobs: Vec::new() }
    }

    async fn run(&mut self, store: &mut impl Store) -> sqlx::Result<()> {
        for part in self.parts.iter_mut() {
            part.trace.updated_at = self.now;
        }
        let late = self.insert_new_traces(store).await?;
        self.insert_new_children(store, &late).await?;
        let changed = self.merge(store, &late).await?;
        self.enqueue_readiness(&late, &changed);
        let jobs: Vec<&job::Model> = self.jobs.iter().collect();
        store.insert(&jobs, OnConflict::Fail).await
    }

    /// Inserts the traces; answers the parts whose trace was there before or earlier in the group.
    async fn insert_new_traces(&mut self, store: &mut impl Store) -> sqlx::Result<Vec<usize>> {
        let mut firsts: Vec<usize> = Vec::with_capacity(self.parts.len());
        let mut late = Vec::new();
        let mut seen = HashSet::with_capacity(self.parts.len());
        for (i, part) in self.parts.iter().enumerate() {
            if seen.insert(key(&part.trace)) { firsts.push(i) } else { late.push(i) }
        }
        firsts.sort_unstable_by_key(|it| key(&self.parts[*it].trace));
        let rows: Vec<&trace::Model> = firsts.iter().map(|it| &self.parts[*it].trace).collect();
        let new = store.insert_new(&rows).await?;
        late.extend(firsts.into_iter().filter(|it| !new.contains(&key(&self.parts[*it].trace))));
        late.sort_unstable();
        Ok(late)
    }

    async fn insert_new_children(&self, store: &mut impl Store, late: &[usize]) -> sqlx::Result<()> {
        let new = || self.parts.iter().enumerate().filter(|(i, _)| late.binary_search(i).is_err()).map(|it| it.1);
        let spans: Vec<&span::Model> = new().flat_map(|it| &it.spans).collect();
        store.insert(&spans, OnConflict::Fail).await?;
        let bodies: Vec<_> = new().flat_map(|it| &it.bodies).collect();
        store.insert(&bodies, OnConflict::Fail).await?;
        let events: Vec<&event::Model> = new().flat_map(|it| &it.events).collect();
        store.insert(&events, OnConflict::Fail).await?;
        let tags: Vec<_> = new().flat_map(|it| tag_rows(&it.trace)).collect();
        store.insert(&tags.iter().collect::<Vec<_>>(), OnConflict::Fail).await
    }

    /// Adds late parts to their traces. Answers the traces that changed, as they are now.
    async fn merge(&mut self, store: &mut impl Store, late: &[usize]) -> sqlx::Result<Vec<trace::Model>> {
        let mut by_tenant: HashMap<Uuid, Vec<usize>> = HashMap::new();
        for i in late {
            by_tenant.entry(self.parts[*i].trace.tenant_id).or_default().push(*i);
        }
        let mut tenants: Vec<_> = by_tenant.into_iter().collect();
        tenants.sort_unstable_by_key(|it| it.0);
        let mut changed = Vec::new();
        for (tenant, late) in tenants {
            changed.append(&mut self.merge_tenant(store, tenant, &late).await?);
        }
        Ok(changed)
    }

    async fn merge_tenant(
        &mut self,
        store: &mut impl Store,
        tenant: Uuid,
        late: &[usize],
    ) -> sqlx::Result<Vec<trace::Model>> {
        let mut ids: Vec<Uuid> = late.iter().map(|it| self.parts[*it].trace.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut stored: HashMap<Uuid, trace::Model> =
            store.lock_traces(tenant, &ids).await?.into_iter().map(|it| (it.id, it)).collect();
        for i in late {
            let trace = &self.parts[*i].trace;
            self.outcomes[*i] = match (&trace.digest, stored.get(&trace.id)) {
                (Some(digest), Some(known)) => Stored::Duplicate { identical: known.digest.as_ref() == Some(digest) },
                (Some(_), None) => Stored::Duplicate { identical: false },
                (None, _) => Stored::Merged,
            };
        }
        let merging = || late.iter().map(|it| &self.parts[*it]).filter(|it| !it.is_item());
        let mut spans: Vec<&span::Model> = merging().flat_map(|it| &it.spans).collect();
        spans.sort_by_key(|it| (it.trace_id, it.id));
        spans.dedup_by_key(|it| (it.trace_id, it.id));
        let new = store.insert_new(&spans).await?;
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let used: HashSet<Uuid> =
            spans.iter().filter(|it| new.contains(&(it.trace_id, it.id))).filter_map(|it| it.body_id).collect();
        let bodies: Vec<_> = merging().flat_map(|it| &it.bodies).filter(|it| used.contains(&it.id)).collect();
        store.insert(&bodies, OnConflict::Fail).await?;
        let mut events: Vec<&event::Model> = merging()
            .flat_map(|it| &it.events)
            .filter(|it| it.span_id.is_some_and(|span| new.contains(&(it.trace_id, span))))
            .collect();
        events.sort_by_key(|it| (it.trace_id, it.id));
        store.insert(&events, OnConflict::Keep).await?;

        let mut touched: Vec<Uuid> = new.iter().map(|it| it.0).collect();
        touched.sort_unstable();
        touched.dedup();
        let mut all: HashMap<Uuid, Vec<span::Model>> = HashMap::new();
        for span in store.spans_of(tenant, &touched).await? {
            all.entry(span.trace_id).or_default().push(span);
        }
        let mut traces = Vec::new();
        let mut flipped = Vec::new();
        let (mut old_tags, mut new_tags) = (Vec::new(), Vec::new());
        for id in touched {
            let (Some(mut trace), Some(mut spans)) = (stored.remove(&id), all.remove(&id)) else { continue };
            let before: Vec<_> = spans.iter().map(counts).collect();
            let tags = tag_rows(&trace);
            let received = spans.iter().map(|it| it.created_at).max().unwrap_or(self.now);
            summarise(&mut trace, &mut spans, received);
            trace.updated_at = self.now;
            let tags_now = tag_rows(&trace);
            if tags != tags_now {
                old_tags.extend(tags);
                new_tags.extend(tags_now);
            }
            flipped.extend(spans.into_iter().zip(before).filter(|(it, was)| counts(it) != *was).map(|it| it.0));
            traces.push(trace);
        }
        store.insert(&traces.iter().collect::<Vec<_>>(), OnConflict::Replace).await?;
        store.insert(&flipped.iter().collect::<Vec<_>>(), OnConflict::Replace).await?;
        store.remove_tags(&old_tags).await?;
        store.insert(&new_tags.iter().collect::<Vec<_>>(), OnConflict::Keep).await?;
        Ok(traces)
    }

    /// One job for all traces of a tenant that will be ready at the same time.
    fn enqueue_readiness(&mut self, late: &[usize], changed: &[trace::Model]) {
        let mut due: HashMap<(Uuid, i64), Vec<Uuid>> = HashMap::new();
        let new = self.parts.iter().enumerate().filter(|(i, _)| late.binary_search(i).is_err()).map(|it| &it.1.trace);
        for trace in new.chain(changed) {
            due.entry((trace.tenant_id, trace.ready_at)).or_default().push(trace.id);
        }
        let now = self.now;
        self.jobs.extend(due.into_iter().map(|((tenant, ready_at), traces)| {
            new_job(tenant, &trace_ready::TraceReady { ready_at, traces }, ready_at, now)
        }));
    }
}

/// What a span adds to its trace's sums.
fn counts(span: &span::Model) -> (bool, bool) {
    (span.counted, span.cost_counted)
}

fn key(trace: &trace::Model) -> Key {
    (trace.tenant_id, trace.id)
}

/// Runs the statements inside a SQLite transaction.
struct SqliteStore<'a>(&'a mut sqlx::SqliteConnection);

/// Runs the statements inside a PostgreSQL transaction.
struct PostgresStore<'a>(&'a mut sqlx::PgConnection);

impl Store for SqliteStore<'_> {
    async fn insert<T: Bulk>(&mut self, rows: &[&T], on_conflict: OnConflict) -> sqlx::Result<()> {
        bulk::insert_sqlite(self.0, rows, on_conflict).await
    }

    async fn insert_new<T: Bulk>(&mut self, rows: &[&T]) -> sqlx::Result<HashSet<Key>> {
        bulk::insert_new_sqlite(self.0, rows).await?.iter().map(last_two).collect()
    }

    async fn lock_traces(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<trace::Model>> {
        let mut rows = Vec::with_capacity(ids.len());
        let sql = format!("SELECT {} FROM trace WHERE tenant_id = ? AND id = ?", trace::Model::COLUMNS.join(","));
        for id in ids {
            let found = sqlx::query(sqlx::AssertSqlSafe(sql.as_str())).bind(tenant).bind(id).fetch_optional(&mut *self.0).await?;
            rows.extend(found.as_ref().map(trace::Model::from_sqlite).transpose()?);
        }
        Ok(rows)
    }

    async fn spans_of(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<span::Model>> {
        let mut rows = Vec::new();
        let sql = format!("SELECT {} FROM span WHERE tenant_id = ? AND trace_id = ?", span::Model::COLUMNS.join(","));
        for id in ids {
            let found = sqlx::query(sqlx::AssertSqlSafe(sql.as_str())).bind(tenant).bind(id).fetch_all(&mut *self.0).await?;
            for row in &found {
                rows.push(span::Model::from_sqlite(row)?);
            }
        }
        Ok(rows)
    }

    async fn remove_tags(&mut self, rows: &[entities::trace_tag::Model]) -> sqlx::Result<()> {
        for tag in rows {
            sqlx::query(
                "DELETE FROM trace_tag WHERE tenant_id = ? AND key = ? AND value = ? AND started_at = ? AND trace_id = ?",
            )
            .bind(tag.tenant_id)
            .bind(&tag.key)
            .bind(&tag.value)
            .bind(tag.started_at)
            .bind(tag.trace_id)
            .execute(&mut *self.0)
            .await?;
        }
        Ok(())
    }
}

impl Store for PostgresStore<'_> {
    async fn insert<T: Bulk>(&mut self, rows: &[&T], on_conflict: OnConflict) -> sqlx::Result<()> {
        bulk::insert_postgres(self.0, rows, on_conflict).await
    }

    async fn insert_new<T: Bulk>(&mut self, rows: &[&T]) -> sqlx::Result<HashSet<Key>> {
        bulk::insert_new_postgres(self.0, rows).await?.iter().map(last_two).collect()
    }

    async fn lock_traces(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<trace::Model>> {
        let sql = format!(
            "SELECT {} FROM trace WHERE tenant_id = $1 AND id = ANY($2) ORDER BY id FOR UPDATE",
            trace::Model::COLUMNS.join(",")
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(tenant).bind(ids).fetch_all(&mut *self.0).await?;
        rows.iter().map(trace::Model::from_postgres).collect()
    }

    async fn spans_of(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<span::Model>> {
        let sql =
            format!("SELECT {} FROM span WHERE tenant_id = $1 AND trace_id = ANY($2)", span::Model::COLUMNS.join(","));
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(tenant).bind(ids).fetch_all(&mut *self.0).await?;
        rows.iter().map(span::Model::from_postgres).collect()
    }

    async fn remove_tags(&mut self, rows: &[entities::trace_tag::Model]) -> sqlx::Result<()> {
        for tag in rows {
            sqlx::query(
                "DELETE FROM trace_tag WHERE tenant_id = $1 AND key = $2 AND value = $3 AND started_at = $4 AND trace_id = $5",
            )
            .bind(tag.tenant_id)
            .bind(&tag.key)
            .bind(&tag.value)
            .bind(tag.started_at)
            .bind(tag.trace_id)
            .execute(&mut *self.0)
            .await?;
        }
        Ok(())
    }
}

/// The last two columns of a returned key.
fn last_two<R: Row>(row: &R) -> sqlx::Result<Key>
where
    usize: sqlx::ColumnIndex<R>,
    Uuid: for<'r> sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
{
    let last = row.columns().len() - 1;
    Ok((row.try_get(last - 1)?, row.try_get(last)?))
}
