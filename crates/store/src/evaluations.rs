//! Creates, starts, ends and lists evaluations.
//!
//! The number of attempts is a fencing token. A worker that starts an evaluation increments it, and only the
//! newest attempt can end the evaluation. A worker that lost its lease therefore changes nothing, and no
//! evaluation ends twice.

use std::collections::{BTreeMap, HashMap, HashSet};

use api::eval::{EvaluationContext, EvaluationFilter, EvaluationStatus, Verdict};
use entities::evaluation::{Column, Entity, Model};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, FromQueryResult,
    IdenStatic, Iterable, ModelTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select, Statement,
    Value, sea_query::Expr,
};
use uuid::Uuid;

use crate::{
    db::Db,
    ids::new_id,
    page::newest_first,
    quotas::{self, Quota},
};

/// Number of rows per statement, because databases limit the number of parameters.
const ROWS_PER_STATEMENT: usize = 250;

/// Numbers of rows per insert. The few sizes let a connection prepare every statement once.
const ROWS_PER_INSERT: [usize; 4] = [64, 16, 4, 1];

/// The error of an evaluation whose trace was removed.
pub const TRACE_REMOVED_ERROR: &str = "the trace was removed before it was evaluated";

/// The result of executing an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationResult {
    /// The version of the evaluator that ran, if it differs from the requested one.
    pub evaluator_version: Option<String>,
    /// The verdict, or the reason why there is none.
    pub verdict: Result<Verdict, String>,
    /// The judge, and its usage.
    pub usage: JudgeUsage,
}

impl EvaluationResult {
    /// Returns the result of an evaluation without a verdict, for which no judge was called.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self { evaluator_version: None, verdict: Err(reason.into()), usage: JudgeUsage::default() }
    }
}

/// The judge model of an evaluation, with the tokens and cost of all its replies. Never estimated: unreported
/// counts and unknown prices give `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgeUsage {
    /// The model.
    pub model: Option<String>,
    /// Prompt tokens.
    pub prompt_tokens: Option<i64>,
    /// Completion tokens, including reasoning.
    pub completion_tokens: Option<i64>,
    /// Cost in pico-dollars.
    pub cost: Option<i64>,
}

impl JudgeUsage {
    /// Adds the use of earlier requests for the same evaluation.
    fn with_earlier(mut self, row: &Model) -> Self {
        let add = |to: &mut Option<i64>, earlier: Option<i64>| {
            if let Some(earlier) = earlier {
                *to = Some(to.unwrap_or(0).saturating_add(earlier));
            }
        };
        add(&mut self.prompt_tokens, row.prompt_tokens);
        add(&mut self.completion_tokens, row.completion_tokens);
        add(&mut self.cost, row.cost);
        self
    }
}

/// Returns an evaluation, read from the primary rather than from a replica.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &Db, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).one(db.current()).await
}

/// Returns the evaluations with these IDs. Unknown IDs are ignored.
///
/// # Errors
/// Fails when the database fails.
pub async fn some(db: &impl ConnectionTrait, tenant: Uuid, ids: &[Uuid]) -> Result<Vec<Model>, DbErr> {
    let mut found = Vec::with_capacity(ids.len());
    for block in ids.chunks(ROWS_PER_STATEMENT) {
        let query = without_config()
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::Id.is_in(block.iter().copied()));
        found.append(&mut query.all(db).await?);
    }
    Ok(found)
}

