//! The job that runs a replay test, pair by pair.
//!
//! A call to a provider costs money, so no call is repeated without a record: the row of the pair says that a call begins
//! before it begins. A pair whose worker was lost during a call fails; its call is not repeated.

use std::{sync::Arc, time::Duration};

use api::{ErrorCode, Plan};
use entities::{job, prompt_deployment, prompt_replay, span};
use queue::{JobResult, RunJob};
use semantics::{
    cost::{self, CostInput},
    money,
};
use store::{prompt_tests, prompts, traces};
use uuid::Uuid;

use super::{
    jobs::{PLAN_INTERVAL_MICROS, ReplayTest},
    replay::{self, COMPLETE_PAIR, FAILED_PAIR, PENDING_PAIR, RUNNING_PAIR, ReplayCall, TestEvaluation},
    state::{TestResult, TestScores, TestSettings, to_text},
    test_end::{self, lock_running},
};
use crate::{
    app::App,
    control::triggers::may_act,
    error::{Error, Result},
    evals::{preview, replaced_call::ReplacedCall},
    ingest::redaction::ProjectRedactor,
    providers::{
        chat::{self, ChatReply},
        judge::JudgeProviderFailure,
    },
};

/// Timeout of a call to a provider.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of calls of a pair whose provider fails temporarily.
const MAX_CALLS: i32 = 3;
/// Delay before the second call in microseconds, doubled before the third.
const RETRY_DELAY_MICROS: i64 = 2_000_000;
/// Maximum of that delay, even if the provider requires more.
const MAX_RETRY_DELAY_MICROS: i64 = 60_000_000;
/// Time after which a job lets other jobs run, microseconds.
const MAX_RUN_MICROS: i64 = 60_000_000;
/// Delay after an error of the database, microseconds.
const ERROR_DELAY_MICROS: i64 = 5_000_000;

/// The reason of a pair whose worker was lost during a call.
const INTERRUPTED_CALL_REASON: &str = "the server stopped while it waited for the provider: the provider may have been called and \
    charged for it, so the call is not repeated";

impl RunJob<App> for ReplayTest {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match work(app, row.tenant_id, self.deployment).await {
            Ok(result) => result,
            Err(error) => {
                tracing::warn!(tenant = %row.tenant_id, error = format!("{error:#}"), "a replay test is postponed");
                JobResult::Snooze { until: app.clock.now() + ERROR_DELAY_MICROS }
            }
        }
    }
}

async fn work(app: &App, tenant: Uuid, id: Uuid) -> Result<JobResult> {
    let began = app.clock.now();
    // A worker that still runs the pair has lost its lease: its result is ignored.
    while let Some(lost) = prompt_tests::first_replay(app.db.current(), tenant, id, RUNNING_PAIR).await? {
        end_pair(app, &lost, Err(INTERRUPTED_CALL_REASON.to_owned())).await?;
    }
    while app.clock.now() - began < MAX_RUN_MICROS && !app.is_stopping() {
        let Some(deployment) = running_deployment(app, tenant, id).await? else { return Ok(JobResult::Done) };
        if !may_act(app, tenant).await? {
            return Ok(JobResult::Snooze { until: app.clock.now() + PLAN_INTERVAL_MICROS });
        }
        let Some(pair) = prompt_tests::first_replay(app.db.current(), tenant, id, PENDING_PAIR).await? else {
            end_test(app, tenant, id).await?;
            return Ok(JobResult::Done);
        };
        if let Some(until) = run_pair(app, &deployment, pair).await? {
            return Ok(JobResult::Snooze { until });
        }
    }
    Ok(JobResult::Snooze { until: app.clock.now() })
}

async fn running_deployment(app: &App, tenant: Uuid, id: Uuid) -> Result<Option<prompt_deployment::Model>> {
    let row = prompts::deployment(app.db.current(), tenant, id).await?;
    Ok(row.filter(|it| it.status == api::deployment::DeploymentStatus::AbRunning.as_str()))
}

