//! Handlers of evaluators, built-in and custom.

use std::sync::Arc;

use api::{
    ErrorCode, EvaluatorType,
    evaluator::{Combine, Evaluator as WireEvaluator, EvaluatorChange, EvaluatorList, NewEvaluator},
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use entities::evaluator;
use evaluators::custom;
use store::{Transaction, derived_id, evaluators as table, is_duplicate};
use uuid::Uuid;

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::{Error, Problem, Result, not_found, problem},
    evals::{evaluation_request::compile_failure, rules, view},
    evaluator::{CustomEvaluator, Evaluator, config_error},
    http::{
        query::Query,
        read::ApiJson,
        route::{Route, route},
    },
    ingest::validation::validate_text,
};

/// Maximum length of a name in characters.
const MAX_NAME_CHARS: usize = 100;
/// Maximum number of tags, and maximum length of a tag in characters.
const MAX_TAGS_AND_CHARS: (usize, usize) = (20, 50);
/// Maximum length of a description in characters.
const MAX_DESCRIPTION_CHARS: usize = 4_000;
/// Maximum size of an evaluator in bytes.
const MAX_DEFINITION_BYTES: usize = 256 * 1024;

/// Maximum number of custom evaluators of a tenant.
const MAX_EVALUATORS: usize = 1_000;
/// Maximum size in bytes of all definitions of a tenant.
const MAX_STORED_BYTES: usize = 8 * 1024 * 1024;

/// Returns the routes of evaluators.
pub fn routes() -> Vec<Route> {
    vec![
        route!(list, Access::viewer().keys(Keys::Query)),
        route!(create, Access::member().keys(Keys::Full)).errors(&[ErrorCode::Conflict]),
        route!(detail, Access::viewer().keys(Keys::Query)).errors(&[ErrorCode::NotFound]),
        route!(update, Access::member().keys(Keys::Full)).errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
        route!(delete, Access::owner().keys(Keys::Full)).errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
    ]
}

/// List evaluators: the built-in ones by name, then the custom ones, newest first.
#[utoipa::path(get, path = "/v1/evaluators", tag = "Evaluators", params(
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = EvaluatorList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<EvaluatorList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    // The position in the list: a negative number for a built-in evaluator, else time and ID.
    let after: Option<(i64, Uuid)> =
        query.get("cursor").map(|it| app.cursors.verify(tenant, "evaluators", it)).transpose()?;
    let skip = after.map_or(0, |it| it.0.min(0).unsigned_abs());
    let skip = if after.is_some_and(|it| it.0 >= 0) {
        usize::MAX
    } else {
        usize::try_from(skip).unwrap_or(usize::MAX)
    };
    let builtins = evaluators::builtin::ALL.iter().enumerate().skip(skip);
    let builtins =
        builtins.map(|(n, it)| ((-i64::try_from(n).unwrap_or(0) - 1, Uuid::nil()), Evaluator::Builtin(it)));
    let mut custom_evaluators = Vec::new();
    for row in table::all(app.db.current(), tenant).await? {
        let position = (row.created_at, derived_id(tenant, &row.name));
        if after.is_none_or(|it| it.0 < 0 || position < it) {
            match CustomEvaluator::parse(row) {
                Ok(it) => custom_evaluators.push((position, Evaluator::Custom(Arc::new(it)))),
                Err(error) => tracing::error!(%tenant, %error, "a stored evaluator can't be parsed"),
            }
        }
    }
    custom_evaluators.sort_unstable_by_key(|it| std::cmp::Reverse(it.0));
    let mut rest = builtins.chain(custom_evaluators);
    let (positions, page): (Vec<_>, Vec<Evaluator>) = rest.by_ref().take(limit).unzip();
    let more = positions.last().copied().filter(|_| rest.next().is_some());
    let next_cursor = more.map(|it| app.cursors.sign(tenant, "evaluators", it));
    Ok(Json(EvaluatorList {
        evaluators: page.iter().map(view::evaluator).collect(),
        has_more: next_cursor.is_some(),
        next_cursor,
    }))
}