/// Returns a page of evaluations, newest first, that begins after the (time, id) of `after`.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    filter: &EvaluationFilter,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    let query = without_config()
        .filter(Column::TenantId.eq(tenant))
        .apply_if(filter.project_id, |query, it| query.filter(Column::ProjectId.eq(it)))
        .apply_if(filter.trace_id, |query, it| query.filter(Column::TraceId.eq(it)))
        .apply_if(filter.metric_name.as_deref(), |query, it| query.filter(Column::MetricName.eq(it)))
        .apply_if(filter.evaluator_type, |query, it| query.filter(Column::EvaluatorType.eq(it.as_str())))
        .apply_if(filter.status, |query, it| query.filter(Column::Status.eq(it.as_str())))
        .apply_if(filter.label.as_deref(), |query, it| query.filter(Column::Label.eq(it)))
        .apply_if(filter.context, |query, it| query.filter(Column::Context.eq(it.as_str())))
        .apply_if(filter.rule_id, |query, it| query.filter(Column::RuleId.eq(it)))
        .apply_if(filter.from, |query, it| query.filter(Column::CreatedAt.gte(it.micros())))
        .apply_if(filter.to, |query, it| query.filter(Column::CreatedAt.lte(it.micros())))
        .apply_if(filter.min_score, |query, it| query.filter(Column::Score.gte(it)))
        .apply_if(filter.max_score, |query, it| query.filter(Column::Score.lte(it)));
    // SQLite uses a partial index only if the query contains the index's condition literally.
    let rare = [
        filter.status.is_some_and(|it| it != EvaluationStatus::Complete).then_some("status <> 'complete'"),
        filter.label.as_deref().is_some_and(|it| it != "pass").then_some("label <> 'pass'"),
    ];
    let query = rare.into_iter().flatten().fold(query, |query, it| query.filter(Expr::cust(it)));
    newest_first(query, (Column::CreatedAt, Column::Id), after, limit).all(db).await
}

/// Selects evaluations without their configs, which may be long.
fn without_config() -> Select<Entity> {
    let shown = Column::iter().filter(|it| !matches!(it, Column::Config));
    Entity::find().select_only().columns(shown).expr_as(Expr::cust("NULL"), "config")
}

/// Stores new evaluations. An evaluation that the same eval rule requested before is dropped unless the
/// earlier one failed. Returns the number of stored evaluations.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(txn: &DatabaseTransaction, rows: Vec<Model>) -> Result<usize, DbErr> {
    Ok(insert_new(txn, &rows).await?.len())
}

/// Inserts rows, without those that a unique index excludes. Returns the IDs of the inserted ones.
async fn insert_new(txn: &DatabaseTransaction, mut rows: &[Model]) -> Result<Vec<Uuid>, DbErr> {
    let columns: Vec<&str> = Column::iter().map(|it| it.as_str()).collect();
    let mut inserted = Vec::with_capacity(rows.len());
    while let Some(size) = ROWS_PER_INSERT.into_iter().find(|it| *it <= rows.len()) {
        let (block, rest) = rows.split_at(size);
        rows = rest;
        let mut parameters = 1..;
        let mut tuple = || {
            let places = parameters.by_ref().take(columns.len()).map(|it| format!("${it}"));
            format!("({})", places.collect::<Vec<_>>().join(","))
        };
        let tuples: Vec<String> = (0..size).map(|_| tuple()).collect();
        let sql = format!(
            "INSERT INTO evaluation ({}) VALUES {} ON CONFLICT DO NOTHING RETURNING id",
            columns.join(","),
            tuples.join(",")
        );
        let values = block.iter().flat_map(|row| Column::iter().map(|it| row.get(it)));
        let statement = Statement::from_sql_and_values(txn.get_database_backend(), sql, values);
        for row in txn.query_all_raw(statement).await? {
            inserted.push(row.try_get_by_index(0)?);
        }
    }
    Ok(inserted)
}

/// Returns the evaluations that an eval rule requested for these traces as ingested. It returns the newest of
/// each trace, because an evaluation can be requested again after a failure.
///
/// # Errors
/// Fails when the database fails.
pub async fn of_rule(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    rule: Uuid,
    traces: &[Uuid],
) -> Result<HashMap<Uuid, Model>, DbErr> {
    let mut newest: HashMap<Uuid, Model> = HashMap::new();
    for block in traces.chunks(ROWS_PER_STATEMENT) {
        // Uses the index by trace: with the rule as a condition, SQLite would read all evaluations of the
        // rule.
        let query = without_config()
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::TraceId.is_in(block.iter().copied()))
            .filter(Column::SourceActionId.eq(Uuid::nil()));
        for row in query.all(db).await?.into_iter().filter(|it| it.rule_id == Some(rule)) {
            let is_newer =
                newest.get(&row.trace_id).is_none_or(|it| (it.created_at, it.id) < (row.created_at, row.id));
            if is_newer {
                newest.insert(row.trace_id, row);
            }
        }
    }
    Ok(newest)
}

