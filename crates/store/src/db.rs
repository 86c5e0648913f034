//! Opens the database: connection pools, pragmas, migrations, transactions.

use std::{io, path::Path, str::FromStr, sync::Arc, time::Duration};

use entities::dialect::Dialect;
use migrations::MigratorTrait;
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, IsolationLevel, SqlErr,
    SqliteTransactionMode, SqlxPostgresConnector, SqlxSqliteConnector, TransactionOptions, TransactionTrait,
};
use sqlx::{
    Connection, Executor, PgPool, Postgres, Sqlite, SqlitePool,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio_util::sync::CancellationToken;

use crate::{
    health::Health,
    trace_index::{directories::DirectoryCache, growth::TailGrowth, keys::KeySource},
};

/// The database with its connection pools.
///
/// On SQLite, `write` is a single connection: writers queue for it and never get `SQLITE_BUSY`. On
/// PostgreSQL, both pools are the same unless reads go to a replica.
#[derive(Clone, Debug)]
pub struct Db {
    /// The pool for reads.
    pub read: DatabaseConnection,
    /// The pool for writes and for reads that must see them.
    pub write: DatabaseConnection,
    /// The kind of database.
    pub dialect: Dialect,
    /// Whether the database can be used at the moment.
    pub health: Health,
    /// The keys of new traces.
    pub(crate) keys: Arc<KeySource>,
    /// Cached directories of the trace index.
    pub(crate) directories: Arc<DirectoryCache>,
    /// The tails of the trace index that have grown.
    pub tail_growth: Arc<TailGrowth>,
    /// Whether reads have their own connections.
    split: bool,
    /// Options for connections to PostgreSQL.
    address: Option<PgConnectOptions>,
}

/// Number of pages after which SQLite moves the write-ahead log into the file. It is large, because a page
/// that many transactions changed is then moved once.
const WAL_PAGES: &str = "4000";
/// Limits the wait for a connection to PostgreSQL, so that a request that needs nothing else is refused
/// well within 5 s.
const POSTGRES_ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);
/// Makes PostgreSQL roll back a transaction that has had no statement for 30 seconds. The transaction of a connection that
/// was lost would otherwise keep its locks until PostgreSQL notices the loss, which takes a quarter of an hour.
///
/// A statement and not a startup parameter, because connection poolers reject unknown startup parameters.
const ABANDONED_TRANSACTION_TIMEOUT_SQL: &str = "SET idle_in_transaction_session_timeout = '30s'";

