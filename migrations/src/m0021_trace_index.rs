//! Rows of traces in the order of arrival, and the trace index in place of the indexes and tag rows of most filters.
//!
//! All stored traces form the tail at first, from which the server makes runs in the background.

use entities::{trace_run, trace_run_block, trace_tail};
use sea_orm_migration::{prelude::*, schema::*};

use crate::table::{create_clustered, create_index, dialect};

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// Name, columns and condition of the indexes on `trace`. On PostgreSQL, the key of the trace follows the columns of
/// those that lists read in order; an index of SQLite ends with it anyway.
const LISTED_INDEXES: &[(&str, &str, Option<&str>)] = &[
    ("ix_trace_time", "tenant_id, started_at", None),
    ("ix_trace_project", "tenant_id, project_id, started_at", None),
    ("ix_trace_session", "tenant_id, session_id, started_at", Some("session_id IS NOT NULL")),
    ("ix_trace_session_time", "tenant_id, started_at", Some("session_id IS NOT NULL")),
    ("ix_trace_unmeasured", "tenant_id, started_at", Some("NOT measured")),
    ("ix_trace_tokens_unmeasured", "tenant_id, started_at", Some("NOT tokens_measured")),
];

/// The indexes on PostgreSQL that are replaced or not needed any more.
const OLD_INDEXES: &[&str] = &[
    "ix_trace_time",
    "ix_trace_project",
    "ix_trace_model",
    "ix_trace_name",
    "ix_trace_session",
    "ix_trace_user",
    "ix_trace_external",
    "ix_trace_error",
    "ix_trace_timeout",
    "ix_trace_rate_limit",
    "ix_trace_invalid_response",
    "ix_trace_context_length",
    "ix_trace_latency",
    "ix_trace_tokens",
    "ix_trace_cost",
    "ix_trace_session_time",
    "ix_trace_unmeasured",
    "ix_trace_tokens_unmeasured",
];

/// SQLite cannot change a primary key, so the table is copied. The columns are those of the migrations before. The new keys
/// are numbered tenant by tenant, in the order of lists, which an index gives without a sort.
const REBUILD_SQLITE: &str = r#"
ALTER TABLE trace RENAME TO trace_by_id;
CREATE TABLE "trace" ("key" integer NOT NULL PRIMARY KEY, "tenant_id" uuid_text NOT NULL, "id" uuid_text NOT NULL,
  "project_id" uuid_text NOT NULL, "external_id" text NULL, "session_id" text NULL, "user_id" text NULL,
  "name" text NULL, "model" text NULL, "error" text NULL, "failure_types" smallint NOT NULL,
  "started_at" integer NOT NULL, "ended_at" integer NULL, "latency_ms" integer NULL, "latency_class" smallint NULL,
  "prompt_tokens" integer NULL, "completion_tokens" integer NULL, "total_tokens" integer NOT NULL,
  "token_class" smallint NOT NULL, "cost" integer NULL, "cost_class" smallint NULL, "tags" text NULL,
  "span_count" integer NOT NULL, "ready_at" integer NOT NULL, "ready" boolean NOT NULL, "given" text NULL,
  "digest" blob NULL, "body_id" uuid_text NULL, "body_index" integer NOT NULL, "created_at" integer NOT NULL,
  "updated_at" integer NOT NULL, "measured" boolean NOT NULL DEFAULT FALSE, "feedback" smallint NULL,
  "cached_input_tokens" integer NULL, "cache_write_tokens" integer NULL, "reasoning_tokens" integer NULL,
  "input_body_id" uuid_text NULL, "input_body_index" integer NULL, "output_body_id" uuid_text NULL,
  "output_body_index" integer NULL, "tokens_measured" boolean NOT NULL DEFAULT FALSE);
INSERT INTO trace (tenant_id, id, project_id, external_id, session_id, user_id, name, model, error, failure_types,
  started_at, ended_at, latency_ms, latency_class, prompt_tokens, completion_tokens, total_tokens, token_class, cost,
  cost_class, tags, span_count, ready_at, ready, given, digest, body_id, body_index, created_at, updated_at, measured,
  feedback, cached_input_tokens, cache_write_tokens, reasoning_tokens, input_body_id, input_body_index, output_body_id,
  output_body_index, tokens_measured)