/// Returns the pairs of eval rule and trace, among these, that have an evaluation of the trace as ingested.
/// Failed evaluations do not count; pending ones do.
///
/// # Errors
/// Fails when the database fails.
pub async fn evaluated_by_rules(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    rules: &[Uuid],
    traces: &[Uuid],
) -> Result<HashSet<(Uuid, Uuid)>, DbErr> {
    let mut found = HashSet::new();
    for block in traces.chunks(ROWS_PER_STATEMENT) {
        let query = Entity::find()
            .select_only()
            .columns([Column::RuleId, Column::TraceId])
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::RuleId.is_in(rules.iter().copied()))
            .filter(Column::TraceId.is_in(block.iter().copied()))
            .filter(Column::SourceActionId.eq(Uuid::nil()))
            // SQLite uses the partial index only if the query contains its condition literally.
            .filter(Expr::cust("status <> 'failed'"));
        found.extend(query.into_tuple::<(Uuid, Uuid)>().all(db).await?);
    }
    Ok(found)
}

/// Returns the evaluations of a trace as ingested that eval rules created until a time (microseconds) and that have not
/// failed, as rule, metric and evaluation: complete ones first, and the newest first among them.
///
/// # Errors
/// Fails when the database fails.
pub async fn baselines_by_rule(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    trace: Uuid,
    until: i64,
) -> Result<Vec<(Uuid, String, Uuid)>, DbErr> {
    let query = Entity::find()
        .select_only()
        .columns([Column::RuleId, Column::MetricName, Column::Id])
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::TraceId.eq(trace))
        .filter(Column::SourceActionId.eq(Uuid::nil()))
        .filter(Column::RuleId.is_not_null())
        .filter(Column::Status.ne(EvaluationStatus::Failed.as_str()))
        .filter(Column::CreatedAt.lte(until));
    let is_complete = Column::Status.eq(EvaluationStatus::Complete.as_str());
    let query = query.order_by_desc(is_complete);
    query.order_by_desc(Column::CreatedAt).order_by_desc(Column::Id).into_tuple().all(txn).await
}

/// Returns the evaluations of the output of a control action on a trace, oldest first.
///
/// # Errors
/// Fails when the database fails.
pub async fn of_action(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    trace: Uuid,
    action: Uuid,
) -> Result<Vec<Model>, DbErr> {
    let query = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::TraceId.eq(trace))
        .filter(Column::SourceActionId.eq(action));
    query.order_by_asc(Column::Id).all(db).await
}

/// Starts the given evaluations that have not ended. Returns their updated rows.
///
/// # Errors
/// Fails when the database fails.
pub async fn start(db: &Db, tenant: Uuid, ids: &[Uuid]) -> Result<Vec<Model>, DbErr> {
    let mut started = Vec::with_capacity(ids.len());
    for block in ids.chunks(ROWS_PER_STATEMENT) {
        let placeholders: Vec<String> = (0..block.len()).map(|it| format!("${}", it + 2)).collect();
        let sql = format!(
            "UPDATE evaluation SET status = 'running', attempts = attempts + 1 WHERE tenant_id = $1 \
             AND id IN ({}) AND status IN ('pending', 'running') RETURNING *",
            placeholders.join(",")
        );
        let values: Vec<Value> =
            std::iter::once(tenant).chain(block.iter().copied()).map(Into::into).collect();
        let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
        for row in db.write.query_all_raw(statement).await? {
            started.push(Model::from_query_result(&row, "")?);
        }
    }
    Ok(started)
}

