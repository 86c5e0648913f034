//! Doing an evaluation by a judge model.
//!
//! No transaction is open and no trace is locked while the judge is awaited. A judge that can't
//! answer for now is asked again later, by the durable queue; one that can't work at all pauses the
//! rule that wanted it.

use std::{sync::Arc, time::Duration};

use api::{Plan, eval::ModelTier};
use entities::{evaluation, job};
use evaluators::judge::{self, Token};
use queue::{Job, Outcome, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::evaluations::{self, End, Judged};
use uuid::Uuid;

use super::{
    by_rule::{LOST, absent, at_fault, config_of, failed, given_up, lost, no_config, no_evaluator},
    matching::label,
    rules,
    subject::{self, Found},
};
use crate::{
    app::App,
    error::Result,
    evaluator::{Config, Evaluator},
    judging::{Chosen, JudgeFailure, Kind, Spent, Who},
    pools,
};

/// How often a judge that can't answer for now is asked.
const ASKED: i32 = 8;
/// How long an evaluation waits at most for a judge that fails, microseconds. Others that wait for one
/// that works are no reason to give up, however many they are.
const PATIENCE: i64 = 6 * 3_600_000_000;
/// Pause before the end of an evaluation is stored once more, doubled each time.
const AGAIN: Duration = Duration::from_millis(300);
/// Longest such pause.
const AGAIN_MAX: Duration = Duration::from_secs(30);
/// First pause before it is asked again, doubled each time, microseconds.
const PAUSE: i64 = 2_000_000;
/// Longest pause, also when the provider asks for more, microseconds.
const PAUSE_MAX: i64 = 600_000_000;

/// An evaluation of type `llm` that waits.
#[derive(Debug, Serialize, Deserialize)]
pub struct EvaluateByJudge {
    /// The evaluation.
    pub evaluation: Uuid,
}

impl Job for EvaluateByJudge {
    const KIND: &'static str = "evaluate_by_judge";
    const POOL: &'static WorkerPool = &pools::JUDGES;
}

/// The job that does this evaluation.
pub fn job(tenant: Uuid, evaluation: Uuid, now: i64) -> job::Model {
    new_job(tenant, &EvaluateByJudge { evaluation }, now, now)
}

impl RunJob<App> for EvaluateByJudge {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> Outcome {
        match work(app, row.tenant_id, self.evaluation).await {
            Ok(outcome) => outcome,
            // Whatever it was, the evaluation is not lost for it.
            Err(error) => {
                tracing::warn!(tenant = %row.tenant_id, %error, "an evaluation by a judge is put off");
                Outcome::Snooze { until: app.clock.now() + 5_000_000 }
            }
        }
    }
}

async fn work(app: &App, tenant: Uuid, id: Uuid) -> Result<Outcome> {
    let Some(row) = evaluations::start(&app.db, tenant, &[id]).await?.pop() else { return Ok(Outcome::Done) };
    let attempted = match lost(&row) {
        it if it >= LOST => Ok(Ended::End(given_up(it))),
        _ => attempt(app, &row).await,
    };
    let ended = match attempted.or_else(|error| at_fault(tenant, error).map(Ended::End)) {
        Ok(ended) => ended,
        // Nobody was lost over it.
        Err(error) => {
            evaluations::put_back(&app.db, tenant, &row, None).await?;
            return Err(error);
        }
    };
    match ended {
        Ended::End(end) => {
            store_end(app, &row, &end).await?;
            Ok(Outcome::Done)
        }
        Ended::Later { until, asked } => {
            evaluations::put_back(&app.db, tenant, &row, asked).await?;
            Ok(Outcome::Snooze { until })
        }
    }
}

/// Stores an end. The judge was paid for: a database that is away for a while must not cost its
/// verdict.
async fn store_end(app: &App, row: &evaluation::Model, end: &End) -> Result<()> {
    let mut pause = AGAIN;
    loop {
        let ends = vec![(row.clone(), end.clone())];
        match evaluations::end(&app.db, row.tenant_id, ends, app.clock.now()).await {
            Ok(_) => return Ok(()),
            Err(error) if pause > AGAIN_MAX => return Err(error.into()),
            Err(error) => {
                tracing::warn!(tenant = %row.tenant_id, %error, "an evaluation's end is stored again")
            }
        }
        // Once more at once if the server goes down.
        pause = if app.pause(pause).await { AGAIN_MAX * 2 } else { pause * 2 };
    }
}

/// What came of asking a judge.
pub enum Ended {
    /// A verdict, or none for good.
    End(End),
    /// It is worth asking again.
    Later {
        /// When, microseconds.
        until: i64,
        /// What it used, if a judge was asked.
        asked: Option<Judged>,
    },
}

/// What a judge is asked.
pub struct Question<'a> {
    /// Who judges.
    pub evaluator: &'a Evaluator,
    /// With which options.
    pub config: &'a Config,
    /// Whom to ask.
    pub judge: &'a Chosen,
}