impl Db {
    /// Opens `url` (`sqlite://…` or `postgres://…`) with `connections` connections: on SQLite for reads, on
    /// PostgreSQL for reads and writes. `read_url` sends reads to a replica.
    ///
    /// # Errors Fails when the database cannot be reached or the address is invalid.
    pub async fn open(url: &str, read_url: Option<&str>, connections: u32) -> Result<Self, DbErr> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let health = Health::default();
            let address = address(url)?;
            let write = postgres(&address, connections, &health).await?;
            let read = match read_url {
                Some(replica) => postgres(&self::address(replica)?, connections, &health).await?,
                None => write.clone(),
            };
            Ok(Self {
                read: SqlxPostgresConnector::from_sqlx_postgres_pool(read),
                write: SqlxPostgresConnector::from_sqlx_postgres_pool(write),
                dialect: Dialect::Postgres,
                health,
                keys: Arc::new(KeySource::shared()),
                directories: Arc::default(),
                tail_growth: Arc::default(),
                split: read_url.is_some(),
                address: Some(address),
            })
        } else {
            let health = Health::default();
            let write = sqlite(url, 1, "-16384", true, &health).await?;
            let read = sqlite(url, connections, "-4096", false, &health).await?;
            Ok(Self {
                read: SqlxSqliteConnector::from_sqlx_sqlite_pool(read),
                write: SqlxSqliteConnector::from_sqlx_sqlite_pool(write),
                dialect: Dialect::Sqlite,
                health,
                keys: Arc::new(KeySource::alone()),
                directories: Arc::default(),
                tail_growth: Arc::default(),
                split: true,
                address: None,
            })
        }
    }

    /// Brings the schema up to date. Several processes may start at once: a lock on PostgreSQL and the single
    /// writer on SQLite let one of them migrate at a time. Returns the number of applied migrations.
    ///
    /// # Errors
    /// Fails when a migration fails; those before it stay applied.
    pub async fn migrate(&self) -> Result<usize, DbErr> {
        if self.dialect == Dialect::Postgres {
            let mut lock = self.write.get_postgres_connection_pool().acquire().await.map_err(conn_err)?;
            // The number is "loupe"; the session holds the lock only while it migrates. The lock is polled: a
            // session that waits inside a statement would block `CREATE INDEX CONCURRENTLY` of the session
            // that holds the lock, and both would wait forever.
            let ask = || sqlx::query_scalar("SELECT pg_try_advisory_lock(465557418597)");
            while !ask().fetch_one(&mut *lock).await.map_err(conn_err)? {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let done = self.apply_migrations().await;
            sqlx::query("SELECT pg_advisory_unlock(465557418597)")
                .execute(&mut *lock)
                .await
                .map_err(conn_err)?;
            return done;
        }
        // Migrations sort whole tables, which may be larger than the memory.
        self.write.execute_unprepared("PRAGMA temp_store = FILE").await?;
        let done = self.apply_migrations().await;
        self.write.execute_unprepared("PRAGMA temp_store = MEMORY").await?;
        done
    }

    /// Returns the number of migrations that this version has and the database lacks. Changes nothing.
    ///
    /// # Errors
    /// Fails when the database fails.
    pub async fn pending_migrations(&self) -> Result<usize, DbErr> {
        Ok(migrations::Migrator::get_pending_migrations_read_only(&self.read).await?.len())
    }

    async fn apply_migrations(&self) -> Result<usize, DbErr> {
        let pending = migrations::Migrator::get_pending_migrations(&self.write).await?.len();
        migrations::Migrator::up(&self.write, None).await?;
        Ok(pending)
    }

    /// Watches whether the database can be used, until `stopping` is cancelled.
    pub async fn watch(self, stopping: CancellationToken) {
        match self.address {
            Some(address) => self.health.watch_postgres(address, stopping).await,
            None => self.health.watch_file(stopping).await,
        }
    }

    /// Begins a transaction that may write. On SQLite it takes the write lock at once: a transaction that
    /// reads first could not get the lock later.
    ///
    /// # Errors
    /// Fails when no connection is available, or the database file was replaced.
    pub async fn begin(&self) -> Result<DatabaseTransaction, DbErr> {
        self.health.check_file()?;
        let mode = (self.dialect == Dialect::Sqlite).then_some(SqliteTransactionMode::Immediate);
        self.write
            .begin_with_options(TransactionOptions { sqlite_transaction_mode: mode, ..Default::default() })
            .await
    }

    /// Begins a transaction whose reads all see the same snapshot.
    ///
    /// # Errors
    /// Fails when no connection is available.
    pub async fn snapshot(&self) -> Result<DatabaseTransaction, DbErr> {
        match self.dialect {
            // On SQLite, the first read of a transaction fixes its snapshot.
            Dialect::Sqlite => self.read.begin().await,
            Dialect::Postgres => {
                let (level, access) = (IsolationLevel::RepeatableRead, AccessMode::ReadOnly);
                self.read.begin_with_config(Some(level), Some(access)).await
            }
        }
    }

    /// Returns the pool for look-ups that must see every commit and must not wait for writers. Readers of
    /// SQLite see every commit; a PostgreSQL replica may lag.
    pub fn current(&self) -> &DatabaseConnection {
        match self.dialect {
            Dialect::Sqlite => &self.read,
            Dialect::Postgres => &self.write,
        }
    }

    /// Returns the same database with reads that see every commit, even where lists are read from a replica.
    pub fn primary(&self) -> Self {
        Self { read: self.current().clone(), ..self.clone() }
    }

    /// Begins a writing transaction with the types of `sqlx`, for SQLite.
    ///
    /// # Errors
    /// Like [`Self::begin`].
    pub async fn begin_sqlite(&self) -> sqlx::Result<sqlx::Transaction<'static, Sqlite>> {
        self.health.check_file()?;
        self.write.get_sqlite_connection_pool().begin_with("BEGIN IMMEDIATE").await
    }

    /// Begins a writing transaction with the types of `sqlx`, for PostgreSQL.
    ///
    /// # Errors
    /// Like [`Self::begin`].
    pub async fn begin_postgres(&self) -> sqlx::Result<sqlx::Transaction<'static, Postgres>> {
        self.write.get_postgres_connection_pool().begin().await
    }

    /// Returns the purpose of each connection pool, the number of its open connections and the number of its
    /// idle ones.
    pub fn connections(&self) -> Vec<(&'static str, usize, usize)> {
        let count = |connection: &DatabaseConnection| match self.dialect {
            Dialect::Sqlite => {
                let pool = connection.get_sqlite_connection_pool();
                (pool.size(), pool.num_idle())
            }
            Dialect::Postgres => {
                let pool = connection.get_postgres_connection_pool();
                (pool.size(), pool.num_idle())
            }
        };
        let pools = [("write", &self.write), ("read", &self.read)];
        let pools = pools.into_iter().take(if self.split { 2 } else { 1 });
        pools
            .map(|(name, connection)| {
                let (open, idle) = count(connection);
                (name, usize::try_from(open).unwrap_or(usize::MAX), idle)
            })
            .collect()
    }

    /// Returns the number of concurrent writers of a process; SQLite allows one.
    pub fn writers(&self) -> usize {
        match self.dialect {
            Dialect::Sqlite => 1,
            Dialect::Postgres => 2,
        }
    }

    /// Returns whether several processes may use the database at the same time.
    pub fn is_shared(&self) -> bool {
        self.dialect == Dialect::Postgres
    }

    /// Returns whether the database itself finds the nearest vectors.
    pub fn finds_nearest(&self) -> bool {
        self.dialect == Dialect::Postgres
    }

    /// Returns whether changes become visible in the order of their times. This holds for a single writer,
    /// whose commits follow each other.
    pub fn commits_in_order(&self) -> bool {
        self.writers() == 1
    }

    /// Returns whether the database answers.
    pub async fn is_reachable(&self) -> bool {
        let ping = self.read.execute_unprepared("SELECT 1");
        matches!(tokio::time::timeout(Duration::from_secs(2), ping).await, Ok(Ok(_)))
    }

    /// Frees the cached directories of the trace index, and the page caches of SQLite's idle connections: up to 4 MiB
    /// of each reader and 16 MiB of the writer.
    pub async fn free_caches(&self) {
        self.directories.clear();
        if self.dialect != Dialect::Sqlite {
            return;
        }
        for connections in [&self.read, &self.write] {
            let pool = connections.get_sqlite_connection_pool();
            // The loop keeps all connections until it has visited each one once.
            let mut taken = Vec::new();
            while let Some(mut connection) = pool.try_acquire() {
                if let Err(error) = sqlx::query("PRAGMA shrink_memory").execute(&mut *connection).await {
                    tracing::debug!(%error, "a cache could not be freed");
                }
                taken.push(connection);
            }
        }
    }

    /// Closes both pools; SQLite then leaves no write-ahead log behind.
    pub async fn close(self) {
        // A connection that cannot be closed needs no handling.
        _ = self.read.close().await;
        _ = self.write.close().await;
    }
}

