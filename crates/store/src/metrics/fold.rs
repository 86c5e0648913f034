//! Folds the deltas of a tenant into its nodes.
//!
//! One transaction reads some deltas, adds them to their nodes, level by level, and deletes them: a query
//! counts each delta once, before or after. Rows are locked in the order of their keys. On PostgreSQL, the
//! tenant's row is locked first, so that only one process folds a tenant at a time and reads everything
//! committed before.
//!
//! Statements are SQL, because rows are written in bulk in a transaction of the driver.

use std::{collections::BTreeMap, sync::Arc};

use entities::{metric_delta, metric_node};
use sqlx::{AssertSqlSafe, PgConnection, SqliteConnection};
use uuid::Uuid;

use sea_orm::{ConnectionTrait, DbErr, Statement};

use super::{
    delta,
    level::Level,
    tree::{self, Facts},
    unreadable, wire,
};
use crate::{
    bulk::{self, Bulk, OnConflict},
    db::{Db, lost_a_race},
};

/// Number of deltas read at once. A delta may come from a commit of many megabytes.
const DELTAS_PER_READ: usize = 16;
/// Maximum number of portions per transaction.
const MAX_READS_PER_TRANSACTION: usize = 16;
/// Number of changes after which a transaction reads no further portion.
const MAX_CHANGES_PER_TRANSACTION: usize = 4_000;

/// The result of one fold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldProgress {
    /// Number of changes that were folded into nodes.
    pub changes: usize,
    /// Whether more deltas are waiting.
    pub more: bool,
}

/// Returns the tenants that have deltas, each with the number of deltas and the time of the oldest, in
/// microseconds. Reads across all tenants and locks nothing.
///
/// # Errors
/// Fails when the database fails.
pub async fn waiting(db: &Db) -> Result<Vec<(Uuid, i64, i64)>, DbErr> {
    let sql = "SELECT tenant_id, COUNT(*), MIN(created_at) FROM metric_delta GROUP BY tenant_id";
    let rows = db.current().query_all_raw(Statement::from_string(db.dialect.backend(), sql)).await?;
    rows.iter()
        .map(|it| Ok((it.try_get_by_index(0)?, it.try_get_by_index(1)?, it.try_get_by_index(2)?)))
        .collect()
}

/// Folds some of the tenant's deltas into its nodes. Does nothing if another transaction wins the lock; the
/// deltas stay for the next fold.
///
/// # Errors
/// Fails when the database fails; nothing has changed then.
pub async fn fold(db: &Db, tenant: Uuid) -> sqlx::Result<FoldProgress> {
    match attempt(db, tenant).await {
        Err(error) if lost_a_race(&error) => Ok(FoldProgress::default()),
        folded => folded,
    }
}

async fn attempt(db: &Db, tenant: Uuid) -> sqlx::Result<FoldProgress> {
    if db.is_shared() {
        let mut tx = db.begin_postgres().await?;
        let folded = run(&mut Postgres(&mut tx), tenant).await?;
        tx.commit().await?;
        Ok(folded)
    } else {
        let mut tx = db.begin_sqlite().await?;
        let folded = run(&mut Sqlite(&mut tx), tenant).await?;
        tx.commit().await?;
        Ok(folded)
    }
}

async fn run(store: &mut impl FoldStatements, tenant: Uuid) -> sqlx::Result<FoldProgress> {
    store.lock(tenant).await?;
    let mut taken: Vec<Uuid> = Vec::new();
    let mut projects: BTreeMap<Uuid, Facts> = BTreeMap::new();
    let (mut changes, mut more) = (0, true);
    for _ in 0..MAX_READS_PER_TRANSACTION {
        let deltas = store.deltas(tenant, taken.last().copied().unwrap_or_default()).await?;
        more = deltas.len() == DELTAS_PER_READ;
        for metric_delta::Model { id, data, .. } in deltas {
            for (project, facts) in delta::decode(&data).map_err(unreadable)? {
                let sum = projects.entry(project).or_default();
                changes += facts.len();
                for (fact, weight) in facts {
                    tree::put(sum, fact, weight);
                }
            }
            taken.push(id);
        }
        if !more || changes >= MAX_CHANGES_PER_TRANSACTION {
            break;
        }
    }
    for (project, facts) in projects {
        fold_project(store, tenant, project, facts, more).await?;
    }
    store.remove_deltas(tenant, &taken).await?;
    Ok(FoldProgress { changes, more })
}

