//! The job that executes a control action.

use std::{sync::Arc, time::Duration};

use api::{
    Plan,
    control::{ActionConfig, ActionStatus, ActionType},
};
use entities::{control_action, job, span};
use outbound::Url;
use queue::{JobResult, RunJob};
use serde_json::{Map, Value};
use store::{
    Transaction, control_actions, policies,
    sealed::CALLBACK_SECRET,
    traces::{self, PackedSpans},
};
use uuid::Uuid;

use super::{
    callback::{self, CallbackTarget},
    credential,
    request::{self, RebuiltRequest},
    span::{self as remediated_span, RemediatedOutput},
};
use crate::{
    app::App,
    control::requests::RunAction,
    error::Result,
    evals::remediation_firing::{self, RemediationRules},
    providers::{
        chat::{self, ChatReply, ChatRequest},
        judge::{JudgeEndpoint, JudgeProviderFailure},
    },
};

/// Timeout of a call to a provider.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of calls of an action whose provider fails temporarily.
const MAX_CALLS: i32 = 3;
/// Delay before the second call in microseconds, doubled before the third.
const RETRY_DELAY_MICROS: i64 = 2_000_000;
/// Maximum of that delay, even if the provider requires more.
const MAX_RETRY_DELAY_MICROS: i64 = 60_000_000;
/// Maximum size in bytes of the recorded texts of a span that are sent again.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;
/// Delays before the result of a call is stored again while the database fails temporarily. The reply is paid for, and a
/// repeated job could only record that the call was interrupted.
const STORE_DELAYS: [Duration; 6] = [
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];
/// Microseconds of a day.
const DAY_MICROS: i64 = 86_400_000_000;

/// The error of an action whose worker was lost during a call.
const INTERRUPTED_MESSAGE: &str = "the server stopped while it waited for the response: the provider or callback may have been \
    called, so the call is not repeated";

/// The error of an action whose policy has a budget and whose cost would be unknown.
const NO_PRICE: &str = "the price of the model is unknown, so the policy's daily budget can't be kept: an owner sets the \
    price with PUT /v1/models/{name}";
/// The error of an action whose policy was deleted: its budget applies no more.
const POLICY_DELETED: &str = "the policy was deleted";
/// The error of an action that exceeds the budget of its policy.
const BUDGET_USED_UP: &str = "the policy's daily budget is used up: it starts again at midnight UTC";

impl RunJob<App> for RunAction {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match work(app, row.tenant_id, self.action).await {
            Ok(result) => result,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

async fn work(app: &App, tenant: Uuid, id: Uuid) -> Result<JobResult> {
    // Actions are deleted with their traces.
    let Some(action) = control_actions::get(app.db.current(), tenant, id).await? else {
        return Ok(JobResult::Done);
    };
    if action.status == ActionStatus::Running.as_str() {
        return recover(app, &action).await;
    }
    if action.status != ActionStatus::Queued.as_str() {
        return Ok(JobResult::Done);
    }
    let prepared = match prepare(app, &action).await {
        Ok(prepared) => prepared,
        Err(error) if error.is_temporary() => return Err(error),
        Err(error) => {
            tracing::error!(%tenant, action = %id, error = format!("{error:#}"), "a control action can't be executed");
            Err("an internal error occurred; the log of the server has the details".to_owned())
        }
    };
    let call = match prepared {
        Ok(call) => call,
        Err(why) => return fail(app, &action, &why).await,
    };
    let Some(action) = begin_call(app, &action, &call).await? else { return Ok(JobResult::Done) };
    execute(app, action, call).await
}

/// A call to a provider, ready to be sent.
struct PreparedCall {
    original: span::Model,
    input: Option<String>,
    request: RebuiltRequest,
    executor: Executor,
}

/// The service that repeats the request.
enum Executor {
    /// The tenant's provider.
    Provider(JudgeEndpoint),
    /// The callback of the policy, with the requested model.
    Callback(CallbackTarget, Option<String>),
}

impl Executor {
    /// Returns the name of the service for the beginning of a message.
    fn name(&self) -> &'static str {
        match self {
            Self::Provider(_) => "the provider",
            Self::Callback(..) => "the callback",
        }
    }