fn address(url: &str) -> Result<PgConnectOptions, DbErr> {
    Ok(PgConnectOptions::from_str(url).map_err(conn_err)?.application_name("loupe-server"))
}

async fn postgres(address: &PgConnectOptions, connections: u32, health: &Health) -> Result<PgPool, DbErr> {
    let (acquired, released) = (health.clone(), health.clone());
    PgPoolOptions::new()
        .max_connections(connections.max(2))
        .acquire_timeout(POSTGRES_ACQUIRE_TIMEOUT)
        .after_connect(|connection, _| {
            Box::pin(async move {
                connection.execute(ABANDONED_TRANSACTION_TIMEOUT_SQL).await?;
                // Statements are short, but the planner overestimates ranges of keys, and compiling them would take longer.
                connection.execute("SET jit = off").await?;
                Ok(())
            })
        })
        // `before_acquire` tests the connection: the test of the pool would wait for a broken one.
        .test_before_acquire(false)
        .before_acquire(move |connection, metadata| {
            let health = acquired.clone();
            Box::pin(async move {
                if health.predates_outage(metadata.age) {
                    return Err(sqlx::Error::Io(io::ErrorKind::BrokenPipe.into()));
                }
                connection.ping().await.map(|()| true)
            })
        })
        .after_release(move |connection, metadata| {
            let health = released.clone();
            Box::pin(async move {
                let reusable =
                    !connection.is_in_transaction() && health.is_reusable(connection, metadata.age).await;
                // The error discards the connection: one that does not answer cannot be closed properly.
                if reusable { Ok(true) } else { Err(sqlx::Error::Io(io::ErrorKind::BrokenPipe.into())) }
            })
        })
        .connect_with(address.clone())
        .await
        .map_err(conn_err)
}

