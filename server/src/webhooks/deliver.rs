//! The job that sends the due deliveries of webhooks.
//!
//! A transaction that publishes events enqueues one job for all webhooks that receive them. The job claims due
//! deliveries of these webhooks, also those of other transactions, sends the batches of the webhooks concurrently, and
//! stores the results of batches that end together. Deliveries that are due later have one job for each webhook, whose
//! ID follows from the webhook's.
//!
//! After two failed attempts in a row, all due deliveries of the webhook are postponed: the receiver is probed with one
//! request instead of one for each event.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use api::Plan;
use entities::{job, tenant, webhook, webhook_delivery};
use futures::{StreamExt, stream::FuturesUnordered};
use outbound::Bytes;
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Deserializer, Serialize};
use store::{derived_id, webhooks::deliveries};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::target::WebhookTarget;
use crate::{app::App, error::Result, pools};

mod batch;
mod results;

use batch::{Batch, EndedBatch};

/// Maximum number of deliveries per claim, of all webhooks together.
const MAX_CLAIMED_DELIVERIES: usize = 256;
/// Maximum number of deliveries of a webhook per claim.
const MAX_CLAIMED_PER_WEBHOOK: usize = 8;
/// Duration of a claim in microseconds.
const CLAIM_MICROS: i64 = 30_000_000;
/// Time in microseconds after which no further delivery of a claim is started: the one in progress then ends before
/// the claim.
const MAX_BATCH_MICROS: i64 = 15_000_000;
/// Time in microseconds after which a job leaves its worker to others.
const MAX_RUN_MICROS: i64 = 60_000_000;
/// How long a batch that has ended waits for others, so that their results share a transaction.
const GATHERING_TIME: Duration = Duration::from_millis(10);
/// Delay in microseconds of the deliveries of a webhook that gets no permit.
const BUSY_DELAY_MICROS: i64 = 1_000_000;
/// Delay in microseconds before the job runs again after a failure of the database.
const ERROR_DELAY_MICROS: i64 = 5_000_000;
/// Number of deliveries that a statement cancels.
const CANCELLED_PER_STATEMENT: u64 = 500;

/// Sends the due deliveries of webhooks.
#[derive(Debug, Serialize, Deserialize)]
pub struct DeliverWebhooks {
    /// The webhooks. Jobs of earlier versions have one, with the key `webhook`.
    #[serde(alias = "webhook", deserialize_with = "one_or_several")]
    pub webhooks: Vec<Uuid>,
}

fn one_or_several<'de, D: Deserializer<'de>>(payload: D) -> std::result::Result<Vec<Uuid>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrSeveral {
        One(Uuid),
        Several(Vec<Uuid>),
    }
    Ok(match OneOrSeveral::deserialize(payload)? {
        OneOrSeveral::One(webhook) => vec![webhook],
        OneOrSeveral::Several(webhooks) => webhooks,
    })
}

impl Job for DeliverWebhooks {
    const KIND: &'static str = "deliver_webhook";
    const POOL: &'static WorkerPool = &pools::WEBHOOKS_POOL;
    // A delivery is never lost because its job failed.
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// Returns the job that sends the due deliveries of webhooks.
pub fn job(tenant: Uuid, webhooks: Vec<Uuid>, now: i64) -> job::Model {
    new_job(tenant, &DeliverWebhooks { webhooks }, now, now)
}

impl RunJob<App> for DeliverWebhooks {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        let run = DeliveryRun { app, tenant: row.tenant_id, job: row.id };
        match Box::pin(run.run(self.webhooks)).await {
            Ok(result) => result,
            Err(error) => {
                tracing::warn!(tenant = %run.tenant, %error, "deliveries to webhooks are postponed");
                JobResult::Snooze { until: app.clock.now() + ERROR_DELAY_MICROS }
            }
        }
    }
}

/// The result of cancelling the deliveries of a webhook.
enum Cancellation {
    /// No delivery is pending.
    Complete,
    /// The webhook receives deliveries: it or the plan has changed.
    WebhookIsActive,
}

/// Whether the plan of a tenant includes webhooks.
fn includes_webhooks(tenant: &tenant::Model) -> bool {
    tenant.plan.parse::<Plan>().is_ok_and(|it| it >= Plan::Pro)
}

/// A batch that is being sent.
type SendingBatch<'a> = Pin<Box<dyn Future<Output = EndedBatch<'a>> + Send + 'a>>;