/// Show an evaluator.
#[utoipa::path(get, path = "/v1/evaluators/{name}", tag = "Evaluators", params(("name" = String, Path, description = "its `metric_name`")),
    responses((status = 200, body = WireEvaluator)))]
pub async fn detail(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<WireEvaluator>> {
    let found = rules::find_evaluator(&app, caller.tenant_id, &name).await?;
    Ok(Json(view::evaluator(&found.ok_or_else(|| not_found("evaluator"))?)))
}

/// Create a custom evaluator.
///
/// Type `llm`: a judge model follows the `rubric`, a template with `{{input}}`, `{{output}}`,
/// `{{documents}}`, `{{tools}}`, `{{metadata.key}}` and `{{config.key}}`, and scores on the `scale`.
/// Type `rule`: code runs the `checks` on the trace.
#[utoipa::path(post, path = "/v1/evaluators", tag = "Evaluators", request_body = NewEvaluator,
    responses((status = 201, body = WireEvaluator)))]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<NewEvaluator>,
) -> Result<(StatusCode, Json<WireEvaluator>)> {
    let (tenant, now) = (caller.tenant_id, app.clock.now());
    let (body, kind) = validate(&app, tenant, body).await?;
    let name_conflict =
        |name: &str| problem(ErrorCode::Conflict, format!("the evaluator `{name}` exists already"));
    if evaluators::builtin::find(&body.name).is_some() {
        return Err(problem(
            ErrorCode::Conflict,
            format!("`{}` is a built-in evaluator; choose another name", body.name),
        ));
    }
    let txn = app.db.begin().await?;
    store::tenants::lock(&txn, tenant).await?;
    let was = table::lock(&txn, tenant, &body.name).await?;
    if was.as_ref().is_some_and(|it| it.deleted_at.is_none()) {
        return Err(name_conflict(&body.name));
    }
    let row = evaluator::Model {
        tenant_id: tenant,
        name: body.name.clone(),
        version: was.as_ref().map_or(1, |it| it.version + 1),
        evaluator_type: kind.as_str().to_owned(),
        definition: to_json(&body)?,
        deleted_at: None,
        created_at: now,
        updated_at: now,
    };
    if was.is_some() {
        table::replace(&txn, row.clone()).await?;
    } else {
        let insert_error = |it| if is_duplicate(&it) { name_conflict(&body.name) } else { it.into() };
        table::add(&txn, row.clone()).await.map_err(insert_error)?;
    }
    require_size_limit(&txn, tenant).await?;
    app.commit(txn).await?;
    Ok((StatusCode::CREATED, Json(to_wire(row)?)))
}

/// Change a custom evaluator, which creates a new version.
///
/// Absent fields keep their values. Waiting evaluations use the new version and contain its number.
#[utoipa::path(patch, path = "/v1/evaluators/{name}", tag = "Evaluators", request_body = EvaluatorChange,
    params(("name" = String, Path, description = "its `metric_name`")),
    responses((status = 200, body = WireEvaluator)))]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    ApiJson(change): ApiJson<EvaluatorChange>,
) -> Result<Json<WireEvaluator>> {
    let (tenant, now) = (caller.tenant_id, app.clock.now());
    // Compiling can take long, so it happens before the lock.
    let before = table::get(app.db.current(), tenant, &name).await?;
    let (body, _) = match before.clone() {
        Some(was) => validate(&app, tenant, with_change(was, change)?).await?,
        // Returns the error for an evaluator that cannot be changed.
        None => {
            let txn = app.db.begin().await?;
            lock_custom(&txn, tenant, &name).await?;
            return Err(changed_meanwhile());
        }
    };
    let txn = app.db.begin().await?;
    store::tenants::lock(&txn, tenant).await?;
    let was = lock_custom(&txn, tenant, &name).await?;
    if before.is_some_and(|it| it.version != was.version) {
        return Err(changed_meanwhile());
    }
    let definition = to_json(&body)?;
    if definition == was.definition {
        return Ok(Json(to_wire(was)?));
    }
    let row = evaluator::Model { version: was.version + 1, definition, updated_at: now, ..was };
    table::replace(&txn, row.clone()).await?;
    require_size_limit(&txn, tenant).await?;
    app.commit(txn).await?;
    Ok(Json(to_wire(row)?))
}