async fn attempt(app: &App, row: &evaluation::Model) -> Result<Ended> {
    let end = |why: String| Ok(Ended::End(failed(why)));
    let (tenant, metric) = (row.tenant_id, &row.metric_name);
    let Some(text) = config_of(app, row).await? else { return end(no_config()) };
    let Some(evaluator) = rules::evaluator(app, tenant, metric).await? else {
        return end(no_evaluator(metric));
    };
    let config: Config = serde_json::from_str(&text).map_err(anyhow::Error::from)?;
    let Some(known) = app.known.tenant(tenant).await? else { return end("the tenant is gone".to_owned()) };
    let plan: Plan = known.plan.parse().map_err(anyhow::Error::from)?;
    let tier = row.model_tier.as_deref().and_then(|it| it.parse().ok()).unwrap_or(ModelTier::Cheap);
    let judge = match app.judge.choose(tenant, plan, evaluator.prefers(), tier).await? {
        Ok(judge) => judge,
        Err(nobody) => return end(nobody.to_string()),
    };
    let question = Question { evaluator: &evaluator, config: &config, judge: &judge };
    let asked = ask(app, tenant, row.trace_id, row.span_id, &question);
    let stopping = app.stopping();
    let answer = tokio::select! {
        answer = asked => answer?,
        // Another worker, or this one when it is back, asks anew.
        () = stopping.cancelled() => return Ok(Ended::Later { until: app.clock.now(), asked: None }),
    };
    let now = app.clock.now();
    Ok(match answer {
        Answer::End(end) => Ended::End(end),
        Answer::Broken(end) => {
            let why = end.verdict.as_ref().err().map_or("", String::as_str);
            if blamed(app, row, judge.who(), why).await? || row.asked + 1 >= ASKED {
                Ended::End(end)
            } else {
                // It was mended while the answer was under way.
                Ended::Later { until: now, asked: Some(end.judged) }
            }
        }
        Answer::Waiting { why, failing_since: Some(since), .. }
            if now.saturating_sub(since.max(row.created_at)) > PATIENCE =>
        {
            Ended::End(failed(format!("{why}; it was waited for for {} hours", PATIENCE / 3_600_000_000)))
        }
        Answer::Waiting { wait, .. } => {
            Ended::Later { until: now + wait.unwrap_or(PAUSE).clamp(PAUSE, PAUSE_MAX), asked: None }
        }
        Answer::Later { wait, end } if row.asked + 1 < ASKED => {
            let own = PAUSE << row.asked.clamp(0, 20);
            let until = now + wait.unwrap_or(0).max(own).min(PAUSE_MAX);
            Ended::Later { until, asked: Some(end.judged) }
        }
        Answer::Later { end, .. } => {
            let verdict = end.verdict.map_err(|why| format!("{why} (asked {ASKED} times)"));
            Ended::End(End { verdict, ..end })
        }
    })
}

/// What a judge answered, once.
pub enum Answer {
    /// A verdict, or none for good.
    End(End),
    /// It was not asked: it rests, or others wait for it already.
    Waiting {
        /// For how long, microseconds, if that is known.
        wait: Option<i64>,
        /// What it waits for, in words.
        why: String,
        /// Since when the judge has failed, microseconds, if it has.
        failing_since: Option<i64>,
    },
    /// None, and asking again later may help.
    Later {
        /// How long the provider wants to be left alone, microseconds.
        wait: Option<i64>,
        /// The end, if nobody asks again.
        end: End,
    },
    /// None, and there will be none until somebody mends the credential.
    Broken(End),
}

