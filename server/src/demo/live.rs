//! Live traffic: a trace every second, from a few users at a time.

use std::{sync::Arc, time::Duration};

use fastrand::Rng;

use super::{Cast, history::Scribe, stories::Visit, voices::Voice};
use crate::app::App;

/// Pause between two traces.
const PAUSE: Duration = Duration::from_secs(1);
/// Number of simultaneous visits.
const PEOPLE: usize = 4;

/// Stores the feedback in `voices`, then adds traces until the app stops.
pub(super) fn start(app: &Arc<App>, cast: &Cast, voices: Vec<Voice>, mut rng: Rng) {
    let stage = Arc::clone(app);
    let cast =
        Cast { tenant: cast.tenant, projects: cast.projects.clone(), key: cast.key.clone(), traces: 0 };
    app.spawn(async move {
        for voice in voices {
            if stage.is_stopping() {
                return;
            }
            say(&stage, voice).await;
        }
        let mut visits: Vec<Visit> = Vec::new();
        while !stage.pause(PAUSE).await {
            if visits.len() < PEOPLE {
                visits.push(Visit::draw(&mut rng));
            }
            let place = rng.usize(..visits.len());
            if let Err(error) = tell(&stage, &cast, &mut visits[place], &mut rng).await {
                tracing::warn!(%error, "a trace of the demo could not be stored");
            }
            visits.retain(|it| it.turns > 0);
        }
    });
}

/// Stores the next trace of a visit, which ended just now.
async fn tell(app: &App, cast: &Cast, visit: &mut Visit, rng: &mut Rng) -> anyhow::Result<()> {
    visit.turns = visit.turns.saturating_sub(1);
    let now = app.clock.now();
    let mut item = visit.tell(rng, now);
    let end = item.spans.as_ref().and_then(|it| it.first()?.end_time).map_or(now, |it| it.micros());
    super::draft::shift(&mut item, now - end);
    let mut scribe = Scribe::new(app, cast).await?;
    scribe.write(visit.project, item).await?;
    scribe.flush().await?;
    super::verdicts::judge(app, rng, &scribe.stored).await?;
    if let Some(voice) = scribe.stored.first().and_then(|it| Voice::draw(rng, it)) {
        say(app, voice).await;
    }
    Ok(())
}

async fn say(app: &App, voice: Voice) {
    if let Err(error) = voice.say(app).await {
        tracing::warn!(%error, "a feedback of the demo could not be stored");
    }
}
