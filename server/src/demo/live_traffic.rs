//! Live traffic: a trace every second, from a few users at a time.

use std::{sync::Arc, time::Duration};

use fastrand::Rng;

use super::{
    DemoTenant,
    feedback::DemoFeedback,
    history::TraceWriter,
    own_api::OwnApi,
    prompt_application::{self, SUPPORT_PROMPT},
    traces::UserVisit,
};
use crate::app::App;

/// Pause between two traces.
const TRACE_INTERVAL: Duration = Duration::from_secs(1);
/// Number of simultaneous visits.
const MAX_VISITS: usize = 4;

/// Spawns a task that stores `feedback`, then adds traces until the app stops.
pub(super) fn start(
    app: &Arc<App>,
    tenant: DemoTenant,
    api: OwnApi,
    feedback: Vec<DemoFeedback>,
    mut rng: Rng,
) {
    let server = Arc::clone(app);
    app.spawn(async move {
        for feedback in feedback {
            if server.is_stopping() {
                return;
            }
            store_feedback(&server, feedback).await;
        }
        let mut visits: Vec<UserVisit> = Vec::new();
        while !server.pause(TRACE_INTERVAL).await {
            if visits.len() < MAX_VISITS {
                visits.push(UserVisit::draw(&mut rng));
            }
            let index = rng.usize(..visits.len());
            if let Err(error) = store_next_trace(&server, &tenant, &api, &mut visits[index], &mut rng).await {
                tracing::warn!(%error, "a trace of the demo could not be stored");
            }
            visits.retain(|it| it.turns > 0);
        }
    });
}

/// Stores the next trace of a visit, which ended just now.
async fn store_next_trace(
    app: &App,
    tenant: &DemoTenant,
    api: &OwnApi,
    visit: &mut UserVisit,
    rng: &mut Rng,
) -> anyhow::Result<()> {
    visit.turns = visit.turns.saturating_sub(1);
    let now = app.clock.now();
    // The prompt is created shortly after the demo starts.
    let served = match visit.project == SUPPORT_PROMPT.project {
        true => prompt_application::fetch(api, SUPPORT_PROMPT, tenant.projects[visit.project], visit.user)
            .await
            .ok(),
        false => None,
    };
    let mut item = visit.next_trace(rng, now, served.as_ref());
    let end = item.spans.as_ref().and_then(|it| it.first()?.end_time).map_or(now, |it| it.micros());
    super::trace_builder::shift(&mut item, now - end);
    let mut writer = TraceWriter::new(app, tenant).await?;
    writer.write(visit.project, item).await?;
    writer.flush().await?;
    // The demo's judge evaluates traces that name their prompt.
    if served.is_none() {
        super::evaluations::store_evaluations(app, rng, &writer.stored).await?;
    }
    if let Some(feedback) = writer.stored.first().and_then(|it| DemoFeedback::draw(rng, it)) {
        store_feedback(app, feedback).await;
    }
    Ok(())
}

async fn store_feedback(app: &App, feedback: DemoFeedback) {
    if let Err(error) = feedback.store(app).await {
        tracing::warn!(%error, "feedback of the demo could not be stored");
    }
}
