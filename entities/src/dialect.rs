//! The only place that tells SQLite from PostgreSQL.
//!
//! Everything else asks here for the piece of SQL that differs, or is written so that both
//! databases take it.

use sea_orm::DbBackend;

/// The databases that Loupe runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// One file, one writer.
    Sqlite,
    /// Any number of processes.
    Postgres,
}

/// Makes sure of pgvector, from the first version that walks its index on (`iterative_scan`).
const PGVECTOR: &str = "DO $$ BEGIN \
    CREATE EXTENSION IF NOT EXISTS vector; \
    IF (SELECT string_to_array(regexp_replace(extversion, '[^0-9.].*', ''), '.')::int[] < '{0,8}' \
        FROM pg_extension WHERE extname = 'vector') THEN \
        RAISE EXCEPTION 'pgvector 0.8 or newer is needed; install it and run: ALTER EXTENSION vector UPDATE'; \
    END IF; END $$";

impl Dialect {
    /// The dialect of a sea-orm connection. MySQL is not compiled in.
    pub fn of(backend: DbBackend) -> Self {
        match backend {
            DbBackend::Postgres => Self::Postgres,
            _ => Self::Sqlite,
        }
    }

    /// What sea-orm calls it.
    pub fn backend(self) -> DbBackend {
        match self {
            Self::Sqlite => DbBackend::Sqlite,
            Self::Postgres => DbBackend::Postgres,
        }
    }

    /// Appended to `CREATE TABLE` of tables whose rows are found by their whole primary key:
    /// SQLite then keeps the rows in the key's own tree, one page instead of two a look-up.
    pub fn clustered(self) -> &'static str {
        match self {
            Self::Sqlite => "WITHOUT ROWID",
            Self::Postgres => "",
        }
    }

    /// Follows the table's name in a `FROM` to make the given index the one that is used.
    ///
    /// SQLite has no statistics of ours to choose by, so the choice is made where the query
    /// is built. PostgreSQL decides by its own statistics.
    pub fn index_hint(self, index: &str) -> String {
        match self {
            Self::Sqlite => format!(" INDEXED BY {index}"),
            Self::Postgres => String::new(),
        }
    }

    /// Follows `CREATE INDEX` where the index is built while others write.
    pub fn concurrently(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " CONCURRENTLY",
        }
    }

    /// Statements to run once after a table of compressed blobs was made.
    ///
    /// The server compresses bodies itself, so PostgreSQL need not try again.
    pub fn keep_uncompressed(self, table: &str, column: &str) -> Option<String> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some(format!("ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL")),
        }
    }

    /// Locks selected rows until the transaction ends, leaving out those that another one
    /// holds. A SQLite transaction that writes is alone anyway.
    pub fn for_update_skip_locked(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// Where `needle` stands in `text`, from 1; 0 when it does not, null when `text` is null.
    pub fn position(self, text: &str, needle: &str) -> String {
        match self {
            Self::Sqlite => format!("instr({text}, {needle})"),
            Self::Postgres => format!("strpos({text}, {needle})"),
        }
    }

    /// The type of a column of vectors of 1,536 halves.
    pub fn vector_type(self) -> &'static str {
        match self {
            Self::Sqlite => "blob",
            Self::Postgres => "halfvec(1536)",
        }
    }

    /// Statement to run before a table of vectors is made.
    pub fn before_vectors(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some(PGVECTOR),
        }
    }

    /// Statements to run once after a table of vectors was made.
    ///
    /// PostgreSQL looks for vectors itself: by their bits, in rows that are short because the vectors
    /// lie elsewhere, or in a graph, which only the rows that are `indexed` are in. In front of SQLite
    /// the server keeps the vectors of a project in memory, and asks for those that came since.
    pub fn after_vectors(self, table: &str) -> Vec<String> {
        match self {
            Self::Sqlite => {
                vec![format!("CREATE INDEX ix_{table}_arrival ON {table} (tenant_id, project_id)")]
            }
            Self::Postgres => vec![
                format!("ALTER TABLE {table} ALTER COLUMN vector SET STORAGE EXTERNAL"),
                format!(
                    "ALTER TABLE {table} ADD COLUMN coarse bit(1536) NOT NULL, \
                     ADD COLUMN indexed boolean NOT NULL DEFAULT false"
                ),
                format!(
                    "CREATE INDEX ix_{table}_near ON {table} USING hnsw (coarse bit_hamming_ops) WHERE indexed"
                ),
                format!(
                    "CREATE INDEX ix_{table}_unindexed ON {table} (tenant_id, project_id, started_at) WHERE NOT indexed"
                ),
            ],
        }
    }
}