SELECT tenant_id, id, project_id, external_id, session_id, user_id, name,
  model, error, failure_types, started_at, ended_at, latency_ms, latency_class, prompt_tokens, completion_tokens,
  total_tokens, token_class, cost, cost_class, tags, span_count, ready_at, ready, given, digest, body_id, body_index,
  created_at, updated_at, measured, feedback, cached_input_tokens, cache_write_tokens, reasoning_tokens, input_body_id,
  input_body_index, output_body_id, output_body_index, tokens_measured
FROM trace_by_id INDEXED BY ix_trace_time ORDER BY tenant_id, started_at, id;
DROP TABLE trace_by_id;
CREATE INDEX ix_trace_updated ON trace (tenant_id, updated_at, id);
CREATE UNIQUE INDEX ux_trace_id ON trace (tenant_id, id);
ALTER TABLE span RENAME TO span_by_id;
CREATE TABLE "span" ("tenant_id" uuid_text NOT NULL, "trace_key" integer NOT NULL, "trace_id" uuid_text NOT NULL,
  "id" uuid_text NOT NULL, "parent_id" uuid_text NULL, "name" text NOT NULL, "kind" text NOT NULL, "model" text NULL,
  "started_at" integer NOT NULL, "ended_at" integer NULL, "latency_ms" integer NULL, "error" text NULL,
  "failure" smallint NULL, "prompt_tokens" integer NULL, "completion_tokens" integer NULL, "cost" integer NULL,
  "counted" boolean NOT NULL, "cost_counted" boolean NOT NULL, "response_hash" integer NULL, "otel_span_id" blob NULL,
  "hints" text NULL, "body_id" uuid_text NULL, "body_index" integer NOT NULL, "created_at" integer NOT NULL,
  "cached_input_tokens" integer NULL, "cache_write_tokens" integer NULL, "reasoning_tokens" integer NULL,
  "missing_texts" smallint NULL, PRIMARY KEY ("tenant_id", "trace_key", "id")) WITHOUT ROWID;
INSERT INTO span (tenant_id, trace_key, trace_id, id, parent_id, name, kind, model, started_at, ended_at, latency_ms,
  error, failure, prompt_tokens, completion_tokens, cost, counted, cost_counted, response_hash, otel_span_id, hints,
  body_id, body_index, created_at, cached_input_tokens, cache_write_tokens, reasoning_tokens, missing_texts)
SELECT s.tenant_id, t.key, s.trace_id, s.id, s.parent_id, s.name, s.kind, s.model, s.started_at, s.ended_at,
  s.latency_ms, s.error, s.failure, s.prompt_tokens, s.completion_tokens, s.cost, s.counted, s.cost_counted,
  s.response_hash, s.otel_span_id, s.hints, s.body_id, s.body_index, s.created_at, s.cached_input_tokens,
  s.cache_write_tokens, s.reasoning_tokens, s.missing_texts
FROM trace t NOT INDEXED CROSS JOIN span_by_id s WHERE s.tenant_id = t.tenant_id AND s.trace_id = t.id
ORDER BY t.tenant_id, t.key, s.id;
DROP TABLE span_by_id;
"#;

const REBUILD_POSTGRES: &str = "
ALTER TABLE trace ADD COLUMN key bigint;
UPDATE trace SET key = n.key FROM
  (SELECT tenant_id, id, row_number() OVER (PARTITION BY tenant_id ORDER BY started_at, id) AS key FROM trace) n
  WHERE n.tenant_id = trace.tenant_id AND n.id = trace.id;