async fn fold_project(
    store: &mut impl FoldStatements,
    tenant: Uuid,
    project: Uuid,
    facts: Facts,
    more: bool,
) -> sqlx::Result<()> {
    let mut todo = tree::by_start(Level::DAY, facts);
    let mut level = Some(Level::DAY);
    while let Some(here) = level.filter(|_| !todo.is_empty()) {
        let starts: Vec<i64> = todo.keys().copied().collect();
        let key = (tenant, project, here.stored());
        let mut stored: BTreeMap<i64, metric_node::Model> =
            store.nodes(key, &starts).await?.into_iter().map(|it| (it.start, it)).collect();
        let mut below: BTreeMap<i64, Facts> = BTreeMap::new();
        let (mut new, mut changed, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for (start, facts) in todo {
            let row = stored.remove(&start);
            let known = row.is_some();
            let node = row.map(|it| wire::decode(&it.data)).transpose().map_err(unreadable)?;
            let change = tree::apply(here, start, node.unwrap_or_default(), facts);
            below.extend(change.below);
            for (level, at, node) in change.nodes {
                let stays = (level, at) == (here, start) && known;
                let leaf = node.is_leaf();
                // An empty total may result from deltas whose counterparts are not folded yet. Without
                // further deltas, the only nodes below it are leftovers of an earlier, incomplete fold.
                if node.is_empty() && (leaf || !more) {
                    if stays {
                        gone.push(at);
                        if !leaf {
                            store.remove_below(key, at, here.last(at)).await?;
                            below.retain(|start, _| !(at..=here.last(at)).contains(start));
                        }
                    }
                    continue;
                }
                let data = wire::encode(&node);
                let row = metric_node::Model {
                    tenant_id: tenant,
                    project_id: project,
                    level: level.stored(),
                    start: at,
                    leaf,
                    data,
                };
                if stays { changed.push(row) } else { new.push(row) }
            }
        }
        store.put(&new, OnConflict::Fail).await?;
        store.put(&changed, OnConflict::Replace).await?;
        store.remove_nodes(key, &gone).await?;
        (todo, level) = (below, here.next());
    }
    Ok(())
}

/// Tenant, project and level of nodes.
type Key = (Uuid, Uuid, i16);

const DELTAS_CLAUSE: &str = "FROM metric_delta WHERE tenant_id = $1 AND id > $2 ORDER BY id LIMIT $3";
const NODES_CLAUSE: &str = "FROM metric_node WHERE tenant_id = $1 AND project_id = $2 AND level = $3";
const REMOVE_DELTAS: &str = "DELETE FROM metric_delta WHERE tenant_id = $1";
const REMOVE_NODES: &str = "DELETE FROM metric_node WHERE tenant_id = $1 AND project_id = $2 AND level = $3";
const REMOVE_BELOW: &str = "DELETE FROM metric_node WHERE tenant_id = $1 AND project_id = $2 AND level > $3 \
    AND start BETWEEN $4 AND $5";

/// The statements that folding needs, for both databases, inside a transaction.
trait FoldStatements {
    /// Prevents other processes from folding the tenant until the transaction ends.
    async fn lock(&mut self, tenant: Uuid) -> sqlx::Result<()>;
    /// Returns a portion of deltas after the one with this id.
    async fn deltas(&mut self, tenant: Uuid, after: Uuid) -> sqlx::Result<Vec<metric_delta::Model>>;
    /// Returns the nodes that begin at these times, locked.
    async fn nodes(&mut self, key: Key, starts: &[i64]) -> sqlx::Result<Vec<metric_node::Model>>;
    async fn put(&mut self, rows: &[metric_node::Model], on_conflict: OnConflict) -> sqlx::Result<()>;
    async fn remove_nodes(&mut self, key: Key, starts: &[i64]) -> sqlx::Result<()>;
    /// Removes the nodes of lower levels that begin within this period.
    async fn remove_below(&mut self, key: Key, from: i64, to: i64) -> sqlx::Result<()>;
    async fn remove_deltas(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<()>;
}

struct Sqlite<'a>(&'a mut SqliteConnection);

impl FoldStatements for Sqlite<'_> {
    async fn lock(&mut self, _: Uuid) -> sqlx::Result<()> {
        // SQLite has one writer.
        Ok(())
    }

    async fn deltas(&mut self, tenant: Uuid, after: Uuid) -> sqlx::Result<Vec<metric_delta::Model>> {
        let sql = format!("SELECT {} {DELTAS_CLAUSE}", metric_delta::Model::COLUMN_NAMES.join(","));
        let query = sqlx::query(AssertSqlSafe(sql)).bind(tenant).bind(after).bind(DELTAS_PER_READ as i64);
        query.fetch_all(&mut *self.0).await?.iter().map(metric_delta::Model::from_sqlite).collect()
    }

    async fn nodes(&mut self, key: Key, starts: &[i64]) -> sqlx::Result<Vec<metric_node::Model>> {
        let columns = metric_node::Model::COLUMN_NAMES.join(",");
        let sql: Arc<str> = format!("SELECT {columns} {NODES_CLAUSE} AND start = $4").into();
        let mut rows = Vec::with_capacity(starts.len());
        for start in starts {
            let query =
                sqlx::query(AssertSqlSafe(Arc::clone(&sql))).bind(key.0).bind(key.1).bind(key.2).bind(start);
            let row = query.fetch_optional(&mut *self.0).await?;
            rows.extend(row.as_ref().map(metric_node::Model::from_sqlite).transpose()?);
        }
        Ok(rows)
    }

    async fn put(&mut self, rows: &[metric_node::Model], on_conflict: OnConflict) -> sqlx::Result<()> {
        bulk::insert_sqlite(self.0, &rows.iter().collect::<Vec<_>>(), on_conflict).await
    }

    async fn remove_nodes(&mut self, key: Key, starts: &[i64]) -> sqlx::Result<()> {
        let sql: Arc<str> = format!("{REMOVE_NODES} AND start = $4").into();
        for start in starts {
            let query =
                sqlx::query(AssertSqlSafe(Arc::clone(&sql))).bind(key.0).bind(key.1).bind(key.2).bind(start);
            query.execute(&mut *self.0).await?;
        }
        Ok(())
    }

    async fn remove_below(&mut self, key: Key, from: i64, to: i64) -> sqlx::Result<()> {
        let query = sqlx::query(REMOVE_BELOW).bind(key.0).bind(key.1).bind(key.2).bind(from).bind(to);
        query.execute(&mut *self.0).await?;
        Ok(())
    }

    async fn remove_deltas(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<()> {
        let sql: Arc<str> = format!("{REMOVE_DELTAS} AND id = $2").into();
        for id in ids {
            sqlx::query(AssertSqlSafe(Arc::clone(&sql))).bind(tenant).bind(id).execute(&mut *self.0).await?;
        }
        Ok(())
    }
}

struct Postgres<'a>(&'a mut PgConnection);