/// Webhooks with pending deliveries, and when the next is due.
type NextDue = BTreeMap<Uuid, i64>;

/// One run of the job.
struct DeliveryRun<'a> {
    app: &'a App,
    tenant: Uuid,
    job: Uuid,
}

impl<'a> DeliveryRun<'a> {
    async fn run(&self, webhooks: Vec<Uuid>) -> Result<JobResult> {
        let app = self.app;
        let started = app.clock.now();
        // The webhooks whose deliveries are claimed next, as soon as there are permits.
        let mut due: BTreeSet<Uuid> = webhooks.into_iter().collect();
        let mut later = NextDue::new();
        let mut sending = FuturesUnordered::new();
        let is_over = || app.is_stopping() || app.clock.now() - started > MAX_RUN_MICROS;
        loop {
            if !is_over() {
                due = self.start(due, &mut sending, &mut later).await?;
            }
            let ended = ended_batches(&mut sending).await;
            if ended.is_empty() {
                break;
            }
            for (webhook, at) in self.store(&ended).await? {
                if at <= app.clock.now() {
                    due.insert(webhook);
                } else {
                    later.insert(webhook, at);
                }
            }
        }
        let (now, is_over) = (app.clock.now(), is_over());
        if !is_over {
            later.extend(due.into_iter().map(|it| (it, now + BUSY_DELAY_MICROS)));
        }
        match self.wake_at(later).await? {
            JobResult::Done if is_over => Ok(JobResult::Snooze { until: now }),
            result => Ok(result),
        }
    }

    /// Claims due deliveries and begins to send them. Returns the webhooks that get no permit. `later` gets those
    /// without due deliveries.
    async fn start(
        &self,
        webhooks: BTreeSet<Uuid>,
        sending: &mut FuturesUnordered<SendingBatch<'a>>,
        later: &mut NextDue,
    ) -> Result<BTreeSet<Uuid>> {
        let app = self.app;
        let (mut permits, mut busy) = (BTreeMap::new(), BTreeSet::new());
        for webhook in webhooks {
            match app.webhook_sending.take(self.tenant, webhook) {
                Some(permit) => _ = permits.insert(webhook, permit),
                None => _ = busy.insert(webhook),
            }
        }
        if permits.is_empty() {
            return Ok(busy);
        }
        let now = app.clock.now();
        let mut active = self.active(&permits.keys().copied().collect::<Vec<_>>()).await?;
        for webhook in permits.keys().filter(|it| !active.contains_key(it)) {
            if let Cancellation::WebhookIsActive = self.cancel_deliveries(*webhook).await? {
                // The cached plan expires within this time.
                later.insert(*webhook, now + BUSY_DELAY_MICROS);
            }
        }
        if active.is_empty() {
            return Ok(busy);
        }
        let ids: Vec<Uuid> = active.keys().copied().collect();
        let limit = (MAX_CLAIMED_DELIVERIES / ids.len()).clamp(1, MAX_CLAIMED_PER_WEBHOOK);
        let claimed_until = now + CLAIM_MICROS;
        let mut claimed: BTreeMap<Uuid, Vec<webhook_delivery::Model>> = BTreeMap::new();
        for it in deliveries::claim(&app.db, self.tenant, &ids, (now, claimed_until), limit).await? {
            claimed.entry(it.webhook_id).or_default().push(it);
        }
        let idle: Vec<Uuid> = ids.into_iter().filter(|it| !claimed.contains_key(it)).collect();
        later.extend(deliveries::next_due(&app.db, self.tenant, &idle).await?);
        let events: BTreeSet<Uuid> = claimed.values().flatten().map(|it| it.event_id).collect();
        let events: Vec<Uuid> = events.into_iter().collect();
        let payloads = deliveries::payloads(&app.db, self.tenant, &events).await?;
        let payloads = Arc::new(payloads.into_iter().map(|(id, text)| (id, Bytes::from(text))).collect());
        for (id, deliveries) in claimed {
            let (Some(webhook), Some(permit)) = (active.remove(&id), permits.remove(&id)) else { continue };
            match WebhookTarget::new(app, &webhook) {
                Ok(target) => {
                    let payloads = Arc::clone(&payloads);
                    let batch = Batch { app, webhook, target, claimed_until, deliveries, payloads, permit };
                    sending.push(Box::pin(batch.send()));
                }
                Err(error) => {
                    tracing::warn!(tenant = %self.tenant, webhook = %id, %error, "deliveries are postponed");
                    later.insert(id, claimed_until);
                }
            }
        }
        Ok(busy)
    }

