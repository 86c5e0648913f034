//! The job that counts scores in live tests and in the watches of shipped versions.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use api::deployment::{DeploymentStatus, PROMPT_NAME_TAG, PROMPT_VERSION_TAG, TestArm, TestMode};
use entities::{evaluation, job, prompt_deployment, prompt_score, trace};
use experiments::Watch;
use queue::{JobResult, RunJob};
use store::{evaluations, new_id_at, prompt_tests, traces};
use uuid::Uuid;

use super::{
    jobs::{self, CountScores},
    locked_prompt::LockedPrompt,
    state::{TestScores, TestSettings, WatchState, to_text},
    test_end,
};
use crate::{app::App, control::triggers::may_act, error::Result};

/// How a score of the watch is counted; a score of a test is counted as its arm.
const WATCH_WORD: &str = "watch";

/// Maximum number of jobs that are merged.
const MAX_MERGED_JOBS: u64 = 100;
/// Maximum number of evaluations of a merged job: they share a transaction for each prompt.
const FULL_JOB_EVALUATIONS: usize = 500;

/// A score of a trace that names its prompt.
struct PromptScore {
    trace: trace::Model,
    version: i32,
    evaluation: evaluation::Model,
    score: f64,
}

// Counts the scores. A repeated job counts none again.
impl RunJob<App> for CountScores {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match work(app, row, self).await {
            Ok(()) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

async fn work(app: &App, row: &job::Model, job: CountScores) -> Result<()> {
    let tenant = row.tenant_id;
    let job = merge_waiting_jobs(app, row, job).await?;
    if !may_act(app, tenant).await? {
        return Ok(());
    }
    let mut scored = evaluations::some(app.db.current(), tenant, &job.evaluations).await?;
    scored.sort_unstable_by_key(|it| it.id);
    let ids: Vec<Uuid> = scored.iter().map(|it| it.trace_id).collect();
    let rows = traces::some(app.db.current(), tenant, &ids).await?;
    let rows: HashMap<Uuid, trace::Model> = rows.into_iter().map(|it| (it.id, it)).collect();
    let mut by_prompt: BTreeMap<(Uuid, String), Vec<PromptScore>> = BTreeMap::new();
    for evaluation in scored.into_iter().filter(jobs::is_counted) {
        let (Some(score), Some(trace)) = (evaluation.score, rows.get(&evaluation.trace_id)) else { continue };
        if let Some((name, version)) = prompt_of(trace) {
            let counted = PromptScore { trace: trace.clone(), version, evaluation, score };
            by_prompt.entry((trace.project_id, name)).or_default().push(counted);
        }
    }
    for ((project, name), scores) in by_prompt {
        count(app, tenant, project, &name, scores).await?;
    }
    Ok(())
}

/// Merges waiting jobs into this one until it is large enough.
async fn merge_waiting_jobs(app: &App, row: &job::Model, job: CountScores) -> Result<CountScores> {
    let merged = queue::merge_waiting(&app.db, row, MAX_MERGED_JOBS, |others| {
        let (mut all, mut merged_count) = (job.clone(), 0);
        for other in others {
            // An unparsable job is left to its own attempt.
            let Ok(other) = serde_json::from_str::<CountScores>(other) else { break };
            if all.evaluations.len() + other.evaluations.len() > FULL_JOB_EVALUATIONS {
                break;
            }
            all.evaluations.extend(other.evaluations);
            merged_count += 1;
        }
        (merged_count, all)
    });
    Ok(merged.await?.unwrap_or(job))
}

/// Returns the name and the version of the prompt that a trace names.
fn prompt_of(trace: &trace::Model) -> Option<(String, i32)> {
    let mut tags: HashMap<String, String> = serde_json::from_str(trace.tags.as_deref()?).ok()?;
    let version = tags.get(PROMPT_VERSION_TAG)?.parse().ok()?;
    Some((tags.remove(PROMPT_NAME_TAG)?, version))
}

/// Counts the scores of a prompt in one transaction.
async fn count(app: &App, tenant: Uuid, project: Uuid, name: &str, scores: Vec<PromptScore>) -> Result<()> {
    let ids: Vec<Uuid> = scores.iter().map(|it| it.trace.id).collect();
    let Some((mut prompt, existing)) = LockedPrompt::lock(app, tenant, project, name, &ids).await? else {
        return Ok(());
    };
    for score in scores.iter().filter(|it| existing.contains(&it.trace.id)) {
        count_in_test(&mut prompt, score).await?;
        count_in_watch(&mut prompt, score).await?;
    }
    prompt.commit().await
}

async fn count_in_test(prompt: &mut LockedPrompt<'_>, score: &PromptScore) -> Result<()> {
    let Some(mut row) = prompt.current.running.clone().filter(|it| it.mode == TestMode::Live.as_str()) else {
        return Ok(());
    };
    let Some(settings) = TestSettings::of(&row)?.filter(|it| it.metric_name == score.evaluation.metric_name)
    else {
        return Ok(());
    };
    let baseline = prompt.current.served.as_ref().filter(|it| Some(it.id) == row.baseline_id);
    let arm = match score.version {
        version if version == row.version => TestArm::Candidate,
        version if baseline.is_some_and(|it| it.version == version) => TestArm::Baseline,
        _ => return Ok(()),
    };
    // Traces from before the test belong to other traffic.
    if score.trace.created_at < row.created_at {
        return Ok(());
    }
    if !prompt_tests::count(&prompt.txn, counted(prompt, &row, score, arm.as_str())).await? {
        return Ok(());
    }
    let mut sums = TestScores::of(&row)?;
    match arm {
        TestArm::Baseline => sums.baseline.add(score.score),
        TestArm::Candidate => sums.candidate.add(score.score),
    }
    row.scores = to_text(&sums)?;
    if !test_end::decide(prompt, &mut row, &settings, u64::from(settings.min_samples)).await? {
        prompt.store_scores(&mut row).await?;
        prompt.current.running = Some(row);
    }
    Ok(())
}

async fn count_in_watch(prompt: &mut LockedPrompt<'_>, score: &PromptScore) -> Result<()> {
    let is_watched = |it: &prompt_deployment::Model| {
        it.status == DeploymentStatus::Shipped.as_str()
            && it.version == score.version
            && it.shipped_at.is_some_and(|at| score.trace.created_at >= at)
    };
    let Some(mut row) = prompt.current.served.clone().filter(is_watched) else { return Ok(()) };
    let Some(settings) = TestSettings::of(&row)?.filter(|it| it.metric_name == score.evaluation.metric_name)
    else {
        return Ok(());
    };
    if !prompt_tests::count(&prompt.txn, counted(prompt, &row, score, WATCH_WORD)).await? {
        return Ok(());
    }
    let mut watch = WatchState::of(&row)?.unwrap_or_default();
    watch.current.add(score.score);
    let mut regression = None;
    if watch.current.len() >= u64::from(settings.min_samples) {
        let baseline = TestScores::of(&row)?.baseline;
        watch.effect = watch.current.mean().zip(baseline.mean()).map(|(is, was)| is - was);
        if let Watch::Regressed(comparison) =
            experiments::watch(&baseline, &watch.current, watch.windows, settings.alpha)
        {
            regression = Some(comparison.effect);
        }
        watch.windows = watch.windows.saturating_add(1);
        watch.current = Default::default();
    }
    row.watch = to_text(&watch)?;
    match regression {
        Some(effect) => {
            let reason = format!(
                "{}: the mean of the last {} scores is {:.4} lower than the baseline's",
                settings.metric_name, settings.min_samples, -effect
            );
            prompt.regress(&mut row, reason).await?;
        }
        None => prompt.store_scores(&mut row).await?,
    }
    prompt.current.served = Some(row);
    Ok(())
}

fn counted(
    prompt: &LockedPrompt<'_>,
    deployment: &prompt_deployment::Model,
    score: &PromptScore,
    counted_as: &str,
) -> prompt_score::Model {
    prompt_score::Model {
        tenant_id: deployment.tenant_id,
        id: new_id_at(prompt.now),
        deployment_id: deployment.id,
        trace_id: score.trace.id,
        evaluation_id: score.evaluation.id,
        counted_as: counted_as.to_owned(),
        score: score.score,
        created_at: prompt.now,
    }
}
