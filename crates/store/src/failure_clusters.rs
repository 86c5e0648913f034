//! Failure clusters, and their failures per hour.

use std::collections::HashMap;

use api::failure::ClusterFilter;
use entities::{
    failure_cluster::{Column, Entity, Model},
    failure_clustering, failure_trend,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, FromQueryResult,
    IntoActiveModel, Iterable, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select, Statement,
    sea_query::{Expr, ExprTrait, OnConflict},
};
use uuid::Uuid;

use crate::{housekeeping::ExpiringRows, page::newest_first, traces::bit_of};

/// Clusters by the time of their newest failure, without those that have failures.
pub const EXPIRING_CLUSTERS: ExpiringRows = ExpiringRows {
    condition: "NOT EXISTS (SELECT 1 FROM failure f WHERE f.tenant_id = $1 \
        AND f.cluster_id = failure_cluster.id)",
    ..ExpiringRows::of("failure_cluster", "last_seen")
};

/// Failures per hour, by the hour.
pub const EXPIRING_TRENDS: ExpiringRows = ExpiringRows::of("failure_trend", "hour");

/// Number of rows per statement, because databases limit the number of parameters.
const ROWS_PER_STATEMENT: usize = 500;

/// What clustering needs of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, FromQueryResult)]
pub struct ClusterTemplate {
    /// The cluster.
    pub id: Uuid,
    /// Bit of [`api::FailureType`].
    pub failure_type: i16,
    /// The masked span name.
    pub span_name: String,
    /// The failure template.
    pub fingerprint: String,
    /// Number of failures.
    pub count: i64,
}

/// Locks the clustering of a project until the transaction ends. Returns its version.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock_project(txn: &DatabaseTransaction, tenant: Uuid, project: Uuid) -> Result<i64, DbErr> {
    // One statement that creates the row or locks it.
    let sql = "INSERT INTO failure_clustering (tenant_id, project_id, version) VALUES ($1, $2, 0) \
               ON CONFLICT (tenant_id, project_id) DO UPDATE SET version = failure_clustering.version \
               RETURNING version";
    let values = [tenant.into(), project.into()];
    let statement = Statement::from_sql_and_values(txn.get_database_backend(), sql, values);
    let row = txn.query_one_raw(statement).await?;
    row.ok_or_else(|| DbErr::RecordNotFound("the clustering of a project".to_owned()))?.try_get_by_index(0)
}

/// Stores the version of a project's locked clustering.
///
/// # Errors
/// Fails when the database fails.
pub async fn set_version(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    project: Uuid,
    version: i64,
) -> Result<(), DbErr> {
    use failure_clustering::Column;
    failure_clustering::Entity::update_many()
        .col_expr(Column::Version, Expr::value(version))
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::ProjectId.eq(project))
        .exec(txn)
        .await?;
    Ok(())
}

/// Raises the versions of the clusterings of all projects of a tenant.
///
/// # Errors
/// Fails when the database fails.
pub async fn raise_versions(db: &impl ConnectionTrait, tenant: Uuid) -> Result<(), DbErr> {
    use failure_clustering::{Column, Entity};
    let of_tenant =
        Entity::find().select_only().column(Column::ProjectId).filter(Column::TenantId.eq(tenant));
    // One statement each: a transaction that locks several projects does so in the order of their ids.
    for project in of_tenant.into_tuple::<Uuid>().all(db).await? {
        Entity::update_many()
            .col_expr(Column::Version, Expr::col(Column::Version).add(1))
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::ProjectId.eq(project))
            .exec(db)
            .await?;
    }
    Ok(())
}

/// Returns the templates of all clusters of a project.
///
/// # Errors
/// Fails when the database fails.
pub async fn templates(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    project: Uuid,
) -> Result<Vec<ClusterTemplate>, DbErr> {
    Entity::find()
        .select_only()
        .columns([Column::Id, Column::FailureType, Column::SpanName, Column::Fingerprint, Column::Count])
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::ProjectId.eq(project))
        .into_model()
        .all(db)
        .await
}