    /// Returns those of the webhooks that receive deliveries: they are enabled, and part of the plan. The plan is
    /// cached.
    async fn active(&self, webhooks: &[Uuid]) -> Result<HashMap<Uuid, webhook::Model>> {
        let tenant = self.app.access_cache.tenant(self.tenant).await?;
        if tenant.is_none_or(|it| !includes_webhooks(&it)) {
            return Ok(HashMap::new());
        }
        let rows = store::webhooks::some(self.app.db.current(), self.tenant, webhooks).await?;
        Ok(rows.into_iter().filter(|it| it.enabled).map(|it| (it.id, it)).collect())
    }

    /// Stores the results of batches. Returns when the next deliveries of their webhooks are due.
    async fn store(&self, ended: &[EndedBatch<'_>]) -> Result<NextDue> {
        let now = self.app.clock.now();
        let disabled = results::store(self.app, self.tenant, ended, now).await?;
        let enabled = ended.iter().map(|it| it.webhook.id).filter(|it| !disabled.contains(it));
        let enabled: Vec<Uuid> = enabled.collect();
        let mut next: NextDue =
            deliveries::next_due(&self.app.db, self.tenant, &enabled).await?.into_iter().collect();
        // Their pending deliveries are cancelled.
        next.extend(disabled.into_iter().map(|it| (it, now)));
        Ok(next)
    }

    /// Cancels the pending deliveries of a webhook that receives none.
    ///
    /// Each transaction locks the rows that decide this: events that are published after a change of the plan or of the
    /// webhook are not cancelled.
    async fn cancel_deliveries(&self, webhook: Uuid) -> Result<Cancellation> {
        let (app, tenant) = (self.app, self.tenant);
        loop {
            let txn = app.db.begin().await?;
            let plan_includes_it =
                store::tenants::lock(&txn, tenant).await?.is_some_and(|it| includes_webhooks(&it));
            let row = store::webhooks::lock(&txn, tenant, webhook).await?;
            if plan_includes_it && row.is_some_and(|it| it.enabled) {
                return Ok(Cancellation::WebhookIsActive);
            }
            let (now, limit) = (app.clock.now(), CANCELLED_PER_STATEMENT);
            let cancelled = deliveries::cancel(&txn, tenant, webhook, now, limit).await?;
            txn.commit().await?;
            if cancelled < limit {
                return Ok(Cancellation::Complete);
            }
        }
    }

    /// Ensures that a run begins when the next delivery of each webhook is due. Returns the result of this run.
    async fn wake_at(&self, due: NextDue) -> Result<JobResult> {
        let (mut result, mut waiting) = (JobResult::Done, Vec::new());
        let now = self.app.clock.now();
        for (webhook, run_at) in due {
            let id = derived_id(webhook, DeliverWebhooks::KIND);
            if self.job == id {
                result = JobResult::Snooze { until: run_at };
            } else {
                waiting.push(job::Model { id, run_at, ..job(self.tenant, vec![webhook], now) });
            }
        }
        queue::enqueue_by(&self.app.db.write, waiting).await?;
        Ok(result)
    }
}

/// Waits until a batch has ended, and shortly for others. Returns none if no batch is being sent.
async fn ended_batches<'a>(sending: &mut FuturesUnordered<SendingBatch<'a>>) -> Vec<EndedBatch<'a>> {
    let mut ended: Vec<EndedBatch<'a>> = sending.next().await.into_iter().collect();
    let until = Instant::now() + GATHERING_TIME;
    while let Ok(Some(batch)) = timeout_at(until, sending.next()).await {
        ended.push(batch);
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_earlier_versions_are_read() {
        let id = Uuid::from_u128(7);
        let new = serde_json::to_string(&DeliverWebhooks { webhooks: vec![id, id] }).unwrap();
        for (payload, expected) in [(format!("{{\"webhook\":\"{id}\"}}"), vec![id]), (new, vec![id, id])] {
            let job: DeliverWebhooks = serde_json::from_str(&payload).unwrap();
            assert_eq!(job.webhooks, expected, "{payload}");
        }
    }
}
