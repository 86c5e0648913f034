//! Creates deployments.

use api::{
    ErrorCode,
    control::{ActionStatus, ActionType},
    deployment::{DeploymentStatus, NewPromptDeployment, TestMode},
};
use entities::{prompt, prompt_deployment, prompt_replay};
use queue::new_job;
use serde_json::{Map, Value};
use store::{
    Transaction, control_actions, new_id_at, prompt_tests, prompts,
    traces::{self, PackedSpans},
};
use uuid::Uuid;

use super::{
    jobs::{ExpireTest, ReplayTest},
    locked_prompt::{LockedPrompt, details},
    new_deployment::{DeploymentRequest, TemplateSource, validate_template},
    replay::{self, ReplayCandidate},
    state::{TestScores, to_text},
};
use crate::{
    access::Caller,
    app::App,
    audit::{self, Actor, AuditAction, AuditEvent},
    error::{Problem, Result, not_found, problem},
    evals::rules,
    remediation::request,
};

/// A prompt deployment was created.
pub const DEPLOYMENT_CREATE: AuditAction = AuditAction::new("prompt_deployment.create", "prompt_deployment");

/// Maximum number of prompts of a tenant: every process keeps the metrics of their tests in memory.
const MAX_PROMPTS: u64 = 1_000;
/// Maximum size in bytes of the texts of a span that are read.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;
/// Microseconds of an hour.
const HOUR_MICROS: i64 = 3_600_000_000;

/// Creates a version of a prompt. If a version is shipped, its test begins; otherwise it passes at once.
///
/// # Errors
///
/// Fails with `not_found` for an unknown project or control action, with `conflict` if another version is tested, with
/// `provider_credentials_missing` for a replay test without a credential, or with an error of the request.
pub async fn create(
    app: &App,
    caller: &Caller,
    body: NewPromptDeployment,
) -> Result<prompt_deployment::Model> {
    let tenant = caller.tenant_id;
    let request = DeploymentRequest::validate(body)?;
    if let Some(settings) = &request.test {
        let metric = &settings.metric_name;
        if rules::find_evaluator(app, tenant, metric).await?.is_none() {
            let shown: String = metric.chars().take(100).collect();
            let message = format!("there is no evaluator `{shown}`; GET /v1/evaluators lists them");
            return Err(Problem::field("ab.metric_name", message).into());
        }
    }
    let DeploymentRequest { project_id, prompt_name, source, model, mode, test } = request;
    if store::projects::get(app.db.current(), tenant, project_id).await?.is_none() {
        return Err(not_found("project"));
    }
    let (template, model, source_action_id) = match source {
        TemplateSource::Template(template) => (template, model, None),
        TemplateSource::Action(action) => {
            let (template, requested) = prompt_of_action(app, tenant, project_id, action).await?;
            (template, model.or(requested), Some(action))
        }
    };
    let baseline = prompts::current(app.db.current(), tenant, project_id, &prompt_name).await?.served;
    let pairs = match (&baseline, &test) {
        (Some(baseline), Some(settings)) if mode == TestMode::Replay => {
            let candidate = ReplayCandidate { template: &template, model: model.as_deref(), settings };
            replay::select_pairs(app, caller, baseline, candidate).await?
        }
        _ => Vec::new(),
    };
    let subscriptions = app.access_cache.subscriptions(tenant).await?;
    let txn = app.db.begin().await?;
    let pair_traces: Vec<Uuid> = pairs.iter().map(|it| it.trace_id).collect();
    let existing = traces::lock_some(&txn, tenant, &pair_traces).await?;
    let row = lock_or_add(&txn, tenant, project_id, &prompt_name).await?;
    let version = prompts::next_version(&txn, row.clone()).await?;
    let mut prompt = LockedPrompt::of(app, txn, row, subscriptions).await?;
    let now = prompt.now;
    let served = prompt.current.served.as_ref().map(|it| it.id);
    if let Some(running) = prompt.current.running.as_ref().filter(|_| served.is_some()) {
        let message = format!(
            "version {} of the prompt is tested (deployment {}); wait for the end of its test, or reject it",
            running.version, running.id
        );
        return Err(problem(ErrorCode::Conflict, message));
    }
    if served != baseline.map(|it| it.id) {
        return Err(problem(
            ErrorCode::Conflict,
            "another version of the prompt was shipped meanwhile; try again",
        ));
    }
    let test = test.filter(|_| served.is_some());
    if served.is_some() && test.is_none() {
        let message = "is required, because a version of the prompt is shipped";
        return Err(Problem::field("ab.metric_name", message).into());
    }
    let mut row = prompt_deployment::Model {
        tenant_id: tenant,
        id: new_id_at(now),
        project_id,
        prompt_name,
        version,
        template,
        model,
        status: DeploymentStatus::AbRunning.as_str().to_owned(),
        reason: None,
        baseline_id: served,
        replaced_id: None,
        mode: mode.as_str().to_owned(),
        test: test.as_ref().map(to_text).transpose()?.flatten(),
        scores: test.as_ref().map(|_| to_text(&TestScores::default())).transpose()?.flatten(),
        result: None,
        watch: None,
        source_action_id,
        created_by: Some(Actor::from(caller).id),
        decided_by: None,
        decided_at: None,
        decision_note: None,
        shipped_at: None,
        created_at: now,
        updated_at: now,
    };
    prompt.add(row.clone()).await?;
    match &test {
        Some(settings) => {
            let ends = now + i64::from(settings.max_duration_hours) * HOUR_MICROS;
            let mut jobs = vec![new_job(tenant, &ExpireTest { deployment: row.id }, ends, now)];
            if mode == TestMode::Replay {
                let pairs = pairs.into_iter().filter(|it| existing.contains(&it.trace_id));
                let pairs =
                    pairs.map(|it| prompt_replay::Model { deployment_id: row.id, created_at: now, ..it });
                prompt_tests::add_replays(&prompt.txn, pairs.collect()).await?;
                jobs.push(new_job(tenant, &ReplayTest { deployment: row.id }, now, now));
            }
            prompt.enqueue(jobs).await?;
        }
        None => prompt.pass(&mut row).await?,
    }
    let event = AuditEvent::of(DEPLOYMENT_CREATE).on(row.id).with(details(&row));
    audit::record(&prompt.txn, caller, event, now).await?;
    prompt.commit().await?;
    Ok(row)
}

