//! Workers: claim, run with a heartbeat, finish.

use std::{sync::Arc, time::Duration};

use entities::job;
use futures::FutureExt;
use tokio::sync::{Mutex, Notify};
use uuid::Uuid;

use super::{LEASE, Lane, Outcome, candidates, claim, finish, give_back, heartbeat, rescue};
use crate::{app::App, jobs, turns::Taken};

/// How long a lane with nothing to do waits before it looks again, unless woken.
const IDLE: Duration = Duration::from_millis(500);
/// Pause between searches for jobs whose worker is gone.
const RESCUE: Duration = Duration::from_secs(10);

/// Looking for work, which one worker of a lane does at a time: when there is none the others wait
/// for it, and cost nothing.
#[derive(Default)]
struct Look {
    turn: Mutex<()>,
    /// Somebody has let go of a tenant's turn, so that its work may be taken up.
    freed: Notify,
}

/// Starts the workers of every lane and the search for lost jobs; they stop with the app.
pub fn start(app: &Arc<App>) {
    for lane in Lane::ALL {
        let look = Arc::new(Look::default());
        for _ in 0..lane.concurrency() {
            let (worker, look) = (Arc::clone(app), Arc::clone(&look));
            app.spawn(async move { work(&worker, *lane, &look).await });
        }
    }
    let rescuer = Arc::clone(app);
    app.spawn(async move {
        while !rescuer.pause(RESCUE).await {
            let rescued = rescuer.db.health.while_reachable(rescue(&rescuer.db, rescuer.clock.now()));
            match rescued.await.unwrap_or_else(|it| Err(it.into())) {
                Ok(0) => {}
                Ok(n) => tracing::warn!(jobs = n, "{n} jobs whose worker did not come back are ready again"),
                Err(error) => tracing::warn!(%error, "could not look for lost jobs"),
            }
        }
    });
}

/// Runs everything that is due now, one after the other; answers how many jobs ran.
///
/// # Errors
/// When the database fails.
pub async fn drain(app: &Arc<App>) -> Result<usize, sea_orm::DbErr> {
    let mut ran = 0;
    let mut last = Uuid::nil();
    loop {
        let mut found = false;
        for lane in Lane::ALL {
            let (jobs, _turn) = due(app, *lane, &mut last).await?;
            for job in jobs {
                found = true;
                ran += 1;
                run(app, job).await;
            }
        }
        if !found {
            return Ok(ran);
        }
    }
}

async fn work(app: &Arc<App>, lane: Lane, look: &Look) {
    let mut last = Uuid::nil();
    // Nothing more is claimed once the server stops: what was given back is due at once.
    while let Some((jobs, turn)) = found(app, lane, look, &mut last).await {
        for job in jobs {
            if app.is_stopping() {
                if let Err(error) = give_back(&app.db, &job, app.clock.now()).await {
                    tracing::warn!(%error, "a job could not be given back; its lease will end by itself");
                }
                continue;
            }
            if app.db.health.while_reachable(Box::pin(run(app, job))).await.is_err() {
                tracing::warn!("a job was given up because the database can't be reached; it will run again");
            }
        }
        drop(turn);
        if lane.of_one_tenant() < lane.concurrency() {
            look.freed.notify_one();
        }
    }
}

/// The next jobs of a lane, when there are some; nothing when the server stops.
async fn found<'a>(app: &'a App, lane: Lane, look: &Look, last: &mut Uuid) -> Option<Due<'a>> {
    let _looking = look.turn.lock().await;
    while !app.is_stopping() {
        // The health check has logged the reason already.
        let health = &app.db.health;
        if health.unavailable().is_some() {
            app.pause(IDLE).await;
            continue;
        }
        match health.while_reachable(due(app, lane, last)).await.unwrap_or_else(|it| Err(it.into())) {
            Ok(due) if !due.0.is_empty() => return Some(due),
            Ok(_) => {}
            Err(error) => tracing::warn!(lane = lane.as_str(), %error, "could not claim jobs"),
        }
        tokio::select! {
            _ = app.pause(IDLE) => {}
            () = look.freed.notified() => {}
        }
    }
    None
}

/// A worker's place among those of its lane that work for a tenant.
type Turn<'a> = Taken<'a, (Lane, Uuid)>;

/// Jobs that are claimed, and the turn of their tenant.
type Due<'a> = (Vec<job::Model>, Option<Turn<'a>>);

/// Claims jobs of the next tenant after `last` that has some and has a turn, and remembers it there.
async fn due<'a>(app: &'a App, lane: Lane, last: &mut Uuid) -> Result<Due<'a>, sea_orm::DbErr> {
    let (now, most) = (app.clock.now(), lane.of_one_tenant());
    let busy: Vec<Uuid> = app
        .working
        .all()
        .into_iter()
        .filter(|((its, _), taken)| *its == lane && *taken >= most)
        .map(|((_, tenant), _)| tenant)
        .collect();
    for tenant in candidates(&app.db, lane, now, *last, &busy, 8).await? {
        let Some(turn) = app.working.take(&(lane, tenant), most) else { continue };
        let jobs = claim(&app.db, tenant, lane, now, lane.batch()).await?;
        if !jobs.is_empty() {
            *last = tenant;
            return Ok((jobs, Some(turn)));
        }
    }
    Ok((Vec::new(), None))
}

async fn run(app: &Arc<App>, job: job::Model) {
    if !still_held(app, &job).await {
        tracing::warn!(job.id = %job.id, "the lease ended before its turn came; another worker has the job");
        return;
    }
    let outcome = with_heartbeat(app, &job).await;
    if let Outcome::Retry { why } | Outcome::Discard { why } = &outcome {
        tracing::warn!(job.kind = job.kind, job.id = %job.id, job.attempts, why, "job {} did not succeed", job.kind);
    }
    app.telemetry.work.ended(&job.kind, &outcome);
    match finish(&app.db, &job, &outcome, app.clock.now()).await {
        Ok(true) => {}
        Ok(false) => tracing::warn!(job.id = %job.id, "the lease was lost; another worker has the job"),
        Err(error) => {
            tracing::warn!(job.id = %job.id, %error, "a job's end could not be stored; it will run again")
        }
    }
}

/// Whether the claim holds: those before it in its batch may have taken long.
async fn still_held(app: &App, job: &job::Model) -> bool {
    let now = app.clock.now();
    if job.lease_until.is_some_and(|until| until - now > LEASE / 2) {
        return true;
    }
    match heartbeat(&app.db, job, now).await {
        Ok(held) => held,
        Err(error) => {
            tracing::warn!(%error, "no heartbeat");
            false
        }
    }
}

async fn with_heartbeat(app: &Arc<App>, job: &job::Model) -> Outcome {
    let work = std::panic::AssertUnwindSafe(jobs::run(app, job)).catch_unwind();
    tokio::pin!(work);
    let beat = Duration::from_micros(LEASE.unsigned_abs() / 3);
    loop {
        match tokio::time::timeout(beat, &mut work).await {
            Ok(Ok(outcome)) => return outcome,
            Ok(Err(_)) => return Outcome::Retry { why: "the job panicked".to_owned() },
            Err(_) => match heartbeat(&app.db, job, app.clock.now()).await {
                // Whoever has it now will finish it.
                Ok(false) => return Outcome::Retry { why: "the lease was lost".to_owned() },
                Ok(true) => {}
                Err(error) => tracing::warn!(%error, "no heartbeat"),
            },
        }
    }
}
