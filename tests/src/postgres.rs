//! A PostgreSQL database for one test, cloned from a template that was migrated once.
//!
//! The server is started by the test runner, or `LOUPE_TEST_POSTGRES_URL` names it; this module starts none.
//! Without a server a test fails, because skipping half of the tests would look like a success.

#![allow(
    clippy::disallowed_methods,
    reason = "tests get their server from the environment, and need ids of their own"
)]
#![allow(clippy::unwrap_used, reason = "a test without its database fails")]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use anyhow::{Context, Result};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use store::Db;
use url::Url;
use uuid::Uuid;

use crate::On;

/// The environment variable with the URL of a server, with a user that can create databases and extensions.
pub const URL_VARIABLE_NAME: &str = "LOUPE_TEST_POSTGRES_URL";

/// The advisory lock held while the template is created. Test processes start together, and only one creates
/// the template.
const TEMPLATE_LOCK: i64 = 4_600_001;

/// A migrated, empty database that is dropped with this value.
#[derive(Debug)]
pub struct Database {
    server: Url,
    name: String,
}

impl Database {
    /// Clones the template, which the first call creates.
    ///
    /// # Errors
    /// Fails when no server is named or it cannot be used.
    pub async fn create() -> Result<Self> {
        let server = std::env::var(URL_VARIABLE_NAME).with_context(|| {
            format!(
                "{URL_VARIABLE_NAME} is not set: run `python3 tests/run.py`, or with `--exec` one command"
            )
        })?;
        let server = Url::parse(&server).with_context(|| format!("{URL_VARIABLE_NAME} is not a URL"))?;
        let template = template(&server).await?;
        let name = format!("loupe_test_{}", Uuid::new_v4().simple());
        execute(&server, &format!("CREATE DATABASE {name} TEMPLATE {template}")).await?;
        Ok(Self { server, name })
    }

    /// Creates a database for a test on PostgreSQL; a test on SQLite needs none.
    ///
    /// # Panics
    /// When [`Self::create`] fails.
    pub async fn create_for(database: On) -> Option<Self> {
        match database {
            On::Sqlite => None,
            On::Postgres => Some(Self::create().await.unwrap()),
        }
    }

    /// Returns the value of `LOUPE_DATABASE_URL` for this database.
    pub fn url(&self) -> String {
        of(&self.server, &self.name).into()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // On a thread, because a value can be dropped inside an async runtime, which must not block.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(execute(&server, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")))
        });
        // If the server is gone, the database is gone too.
        _ = dropped.join();
    }
}

/// Returns the name of the migrated template for the schema of this checkout. Creates it if necessary.
async fn template(server: &Url) -> Result<String> {
    let name = format!("loupe_template_{:016x}", schema_fingerprint()?);
    let mut connection =
        PgConnection::connect(server.as_str()).await.context("PostgreSQL does not answer")?;
    // The lock ends with the connection, even when a test is killed.
    sqlx::query("SELECT pg_advisory_lock($1)").bind(TEMPLATE_LOCK).execute(&mut connection).await?;
    let known: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)")
        .bind(&name)
        .fetch_one(&mut connection)
        .await?;
    if !known {
        // Renamed last, so that an interrupted migration is never used as a template.
        let draft = format!("{name}_draft");
        execute(server, &format!("DROP DATABASE IF EXISTS {draft} WITH (FORCE)")).await?;
        execute(server, &format!("CREATE DATABASE {draft}")).await?;
        let db = Db::open(of(server, &draft).as_str(), None, 2).await?;
        let migrated = db.migrate().await;
        db.close().await;
        migrated?;
        execute(server, &format!("ALTER DATABASE {draft} RENAME TO {name}")).await?;
    }
    connection.close().await?;
    Ok(name)
}

/// Computes a fingerprint of the schema, so that a server that outlives a run gets a new template for another
/// schema.
fn schema_fingerprint() -> Result<u64> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut hasher = DefaultHasher::new();
    for folder in ["migrations/src", "entities/src"] {
        let entries = std::fs::read_dir(root.join(folder))?.collect::<Result<Vec<_>, _>>()?;
        let mut files: Vec<_> = entries.into_iter().map(|it| it.path()).filter(|it| it.is_file()).collect();
        files.sort();
        for file in files {
            std::fs::read(file)?.hash(&mut hasher);
        }
    }
    Ok(hasher.finish())
}

/// Returns the URL of another database on the same server.
fn of(server: &Url, database: &str) -> Url {
    let mut url = server.clone();
    url.set_path(database);
    url
}

/// Runs one statement outside a transaction, without parameters.
async fn execute(server: &Url, statement: &str) -> Result<()> {
    let mut connection =
        PgConnection::connect(server.as_str()).await.context("PostgreSQL does not answer")?;
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(&mut connection)
        .await
        .with_context(|| statement.to_owned())?;
    connection.close().await?;
    Ok(())
}