/// Returns the evaluator with the change applied.
fn with_change(was: evaluator::Model, change: EvaluatorChange) -> Result<NewEvaluator> {
    let (name, evaluator_type) = (was.name.clone(), was.evaluator_type.clone());
    let definition = CustomEvaluator::parse(was)?.definition;
    Ok(NewEvaluator {
        name,
        evaluator_type,
        display_name: change.display_name.or(definition.display_name),
        tags: change.tags.or(definition.tags),
        description: change.description.or(definition.description),
        config_schema: change.config_schema.or(definition.config_schema),
        rubric: change.rubric.or(definition.rubric),
        scale: change.scale.or(definition.scale),
        checks: change.checks.or(definition.checks),
        combine: change.combine.or(definition.combine),
    })
}

fn changed_meanwhile() -> Error {
    problem(ErrorCode::Conflict, "the evaluator was changed by another request meanwhile; try again")
}

/// Fails if the tenant's evaluators are too many or too large: every process keeps all of them in
/// memory.
async fn require_size_limit(txn: &Transaction, tenant: Uuid) -> Result<()> {
    let (bytes, count) = table::stored_bytes(txn, tenant).await?;
    if bytes <= MAX_STORED_BYTES && count <= MAX_EVALUATORS {
        return Ok(());
    }
    let message = format!(
        "a tenant may have {MAX_EVALUATORS} custom evaluators, of {} MiB together; delete some that are not needed",
        MAX_STORED_BYTES / 1024 / 1024
    );
    Err(problem(ErrorCode::ValidationFailed, message))
}

