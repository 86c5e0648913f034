//! The built server, killed and stopped during its work, and started again.
//!
//! `LOUPE_TEST_KILLS` is the number of kills, `LOUPE_TEST_STOPS` the number of stops; a long run finds faults
//! that a short one misses.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stdout, reason = "a long run prints its results")]

mod admin_commands;
mod evaluations;
mod history;
mod kill;
mod later_start;
mod load;
mod secrets;
mod start;
mod stop;

use server::access::api_key::ApiKey;
use sqlx::{AssertSqlSafe, Connection};
use tests::{Caller, On, postgres::Database, process::Setup};

/// The data of a server, which outlives its processes.
struct Home {
    setup: Setup,
    folder: tempfile::TempDir,
    database: Option<Database>,
    key: String,
}

impl Home {
    /// Creates an empty database; the first start creates a tenant with a known key.
    async fn on(database: On) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = ApiKey::generate().unwrap().reveal().to_owned();
        let mut setup = Setup::new(folder.path()).with("LOUPE_BOOTSTRAP_API_KEY", &key);
        let database = Database::create_for(database).await;
        if let Some(database) = &database {
            setup = setup.with_postgres(&database.url());
        }
        Self { setup, folder, database, key }
    }

    fn caller(&self, url: &str) -> Caller {
        Caller::new(url, Some(&self.key))
    }

    /// Returns the number of stored jobs with this status.
    async fn jobs(&self, status: &str) -> i64 {
        self.count(&format!("job WHERE status = '{status}'")).await
    }

    /// Returns the number of jobs that wait or run. The detection of anomalies is not among them: its job always waits
    /// for the next interval.
    async fn unfinished_jobs(&self) -> i64 {
        self.count("job WHERE status IN ('ready', 'running') AND kind <> 'detect_anomalies'").await
    }

    /// Returns the number of rows of a table, optionally with a condition.
    async fn count(&self, rows: &str) -> i64 {
        let sql = AssertSqlSafe(format!("SELECT COUNT(*) FROM {rows}"));
        match &self.database {
            Some(database) => {
                let mut connection = sqlx::PgConnection::connect(&database.url()).await.unwrap();
                sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
            }
            None => {
                let url = store::sqlite_url(&self.folder.path().join("loupe-data"));
                let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
                sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
            }
        }
    }

    /// Panics unless SQLite's integrity check succeeds.
    async fn check_integrity(&self) {
        if self.database.is_some() {
            return;
        }
        let url = store::sqlite_url(&self.folder.path().join("loupe-data"));
        let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
        let verdict: String =
            sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut connection).await.unwrap();
        assert_eq!(verdict, "ok");
        connection.close().await.unwrap();
    }
}