/// Locks the row of a prompt. Adds it if the tenant may have another prompt.
async fn lock_or_add(txn: &Transaction, tenant: Uuid, project: Uuid, name: &str) -> Result<prompt::Model> {
    if let Some(row) = prompts::lock(txn, tenant, project, name).await? {
        return Ok(row);
    }
    // A lock, so that concurrent requests can't exceed the limit.
    store::tenants::lock(txn, tenant).await?;
    if prompts::count(txn, tenant).await? >= MAX_PROMPTS {
        let message = format!("a tenant may have {MAX_PROMPTS} prompts; create versions of an existing one");
        return Err(problem(ErrorCode::Conflict, message));
    }
    prompts::add(txn, tenant, project, name).await?;
    let row = prompts::lock(txn, tenant, project, name).await?;
    Ok(row.ok_or_else(|| anyhow::anyhow!("a prompt that was just added is missing"))?)
}

/// Returns the system message that a control action sent, and the model that it requested.
async fn prompt_of_action(
    app: &App,
    tenant: Uuid,
    project: Uuid,
    action: Uuid,
) -> Result<(String, Option<String>)> {
    let field = "source_action_id";
    let row = control_actions::get(app.db.current(), tenant, action).await?;
    let row = row.ok_or_else(|| not_found("control action"))?;
    let is_succeeded = row.status == ActionStatus::Succeeded.as_str();
    if row.requested_type != ActionType::PromptModification.as_str() || !is_succeeded {
        let message = format!(
            "must be a succeeded prompt_modification; the action is a {} and {}",
            row.requested_type, row.status
        );
        return Err(Problem::field(field, message).into());
    }
    if row.project_id != project {
        return Err(Problem::field(field, "belongs to another project than the prompt").into());
    }
    let span = row.remediated_span_id.map(|it| (row.trace_id, it));
    let db = app.db.primary();
    let span = traces::some_spans(&db, tenant, span.as_slice()).await?.pop();
    let span = span.ok_or_else(|| not_found("remediated span"))?;
    let spans = std::slice::from_ref(&span);
    let mut packed = PackedSpans::some_of(&db, tenant, spans, Some(span.id), MAX_TEXT_BYTES).await?;
    let texts = packed.take(&span)?;
    let metadata: Map<String, Value> =
        texts.metadata.and_then(|it| serde_json::from_str(&it).ok()).unwrap_or_default();
    let messages: Option<Value> = texts.input.and_then(|it| serde_json::from_str(&it).ok());
    let messages = messages.as_ref().and_then(Value::as_array);
    let system = messages.and_then(|it| it.iter().find(|message| message["role"] == "system"));
    let template = system.and_then(|it| it["content"].as_str());
    let template = template.ok_or_else(|| Problem::field(field, "sent no system message"))?;
    let model = request::recorded_model(&metadata).map(str::to_owned).or(span.model);
    Ok((validate_template(field, template.to_owned())?, model))
}
