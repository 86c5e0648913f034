//! The job that sends the due deliveries of a webhook.
//!
//! Every transaction that publishes events enqueues a job for each webhook. A job claims all due deliveries
//! of its webhook, also those of other transactions, so jobs that find none end at once. Deliveries that are due later
//! have one job for each webhook, whose ID follows from the webhook's.
//!
//! After a failed attempt, all due deliveries of the webhook are postponed: the receiver is probed with one request
//! instead of one for each event.

use std::sync::Arc;

use api::Plan;
use entities::{job, tenant, webhook};
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::{derived_id, webhooks::deliveries};
use uuid::Uuid;

use crate::{app::App, error::Result, pools};

mod batch;

use batch::{Batch, BatchOutcome};

/// Maximum number of jobs of a webhook that a process runs at the same time: a receiver that hangs occupies no more
/// workers.
const MAX_RUNS: usize = 2;
/// Maximum number of deliveries per claim.
const MAX_CLAIMED_DELIVERIES: u64 = 8;
/// Duration of a claim in microseconds.
const CLAIM_MICROS: i64 = 30_000_000;
/// Time in microseconds after which no further delivery of a claim is started: the one in progress then ends before
/// the claim.
const MAX_BATCH_MICROS: i64 = 15_000_000;
/// Time in microseconds after which a job leaves its worker to others.
const MAX_RUN_MICROS: i64 = 60_000_000;
/// Delay in microseconds of a job that finds enough others of its webhook running. They usually send its deliveries.
const BUSY_DELAY_MICROS: i64 = 1_000_000;
/// Delay in microseconds after a failure of the database.
const ERROR_DELAY_MICROS: i64 = 5_000_000;
/// Number of deliveries that a statement cancels.
const CANCELLED_PER_STATEMENT: u64 = 500;

/// Sends the due deliveries of a webhook.
#[derive(Debug, Serialize, Deserialize)]
pub struct DeliverWebhook {
    /// The webhook.
    pub webhook: Uuid,
}

impl Job for DeliverWebhook {
    const KIND: &'static str = "deliver_webhook";
    const POOL: &'static WorkerPool = &pools::WEBHOOKS_POOL;
    // A delivery is never lost because its job failed.
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// Returns the job that sends the due deliveries of a webhook.
pub fn job(tenant: Uuid, webhook: Uuid, now: i64) -> job::Model {
    new_job(tenant, &DeliverWebhook { webhook }, now, now)
}

impl RunJob<App> for DeliverWebhook {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        let run = DeliveryRun { app, tenant: row.tenant_id, webhook: self.webhook, job: row.id };
        match run.run().await {
            Ok(result) => result,
            Err(error) => {
                tracing::warn!(tenant = %run.tenant, webhook = %run.webhook, %error, "deliveries are postponed");
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

/// One run of the job.
struct DeliveryRun<'a> {
    app: &'a App,
    tenant: Uuid,
    webhook: Uuid,
    job: Uuid,
}

impl DeliveryRun<'_> {
    async fn run(&self) -> Result<JobResult> {
        let app = self.app;
        let started = app.clock.now();
        let Some(_permit) = app.webhook_runs.take(&self.webhook, MAX_RUNS) else {
            return self.wake_at(started + BUSY_DELAY_MICROS).await;
        };
        loop {
            let now = app.clock.now();
            if app.is_stopping() || now - started > MAX_RUN_MICROS {
                return Ok(JobResult::Snooze { until: now });
            }
            let Some(row) = self.active().await? else {
                return match self.cancel_deliveries().await? {
                    Cancellation::Complete => Ok(JobResult::Done),
                    // The cached plan expires within this time.
                    Cancellation::WebhookIsActive => self.wake_at(now + BUSY_DELAY_MICROS).await,
                };
            };
            let until = now + CLAIM_MICROS;
            let claimed =
                deliveries::claim(&app.db, self.tenant, self.webhook, (now, until), MAX_CLAIMED_DELIVERIES)
                    .await?;
            if !claimed.is_empty() {
                let batch = Batch { run: self, webhook: row, claimed_until: until };
                if batch.send(claimed).await? == BatchOutcome::Disabled {
                    continue;
                }
            }
            match deliveries::next_due(&app.db, self.tenant, self.webhook).await? {
                None => return Ok(JobResult::Done),
                Some(due) if due <= app.clock.now() => {}
                Some(due) => return self.wake_at(due).await,
            }
        }
    }

    /// Returns the webhook, if it receives deliveries: it is enabled, and part of the plan. The plan is cached.
    async fn active(&self) -> Result<Option<webhook::Model>> {
        let tenant = self.app.access_cache.tenant(self.tenant).await?;
        if tenant.is_none_or(|it| !includes_webhooks(&it)) {
            return Ok(None);
        }
        let row = store::webhooks::get(self.app.db.current(), self.tenant, self.webhook).await?;
        Ok(row.filter(|it| it.enabled))
    }

    /// Cancels the pending deliveries of a webhook that receives none.
    ///
    /// Each transaction locks the rows that decide this: events that are published after a change of the plan or of the
    /// webhook are not cancelled.
    async fn cancel_deliveries(&self) -> Result<Cancellation> {
        let (app, tenant, webhook) = (self.app, self.tenant, self.webhook);
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

    /// Ends this run and ensures that another one begins at this time.
    async fn wake_at(&self, at: i64) -> Result<JobResult> {
        let waiting = derived_id(self.webhook, DeliverWebhook::KIND);
        if self.job == waiting {
            return Ok(JobResult::Snooze { until: at });
        }
        let job =
            job::Model { id: waiting, run_at: at, ..job(self.tenant, self.webhook, self.app.clock.now()) };
        queue::enqueue_by(&self.app.db.write, job).await?;
        Ok(JobResult::Done)
    }
}
