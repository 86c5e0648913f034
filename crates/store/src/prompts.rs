//! Prompts and their deployments.
//!
//! A transaction that creates a deployment, decides about one or counts scores locks the row of the prompt first, so that
//! the prompt has one served version and one running test.

use api::deployment::{DeploymentFilter, DeploymentStatus, TestMode};
use entities::{
    prompt,
    prompt_deployment::{Column, Entity, Model},
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait,
    IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
    sea_query::{Expr, OnConflict},
};
use uuid::Uuid;

/// Returns the row of a prompt, locked until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    project: Uuid,
    name: &str,
) -> Result<Option<prompt::Model>, DbErr> {
    prompt::Entity::find_by_id((tenant, project, name.to_owned())).lock_exclusive().one(txn).await
}

/// Adds the row of a prompt without versions, unless it exists.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(txn: &DatabaseTransaction, tenant: Uuid, project: Uuid, name: &str) -> Result<(), DbErr> {
    use prompt::Column;
    let row =
        prompt::Model { tenant_id: tenant, project_id: project, name: name.to_owned(), last_version: 0 };
    let keep =
        OnConflict::columns([Column::TenantId, Column::ProjectId, Column::Name]).do_nothing().to_owned();
    let insert = prompt::Entity::insert(row.into_active_model().reset_all()).on_conflict(keep);
    insert.exec_without_returning(txn).await?;
    Ok(())
}

/// Returns the number of a tenant's prompts.
///
/// # Errors
/// Fails when the database fails.
pub async fn count(db: &impl ConnectionTrait, tenant: Uuid) -> Result<u64, DbErr> {
    prompt::Entity::find().filter(prompt::Column::TenantId.eq(tenant)).count(db).await
}

/// Increments the version of a locked prompt. Returns the new version.
///
/// # Errors
/// Fails when the database fails.
pub async fn next_version(txn: &DatabaseTransaction, row: prompt::Model) -> Result<i32, DbErr> {
    let version = row.last_version.saturating_add(1);
    prompt::Model { last_version: version, ..row }.into_active_model().reset_all().update(txn).await?;
    Ok(version)
}

/// Returns a deployment.
///
/// # Errors
/// Fails when the database fails.
pub async fn deployment(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).one(db).await
}

/// Returns the deployments of a prompt that applications get: the served version, and the version whose test runs.
///
/// # Errors
/// Fails when the database fails.
pub async fn current(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    project: Uuid,
    name: &str,
) -> Result<CurrentVersions, DbErr> {
    let mut versions = CurrentVersions::default();
    let query = of_prompt(tenant, project, name);
    for row in query.clone().filter(is_served()).all(db).await? {
        versions.served = Some(row);
    }
    for row in query.filter(is_running()).all(db).await? {
        versions.running = Some(row);
    }
    Ok(versions)
}

/// The versions of a prompt between which a test splits the traffic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CurrentVersions {
    /// The shipped or regressed version.
    pub served: Option<Model>,
    /// The version whose test runs.
    pub running: Option<Model>,
}

/// Returns the projects and the settings of the live tests that run, and of the tests of the shipped versions, which are
/// watched, of all prompts of a tenant.
///
/// # Errors
/// Fails when the database fails.
pub async fn scored_tests(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Vec<(Uuid, String)>, DbErr> {
    let query = Entity::find()
        .select_only()
        .columns([Column::ProjectId, Column::Test])
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Test.is_not_null());
    let shipped = Column::Status.eq(DeploymentStatus::Shipped.as_str());
    let mut tests = query.clone().filter(shipped).into_tuple().all(db).await?;
    let running = query.filter(Column::Status.eq(DeploymentStatus::AbRunning.as_str()));
    let live = running.filter(Column::Mode.eq(TestMode::Live.as_str()));
    tests.extend(live.into_tuple::<(Uuid, String)>().all(db).await?);
    Ok(tests)
}

/// Returns the newest deployment of a prompt that waits for approval and was compared with this baseline, or with none.
///
/// # Errors
/// Fails when the database fails.
pub async fn newest_waiting(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    project: Uuid,
    name: &str,
    baseline: Option<Uuid>,
) -> Result<Option<Model>, DbErr> {
    let is_waiting = Column::Status.eq(DeploymentStatus::AbPassed.as_str());
    let has_baseline = match baseline {
        Some(baseline) => Column::BaselineId.eq(baseline),
        None => Column::BaselineId.is_null(),
    };
    let query = of_prompt(tenant, project, name).filter(is_waiting).filter(has_baseline);
    query.order_by_desc(Column::Version).one(db).await
}

/// Returns the names of a project's prompts that have a deployment that waits for approval.
///
/// # Errors
/// Fails when the database fails.
pub async fn names_with_waiting(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    project: Uuid,
) -> Result<Vec<String>, DbErr> {
    let query = Entity::find()
        .select_only()
        .column(Column::PromptName)
        .distinct()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Status.eq(DeploymentStatus::AbPassed.as_str()))
        .filter(Column::ProjectId.eq(project));
    query.order_by_asc(Column::PromptName).into_tuple().all(db).await
}

/// Stores a new deployment.
///
/// # Errors
/// Fails when the database fails.
pub async fn add_deployment(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model().reset_all()).exec_without_returning(txn).await?;
    Ok(())
}

/// Replaces the stored deployment that has the same id.
///
/// # Errors
/// Fails when the database fails.
pub async fn replace_deployment(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    row.into_active_model().reset_all().update(txn).await?;
    Ok(())
}

/// Stores only the sums of scores of a deployment, its watch and the time of its change, because its text may be long.
///
/// # Errors
/// Fails when the database fails.
pub async fn store_scores(txn: &DatabaseTransaction, row: &Model) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Scores, Expr::value(row.scores.clone()))
        .col_expr(Column::Watch, Expr::value(row.watch.clone()))
        .col_expr(Column::UpdatedAt, Expr::value(row.updated_at))
        .filter(Column::TenantId.eq(row.tenant_id))
        .filter(Column::Id.eq(row.id))
        .exec(txn)
        .await?;
    Ok(())
}

/// Returns a page of deployments, newest first, after the id `after`.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    filter: &DeploymentFilter,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    let DeploymentFilter { project_id, prompt_name, status } = filter;
    let query = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .apply_if(*project_id, |query, it| query.filter(Column::ProjectId.eq(it)))
        .apply_if(prompt_name.as_deref(), |query, it| query.filter(Column::PromptName.eq(it)))
        .apply_if(*status, |query, it| query.filter(Column::Status.eq(it.as_str())))
        .apply_if(after, |query, it| query.filter(Column::Id.lt(it)));
    query.order_by_desc(Column::Id).limit(limit).all(db).await
}

fn of_prompt(tenant: Uuid, project: Uuid, name: &str) -> Select<Entity> {
    Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::ProjectId.eq(project))
        .filter(Column::PromptName.eq(name))
}

/// The condition of the index of served versions: literals, because a partial index is used only if the query contains
/// its condition.
fn is_served() -> Condition {
    Condition::all().add(Expr::cust("status IN ('shipped', 'regressed')"))
}

/// The condition of the index of running tests.
fn is_running() -> Condition {
    Condition::all().add(Expr::cust("status = 'ab_running'"))
}