/// Delete a custom evaluator. Its evaluations are kept. An evaluator that eval rules use cannot be
/// deleted.
#[utoipa::path(delete, path = "/v1/evaluators/{name}", tag = "Evaluators", params(("name" = String, Path, description = "its `metric_name`")),
    responses((status = 204, description = "the evaluator is deleted")))]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode> {
    let (tenant, now) = (caller.tenant_id, app.clock.now());
    let txn = app.db.begin().await?;
    // Creating a rule takes the same lock.
    store::tenants::lock(&txn, tenant).await?;
    let was = lock_custom(&txn, tenant, &name).await?;
    let using = store::eval_rules::count_using(&txn, tenant, &name).await?;
    if using > 0 {
        let rules = if using == 1 { "rule uses" } else { "rules use" };
        return Err(problem(
            ErrorCode::Conflict,
            format!("{using} eval {rules} it; delete or change those first"),
        ));
    }
    // Only the version is needed later.
    let definition = "{}".to_owned();
    table::replace(&txn, evaluator::Model { definition, deleted_at: Some(now), updated_at: now, ..was })
        .await?;
    app.commit(txn).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns a custom evaluator and locks it.
async fn lock_custom(txn: &Transaction, tenant: Uuid, name: &str) -> Result<evaluator::Model> {
    if evaluators::builtin::find(name).is_some() {
        let message = format!("`{name}` is a built-in evaluator and can't be changed; create a custom one");
        return Err(problem(ErrorCode::Conflict, message));
    }
    let found = table::lock(txn, tenant, name).await?.filter(|it| it.deleted_at.is_none());
    found.ok_or_else(|| not_found("evaluator"))
}

fn to_json(body: &NewEvaluator) -> Result<String> {
    Ok(serde_json::to_string(body).map_err(anyhow::Error::from)?)
}

fn to_wire(row: evaluator::Model) -> Result<WireEvaluator> {
    Ok(view::evaluator(&Evaluator::Custom(Arc::new(CustomEvaluator::parse(row)?))))
}

/// Validates an evaluator, except the uniqueness of its name.
async fn validate(app: &App, tenant: Uuid, body: NewEvaluator) -> Result<(NewEvaluator, EvaluatorType)> {
    let permit = app.code_runner.request_permit(tenant).await?;
    permit.run(move || validate_and_compile(body)).await.map_err(|why| compile_failure("checks", why))?
}

/// Validates an evaluator and compiles its checks. This can take long, so it runs on a thread of the
/// [`CodeRunner`](crate::code_runner::CodeRunner).
fn validate_and_compile(body: NewEvaluator) -> Result<(NewEvaluator, EvaluatorType)> {
    validate_name(&body.name)?;
    let kind: EvaluatorType = body
        .evaluator_type
        .parse()
        .map_err(|it: api::enums::UnknownWord| Problem::field("evaluator_type", it.to_string()))?;
    let body = NewEvaluator {
        display_name: validate_text("display_name", body.display_name, MAX_NAME_CHARS)?,
        description: validate_text("description", body.description, MAX_DESCRIPTION_CHARS)?,
        ..body
    };
    let tags = body.tags.as_deref().unwrap_or_default();
    if tags.len() > MAX_TAGS_AND_CHARS.0
        || tags.iter().any(|it| it.trim().is_empty() || it.chars().count() > MAX_TAGS_AND_CHARS.1)
    {
        let message = format!(
            "must be at most {} strings of 1 to {} characters",
            MAX_TAGS_AND_CHARS.0, MAX_TAGS_AND_CHARS.1
        );
        return Err(Problem::field("tags", message).into());
    }
    if to_json(&body)?.len() > MAX_DEFINITION_BYTES {
        let message = format!("the evaluator is larger than {MAX_DEFINITION_BYTES} bytes");
        return Err(problem(ErrorCode::ValidationFailed, message));
    }
    if body.scale.as_ref().is_some_and(|it| !it.is_object()) {
        return Err(problem(ErrorCode::InvalidBody, "scale: must be an object"));
    }
    if let Some(schema) = &body.config_schema {
        custom::config::declare(schema).map_err(|it| config_error("", it))?;
    }
    let only = |given: bool, field: &str, of: &str| {
        let message = format!("is only for evaluators of type {of}");
        if given { Err(Problem::field(field, message)) } else { Ok(()) }
    };
    match kind {
        EvaluatorType::Llm => {
            only(body.checks.is_some(), "checks", "rule")?;
            only(body.combine.is_some(), "combine", "rule")?;
            let Some(rubric) = body.rubric.as_deref() else {
                return Err(Problem::missing(
                    "rubric",
                    "the instructions for the judge, required for type llm",
                )
                .into());
            };
            let instructions =
                custom::llm::compile(rubric, body.scale.as_ref()).map_err(|it| config_error("", it))?;
            custom::config::check_config_keys(&instructions, body.config_schema.as_ref())
                .map_err(|it| config_error("", it))?;
        }
        EvaluatorType::Rule => {
            only(body.rubric.is_some(), "rubric", "llm")?;
            only(body.scale.is_some(), "scale", "llm")?;
            let combine = body.combine.as_deref().map_or(Ok(Combine::All), str::parse);
            let combine = combine.map_err(|it| Problem::field("combine", it.to_string()))?;
            let Some(checks) = body.checks.as_deref() else {
                return Err(Problem::missing("checks", "the checks to run, required for type rule").into());
            };
            custom::rule::compile(checks, combine, &serde_json::Map::new())
                .map_err(|it| config_error("", it))?;
        }
    }
    Ok((body, kind))
}

fn validate_name(name: &str) -> Result<(), Problem> {
    let begins_with_letter = name.starts_with(|it: char| it.is_ascii_lowercase());
    let rest =
        name.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_' || it == b'-');
    if begins_with_letter && rest && name.len() <= MAX_NAME_CHARS {
        return Ok(());
    }
    let message = format!("must be 1 to {MAX_NAME_CHARS} of a-z, 0-9, _ and -, beginning with a letter");
    Err(Problem::field("name", message))
}
