//! Vectors in the order of arrival: the key of the trace takes the place of its ID in the primary key.
//!
//! IDs of traces come in no order, so each new vector changed another page of the primary key's index.

use sea_orm_migration::prelude::*;

use crate::table::{create_index, dialect};

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// SQLite cannot change a primary key, so the table is copied, in the order of the keys. The columns are those of the
/// migrations before.
const REBUILD_SQLITE: &str = r#"
ALTER TABLE span_vector RENAME TO span_vector_by_trace;
CREATE TABLE "span_vector" ("tenant_id" uuid_text NOT NULL, "trace_key" integer NOT NULL, "trace_id" uuid_text NOT NULL,
  "id" uuid_text NOT NULL, "project_id" uuid_text NOT NULL, "started_at" integer NOT NULL, "kind_hash" integer NOT NULL,
  "model_hash" integer NULL, "embedding_model" text NOT NULL, "vector" blob NOT NULL,
  PRIMARY KEY ("tenant_id", "trace_key", "id"));
INSERT INTO span_vector (tenant_id, trace_key, trace_id, id, project_id, started_at, kind_hash, model_hash,
  embedding_model, vector)
SELECT v.tenant_id, t.key, v.trace_id, v.id, v.project_id, v.started_at, v.kind_hash, v.model_hash, v.embedding_model,
  v.vector
FROM trace t NOT INDEXED CROSS JOIN span_vector_by_trace v WHERE v.tenant_id = t.tenant_id AND v.trace_id = t.id;
DROP TABLE span_vector_by_trace;
"#;

/// The vectors themselves are stored out of line and are not copied. All vectors leave the HNSW graph, because an
/// update of a row of the graph takes a millisecond; the server adds them again in the background, and scans them until
/// then.
const REBUILD_POSTGRES: &str = "
DROP INDEX ix_span_vector_near;
ALTER TABLE span_vector ADD COLUMN trace_key bigint;
UPDATE span_vector SET trace_key = t.key, indexed = false
  FROM trace t WHERE t.tenant_id = span_vector.tenant_id AND t.id = span_vector.trace_id;
DELETE FROM span_vector WHERE trace_key IS NULL;
ALTER TABLE span_vector ALTER COLUMN trace_key SET NOT NULL;
ALTER TABLE span_vector DROP CONSTRAINT span_vector_pkey;
ALTER TABLE span_vector ADD CONSTRAINT span_vector_pkey PRIMARY KEY (tenant_id, trace_key, id);
CREATE INDEX ix_span_vector_near ON span_vector USING hnsw (coarse bit_hamming_ops) WHERE indexed;
";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, so that an interrupted migration changes nothing.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let (connection, dialect) = (manager.get_connection(), dialect(manager));
        connection.execute_unprepared(dialect.either(REBUILD_SQLITE, REBUILD_POSTGRES)).await?;
        for (name, columns) in dialect.either(SQLITE_INDEXES, &[]) {
            create_index(manager, name, "span_vector", columns, None).await?;
        }
        Ok(())
    }
}

/// Name and columns of the indexes, which SQLite drops with the old table.
const SQLITE_INDEXES: &[(&str, &str)] = &[
    ("ix_span_vector_filter", "tenant_id, project_id, started_at, embedding_model, kind_hash, model_hash"),
    ("ix_span_vector_arrival", "tenant_id, project_id"),
];