/// Runs a pair. Returns a time if the job has to wait until then.
async fn run_pair(
    app: &App,
    deployment: &prompt_deployment::Model,
    pair: prompt_replay::Model,
) -> Result<Option<i64>> {
    let tenant = pair.tenant_id;
    let prepared = match prepare(app, deployment, &pair).await? {
        Ok(prepared) => prepared,
        Err(why) => {
            end_pair(app, &pair, Err(why)).await?;
            return Ok(None);
        }
    };
    let PreparedPair { call, evaluation, plan } = prepared;
    let Some(pair) = begin_call(app, &pair).await? else { return Ok(None) };
    let started_at = app.clock.now();
    let pending = chat::send(&app.outbound, &call.endpoint, &call.request, CALL_TIMEOUT, started_at);
    let stopping = app.stopping();
    let reply = tokio::select! {
        reply = pending => reply,
        // The next run of the job records that the call was interrupted.
        () = stopping.cancelled() => return Ok(Some(app.clock.now())),
    };
    let reply = match reply {
        Ok(reply) => reply,
        Err(failure) => return provider_failed(app, &pair, &failure).await,
    };
    let replaced = replaced_call(app, tenant, call, reply, app.clock.now() - started_at).await?;
    let scores = scores(app, plan, &evaluation, &pair, &replaced).await;
    // The call is not repeated after an error, because it was paid for.
    let scores = scores.unwrap_or_else(|error| Err(format!("the output could not be evaluated: {error}")));
    end_pair(app, &pair, scores).await?;
    Ok(None)
}

struct PreparedPair {
    call: ReplayCall,
    evaluation: TestEvaluation,
    plan: Plan,
}

/// Rebuilds the call of a pair. Returns a message if that is not possible.
async fn prepare(
    app: &App,
    deployment: &prompt_deployment::Model,
    pair: &prompt_replay::Model,
) -> Result<std::result::Result<PreparedPair, String>> {
    let tenant = pair.tenant_id;
    let Some(tenant_row) = app.access_cache.tenant(tenant).await? else {
        return Ok(Err("the tenant was deleted".to_owned()));
    };
    let plan: Plan = tenant_row.plan.parse().map_err(anyhow::Error::from)?;
    let Some(settings) = TestSettings::of(deployment)? else {
        return Ok(Err("the test has no metric".to_owned()));
    };
    let project = deployment.project_id;
    let evaluation = match replay::test_evaluation(app, tenant, plan, project, &settings.metric_name).await {
        Ok(evaluation) => evaluation,
        // The evaluator may be busy.
        Err(Error::Problem(problem))
            if !matches!(problem.code, ErrorCode::Overloaded | ErrorCode::RateLimited) =>
        {
            return Ok(Err(problem.message));
        }
        Err(error) => return Err(error),
    };
    let span = (pair.trace_id, pair.span_id);
    let Some(span) = traces::some_spans(&app.db.primary(), tenant, &[span]).await?.pop() else {
        return Ok(Err("the span was deleted".to_owned()));
    };
    let call = replay::prepare(app, span, &deployment.template, deployment.model.as_deref()).await?;
    Ok(call.map(|call| PreparedPair { call, evaluation, plan }).map_err(|it| it.into_message()))
}

/// Records that a call begins. Returns the changed pair; `None` if it must not be called.
async fn begin_call(app: &App, pair: &prompt_replay::Model) -> Result<Option<prompt_replay::Model>> {
    let txn = app.db.begin().await?;
    let row = prompt_tests::lock_replay(&txn, pair.tenant_id, pair.deployment_id, pair.id).await?;
    let Some(mut row) = row.filter(|it| it.status == PENDING_PAIR) else { return Ok(None) };
    row.status = RUNNING_PAIR.to_owned();
    row.attempts += 1;
    row.called_at = Some(app.clock.now());
    prompt_tests::replace_replay(&txn, row.clone()).await?;
    txn.commit().await?;
    Ok(Some(row))
}

