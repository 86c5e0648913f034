//! The scores that tests and watches of prompt deployments have counted, and the pairs of replay tests.

use std::collections::HashMap;

use api::{
    deployment::{PROMPT_NAME_TAG, PROMPT_VERSION_TAG},
    trace_filter::{Tag, TraceConditions},
};
use entities::{prompt_replay, prompt_score};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QueryOrder, QuerySelect, sea_query::OnConflict,
};
use uuid::Uuid;

use crate::{db::Db, housekeeping::ExpiringRows, traces};

/// Counted scores by the time at which they were counted.
pub const EXPIRING_SCORES: ExpiringRows = ExpiringRows::of("prompt_score", "created_at");
/// Pairs of replay tests by the time at which they were created.
pub const EXPIRING_REPLAYS: ExpiringRows = ExpiringRows::of("prompt_replay", "created_at");

/// Number of rows of a statement, because databases limit the number of parameters.
const ROWS_PER_STATEMENT: usize = 500;

/// Stores a counted score. Returns false if the deployment has counted a score of the trace already.
///
/// # Errors
/// Fails when the database fails.
pub async fn count(txn: &DatabaseTransaction, row: prompt_score::Model) -> Result<bool, DbErr> {
    use prompt_score::Column;
    let keep = OnConflict::columns([Column::TenantId, Column::TraceId, Column::DeploymentId])
        .do_nothing()
        .to_owned();
    let insert = prompt_score::Entity::insert(row.into_active_model().reset_all()).on_conflict(keep);
    Ok(insert.exec_without_returning(txn).await? > 0)
}

/// Returns the newest traces of a project with this version of a prompt, newest first.
///
/// # Errors
/// Fails when the database fails.
pub async fn tagged_traces(
    db: &Db,
    tenant: Uuid,
    project: Uuid,
    (prompt, version): (&str, i32),
    limit: usize,
) -> Result<Vec<Uuid>, DbErr> {
    let tag = |key: &str, value: String| Tag::Pair(key.to_owned(), value);
    let filter = TraceConditions {
        project_id: Some(project),
        tags: vec![tag(PROMPT_NAME_TAG, prompt.to_owned()), tag(PROMPT_VERSION_TAG, version.to_string())],
        ..TraceConditions::default()
    };
    let rows = traces::narrow_page(&db.primary(), tenant, &filter, None, limit).await?;
    Ok(rows.into_iter().map(|it| it.id).collect())
}

/// The evaluations of an eval rule since its last change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleScores {
    /// The rule.
    pub rule: Uuid,
    /// The version of its evaluator.
    pub evaluator_version: String,
    /// Time of the rule's last change, microseconds.
    pub since: i64,
}

/// Returns the newest `fresh` score that a rule gave a whole trace.
///
/// # Errors
/// Fails when the database fails.
pub async fn stored_score(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    trace: Uuid,
    scores: &RuleScores,
) -> Result<Option<f64>, DbErr> {
    use entities::evaluation::{Column, Entity};
    let query = Entity::find()
        .select_only()
        .column(Column::Score)
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::TraceId.eq(trace))
        .filter(Column::RuleId.eq(scores.rule))
        .filter(Column::CreatedAt.gte(scores.since))
        .filter(Column::Context.eq(api::eval::EvaluationContext::Fresh.as_str()))
        .filter(Column::EvaluatorVersion.eq(&scores.evaluator_version))
        .filter(Column::SpanId.is_null())
        .filter(Column::Score.is_not_null())
        .order_by_desc(Column::Id);
    Ok(query.into_tuple::<Option<f64>>().one(db).await?.flatten())
}

/// Adds the pairs of a replay test.
///
/// # Errors
/// Fails when the database fails.
pub async fn add_replays(txn: &DatabaseTransaction, rows: Vec<prompt_replay::Model>) -> Result<(), DbErr> {
    for block in rows.chunks(ROWS_PER_STATEMENT) {
        let rows = block.iter().map(|it| it.clone().into_active_model().reset_all());
        prompt_replay::Entity::insert_many(rows).exec_without_returning(txn).await?;
    }
    Ok(())
}

/// Returns the first pair of a deployment with this status.
///
/// # Errors
/// Fails when the database fails.
pub async fn first_replay(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    deployment: Uuid,
    status: &str,
) -> Result<Option<prompt_replay::Model>, DbErr> {
    use prompt_replay::Column;
    let query = prompt_replay::Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::DeploymentId.eq(deployment))
        .filter(Column::Status.eq(status));
    query.order_by_asc(Column::Id).one(db).await
}

/// Returns a pair, locked until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock_replay(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    deployment: Uuid,
    id: Uuid,
) -> Result<Option<prompt_replay::Model>, DbErr> {
    prompt_replay::Entity::find_by_id((tenant, deployment, id)).lock_exclusive().one(txn).await
}

/// Replaces the stored pair that has the same id.
///
/// # Errors
/// Fails when the database fails.
pub async fn replace_replay(txn: &DatabaseTransaction, row: prompt_replay::Model) -> Result<(), DbErr> {
    row.into_active_model().reset_all().update(txn).await?;
    Ok(())
}

/// Returns the number of a deployment's pairs by status, and an error of one that failed.
///
/// # Errors
/// Fails when the database fails.
pub async fn replay_counts(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    deployment: Uuid,
) -> Result<(HashMap<String, i64>, Option<String>), DbErr> {
    use prompt_replay::Column;
    let query = prompt_replay::Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::DeploymentId.eq(deployment));
    let counts = query.clone().select_only().column(Column::Status).column_as(Column::Id.count(), "pairs");
    let counts: Vec<(String, i64)> = counts.group_by(Column::Status).into_tuple().all(db).await?;
    let failed = query.filter(Column::Error.is_not_null()).order_by_desc(Column::Id).one(db).await?;
    Ok((counts.into_iter().collect(), failed.and_then(|it| it.error)))
}