/// Ends evaluations that this worker started. Evaluations that another worker has started since remain unchanged.
/// The monthly quota of failed evaluations is released. Returns the evaluations that ended.
///
/// # Errors
/// Fails when the database fails.
pub async fn end(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    results: Vec<(Model, EvaluationResult)>,
    now: i64,
) -> Result<Vec<Model>, DbErr> {
    let mut ended = Vec::new();
    let mut released_per_month: BTreeMap<i32, i64> = BTreeMap::new();
    for (row, result) in results {
        let failed = result.verdict.is_err();
        let current_attempt = is_current_attempt(tenant, &row);
        let row = ended_row(row, result, now);
        let done = Entity::update_many()
            .col_expr(Column::Status, Expr::value(row.status.as_str()))
            .col_expr(Column::Score, Expr::value(row.score))
            .col_expr(Column::Label, Expr::value(row.label.as_deref()))
            .col_expr(Column::Reasoning, Expr::value(row.reasoning.as_deref()))
            .col_expr(Column::Error, Expr::value(row.error.as_deref()))
            .col_expr(Column::EvaluatorVersion, Expr::value(row.evaluator_version.as_str()))
            .col_expr(Column::JudgeModel, Expr::value(row.judge_model.as_deref()))
            .col_expr(Column::PromptTokens, Expr::value(row.prompt_tokens))
            .col_expr(Column::CompletionTokens, Expr::value(row.completion_tokens))
            .col_expr(Column::Cost, Expr::value(row.cost))
            .col_expr(Column::CompletedAt, Expr::value(now))
            .filter(current_attempt)
            .exec(txn)
            .await?;
        if done.rows_affected > 0 {
            if let Some(month) = row.quota_month.filter(|_| failed) {
                *released_per_month.entry(month).or_default() += 1;
            }
            ended.push(row);
        }
    }
    for (month, count) in released_per_month {
        quotas::release(txn, tenant, month, Quota::LlmEvaluations, count).await?;
    }
    Ok(ended)
}

/// Returns the row of an evaluation with its result.
pub fn ended_row(row: Model, result: EvaluationResult, now: i64) -> Model {
    let EvaluationResult { evaluator_version, verdict, usage } = result;
    let JudgeUsage { model, prompt_tokens, completion_tokens, cost } = usage.with_earlier(&row);
    let status = if verdict.is_err() { EvaluationStatus::Failed } else { EvaluationStatus::Complete };
    let (score, label, reasoning, error) = match verdict {
        Ok(Verdict { score, label, reasoning }) => (Some(score), Some(label), Some(reasoning), None),
        Err(why) => (None, None, None, Some(why)),
    };
    Model {
        evaluator_version: evaluator_version.unwrap_or(row.evaluator_version),
        status: status.as_str().to_owned(),
        score,
        label,
        reasoning,
        error,
        judge_model: model,
        prompt_tokens,
        completion_tokens,
        cost,
        completed_at: Some(now),
        ..row
    }
}

/// Stores new evaluations that have ended already. An evaluation that the same eval rule requested before is dropped
/// unless the earlier one failed. Returns the stored evaluations.
///
/// # Errors
/// Fails when the database fails.
pub async fn add_ended(txn: &DatabaseTransaction, rows: Vec<Model>) -> Result<Vec<Model>, DbErr> {
    let stored: HashSet<Uuid> = insert_new(txn, &rows).await?.into_iter().collect();
    Ok(rows.into_iter().filter(|it| stored.contains(&it.id)).collect())
}

/// Makes an evaluation that this worker started pending again. `usage` is that of a judge that
/// returned no verdict.
///
/// # Errors
/// Fails when the database fails.
pub async fn return_to_pending(
    db: &Db,
    tenant: Uuid,
    row: &Model,
    usage: Option<JudgeUsage>,
) -> Result<(), DbErr> {
    let asks = row.asked.saturating_add(i32::from(usage.is_some()));
    let JudgeUsage { model, prompt_tokens, completion_tokens, cost } =
        usage.unwrap_or_default().with_earlier(row);
    Entity::update_many()
        .col_expr(Column::Status, Expr::value(EvaluationStatus::Pending.as_str()))
        .col_expr(Column::Returns, Expr::value(row.returns.saturating_add(1)))
        .col_expr(Column::Asked, Expr::value(asks))
        .col_expr(Column::JudgeModel, Expr::value(model.or_else(|| row.judge_model.clone())))
        .col_expr(Column::PromptTokens, Expr::value(prompt_tokens))
        .col_expr(Column::CompletionTokens, Expr::value(completion_tokens))
        .col_expr(Column::Cost, Expr::value(cost))
        .filter(is_current_attempt(tenant, row))
        .exec(&db.write)
        .await?;
    Ok(())
}

