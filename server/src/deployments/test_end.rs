//! The end of tests: the decision, and the time after which an undecided test fails.

use std::sync::Arc;

use api::deployment::{DeploymentStatus, TestMode};
use entities::{job, prompt_deployment};
use experiments::{Comparison, Decision, Scores};
use queue::{JobResult, RunJob};
use store::prompts;
use uuid::Uuid;

use super::{
    jobs::ExpireTest,
    locked_prompt::LockedPrompt,
    state::{TestResult, TestScores, TestSettings, to_text},
};
use crate::{app::App, error::Result};

/// Decides a running test with the scores in its row, if they are enough. Returns whether it is decided.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn decide(
    prompt: &mut LockedPrompt<'_>,
    row: &mut prompt_deployment::Model,
    settings: &TestSettings,
    min_samples: u64,
) -> Result<bool> {
    let TestScores { baseline, candidate, differences } = TestScores::of(row)?;
    let scores = match row.mode == TestMode::Replay.as_str() {
        true => Scores::Paired(differences),
        false => Scores::Independent { baseline, candidate },
    };
    match experiments::decide(&settings.requirements(min_samples), &scores) {
        Decision::TooFewScores => return Ok(false),
        Decision::Passed(comparison) => {
            row.result = to_text(&TestResult::decided(settings, &comparison, prompt.now))?;
            prompt.pass(row).await?;
        }
        Decision::Failed(comparison) => {
            let result = TestResult::decided(settings, &comparison, prompt.now);
            prompt.fail_test(row, failure_reason(settings, &comparison), result).await?;
        }
    }
    Ok(true)
}

fn failure_reason(settings: &TestSettings, comparison: &Comparison) -> String {
    let TestSettings { metric_name, alpha, max_regression, .. } = settings;
    let (effect, bound) = (comparison.effect, comparison.lower_bound(*alpha));
    format!(
        "{metric_name}: the candidate's mean differs from the baseline's by {effect:.4}; the lower bound of this effect at \
         alpha {alpha} is {bound:.4}, and must be above {:.4}",
        0.0 - max_regression
    )
}

// Fails a test whose time is over. A repeated job finds it ended.
impl RunJob<App> for ExpireTest {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match expire(app, row.tenant_id, self.deployment).await {
            Ok(()) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

async fn expire(app: &App, tenant: Uuid, id: Uuid) -> Result<()> {
    let Some((mut prompt, mut row)) = lock_running(app, tenant, id).await? else { return Ok(()) };
    let Some(settings) = TestSettings::of(&row)? else { return Ok(()) };
    let TestScores { baseline, candidate, .. } = TestScores::of(&row)?;
    let TestSettings { min_samples, max_duration_hours, .. } = settings;
    let reason = format!(
        "the test was not decided within {max_duration_hours} hours: it needs {min_samples} scores of each version, and has {} \
         of the baseline and {} of the candidate",
        baseline.len(),
        candidate.len()
    );
    let result = TestResult::undecided(prompt.now);
    prompt.fail_test(&mut row, reason, result).await?;
    prompt.commit().await
}

/// Locks the prompt of a deployment; `None` if the deployment's test does not run.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn lock_running(
    app: &App,
    tenant: Uuid,
    id: Uuid,
) -> Result<Option<(LockedPrompt<'_>, prompt_deployment::Model)>> {
    let running = |it: &prompt_deployment::Model| it.status == DeploymentStatus::AbRunning.as_str();
    let Some(found) = prompts::deployment(app.db.current(), tenant, id).await?.filter(running) else {
        return Ok(None);
    };
    let locked = LockedPrompt::lock(app, tenant, found.project_id, &found.prompt_name, &[]).await?;
    let Some((prompt, _)) = locked else { return Ok(None) };
    let row = prompts::deployment(&prompt.txn, tenant, id).await?.filter(running);
    Ok(row.map(|row| (prompt, row)))
}