/// Handles a call without a reply: a pair whose provider fails temporarily is repeated, any other one fails.
async fn provider_failed(
    app: &App,
    pair: &prompt_replay::Model,
    failure: &JudgeProviderFailure,
) -> Result<Option<i64>> {
    let retry_after = match failure {
        JudgeProviderFailure::Temporary { retry_after, .. } if pair.attempts < MAX_CALLS => *retry_after,
        _ => {
            end_pair(app, pair, Err(format!("the provider: {failure}"))).await?;
            return Ok(None);
        }
    };
    let txn = app.db.begin().await?;
    let row = prompt_tests::lock_replay(&txn, pair.tenant_id, pair.deployment_id, pair.id).await?;
    let Some(mut row) = row.filter(|it| is_same_call(it, pair)) else { return Ok(None) };
    row.status = PENDING_PAIR.to_owned();
    prompt_tests::replace_replay(&txn, row).await?;
    txn.commit().await?;
    let backoff = RETRY_DELAY_MICROS << (pair.attempts - 1).clamp(0, 10);
    let required = retry_after.map_or(0, |it| i64::try_from(it.as_micros()).unwrap_or(i64::MAX));
    Ok(Some(app.clock.now() + required.max(backoff).min(MAX_RETRY_DELAY_MICROS)))
}

/// Returns the redactor of the project of a trace.
async fn redactor(app: &App, tenant: Uuid, trace: Uuid) -> Result<Option<Arc<ProjectRedactor>>> {
    match traces::project_of(&app.db, tenant, trace).await? {
        Some(project) => app.access_cache.redactor(tenant, project).await,
        None => Ok(None),
    }
}

/// Returns the call of the candidate as it stands for the recorded one.
async fn replaced_call(
    app: &App,
    tenant: Uuid,
    call: ReplayCall,
    reply: ChatReply,
    latency_micros: i64,
) -> Result<ReplacedCall> {
    let ReplayCall { original, request, endpoint } = call;
    let span::Model { id, trace_id, latency_ms, cost, prompt_tokens, completion_tokens, .. } = original;
    let redactor = redactor(app, tenant, trace_id).await?;
    let prices = app.access_cache.price_book(tenant).await?;
    let model = reply.model.unwrap_or_else(|| endpoint.model.clone());
    let priced = cost::span_cost(
        &CostInput {
            is_llm: true,
            metadata_cost_usd: None,
            own_cost: None,
            usage: &reply.usage,
            model: Some(&model),
            request_model: Some(&endpoint.model),
        },
        |name| prices.find(name),
    );
    let change = |is: Option<i64>, was: Option<i64>| Some(is? - was?);
    Ok(ReplacedCall {
        span_id: id,
        input: serde_json::to_string(&request.messages).map_err(anyhow::Error::from)?,
        output: match redactor {
            Some(redactor) => redactor.redacted(reply.output),
            None => reply.output,
        },
        model,
        latency_change_ms: change(Some(latency_micros / 1_000), latency_ms),
        cost_change: priced.zip(cost).map(|(is, was)| money::to_usd(is.pico) - money::to_usd(was)),
        prompt_tokens_change: change(reply.usage.prompt, prompt_tokens),
        completion_tokens_change: change(reply.usage.completion, completion_tokens),
    })
}

/// The scores of the baseline and of the candidate.
type PairScores = (f64, f64);

/// Evaluates both outputs of a pair. A score of the baseline that an eval rule stored is used again.
async fn scores(
    app: &App,
    plan: Plan,
    evaluation: &TestEvaluation,
    pair: &prompt_replay::Model,
    replaced: &ReplacedCall,
) -> Result<std::result::Result<PairScores, String>> {
    let (tenant, trace) = (pair.tenant_id, pair.trace_id);
    let TestEvaluation { request, stored } = evaluation;
    let candidate = preview::run(app, tenant, plan, request, (trace, Some(replaced))).await?;
    let candidate = match candidate.verdict {
        Ok(verdict) => verdict.score,
        Err(why) => return Ok(Err(format!("the candidate's output has no score: {why}"))),
    };
    if let Some(scores) = stored
        && let Some(baseline) = prompt_tests::stored_score(app.db.current(), tenant, trace, scores).await?
    {
        return Ok(Ok((baseline, candidate)));
    }
    let baseline = preview::run(app, tenant, plan, request, (trace, None)).await?;
    Ok(match baseline.verdict {
        Ok(verdict) => Ok((verdict.score, candidate)),
        Err(why) => Err(format!("the baseline's output has no score: {why}")),
    })
}

