//! Embedding spans in the background.
//!
//! A commit enqueues, in its own transaction, one job for all spans of a tenant that embeds. What
//! is committed within a second falls due together, and the job that runs first takes the others
//! into its own, so that many small commits make full requests. No transaction is open while the
//! provider is awaited. A job may run any number of times: spans that have a vector are passed
//! over. While the provider fails its jobs wait in the queue, and nowhere else. A tenant whose
//! provider is slow occupies some of the workers, and each of them for a while only.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use entities::job;
use queue::{Job, Outcome, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::traces::TraceChunk;
use uuid::Uuid;

use crate::{
    app::App,
    error::Result,
    pools,
    span_embedding::turn::{Ended, Place, Turn},
};

/// Spans of some traces that are to be embedded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbedSpans {
    /// Spans that were stored before are passed over, microseconds: a long trace is not read from
    /// its beginning each time that it grows.
    pub since: i64,
    /// About how many spans they are.
    pub spans: usize,
    /// The traces.
    pub traces: Vec<Uuid>,
    /// Where an earlier job came to within the first traces, if it did not come to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Place>,
}

impl Job for EmbedSpans {
    const KIND: &'static str = "embed_spans";
    const POOL: &'static WorkerPool = &pools::EMBEDDING;
}

/// A second, in microseconds.
const SECOND: i64 = 1_000_000;
/// Spans from which a job is large enough not to take in others.
pub const ENOUGH: usize = 256;
/// Jobs that are taken in at once.
const TAKEN_IN: u64 = 256;
/// Workers of a process that embed for one tenant at the same time.
const TURNS: usize = 2;
/// How long a request may take: a model that runs on a processor may be slow.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The jobs for parts that are stored at `now`: of each tenant one, or some of a bounded size.
pub fn jobs<'a>(parts: impl Iterator<Item = &'a TraceChunk>, now: i64) -> Vec<job::Model> {
    let mut by_tenant: BTreeMap<Uuid, Vec<EmbedSpans>> = BTreeMap::new();
    for part in parts {
        let with_text = || part.spans.iter().filter(|it| it.body_id.is_some());
        let Some(since) = with_text().map(|it| it.created_at).min() else { continue };
        let (spans, traces) = (with_text().count(), vec![part.trace.id]);
        let more = EmbedSpans { since, spans, traces, after: None };
        let jobs = by_tenant.entry(part.trace.tenant_id).or_default();
        match jobs.last_mut().filter(|it| it.spans + spans <= ENOUGH) {
            Some(last) => last.add(more),
            None => jobs.push(more),
        }
    }
    // All that is committed in the same second falls due together.
    let due = (now.div_euclid(SECOND) + 1) * SECOND;
    let jobs = by_tenant.iter().flat_map(|(tenant, jobs)| jobs.iter().map(move |it| (*tenant, it)));
    jobs.map(|(tenant, job)| new_job(tenant, job, due, now)).collect()
}

impl EmbedSpans {
    fn add(&mut self, other: Self) {
        self.since = self.since.min(other.since);
        self.spans += other.spans;
        self.traces.extend(other.traces);
    }
}

// Embeds the spans of a job, and of others that wait beside it.
impl RunJob<App> for EmbedSpans {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> Outcome {
        match work(app, row, self).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Retry { why: error.to_string() },
        }
    }
}

async fn work(app: &App, row: &job::Model, job: EmbedSpans) -> Result<Outcome> {
    let (tenant, embedder) = (row.tenant_id, &app.embedder);
    let Some(known) = app.known.tenant(tenant).await? else { return Ok(Outcome::Done) };
    let plan = known.plan.parse().map_err(anyhow::Error::from)?;
    // The plan may be lower by now, or the credential gone.
    let Some(chosen) = embedder.chosen(tenant, plan).await? else { return Ok(Outcome::Done) };
    let Some(_turn) = embedder.turns.take(&tenant, TURNS) else {
        return Ok(Outcome::Snooze { until: app.clock.now() + SECOND });
    };
    let job = with_others(app, row, job).await?;
    if let Err(resting) = embedder.rests.admit(&chosen.who, app.clock.now(), PATIENCE) {
        return Ok(Outcome::Snooze { until: resting.until });
    }
    let (ended, works) = Turn::of(app, tenant, &chosen).run(job).await?;
    if works && !matches!(ended, Ended::Failed(_)) && embedder.rests.recovered(&chosen.who) {
        tracing::info!(%tenant, "the embedding provider works again");
    }
    let failure = match ended {
        Ended::Done => return Ok(Outcome::Done),
        Ended::Later(rest) => {
            // Should the process end here, both jobs run, and find less to do.
            let now = app.clock.now();
            queue::enqueue(&app.db.write, tenant, &rest, now, now).await?;
            return Ok(Outcome::Done);
        }
        Ended::Stopping => return Ok(Outcome::Snooze { until: app.clock.now() }),
        Ended::Failed(failure) => failure,
    };
    let (now, why) = (app.clock.now(), failure.to_string());
    // It bears nothing, so there is always a pause.
    let rest = embedder.rests.failed(chosen.who, failure.pause(), &why, now);
    let (until, is_first) = rest.unwrap_or((now + SECOND, false));
    if is_first {
        tracing::warn!(%tenant, model = chosen.endpoint.model, why, "the embedding provider fails; spans wait for it");
    }
    Ok(Outcome::Snooze { until })
}

/// Takes waiting jobs into this one until it is large enough.
async fn with_others(app: &App, row: &job::Model, job: EmbedSpans) -> Result<EmbedSpans> {
    if job.spans >= ENOUGH || job.after.is_some() {
        return Ok(job);
    }
    let merged = queue::take_in(&app.db, row, TAKEN_IN, |others| {
        let mut all = job.clone();
        let mut taken = 0;
        for other in others {
            // What can't be read is left for its own turn.
            let Ok(other) = serde_json::from_str::<EmbedSpans>(other) else { break };
            if all.spans + other.spans > ENOUGH || other.after.is_some() {
                break;
            }
            all.add(other);
            taken += 1;
        }
        all.traces.sort_unstable();
        all.traces.dedup();
        (taken, all)
    });
    Ok(merged.await?.unwrap_or(job))
}
