//! Bulk runs of evaluators, and the evaluations that they created.

use std::collections::HashSet;

use api::eval::EvaluationStatus;
use entities::{
    eval_bulk::{Column, Entity, Model},
    evaluation,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    PaginatorTrait, QueryFilter, QuerySelect,
};
use uuid::Uuid;

use crate::housekeeping::ExpiringRows;

/// Bulk runs by the time at which they were created, without those that have waiting evaluations, which need the
/// options of the run.
pub const EXPIRING_RUNS: ExpiringRows = ExpiringRows {
    condition: "filled AND NOT EXISTS (SELECT 1 FROM evaluation e WHERE e.tenant_id = $1 \
        AND e.bulk_id = eval_bulk.id AND e.status IN ('pending', 'running'))",
    ..ExpiringRows::of("eval_bulk", "created_at")
};

/// Number of traces per statement, because databases limit the number of parameters.
const TRACES_PER_STATEMENT: usize = 500;

/// Returns a bulk run.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).one(db).await
}

/// Returns the options of a run's evaluations, as text.
///
/// # Errors
/// Fails when the database fails.
pub async fn config(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<Option<String>, DbErr> {
    let query = Entity::find_by_id((tenant, id)).select_only().column(Column::Config);
    query.into_tuple().one(db).await
}

/// Returns a bulk run, locked until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(txn: &DatabaseTransaction, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).lock_exclusive().one(txn).await
}

/// Stores a new run.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model().reset_all()).exec_without_returning(txn).await?;
    Ok(())
}

/// Replaces the stored run that has the same id.
///
/// # Errors
/// Fails when the database fails.
pub async fn replace(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    row.into_active_model().reset_all().update(txn).await?;
    Ok(())
}

/// Returns the number of a run's evaluations that are pending or running.
///
/// # Errors
/// Fails when the database fails.
pub async fn waiting(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<u64, DbErr> {
    let unfinished = [EvaluationStatus::Pending.as_str(), EvaluationStatus::Running.as_str()];
    evaluation::Entity::find()
        .select_only()
        .column(evaluation::Column::Id)
        .filter(evaluation::Column::TenantId.eq(tenant))
        .filter(evaluation::Column::BulkId.eq(id))
        .filter(evaluation::Column::Status.is_in(unfinished))
        .count(db)
        .await
}

/// Returns the given traces for which a run has created an evaluation.
///
/// # Errors
/// Fails when the database fails.
pub async fn made(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    id: Uuid,
    traces: &[Uuid],
) -> Result<HashSet<Uuid>, DbErr> {
    let mut made = HashSet::new();
    for block in traces.chunks(TRACES_PER_STATEMENT) {
        // Uses the index by trace: with the run as a condition, SQLite would read all evaluations of the run.
        let query = evaluation::Entity::find()
            .select_only()
            .columns([evaluation::Column::TraceId, evaluation::Column::BulkId])
            .filter(evaluation::Column::TenantId.eq(tenant))
            .filter(evaluation::Column::TraceId.is_in(block.iter().copied()));
        let rows = query.into_tuple::<(Uuid, Option<Uuid>)>().all(db).await?;
        made.extend(rows.into_iter().filter(|it| it.1 == Some(id)).map(|it| it.0));
    }
    Ok(made)
}
