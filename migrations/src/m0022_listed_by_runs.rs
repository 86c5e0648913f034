//! The trace index has an entry of every trace, and entries of sessions, so that lists of all traces, of a project and of
//! sessions need no index of the table. An index by project and day finds the oldest traces of a project.
//!
//! Earlier runs lack these entries. So they are removed, and all stored traces form the tail, from which the server makes
//! runs in the background.

use sea_orm_migration::prelude::*;

use crate::table::create_index;

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

const REPLACE_RUNS: &str = "
DROP INDEX ix_trace_time;
DROP INDEX ix_trace_project;
DROP INDEX ix_trace_session;
DROP INDEX ix_trace_session_time;
DELETE FROM trace_run_block;
DELETE FROM trace_run;
DELETE FROM trace_tail;
INSERT INTO trace_tail (tenant_id, id, first_key, last_key, traces)
SELECT tenant_id, MIN(key), MIN(key), MAX(key), CAST(COUNT(*) AS INTEGER) FROM trace GROUP BY tenant_id;
";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, so that an interrupted migration changes nothing.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(REPLACE_RUNS).await?;
        // The exact start makes the index sufficient to exclude traces of the last day.
        let columns = "tenant_id, project_id, (started_at / 86400000000), key, started_at";
        create_index(manager, "ix_trace_project_day", "trace", columns, None).await
    }
}
