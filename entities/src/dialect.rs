//! The differences between SQLite and PostgreSQL.
//!
//! All other code asks [`Dialect`] for the SQL that differs, or uses SQL that both databases accept.

use sea_orm::DbBackend;

/// The databases that Loupe runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// A file with a single writer.
    Sqlite,
    /// A server, shared by any number of processes.
    Postgres,
}

/// Creates the extension pgvector and checks that its version supports `iterative_scan`.
const CREATE_PGVECTOR_EXTENSION: &str = "DO $$ BEGIN \
    CREATE EXTENSION IF NOT EXISTS vector; \
    IF (SELECT string_to_array(regexp_replace(extversion, '[^0-9.].*', ''), '.')::int[] < '{0,8}' \
        FROM pg_extension WHERE extname = 'vector') THEN \
        RAISE EXCEPTION 'pgvector 0.8 or newer is needed; install it and run: ALTER EXTENSION vector UPDATE'; \
    END IF; END $$";

impl Dialect {
    /// Returns the dialect of a sea-orm connection. MySQL is not compiled in.
    pub fn of(backend: DbBackend) -> Self {
        match backend {
            DbBackend::Postgres => Self::Postgres,
            _ => Self::Sqlite,
        }
    }

    /// Returns sea-orm's name of the database.
    pub fn backend(self) -> DbBackend {
        match self {
            Self::Sqlite => DbBackend::Sqlite,
            Self::Postgres => DbBackend::Postgres,
        }
    }

    /// Returns the first value on SQLite, the second on PostgreSQL.
    pub fn either<T>(self, sqlite: T, postgres: T) -> T {
        match self {
            Self::Sqlite => sqlite,
            Self::Postgres => postgres,
        }
    }

    /// Returns the suffix of `CREATE TABLE` for tables that are accessed by their whole primary key:
    /// SQLite then stores the rows in the key's B-tree, which halves the pages per look-up.
    pub fn clustered(self) -> &'static str {
        match self {
            Self::Sqlite => "WITHOUT ROWID",
            Self::Postgres => "",
        }
    }

    /// Returns the suffix of a table name in `FROM` that selects an index.
    ///
    /// SQLite has no statistics to choose an index by, so the query chooses it. PostgreSQL uses its own
    /// statistics and ignores the hint.
    pub fn index_hint(self, index: &str) -> String {
        match self {
            Self::Sqlite => format!(" INDEXED BY {index}"),
            Self::Postgres => String::new(),
        }
    }

    /// Returns the suffix of a table name in `FROM` that selects the primary key, like [`Self::index_hint`].
    pub fn primary_key_hint(self) -> &'static str {
        match self {
            Self::Sqlite => " NOT INDEXED",
            Self::Postgres => "",
        }
    }

    /// Returns the 32 hexadecimal digits, in lower case, of a UUID column.
    pub fn uuid_digits(self, column: &str) -> String {
        match self {
            Self::Sqlite => format!("lower(hex({column}))"),
            Self::Postgres => format!("replace(CAST({column} AS TEXT), '-', '')"),
        }
    }

    /// Returns the option of `CREATE INDEX` that allows concurrent writes.
    pub fn concurrently(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " CONCURRENTLY",
        }
    }

    /// Returns a statement to run after creating a table of compressed blobs.
    ///
    /// The server compresses text blocks itself, so PostgreSQL should not compress them again.
    pub fn keep_uncompressed(self, table: &str, column: &str) -> Option<String> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some(format!("ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL")),
        }
    }

    /// Returns the suffix that locks selected rows until the transaction ends and skips rows locked by
    /// others. SQLite has one writing transaction at a time, so it needs none.
    pub fn for_update_skip_locked(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// Returns an expression for the position of `needle` in `text`, from 1; 0 if it does not occur,
    /// null if `text` is null.
    pub fn position(self, text: &str, needle: &str) -> String {
        match self {
            Self::Sqlite => format!("instr({text}, {needle})"),
            Self::Postgres => format!("strpos({text}, {needle})"),
        }
    }

    /// Returns the type of a column of vectors with 1,536 half-precision numbers.
    pub fn vector_type(self) -> &'static str {
        match self {
            Self::Sqlite => "blob",
            Self::Postgres => "halfvec(1536)",
        }
    }

    /// Returns a statement to run before creating a table of vectors.
    pub fn before_vectors(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some(CREATE_PGVECTOR_EXTENSION),
        }
    }

    /// Returns the statements to run after creating a table of vectors.
    ///
    /// PostgreSQL searches vectors itself: by comparing coarse codes, in short rows whose vectors are
    /// stored out of line, or in an HNSW index, which contains only the rows with `indexed`. With
    /// SQLite, the server keeps the vectors of a project in memory and reads only newly inserted ones.
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
