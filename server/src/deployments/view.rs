//! Converts rows of deployments to wire types.

use api::{
    Timestamp,
    deployment::{PromptDeployment, PromptTest, PromptWatch},
};
use entities::prompt_deployment;

use super::state::{TestResult, TestScores, TestSettings, WatchState, statistics};
use crate::error::Result;

/// Returns a deployment.
///
/// # Errors
///
/// Fails when the row is invalid.
pub fn deployment(row: prompt_deployment::Model) -> Result<PromptDeployment> {
    let (ab, watch) = (test(&row)?, WatchState::of(&row)?);
    let prompt_deployment::Model {
        tenant_id: _,
        id,
        project_id,
        prompt_name,
        version,
        template,
        model,
        status,
        reason,
        baseline_id,
        replaced_id: _,
        mode,
        test: _,
        scores: _,
        result: _,
        watch: _,
        source_action_id,
        created_by,
        decided_by,
        decided_at,
        decision_note,
        shipped_at,
        created_at,
        updated_at,
    } = row;
    Ok(PromptDeployment {
        id,
        project_id,
        prompt_name,
        version,
        template,
        model,
        status: status.parse().map_err(anyhow::Error::from)?,
        reason,
        baseline_id,
        mode: mode.parse().map_err(anyhow::Error::from)?,
        ab,
        watch: watch.map(|WatchState { windows, current, effect }| PromptWatch {
            windows: i32::try_from(windows).unwrap_or(i32::MAX),
            current: statistics(&current),
            effect,
        }),
        source_action_id,
        created_by,
        decided_by,
        decided_at: decided_at.map(Timestamp::from_micros),
        decision_note,
        shipped_at: shipped_at.map(Timestamp::from_micros),
        created_at: Timestamp::from_micros(created_at),
        updated_at: Timestamp::from_micros(updated_at),
    })
}

fn test(row: &prompt_deployment::Model) -> Result<Option<PromptTest>> {
    let Some(settings) = TestSettings::of(row)? else { return Ok(None) };
    let TestSettings { metric_name, traffic_share, min_samples, alpha, max_regression, max_duration_hours } =
        settings;
    let (scores, result) = (TestScores::of(row)?, TestResult::of(row)?);
    Ok(Some(PromptTest {
        metric_name,
        traffic_share,
        min_samples: i32::try_from(min_samples).unwrap_or(i32::MAX),
        alpha,
        max_regression,
        max_duration_hours: i32::try_from(max_duration_hours).unwrap_or(i32::MAX),
        baseline: statistics(&scores.baseline),
        candidate: statistics(&scores.candidate),
        p_value: result.and_then(|it| it.p_value),
        effect: result.and_then(|it| it.effect),
        lower_bound: result.and_then(|it| it.lower_bound),
        completed_at: result.map(|it| Timestamp::from_micros(it.completed_at)),
    }))
}
