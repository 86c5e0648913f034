//! Anomalies, and the detectors that find them.

use entities::{anomaly, anomaly_detector};
use sea_orm_migration::{prelude::*, schema::*};

use crate::table::{create_clustered, create_index, dialect};

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// Name, table and columns of the indexes.
const ANOMALY_INDEXES: &[(&str, &str, &str)] = &[
    ("ix_anomaly_time", "anomaly", "tenant_id, created_at, id"),
    ("ix_anomaly_project", "anomaly", "tenant_id, project_id, created_at, id"),
    ("ix_anomaly_detector_due", "anomaly_detector", "tenant_id, due_at, project_id"),
];

/// A repeated job finds the anomaly that it stored before.
const UNIQUE_ANOMALY_INDEX: &str =
    "CREATE UNIQUE INDEX ux_anomaly ON anomaly (tenant_id, project_id, metric, window_start)";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, so that an interrupted migration changes nothing.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create_clustered(manager, anomalies()).await?;
        // Not clustered: the rows are too long for the primary key's B-tree.
        manager.create_table(detectors()).await?;
        let connection = manager.get_connection();
        if let Some(statement) = dialect(manager).keep_uncompressed("anomaly_detector", "state") {
            connection.execute_unprepared(&statement).await?;
        }
        connection.execute_unprepared(UNIQUE_ANOMALY_INDEX).await?;
        for (name, table, columns) in ANOMALY_INDEXES {
            create_index(manager, name, table, columns, None).await?;
        }
        Ok(())
    }
}

fn anomalies() -> TableCreateStatement {
    use anomaly::Column;
    Table::create()
        .table(anomaly::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(uuid(Column::ProjectId))
        .col(text(Column::Metric))
        .col(text(Column::Direction))
        .col(text(Column::Severity))
        .col(text(Column::Status))
        .col(text_null(Column::CloseReason))
        .col(double(Column::Observed))
        .col(double(Column::Expected))
        .col(double(Column::ExpectedLow))
        .col(double(Column::ExpectedHigh))
        .col(double(Column::Score))
        .col(big_integer(Column::WindowStart))
        .col(big_integer(Column::WindowEnd))
        .col(big_integer(Column::CreatedAt))
        .col(big_integer(Column::UpdatedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
        .to_owned()
}

fn detectors() -> TableCreateStatement {
    use anomaly_detector::Column;
    Table::create()
        .table(anomaly_detector::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::ProjectId))
        .col(big_integer(Column::IntervalMicros))
        .col(big_integer(Column::NextStart))
        .col(big_integer(Column::DueAt))
        .col(big_integer(Column::LiveFrom))
        .col(blob(Column::State))
        .col(big_integer(Column::UpdatedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::ProjectId))
        .to_owned()
}