ALTER TABLE trace ALTER COLUMN key SET NOT NULL;
ALTER TABLE trace DROP CONSTRAINT trace_pkey;
ALTER TABLE trace ADD CONSTRAINT trace_pkey PRIMARY KEY (tenant_id, key);
CREATE UNIQUE INDEX ux_trace_id ON trace (tenant_id, id);
ALTER TABLE span ADD COLUMN trace_key bigint;
UPDATE span SET trace_key = t.key FROM trace t WHERE t.tenant_id = span.tenant_id AND t.id = span.trace_id;
DELETE FROM span WHERE trace_key IS NULL;
ALTER TABLE span ALTER COLUMN trace_key SET NOT NULL;
ALTER TABLE span DROP CONSTRAINT span_pkey;
ALTER TABLE span ADD CONSTRAINT span_pkey PRIMARY KEY (tenant_id, trace_key, id);
";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, so that an interrupted migration changes nothing.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let (connection, dialect) = (manager.get_connection(), dialect(manager));
        for index in dialect.either(&[][..], OLD_INDEXES) {
            connection.execute_unprepared(&format!("DROP INDEX IF EXISTS {index}")).await?;
        }
        connection.execute_unprepared(dialect.either(REBUILD_SQLITE, REBUILD_POSTGRES)).await?;
        for (name, columns, condition) in LISTED_INDEXES {
            let columns = format!("{columns}{}", dialect.either("", ", key"));
            create_index(manager, name, "trace", &columns, *condition).await?;
        }
        connection.execute_unprepared("DROP TABLE trace_tag").await?;
        // Without its trace, a position precedes all traces of its time.
        for statement in [
            "ALTER TABLE eval_bulk ADD COLUMN position_key bigint",
            "UPDATE eval_bulk SET position_key = COALESCE((SELECT t.key FROM trace t WHERE t.tenant_id = eval_bulk.tenant_id \
             AND t.id = eval_bulk.position_id), 9223372036854775807) WHERE position_at IS NOT NULL",
            "ALTER TABLE eval_bulk DROP COLUMN position_id",
        ] {
            connection.execute_unprepared(statement).await?;
        }
        create_clustered(
            manager,
            Table::create()
                .table(trace_tail::Entity)
                .col(uuid(trace_tail::Column::TenantId))
                .col(big_integer(trace_tail::Column::Id))
                .col(big_integer(trace_tail::Column::FirstKey))
                .col(big_integer(trace_tail::Column::LastKey))
                .col(integer(trace_tail::Column::Traces))
                .primary_key(Index::create().col(trace_tail::Column::TenantId).col(trace_tail::Column::Id))
                .to_owned(),
        )
        .await?;
        // Not clustered, like the blocks: the rows are too long for the primary key's B-tree.
        manager
            .create_table(
                Table::create()
                    .table(trace_run::Entity)
                    .col(uuid(trace_run::Column::TenantId))
                    .col(big_integer(trace_run::Column::Id))
                    .col(small_integer(trace_run::Column::Level))
                    .col(small_integer(trace_run::Column::State))
                    .col(big_integer(trace_run::Column::Traces))
                    .col(big_integer(trace_run::Column::NewestAt))
                    .col(big_integer(trace_run::Column::OldestAt))
                    .col(integer(trace_run::Column::Blocks))
                    .col(big_integer(trace_run::Column::MergedUntil))
                    .col(big_integer(trace_run::Column::ChangedAt))
                    .col(blob(trace_run::Column::Directory))
                    .primary_key(Index::create().col(trace_run::Column::TenantId).col(trace_run::Column::Id))
                    .to_owned(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table(trace_run_block::Entity)
                    .col(uuid(trace_run_block::Column::TenantId))
                    .col(big_integer(trace_run_block::Column::RunId))
                    .col(integer(trace_run_block::Column::Number))
                    .col(blob(trace_run_block::Column::Data))
                    .primary_key(
                        Index::create()
                            .col(trace_run_block::Column::TenantId)
                            .col(trace_run_block::Column::RunId)
                            .col(trace_run_block::Column::Number),
                    )
                    .to_owned(),
            )
            .await?;
        for (table, column) in [("trace_run", "directory"), ("trace_run_block", "data")] {
            if let Some(statement) = dialect.keep_uncompressed(table, column) {
                connection.execute_unprepared(&statement).await?;
            }
        }
        connection
            .execute_unprepared(
                "INSERT INTO trace_tail (tenant_id, id, first_key, last_key, traces) \
                 SELECT tenant_id, MIN(key), MIN(key), MAX(key), CAST(COUNT(*) AS INTEGER) FROM trace GROUP BY tenant_id",
            )
            .await?;
        Ok(())
    }
}
