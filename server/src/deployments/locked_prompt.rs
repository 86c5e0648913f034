//! Changes of a prompt's deployments, in one transaction that holds the lock of the prompt.

use std::sync::Arc;

use api::{
    deployment::{DeploymentEvent, DeploymentStatus},
    webhook::EventType,
};
use entities::{job, prompt, prompt_deployment};
use serde_json::json;
use store::{
    Transaction,
    prompts::{self, CurrentVersions},
    traces,
};
use uuid::Uuid;

use super::{
    state::{TestResult, WatchState, to_text},
    view,
};
use crate::{
    access::Caller,
    app::App,
    audit::{self, Actor, AuditAction, AuditEvent},
    error::Result,
    subscriptions::Subscriptions,
    webhooks::{NewEvent, publish},
};

/// A prompt deployment was shipped automatically.
pub const DEPLOYMENT_AUTOSHIP: AuditAction =
    AuditAction::new("prompt_deployment.autoship", "prompt_deployment");

/// The `decided_by` of deployments that were shipped automatically.
const AUTOSHIP_SUBJECT: &str = "autoship";

/// The origin of a decision.
pub enum Decider<'a> {
    /// A person, with a note.
    Person(&'a Caller, Option<String>),
    /// The project ships versions automatically.
    Autoship,
}

/// A transaction that holds the lock of a prompt.
pub struct LockedPrompt<'a> {
    app: &'a App,
    /// The transaction.
    pub txn: Transaction,
    /// The row of the prompt.
    pub prompt: prompt::Model,
    /// The shipped version, and the version whose test runs.
    pub current: CurrentVersions,
    /// Time of the change, microseconds.
    pub now: i64,
    subscriptions: Arc<Subscriptions>,
    events: Vec<NewEvent>,
    /// Whether a status changed, so that cached versions are out of date.
    has_new_status: bool,
    jobs: Vec<job::Model>,
}

