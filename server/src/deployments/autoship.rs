//! The job that ships waiting deployments after the autoship of their project was switched on.

use std::sync::Arc;

use entities::job;
use queue::{JobResult, RunJob};
use store::prompts;
use uuid::Uuid;

use super::{
    jobs::{PLAN_INTERVAL_MICROS, ShipWaiting},
    locked_prompt::{Decider, LockedPrompt},
};
use crate::{app::App, control::triggers::may_act, error::Result};

// Ships one deployment of each prompt. A repeated job ships none again.
impl RunJob<App> for ShipWaiting {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match ship_waiting(app, row.tenant_id, self.project).await {
            Ok(result) => result,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

async fn ship_waiting(app: &App, tenant: Uuid, project: Uuid) -> Result<JobResult> {
    if !may_act(app, tenant).await? {
        return Ok(JobResult::Snooze { until: app.clock.now() + PLAN_INTERVAL_MICROS });
    }
    for name in prompts::names_with_waiting(app.db.current(), tenant, project).await? {
        let Some((mut prompt, _)) = LockedPrompt::lock(app, tenant, project, &name, &[]).await? else {
            continue;
        };
        if !prompt.ships_automatically().await? {
            return Ok(JobResult::Done);
        }
        // A version that was compared with another one than the shipped version waits for a person.
        let served = prompt.current.served.as_ref().map(|it| it.id);
        let waiting = prompts::newest_waiting(&prompt.txn, tenant, project, &name, served).await?;
        let Some(mut row) = waiting else { continue };
        prompt.ship(&mut row, Decider::Autoship).await?;
        prompt.commit().await?;
    }
    Ok(JobResult::Done)
}
