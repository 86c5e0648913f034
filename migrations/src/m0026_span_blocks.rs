//! The spans of a trace in one row.
//!
//! The spans of stored traces stay in `span`.

use sea_orm_migration::prelude::*;

use crate::table::dialect;

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// Keys of traces are unique in the whole database, so that rows need no other key.
const ON_SQLITE: &str = r#"
CREATE TABLE span_block ("trace_key" integer NOT NULL PRIMARY KEY, "tenant_id" uuid_text NOT NULL,
  "trace_id" uuid_text NOT NULL, "body_ids" blob NOT NULL, "data" blob NOT NULL)
"#;

const ON_POSTGRES: &str = "
CREATE TABLE span_block (tenant_id uuid NOT NULL, trace_key bigint NOT NULL, trace_id uuid NOT NULL,
  body_ids bytea NOT NULL, data bytea NOT NULL, PRIMARY KEY (tenant_id, trace_key))
";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, so that an interrupted migration changes nothing.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(dialect(manager).either(ON_SQLITE, ON_POSTGRES)).await?;
        Ok(())
    }
}