async fn sqlite(
    url: &str,
    connections: u32,
    cache: &'static str,
    writes: bool,
    health: &Health,
) -> Result<SqlitePool, DbErr> {
    let options = SqliteConnectOptions::from_str(url)
        .map_err(conn_err)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // FULL, because acknowledged data must survive a loss of power too.
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(Duration::from_secs(5))
        .pragma("cache_size", cache)
        .pragma("temp_store", "memory")
        .pragma("wal_autocheckpoint", WAL_PAGES)
        .page_size(8192)
        .statement_cache_capacity(256);
    let path = options.get_filename().to_owned();
    let (opened, released) = (health.clone(), health.clone());
    let pool = SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(30))
        // A reconnect must not open a file that replaced the first one.
        .idle_timeout(None)
        .max_lifetime(None)
        .after_connect(move |connection, _| {
            let (health, path) = (opened.clone(), path.clone());
            Box::pin(async move {
                // This query opens the write-ahead log, which SQLite otherwise opens at the first read.
                sqlx::query("SELECT COUNT(*) FROM sqlite_schema").execute(connection).await?;
                health.opened(&path, writes)
            })
        })
        .after_release(move |connection, _| {
            let health = released.clone();
            Box::pin(async move {
                if !connection.is_in_transaction() {
                    return Ok(true);
                }
                // The rollback of a dropped transaction may not have run yet; the ping waits for it.
                connection.ping().await?;
                let is_clean = !connection.is_in_transaction();
                if !is_clean {
                    // SQLite ends the transaction without a ROLLBACK when the disk is full or fails. sqlx
                    // does not know this and could never begin another one on this connection.
                    tracing::warn!("a transaction could not be rolled back; its connection is closed");
                    health.note_failed_write();
                }
                Ok(is_clean)
            })
        })
        .connect_with(options.clone())
        .await
        .map_err(conn_err)?;
    // A new connection must not recreate a file that was deleted.
    pool.set_connect_options(options.create_if_missing(false));
    Ok(pool)
}

/// Returns whether the same transaction can succeed now: after a deadlock, a serialization failure, or the
/// removal of a row while its lock was awaited.
pub fn lost_a_race(error: &sqlx::Error) -> bool {
    if matches!(error, sqlx::Error::RowNotFound) {
        return true;
    }
    error.as_database_error().and_then(|it| it.code()).is_some_and(|it| it == "40P01" || it == "40001")
}

/// Returns whether the generated key of a new trace is in use. Another process took the same one, or the clock went back.
pub fn is_used_trace_key(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|it| {
        // A distributed table adds the number of the shard to the name.
        let is_of_key = |it: &str| it.starts_with("trace_pkey") || it.starts_with("trace_tail_pkey");
        let on_sqlite = ["failed: trace.key", "failed: trace_tail.tenant_id, trace_tail.id"];
        it.is_unique_violation()
            && (it.constraint().is_some_and(is_of_key)
                || on_sqlite.iter().any(|end| it.message().ends_with(end)))
    })
}

/// Returns whether the error is a duplicate key.
pub fn is_duplicate(error: &DbErr) -> bool {
    matches!(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(_)))
}

fn conn_err(error: sqlx::Error) -> DbErr {
    DbErr::Conn(sea_orm::RuntimeErr::SqlxError(error.into()))
}

/// Returns the address of the SQLite file in a data directory.
pub fn sqlite_url(data_dir: &Path) -> String {
    format!("sqlite://{}/loupe.db", data_dir.display())
}
