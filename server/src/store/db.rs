//! Opening the database: pools, pragmas, migrations, transactions.

use std::{path::Path, str::FromStr, time::Duration};

use entities::dialect::Dialect;
use migrations::MigratorTrait;
use sea_orm::{
    AccessMode, DatabaseConnection, DatabaseTransaction, DbErr, IsolationLevel, SqlErr,
    SqliteTransactionMode, SqlxPostgresConnector, SqlxSqliteConnector, TransactionOptions, TransactionTrait,
};
use sqlx::{
    PgPool, SqlitePool,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

/// The database, as everything else sees it.
///
/// On SQLite `write` is a single connection, so that writers queue here and never meet
/// `SQLITE_BUSY`; on PostgreSQL both are the same pool unless reads go to a replica.
#[derive(Clone, Debug)]
pub struct Db {
    /// For reads.
    pub read: DatabaseConnection,
    /// For writes and for reads that must see them.
    pub write: DatabaseConnection,
    /// Which database it is.
    pub dialect: Dialect,
    /// Reads have connections of their own.
    split: bool,
}

/// Pages after which SQLite moves the write-ahead log into the file. Large, because
/// a page that many transactions touched is then moved once.
const WAL_PAGES: &str = "4000";

impl Db {
    /// Opens `url` (`sqlite://…` or `postgres://…`) with `connections` for reads, and for
    /// PostgreSQL as many for everything. `read_url` sends reads to a replica.
    ///
    /// # Errors
    /// When the database can't be reached or the address can't be read.
    pub async fn open(url: &str, read_url: Option<&str>, connections: u32) -> Result<Self, DbErr> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let write = postgres(url, connections).await?;
            let read = match read_url {
                Some(replica) => postgres(replica, connections).await?,
                None => write.clone(),
            };
            Ok(Self {
                read: SqlxPostgresConnector::from_sqlx_postgres_pool(read),
                write: SqlxPostgresConnector::from_sqlx_postgres_pool(write),
                dialect: Dialect::Postgres,
                split: read_url.is_some(),
            })
        } else {
            let write = sqlite(url, 1, "-16384").await?;
            let read = sqlite(url, connections, "-4096").await?;
            Ok(Self {
                read: SqlxSqliteConnector::from_sqlx_sqlite_pool(read),
                write: SqlxSqliteConnector::from_sqlx_sqlite_pool(write),
                dialect: Dialect::Sqlite,
                split: true,
            })
        }
    }

    /// Brings the schema up to date. Several processes may start at once: on PostgreSQL a
    /// lock on one address keeps them apart, on SQLite the single writer does. Returns the number of
    /// migrations that were applied.
    ///
    /// # Errors
    /// When a migration fails; those before it stay applied.
    pub async fn migrate(&self) -> Result<usize, DbErr> {
        if self.dialect == Dialect::Postgres {
            let mut lock = self.write.get_postgres_connection_pool().acquire().await.map_err(conn_err)?;
            // "loupe" as a number; held by this session only while it migrates.
            // Asked for again and again: whoever waits inside of a statement holds up an index that is
            // built beside other transactions, and would wait for ever.
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
        self.apply_migrations().await
    }

    /// The number of migrations that this version has and the database lacks. Changes nothing.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn pending_migrations(&self) -> Result<usize, DbErr> {
        Ok(migrations::Migrator::get_pending_migrations_read_only(&self.read).await?.len())
    }

    async fn apply_migrations(&self) -> Result<usize, DbErr> {
        let pending = migrations::Migrator::get_pending_migrations(&self.write).await?.len();
        migrations::Migrator::up(&self.write, None).await?;
        Ok(pending)
    }

    /// Begins a transaction that may write. On SQLite it takes the lock at once: one that
    /// reads first and writes later could not be granted it.
    ///
    /// # Errors
    /// When no connection can be had.
    pub async fn begin(&self) -> Result<DatabaseTransaction, DbErr> {
        let mode = (self.dialect == Dialect::Sqlite).then_some(SqliteTransactionMode::Immediate);
        self.write
            .begin_with_options(TransactionOptions { sqlite_transaction_mode: mode, ..Default::default() })
            .await
    }

    /// Begins a transaction that reads everything as of one moment.
    ///
    /// # Errors
    /// When no connection can be had.
    pub async fn snapshot(&self) -> Result<DatabaseTransaction, DbErr> {
        match self.dialect {
            // A reader of SQLite sees what was there at its first read.
            Dialect::Sqlite => self.read.begin().await,
            Dialect::Postgres => {
                let (level, access) = (IsolationLevel::RepeatableRead, AccessMode::ReadOnly);
                self.read.begin_with_config(Some(level), Some(access)).await
            }
        }
    }

    /// For look-ups that must see every commit and must not wait for writers. A reader of SQLite
    /// sees them all; a replica of PostgreSQL may lag.
    pub fn current(&self) -> &DatabaseConnection {
        match self.dialect {
            Dialect::Sqlite => &self.read,
            Dialect::Postgres => &self.write,
        }
    }

    /// The same database, whose reads see every commit also where lists are read from a replica.
    pub fn primary(&self) -> Self {
        Self { read: self.current().clone(), ..self.clone() }
    }

    /// The sqlx pool for writes, when this is SQLite.
    pub fn sqlite(&self) -> &SqlitePool {
        self.write.get_sqlite_connection_pool()
    }

    /// The sqlx pool for writes, when this is PostgreSQL.
    pub fn postgres(&self) -> &PgPool {
        self.write.get_postgres_connection_pool()
    }

    /// The pools of connections: what each is for, how many are open, and how many of them idle.
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

    /// Writers that serve a process: SQLite has room for one.
    pub fn writers(&self) -> usize {
        match self.dialect {
            Dialect::Sqlite => 1,
            Dialect::Postgres => 2,
        }
    }

    /// Whether several processes may serve it at the same time.
    pub fn is_shared(&self) -> bool {
        self.dialect == Dialect::Postgres
    }

    /// Whether it looks for the nearest vectors itself.
    pub fn finds_nearest(&self) -> bool {
        self.dialect == Dialect::Postgres
    }

    /// Whether changes become visible in the order of their times: a single writer commits one
    /// after the other.
    pub fn commits_in_order(&self) -> bool {
        self.writers() == 1
    }

    /// Whether the database answers.
    pub async fn is_reachable(&self) -> bool {
        use sea_orm::ConnectionTrait;
        let ping = self.read.execute_unprepared("SELECT 1");
        matches!(tokio::time::timeout(Duration::from_secs(2), ping).await, Ok(Ok(_)))
    }

    /// Closes both pools; SQLite then leaves no write-ahead log behind.
    pub async fn close(self) {
        // Nothing can be done about a connection that won't close.
        _ = self.read.close().await;
        _ = self.write.close().await;
    }
}

