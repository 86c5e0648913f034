//! The keys of traces by their IDs, on SQLite in three tables instead of one index.
//!
//! IDs come in no order, so each new trace changed another page of the index once it was large. New IDs are in a small
//! table now, from which many are moved at once, in their order, into larger ones. Triggers keep the tables and `trace`
//! consistent.

use sea_orm_migration::prelude::*;

use crate::table::dialect;

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

const ON_SQLITE: &str = r#"
CREATE TABLE trace_id_new ("tenant_id" uuid_text NOT NULL, "id" uuid_text NOT NULL, "key" integer NOT NULL,
  PRIMARY KEY ("tenant_id", "id")) WITHOUT ROWID;
CREATE TABLE trace_id_recent ("tenant_id" uuid_text NOT NULL, "id" uuid_text NOT NULL, "key" integer NOT NULL,
  PRIMARY KEY ("tenant_id", "id")) WITHOUT ROWID;
CREATE TABLE trace_id_old ("tenant_id" uuid_text NOT NULL, "id" uuid_text NOT NULL, "key" integer NOT NULL,
  PRIMARY KEY ("tenant_id", "id")) WITHOUT ROWID;
INSERT INTO trace_id_old (tenant_id, id, key) SELECT tenant_id, id, key FROM trace INDEXED BY ux_trace_id ORDER BY tenant_id, id;
DROP INDEX ux_trace_id;
CREATE VIEW trace_key_by_id AS
  SELECT tenant_id, id, key FROM trace_id_new UNION ALL
  SELECT tenant_id, id, key FROM trace_id_recent UNION ALL
  SELECT tenant_id, id, key FROM trace_id_old;
CREATE TRIGGER trace_id_added AFTER INSERT ON trace BEGIN
  INSERT INTO trace_id_new (tenant_id, id, key) VALUES (NEW.tenant_id, NEW.id, NEW.key);
END;
CREATE TRIGGER trace_id_removed AFTER DELETE ON trace BEGIN
  DELETE FROM trace_id_new WHERE tenant_id = OLD.tenant_id AND id = OLD.id;
  DELETE FROM trace_id_recent WHERE tenant_id = OLD.tenant_id AND id = OLD.id;
  DELETE FROM trace_id_old WHERE tenant_id = OLD.tenant_id AND id = OLD.id;
END;
"#;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction, so that an interrupted migration changes nothing.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // PostgreSQL keeps its index.
        manager.get_connection().execute_unprepared(dialect(manager).either(ON_SQLITE, "")).await?;
        Ok(())
    }
}