/// Returns those of these clusters that exist, locked until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(txn: &DatabaseTransaction, tenant: Uuid, ids: &[Uuid]) -> Result<Vec<Model>, DbErr> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    let mut rows = Vec::with_capacity(ids.len());
    for block in ids.chunks(ROWS_PER_STATEMENT) {
        let query = Entity::find()
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::Id.is_in(block.iter().copied()))
            .order_by_asc(Column::Id)
            .lock_exclusive();
        rows.append(&mut query.all(txn).await?);
    }
    Ok(rows)
}

/// Inserts new clusters and replaces locked ones.
///
/// # Errors
/// Fails when the database fails.
pub async fn save(txn: &DatabaseTransaction, rows: &[Model]) -> Result<(), DbErr> {
    let changing = Column::iter().filter(|it| !matches!(it, Column::TenantId | Column::Id));
    let replace = OnConflict::columns([Column::TenantId, Column::Id]).update_columns(changing).to_owned();
    for block in rows.chunks(ROWS_PER_STATEMENT) {
        let rows = block.iter().map(|it| it.clone().into_active_model().reset_all());
        Entity::insert_many(rows).on_conflict(replace.clone()).exec_without_returning(txn).await?;
    }
    Ok(())
}

/// Replaces a locked cluster.
///
/// # Errors
/// Fails when the database fails.
pub async fn replace(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    row.into_active_model().reset_all().update(txn).await?;
    Ok(())
}

/// Adds failures to the hours of clusters.
///
/// # Errors
/// Fails when the database fails.
pub async fn add_trends(txn: &DatabaseTransaction, rows: &[failure_trend::Model]) -> Result<(), DbErr> {
    use failure_trend::Column;
    let add = OnConflict::columns([Column::TenantId, Column::ClusterId, Column::Hour])
        .value(Column::Count, Expr::cust("failure_trend.count + excluded.count"))
        .to_owned();
    for block in rows.chunks(ROWS_PER_STATEMENT) {
        let rows = block.iter().map(|it| it.clone().into_active_model().reset_all());
        failure_trend::Entity::insert_many(rows).on_conflict(add.clone()).exec_without_returning(txn).await?;
    }
    Ok(())
}

/// Returns the failures per hour of these clusters, from the hour `from` on (microseconds).
///
/// # Errors
/// Fails when the database fails.
pub async fn trends(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    clusters: &[Uuid],
    from: i64,
) -> Result<HashMap<Uuid, Vec<(i64, i64)>>, DbErr> {
    use failure_trend::Column;
    let mut found: HashMap<Uuid, Vec<(i64, i64)>> = HashMap::new();
    let rows = failure_trend::Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::ClusterId.is_in(clusters.iter().copied()))
        .filter(Column::Hour.gte(from))
        .all(db)
        .await?;
    for row in rows {
        found.entry(row.cluster_id).or_default().push((row.hour, row.count));
    }
    Ok(found)
}

/// Returns a cluster.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).one(db).await
}

/// Returns the given clusters that have a status.
///
/// # Errors
/// Fails when the database fails.
pub async fn with_status(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    ids: &[Uuid],
    status: &str,
) -> Result<Vec<Uuid>, DbErr> {
    let query = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Id.is_in(ids.iter().copied()))
        .filter(Column::Status.eq(status));
    query.into_tuple().all(db).await
}

/// Returns a page of clusters by their newest failures, after the (time, id) of `after`.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    filter: &ClusterFilter,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    page_query(tenant, filter, after, limit).all(db).await
}

/// Returns the query of a page of clusters.
pub fn page_query(
    tenant: Uuid,
    filter: &ClusterFilter,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Select<Entity> {
    let query = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .apply_if(filter.project_id, |query, it| query.filter(Column::ProjectId.eq(it)))
        .apply_if(filter.status, |query, it| query.filter(Column::Status.eq(it.as_str())))
        .apply_if(filter.failure_type, |query, it| query.filter(Column::FailureType.eq(bit_of(it))))
        .apply_if(filter.from, |query, it| query.filter(Column::LastSeen.gte(it.micros())))
        .apply_if(filter.to, |query, it| query.filter(Column::LastSeen.lte(it.micros())));
    newest_first(query, (Column::LastSeen, Column::Id), after, limit)
}