async fn postgres(url: &str, connections: u32) -> Result<PgPool, DbErr> {
    let options = PgConnectOptions::from_str(url).map_err(conn_err)?.application_name("loupe-server");
    PgPoolOptions::new()
        .max_connections(connections.max(2))
        .acquire_timeout(Duration::from_secs(5))
        .connect_with(options)
        .await
        .map_err(conn_err)
}

async fn sqlite(url: &str, connections: u32, cache: &'static str) -> Result<SqlitePool, DbErr> {
    let options = SqliteConnectOptions::from_str(url)
        .map_err(conn_err)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // FULL, because what was acknowledged must survive a loss of power too.
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(Duration::from_secs(5))
        .pragma("cache_size", cache)
        .pragma("temp_store", "memory")
        .pragma("wal_autocheckpoint", WAL_PAGES)
        .page_size(8192)
        .statement_cache_capacity(256);
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(30))
        .connect_with(options)
        .await
        .map_err(conn_err)
}

/// A deadlock or a serialisation failure, or a row that was removed while it was waited for: the
/// same transaction can succeed now.
pub fn lost_a_race(error: &sqlx::Error) -> bool {
    if matches!(error, sqlx::Error::RowNotFound) {
        return true;
    }
    error.as_database_error().and_then(|it| it.code()).is_some_and(|it| it == "40P01" || it == "40001")
}

/// Whether a row with the same key is there already.
pub fn is_duplicate(error: &DbErr) -> bool {
    matches!(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(_)))
}

fn conn_err(error: sqlx::Error) -> DbErr {
    DbErr::Conn(sea_orm::RuntimeErr::SqlxError(error.into()))
}

/// The address of the SQLite file in a data directory.
pub fn sqlite_url(data_dir: &Path) -> String {
    format!("sqlite://{}/loupe.db", data_dir.display())
}