impl FoldStatements for Postgres<'_> {
    async fn lock(&mut self, tenant: Uuid) -> sqlx::Result<()> {
        let sql = "SELECT tenant_id FROM tenant WHERE tenant_id = $1 FOR NO KEY UPDATE";
        sqlx::query(sql).bind(tenant).execute(&mut *self.0).await?;
        Ok(())
    }

    async fn deltas(&mut self, tenant: Uuid, after: Uuid) -> sqlx::Result<Vec<metric_delta::Model>> {
        let sql = format!("SELECT {} {DELTAS_CLAUSE}", metric_delta::Model::COLUMN_NAMES.join(","));
        let query = sqlx::query(AssertSqlSafe(sql)).bind(tenant).bind(after).bind(DELTAS_PER_READ as i64);
        query.fetch_all(&mut *self.0).await?.iter().map(metric_delta::Model::from_postgres).collect()
    }

    async fn nodes(&mut self, key: Key, starts: &[i64]) -> sqlx::Result<Vec<metric_node::Model>> {
        let columns = metric_node::Model::COLUMN_NAMES.join(",");
        let sql = format!("SELECT {columns} {NODES_CLAUSE} AND start = ANY($4) ORDER BY start FOR UPDATE");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(key.0).bind(key.1).bind(key.2).bind(starts);
        query.fetch_all(&mut *self.0).await?.iter().map(metric_node::Model::from_postgres).collect()
    }

    async fn put(&mut self, rows: &[metric_node::Model], on_conflict: OnConflict) -> sqlx::Result<()> {
        bulk::insert_postgres(self.0, &rows.iter().collect::<Vec<_>>(), on_conflict).await
    }

    async fn remove_nodes(&mut self, key: Key, starts: &[i64]) -> sqlx::Result<()> {
        if starts.is_empty() {
            return Ok(());
        }
        let sql = format!("{REMOVE_NODES} AND start = ANY($4)");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(key.0).bind(key.1).bind(key.2).bind(starts);
        query.execute(&mut *self.0).await?;
        Ok(())
    }

    async fn remove_below(&mut self, key: Key, from: i64, to: i64) -> sqlx::Result<()> {
        let query = sqlx::query(REMOVE_BELOW).bind(key.0).bind(key.1).bind(key.2).bind(from).bind(to);
        query.execute(&mut *self.0).await?;
        Ok(())
    }

    async fn remove_deltas(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<()> {
        let sql = format!("{REMOVE_DELTAS} AND id = ANY($2)");
        sqlx::query(AssertSqlSafe(sql)).bind(tenant).bind(ids).execute(&mut *self.0).await?;
        Ok(())
    }
}