    fn model(self) -> Option<String> {
        match self {
            Self::Provider(endpoint) => Some(endpoint.model),
            Self::Callback(_, model) => model,
        }
    }
}

/// Reads the span and rebuilds its request. Returns a message for the user if that is not possible.
async fn prepare(
    app: &App,
    action: &control_action::Model,
) -> Result<std::result::Result<PreparedCall, String>> {
    let (tenant, fail) = (action.tenant_id, |why: &str| Ok(Err(why.to_owned())));
    let Some(tenant_row) = app.access_cache.tenant(tenant).await? else {
        return fail("the tenant was deleted");
    };
    if tenant_row.plan.parse::<Plan>().map_err(anyhow::Error::from)? < Plan::Team {
        return fail("the plan does not include the control loop any more");
    }
    let Some(span_id) = action.span_id else {
        return fail("the trace has no span whose request could be repeated");
    };
    let db = app.db.primary();
    let Some(original) = traces::some_spans(&db, tenant, &[(action.trace_id, span_id)]).await?.pop() else {
        return fail("the span was deleted");
    };
    let spans = std::slice::from_ref(&original);
    let mut packed = PackedSpans::some_of(&db, tenant, spans, Some(span_id), MAX_TEXT_BYTES).await?;
    let texts = packed.take(&original)?;
    if texts.input.as_ref().is_some_and(|it| it.len() > MAX_TEXT_BYTES) {
        return fail("the recorded messages are larger than 4 MiB");
    }
    let config: ActionConfig = serde_json::from_str(&action.action_config).map_err(anyhow::Error::from)?;
    let metadata: Map<String, Value> =
        texts.metadata.and_then(|it| serde_json::from_str(&it).ok()).unwrap_or_default();
    let Some(request) = request::rebuild(texts.input.as_deref(), metadata.clone(), &config) else {
        return fail(
            "the span has no recorded messages: its instrumentation must record the content of messages",
        );
    };
    let is_fallback = action.requested_type == ActionType::FallbackModel.as_str();
    let recorded_model = request::recorded_model(&metadata).or(original.model.as_deref()).map(str::to_owned);
    let model = config.model.filter(|_| is_fallback).or(recorded_model);
    if config.callback_url.is_some() {
        return Ok(callback_target(app, action).await?.map(|target| {
            let executor = Executor::Callback(target, model);
            PreparedCall { original, input: texts.input, request, executor }
        }));
    }
    let Some(model) = model else { return fail("the span has no recorded model") };
    // The recorded provider may not serve the fallback model.
    let recorded = if is_fallback { &Map::new() } else { &metadata };
    let credentials = app.access_cache.credentials(tenant).await?;
    let (credential, provider) = match credential::select(&credentials, &model, recorded) {
        Ok(selected) => selected,
        Err(why) => return Ok(Err(why)),
    };
    let Ok(endpoint) = app.judge.tenant_endpoint(credential, provider, &model) else {
        return fail("the stored key of the provider can't be decrypted: an owner must store it again");
    };
    let executor = Executor::Provider(endpoint);
    Ok(Ok(PreparedCall { original, input: texts.input, request, executor }))
}

/// Returns the current callback of an action's policy, so that its secret never signs requests to an earlier
/// address.
async fn callback_target(
    app: &App,
    action: &control_action::Model,
) -> Result<std::result::Result<CallbackTarget, String>> {
    let tenant = action.tenant_id;
    let policy = match action.policy_id {
        Some(policy) => policies::get(app.db.current(), tenant, policy).await?,
        None => None,
    };
    let Some(policy) = policy else { return Ok(Err("the policy with the callback was deleted".to_owned())) };
    let config: ActionConfig = serde_json::from_str(&policy.action_config).map_err(anyhow::Error::from)?;
    let url = config.callback_url.and_then(|it| Url::parse(&it).ok());
    let (Some(url), Some(sealed)) = (url, policy.callback_secret) else {
        return Ok(Err("the policy has no callback any more".to_owned()));
    };
    let place = policy.id.simple().to_string();
    let secret = app.sealer.unseal(CALLBACK_SECRET.location(tenant, &place), &sealed);
    Ok(secret.map(|secret| CallbackTarget { url, secret }).map_err(|_| {
        "the stored secret of the callback can't be decrypted: an owner must store it again".to_owned()
    }))
}

/// Records that a call begins. Returns the changed action; `None` if the call must not be made.
async fn begin_call(
    app: &App,
    action: &control_action::Model,
    call: &PreparedCall,
) -> Result<Option<control_action::Model>> {
    let (tenant, now) = (action.tenant_id, app.clock.now());
    let has_price = has_price(app, tenant, &call.executor).await?;
    let txn = app.db.begin().await?;
    traces::lock_in_order(&txn, tenant, &[action.trace_id]).await?;
    let policy = match action.policy_id {
        // The lock makes actions of the policy wait for each other, so that they do not exceed its budget.
        Some(policy) => policies::lock(&txn, tenant, policy).await?,
        None => None,
    };
    let row = control_actions::lock(&txn, tenant, action.id).await?;
    let Some(mut row) = row.filter(|it| it.status == ActionStatus::Queued.as_str()) else { return Ok(None) };
    if action.policy_id.is_some() && policy.is_none() {
        end(&txn, row, ActionStatus::Failed, Some(POLICY_DELETED), now).await?;
        txn.commit().await?;
        return Ok(None);
    }
    if let Some((policy, budget)) = policy.and_then(|it| Some((it.id, it.daily_budget?))) {
        let midnight = now.div_euclid(DAY_MICROS) * DAY_MICROS;
        let spent = control_actions::spent(&txn, &app.db, tenant, policy, midnight).await?;
        let why = if !has_price {
            Some(NO_PRICE)
        } else if spent >= budget {
            Some(BUDGET_USED_UP)
        } else {
            None
        };
        if why.is_some() {
            end(&txn, row, ActionStatus::Failed, why, now).await?;
            txn.commit().await?;
            return Ok(None);
        }
    }
    row.status = ActionStatus::Running.as_str().to_owned();
    row.attempts += 1;
    (row.called_at, row.updated_at) = (Some(now), now);
    // An estimate, which counts towards the budget until the call ends.
    row.cost = call.original.cost;
    control_actions::replace(&txn, row.clone()).await?;
    txn.commit().await?;
    Ok(Some(row))
}

/// Whether the cost of a call will be known. A callback states its own cost.
async fn has_price(app: &App, tenant: Uuid, executor: &Executor) -> Result<bool> {
    match executor {
        Executor::Provider(endpoint) => {
            Ok(app.access_cache.price_book(tenant).await?.find(&endpoint.model).is_some())
        }
        Executor::Callback(..) => Ok(true),
    }
}

/// Whether an action still runs its current call. A worker that was suspended for longer than its lease has lost it.
async fn is_current(app: &App, action: &control_action::Model) -> Result<bool> {
    let row = control_actions::get(app.db.current(), action.tenant_id, action.id).await?;
    Ok(row.is_some_and(|it| it.status == action.status && it.attempts == action.attempts))
}

/// Calls the provider and stores the output.
async fn execute(app: &App, action: control_action::Model, call: PreparedCall) -> Result<JobResult> {
    let PreparedCall { original, input, request, executor } = call;
    let started_at = app.clock.now();
    let pending = send(app, &executor, &action, &request.chat, started_at);
    let stopping = app.stopping();
    let reply = tokio::select! {
        reply = pending => reply,
        // Another worker, or this process after a restart, records that the call was interrupted.
        () = stopping.cancelled() => return Ok(JobResult::Snooze { until: app.clock.now() }),
    };
    let ended_at = app.clock.now();
    let name = executor.name();
    let model = executor.model();
    let output = match reply {
        Ok(reply) => {
            let input = match input.filter(|_| !request.has_new_messages) {
                Some(recorded) => recorded,
                None => serde_json::to_string(&request.chat.messages).map_err(anyhow::Error::from)?,
            };
            Ok(RemediatedOutput { reply, input, model, started_at, ended_at })
        }
        Err(failure) => Err(failure),
    };
    let mut delays = STORE_DELAYS.iter();
    loop {
        let stored = match &output {
            Ok(output) => store(app, &action, &original, output).await,
            Err(failure) => call_failed(app, &action, name, failure).await,
        };
        match (stored, delays.next()) {
            (Err(error), Some(delay)) if error.is_temporary() => {
                tracing::warn!(action = %action.id, %error, "the result of a control action is stored later");
                tokio::time::sleep(*delay).await;
            }
            (stored, _) => return stored,
        }
    }
}

/// Stores the output of an action, and ends the action.
async fn store(
    app: &App,
    action: &control_action::Model,
    original: &span::Model,
    output: &RemediatedOutput,
) -> Result<JobResult> {
    if !is_current(app, action).await? {
        return Ok(JobResult::Done);
    }
    match remediated_span::store(app, action, original, output.clone()).await? {
        Some(span) => complete(app, action, span).await,
        None => Ok(JobResult::Done),
    }
}

async fn send(
    app: &App,
    executor: &Executor,
    action: &control_action::Model,
    request: &ChatRequest,
    now: i64,
) -> std::result::Result<ChatReply, JudgeProviderFailure> {
    match executor {
        Executor::Provider(endpoint) => chat::send(&app.outbound, endpoint, request, CALL_TIMEOUT, now).await,
        Executor::Callback(target, model) => {
            callback::send(&app.outbound, target, action, model.as_deref(), request, CALL_TIMEOUT, now).await
        }
    }
}

/// Ends an action whose worker was lost during a call. If its output is stored, it succeeds.
async fn recover(app: &App, action: &control_action::Model) -> Result<JobResult> {
    let span = (action.trace_id, remediated_span::id_of(action.id));
    match traces::some_spans(&app.db.primary(), action.tenant_id, &[span]).await?.pop() {
        Some(span) => complete(app, action, span).await,
        None => fail(app, action, INTERRUPTED_MESSAGE).await,
    }
}

/// Ends an action with its output, and creates the evaluations of the output, in one transaction.
async fn complete(app: &App, action: &control_action::Model, span: span::Model) -> Result<JobResult> {
    let (tenant, now) = (action.tenant_id, app.clock.now());
    let rules = RemediationRules::read(app, tenant, action.trace_id).await?;
    let txn = app.db.begin().await?;
    traces::lock_in_order(&txn, tenant, &[action.trace_id]).await?;
    let row = control_actions::lock(&txn, tenant, action.id).await?;
    let Some(mut row) = row.filter(|it| it.status == ActionStatus::Running.as_str()) else {
        return Ok(JobResult::Done);
    };
    row.remediated_span_id = Some(span.id);
    // Without a usage in the reply, the estimate stays.
    row.cost = span.cost.or(row.cost);
    remediation_firing::fire(&txn, rules, &row, span.id, now).await?;
    end(&txn, row, ActionStatus::Succeeded, None, now).await?;
    txn.commit().await?;
    Ok(JobResult::Done)
}

/// Handles a call without a reply: a temporary failure of the executor is retried, any other one ends the action.
async fn call_failed(
    app: &App,
    action: &control_action::Model,
    executor: &str,
    failure: &JudgeProviderFailure,
) -> Result<JobResult> {
    let JudgeProviderFailure::Temporary { retry_after, .. } = failure else {
        let why = redacted(app, action, format!("{executor}: {failure}")).await?;
        return fail(app, action, &why).await;
    };
    if action.attempts >= MAX_CALLS {
        let why = format!("{executor} failed {} times, the last time: {failure}", action.attempts);
        let why = redacted(app, action, why).await?;
        return fail(app, action, &why).await;
    }
    let now = app.clock.now();
    let txn = app.db.begin().await?;
    let row = control_actions::lock(&txn, action.tenant_id, action.id).await?;
    let Some(mut row) = row.filter(|it| it.status == ActionStatus::Running.as_str()) else {
        return Ok(JobResult::Done);
    };
    row.status = ActionStatus::Queued.as_str().to_owned();
    row.cost = None;
    row.updated_at = now;
    control_actions::replace(&txn, row).await?;
    txn.commit().await?;
    let backoff = RETRY_DELAY_MICROS << (action.attempts - 1).clamp(0, 10);
    let required = retry_after.map_or(0, |it| i64::try_from(it.as_micros()).unwrap_or(i64::MAX));
    Ok(JobResult::Snooze { until: now + required.max(backoff).min(MAX_RETRY_DELAY_MICROS) })
}

/// Redacts a message that may quote the input or the output of a call.
async fn redacted(app: &App, action: &control_action::Model, message: String) -> Result<String> {
    let redactor = app.access_cache.redactor(action.tenant_id, action.project_id).await?;
    Ok(match redactor {
        Some(redactor) => redactor.redacted(message),
        None => message,
    })
}

/// Ends an action without an output.
async fn fail(app: &App, action: &control_action::Model, why: &str) -> Result<JobResult> {
    let (tenant, now) = (action.tenant_id, app.clock.now());
    let txn = app.db.begin().await?;
    traces::lock_in_order(&txn, tenant, &[action.trace_id]).await?;
    let row = control_actions::lock(&txn, tenant, action.id).await?;
    let is_open = |it: &control_action::Model| it.status == action.status && it.attempts == action.attempts;
    if let Some(row) = row.filter(is_open) {
        end(&txn, row, ActionStatus::Failed, Some(why), now).await?;
        txn.commit().await?;
    }
    Ok(JobResult::Done)
}

/// Stores the end of an action. An action that failed before it called the provider no longer counts
/// towards the limits of its trace.
async fn end(
    txn: &Transaction,
    mut row: control_action::Model,
    status: ActionStatus,
    why: Option<&str>,
    now: i64,
) -> Result<()> {
    row.status = status.as_str().to_owned();
    if status == ActionStatus::Failed {
        row.is_counted &= row.attempts > 0;
        // The provider may have charged for an interrupted call, so its estimate still counts towards the budget.
        row.cost = row.cost.filter(|_| why == Some(INTERRUPTED_MESSAGE));
    }
    row.error = why.map(str::to_owned);
    (row.completed_at, row.updated_at) = (Some(now), now);
    control_actions::replace(txn, row).await?;
    Ok(())
}