/// Fails the pending and running evaluations of a trace that is being removed. Adds their number per month to
/// `released`, so that the caller can release the quota.
///
/// # Errors
/// Fails when the database fails.
pub async fn fail_of_removed_trace(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    trace: Uuid,
    now: i64,
    released: &mut BTreeMap<i32, i64>,
) -> Result<(), DbErr> {
    let waiting = Condition::any()
        .add(Column::Status.eq(EvaluationStatus::Pending.as_str()))
        .add(Column::Status.eq(EvaluationStatus::Running.as_str()));
    let waiting = Condition::all()
        .add(Column::TenantId.eq(tenant))
        .add(Column::TraceId.eq(trace))
        .add(Column::QuotaMonth.is_not_null())
        .add(waiting);
    let failed = Entity::find().select_only().columns([Column::Id, Column::QuotaMonth]).filter(waiting);
    let failed: Vec<(Uuid, i32)> =
        failed.order_by_asc(Column::Id).lock_exclusive().into_tuple().all(txn).await?;
    for (_, month) in &failed {
        *released.entry(*month).or_default() += 1;
    }
    for block in failed.chunks(ROWS_PER_STATEMENT) {
        Entity::update_many()
            .col_expr(Column::Status, Expr::value(EvaluationStatus::Failed.as_str()))
            .col_expr(Column::Error, Expr::value(TRACE_REMOVED_ERROR))
            .col_expr(Column::CompletedAt, Expr::value(now))
            .col_expr(Column::QuotaMonth, Expr::value(Option::<i32>::None))
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::Id.is_in(block.iter().map(|it| it.0)))
            .exec(txn)
            .await?;
    }
    Ok(())
}

/// Stores `config` in the pending evaluations of an eval rule that refer to the rule's options, so that a
/// change of the rule does not affect them.
///
/// # Errors
/// Fails when the database fails.
pub async fn keep_config(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    rule: Uuid,
    config: &str,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Config, Expr::value(config))
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::RuleId.eq(rule))
        .filter(Column::BulkId.is_null())
        .filter(Column::Config.is_null())
        .filter(Column::CompletedAt.is_null())
        .exec(txn)
        .await?;
    Ok(())
}

/// Returns the number of a bulk run's evaluations by status.
///
/// # Errors
/// Fails when the database fails.
pub async fn progress(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    bulk: Uuid,
) -> Result<BTreeMap<String, i64>, DbErr> {
    let rows: Vec<(String, i64)> = Entity::find()
        .select_only()
        .column(Column::Status)
        .column_as(Column::Id.count(), "number")
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::BulkId.eq(bulk))
        .group_by(Column::Status)
        .into_tuple()
        .all(db)
        .await?;
    Ok(rows.into_iter().collect())
}

/// Returns the condition that selects the row while this attempt is the newest.
fn is_current_attempt(tenant: Uuid, row: &Model) -> Condition {
    Condition::all()
        .add(Column::TenantId.eq(tenant))
        .add(Column::Id.eq(row.id))
        .add(Column::Status.eq(EvaluationStatus::Running.as_str()))
        .add(Column::Attempts.eq(row.attempts))
}

/// Returns the row of a pending evaluation of a trace. The evaluator is still to be filled in.
pub fn pending_row(tenant: Uuid, trace: Uuid, project: Uuid, now: i64) -> Model {
    Model {
        tenant_id: tenant,
        id: new_id(),
        trace_id: trace,
        project_id: project,
        span_id: None,
        metric_name: String::new(),
        evaluator_type: String::new(),
        evaluator_version: String::new(),
        config: None,
        model_tier: None,
        status: EvaluationStatus::Pending.as_str().to_owned(),
        context: EvaluationContext::Fresh.as_str().to_owned(),
        source_action_id: Uuid::nil(),
        original_evaluation_id: None,
        rule_id: None,
        bulk_id: None,
        score: None,
        label: None,
        reasoning: None,
        error: None,
        judge_model: None,
        prompt_tokens: None,
        completion_tokens: None,
        cost: None,
        attempts: 0,
        returns: 0,
        asked: 0,
        quota_month: None,
        created_at: now,
        completed_at: None,
    }
}