/// Asks a judge about a trace, or one span of it.
///
/// # Errors
/// When the database fails.
pub async fn ask(
    app: &App,
    tenant: Uuid,
    trace: Uuid,
    span: Option<Uuid>,
    question: &Question<'_>,
) -> Result<Answer> {
    let Question { evaluator, config, judge } = *question;
    let instructions = match evaluator.instructions() {
        Ok(instructions) => instructions,
        Err(why) => return Ok(Answer::End(failed(why))),
    };
    // A long trace is not read for a judge that can't be asked anyway.
    if let Err(failure) = app.judge.would_admit(judge) {
        return Ok(unanswered(evaluator, judge, failure));
    }
    let turns = instructions.shows_turns();
    let subject = match subject::read(&app.db, tenant, trace, span, turns).await? {
        Found::Subject(subject) => subject,
        gone => return Ok(Answer::End(failed(absent(&gone)))),
    };
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|it| anyhow::anyhow!("no random numbers: {it}"))?;
    let asked = match judge::ask(&instructions, &subject, config, &Token::new(bits)) {
        Ok(asked) => asked,
        Err(missing) => return Ok(Answer::End(failed(missing.to_string()))),
    };
    drop(subject);
    Ok(match app.judge.ask(judge, &asked).await {
        Ok(it) => {
            let word = it.verdict.label.unwrap_or_else(|| label(it.verdict.score, config).to_owned());
            let verdict = Ok((it.verdict.score, word, it.verdict.reasoning));
            let judged = judged(&it.model, it.spent);
            Answer::End(End { evaluator_version: Some(evaluator.version()), verdict, judged })
        }
        Err(failure) => unanswered(evaluator, judge, failure),
    })
}

/// What it means that there is no verdict.
fn unanswered(evaluator: &Evaluator, judge: &Chosen, failure: JudgeFailure) -> Answer {
    let JudgeFailure { kind, message, retry_after, failing_since, spent } = failure;
    let wait = retry_after.and_then(|it| i64::try_from(it.as_micros()).ok());
    let (version, judged) = (Some(evaluator.version()), judged(judge.model(), spent));
    let end = |why| End { evaluator_version: version, verdict: Err(why), judged };
    match kind {
        Kind::Waiting => Answer::Waiting { wait, why: message, failing_since },
        Kind::Later => Answer::Later { wait, end: end(message) },
        Kind::Broken => Answer::Broken(end(message)),
        Kind::Refused | Kind::Unreadable => Answer::End(end(message)),
    }
}

fn judged(model: &str, spent: Spent) -> Judged {
    Judged {
        model: Some(model.to_owned()),
        prompt_tokens: spent.prompt_tokens,
        completion_tokens: spent.completion_tokens,
        cost: spent.cost,
    }
}

/// Whether a judge is still the one that is stored. The lock makes whoever stores another one wait.
async fn is_stored(txn: &store::Transaction, who: Who) -> Result<bool> {
    let Who::Tenant(tenant, provider, updated_at) = who else { return Ok(true) };
    let row = store::credentials::lock(txn, tenant, provider).await?;
    Ok(row.is_some_and(|it| it.updated_at == updated_at))
}

/// Blames a judge that can't work: the rule that wanted it is paused. False when somebody has stored
/// another one meanwhile, so that neither is to blame.
async fn blamed(app: &App, row: &evaluation::Model, judge: Who, why: &str) -> Result<bool> {
    let tenant = row.tenant_id;
    let txn = app.db.begin().await?;
    if !is_stored(&txn, judge).await? {
        return Ok(false);
    }
    let Some(rule) = row.rule_id else { return Ok(true) };
    let now = app.clock.now();
    // A rule that was changed since has other wants.
    let asked_at = row.created_at;
    if store::eval_rules::pause(&txn, tenant, rule, why, asked_at, (now - rules::PAUSE, now)).await? {
        tracing::warn!(%tenant, %rule, why, "an eval rule is paused");
        app.commit(txn).await?;
    }
    Ok(true)
}