impl<'a> LockedPrompt<'a> {
    /// Begins a transaction and locks a prompt; `None` if it has no versions. The traces are locked first, in the order of
    /// all writers, so that they are not deleted meanwhile.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn lock(
        app: &'a App,
        tenant: Uuid,
        project: Uuid,
        name: &str,
        traces: &[Uuid],
    ) -> Result<Option<(Self, Vec<Uuid>)>> {
        let subscriptions = app.access_cache.subscriptions(tenant).await?;
        let txn = app.db.begin().await?;
        let existing =
            if traces.is_empty() { Vec::new() } else { traces::lock_some(&txn, tenant, traces).await? };
        let Some(prompt) = prompts::lock(&txn, tenant, project, name).await? else { return Ok(None) };
        Ok(Some((Self::of(app, txn, prompt, subscriptions).await?, existing)))
    }

    /// Continues a transaction that has locked the prompt.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn of(
        app: &'a App,
        txn: Transaction,
        prompt: prompt::Model,
        subscriptions: Arc<Subscriptions>,
    ) -> Result<Self> {
        let current = prompts::current(&txn, prompt.tenant_id, prompt.project_id, &prompt.name).await?;
        let now = app.clock.now();
        let (events, jobs) = (Vec::new(), Vec::new());
        Ok(Self { app, txn, prompt, current, now, subscriptions, events, has_new_status: false, jobs })
    }

    /// Stores a changed deployment.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn store(&mut self, row: &mut prompt_deployment::Model) -> Result<()> {
        row.updated_at = self.now;
        Ok(prompts::replace_deployment(&self.txn, row.clone()).await?)
    }

    /// Stores the sums of scores and the watch of a deployment.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn store_scores(&mut self, row: &mut prompt_deployment::Model) -> Result<()> {
        row.updated_at = self.now;
        Ok(prompts::store_scores(&self.txn, row).await?)
    }

    /// Adds a new deployment.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn add(&mut self, row: prompt_deployment::Model) -> Result<()> {
        self.has_new_status = true;
        Ok(prompts::add_deployment(&self.txn, row).await?)
    }

    /// Enqueues jobs, whose pools wake up after the commit.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn enqueue(&mut self, jobs: Vec<job::Model>) -> Result<()> {
        queue::enqueue_all(&self.txn, jobs.clone()).await?;
        self.jobs.extend(jobs);
        Ok(())
    }

    /// Lets a deployment pass: it waits for approval, or is shipped if the project ships versions automatically.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn pass(&mut self, row: &mut prompt_deployment::Model) -> Result<()> {
        self.set_status(row, DeploymentStatus::AbPassed);
        self.store(row).await?;
        self.forget_running(row.id);
        if self.ships_automatically().await? {
            self.ship(row, Decider::Autoship).await?;
        }
        self.publish(EventType::PromptDeploymentAbPassed, row)
    }

    /// Whether the project ships versions that passed automatically. The lock of the project makes a change of its setting
    /// wait, so that no deployment is missed.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn ships_automatically(&self) -> Result<bool> {
        let prompt::Model { tenant_id, project_id, .. } = self.prompt;
        let project = store::projects::lock(&self.txn, tenant_id, project_id).await?;
        Ok(project.is_some_and(|it| it.prompt_autoship_enabled))
    }

    /// Ends a running test without success.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn fail_test(
        &mut self,
        row: &mut prompt_deployment::Model,
        reason: String,
        result: TestResult,
    ) -> Result<()> {
        self.set_status(row, DeploymentStatus::AbFailed);
        row.reason = Some(reason);
        row.result = to_text(&result)?;
        self.store(row).await?;
        self.forget_running(row.id);
        Ok(())
    }

    /// Ships a deployment. The version before it is superseded, and a running test against that version fails.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn ship(&mut self, row: &mut prompt_deployment::Model, decider: Decider<'_>) -> Result<()> {
        let why = format!("version {} was shipped, so the test has no baseline any more", row.version);
        self.fail_running(why).await?;
        // First, because only one version of a prompt may be served.
        row.replaced_id = match self.current.served.take() {
            Some(mut replaced) => {
                self.set_status(&mut replaced, DeploymentStatus::Superseded);
                self.store(&mut replaced).await?;
                Some(replaced.id)
            }
            None => None,
        };
        self.set_status(row, DeploymentStatus::Shipped);
        row.shipped_at = Some(self.now);
        if matches!(decider, Decider::Autoship) {
            let event = AuditEvent::of(DEPLOYMENT_AUTOSHIP).on(row.id).with(details(row));
            audit::record(&self.txn, Actor::system(row.tenant_id), event, self.now).await?;
        }
        self.decided(row, decider);
        self.store(row).await?;
        self.current.served = Some(row.clone());
        Ok(())
    }

    /// Withdraws a deployment. If it was served, the version before it is served again.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn withdraw(
        &mut self,
        row: &mut prompt_deployment::Model,
        status: DeploymentStatus,
        decider: Decider<'_>,
    ) -> Result<()> {
        self.set_status(row, status);
        self.decided(row, decider);
        if row.test.is_some() && row.result.is_none() {
            row.result = to_text(&TestResult::undecided(self.now))?;
        }
        self.store(row).await?;
        self.forget_running(row.id);
        if self.current.served.take_if(|it| it.id == row.id).is_none() {
            return Ok(());
        }
        let why = format!("version {} was withdrawn, so the test has no baseline any more", row.version);
        self.fail_running(why).await?;
        let Some(replaced) = row.replaced_id else { return Ok(()) };
        let replaced = prompts::deployment(&self.txn, row.tenant_id, replaced).await?;
        let is_superseded =
            |it: &prompt_deployment::Model| it.status == DeploymentStatus::Superseded.as_str();
        let Some(mut restored) = replaced.filter(is_superseded) else { return Ok(()) };
        self.set_status(&mut restored, DeploymentStatus::Shipped);
        restored.reason = None;
        restored.shipped_at = Some(self.now);
        if let Some(watch) = WatchState::of(&restored)? {
            // The number of windows remains, because it bounds the probability of a false alarm.
            restored.watch = to_text(&WatchState { current: Default::default(), ..watch })?;
        }
        self.store(&mut restored).await?;
        self.current.served = Some(restored);
        Ok(())
    }

    /// Marks a shipped deployment as regressed.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn regress(&mut self, row: &mut prompt_deployment::Model, reason: String) -> Result<()> {
        self.set_status(row, DeploymentStatus::Regressed);
        row.reason = Some(reason);
        self.store(row).await?;
        self.publish(EventType::PromptDeploymentRegressed, row)
    }

    /// Commits the transaction with its events.
    ///
    /// # Errors
    ///
    /// Fails when the database fails; nothing has changed then.
    pub async fn commit(mut self) -> Result<()> {
        let tenant = self.prompt.tenant_id;
        let published = publish(&self.txn, &self.subscriptions, tenant, &self.events, self.now).await?;
        self.jobs.extend(published);
        match self.has_new_status {
            true => self.app.commit(self.txn).await?,
            false => self.txn.commit().await?,
        }
        self.app.wake_ups().wake_for(&self.jobs);
        Ok(())
    }

    async fn fail_running(&mut self, reason: String) -> Result<()> {
        let Some(mut running) = self.current.running.take() else { return Ok(()) };
        self.fail_test(&mut running, reason, TestResult::undecided(self.now)).await
    }

    fn forget_running(&mut self, id: Uuid) {
        self.current.running.take_if(|it| it.id == id);
    }

    fn set_status(&mut self, row: &mut prompt_deployment::Model, status: DeploymentStatus) {
        row.status = status.as_str().to_owned();
        self.has_new_status = true;
    }

    fn decided(&self, row: &mut prompt_deployment::Model, decider: Decider<'_>) {
        let (subject, note) = match decider {
            Decider::Person(caller, note) => (Actor::from(caller).id, note),
            Decider::Autoship => (AUTOSHIP_SUBJECT.to_owned(), None),
        };
        row.decided_by = Some(subject);
        row.decided_at = Some(self.now);
        row.decision_note = note;
    }

    fn publish(&mut self, event_type: EventType, row: &prompt_deployment::Model) -> Result<()> {
        if !self.subscriptions.has(event_type) {
            return Ok(());
        }
        let data = DeploymentEvent { deployment: view::deployment(row.clone())? };
        let data = serde_json::to_value(data).map_err(anyhow::Error::from)?;
        self.events.push(NewEvent { event_type, project_id: Some(row.project_id), trace_id: None, data });
        Ok(())
    }
}

/// Returns the details of a deployment for the audit log.
pub fn details(row: &prompt_deployment::Model) -> serde_json::Value {
    json!({"prompt_name": row.prompt_name, "version": row.version})
}