/// Stores the end of a pair, and counts its scores.
async fn end_pair(
    app: &App,
    pair: &prompt_replay::Model,
    scores: std::result::Result<PairScores, String>,
) -> Result<()> {
    let (tenant, deployment) = (pair.tenant_id, pair.deployment_id);
    // A message may quote the input or the output of the call.
    let scores = match scores {
        Err(why) => Err(match redactor(app, tenant, pair.trace_id).await? {
            Some(redactor) => redactor.redacted(why),
            None => why,
        }),
        scores => scores,
    };
    let Some((mut prompt, mut row)) = lock_running(app, tenant, deployment).await? else {
        // The test has ended. The pair says what happened to it.
        let txn = app.db.begin().await?;
        if let Some(row) = prompt_tests::lock_replay(&txn, tenant, deployment, pair.id).await?
            && is_same_call(&row, pair)
        {
            prompt_tests::replace_replay(&txn, ended(row, &scores)).await?;
            txn.commit().await?;
        }
        return Ok(());
    };
    let stored = prompt_tests::lock_replay(&prompt.txn, tenant, deployment, pair.id).await?;
    let Some(stored) = stored.filter(|it| is_same_call(it, pair)) else { return Ok(()) };
    prompt_tests::replace_replay(&prompt.txn, ended(stored, &scores)).await?;
    if let Ok((baseline, candidate)) = scores {
        let mut sums = TestScores::of(&row)?;
        sums.baseline.add(baseline);
        sums.candidate.add(candidate);
        sums.differences.add(candidate - baseline);
        row.scores = to_text(&sums)?;
        prompt.store_scores(&mut row).await?;
    }
    prompt.commit().await
}

fn is_same_call(stored: &prompt_replay::Model, pair: &prompt_replay::Model) -> bool {
    stored.status == pair.status && stored.attempts == pair.attempts
}

fn ended(
    row: prompt_replay::Model,
    scores: &std::result::Result<PairScores, String>,
) -> prompt_replay::Model {
    let status = if scores.is_ok() { COMPLETE_PAIR } else { FAILED_PAIR };
    let pair_scores = scores.as_ref().ok();
    prompt_replay::Model {
        status: status.to_owned(),
        baseline_score: pair_scores.map(|it| it.0),
        candidate_score: pair_scores.map(|it| it.1),
        error: scores.as_ref().err().cloned(),
        ..row
    }
}

/// Decides a test whose pairs have all ended. It fails if most of them have no scores.
async fn end_test(app: &App, tenant: Uuid, id: Uuid) -> Result<()> {
    let (counts, error) = prompt_tests::replay_counts(app.db.current(), tenant, id).await?;
    let Some((mut prompt, mut row)) = lock_running(app, tenant, id).await? else { return Ok(()) };
    let Some(settings) = TestSettings::of(&row)? else { return Ok(()) };
    let usable = TestScores::of(&row)?.differences.len();
    let failed = counts.get(FAILED_PAIR).map_or(0, |it| it.unsigned_abs());
    let is_representative = usable >= failed;
    if !is_representative || !test_end::decide(&mut prompt, &mut row, &settings, settings.min_pairs()).await?
    {
        let why = error.map(|it| format!("; the last reason: {it}")).unwrap_or_default();
        let reason = format!("too few pairs have scores: {usable}, and {failed} failed{why}");
        let result = TestResult::undecided(prompt.now);
        prompt.fail_test(&mut row, reason, result).await?;
    }
    prompt.commit().await
}
