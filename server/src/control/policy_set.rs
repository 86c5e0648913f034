//! The policies of a tenant that have a trigger, parsed.

use api::policy::TriggerType;
use entities::policy;
use uuid::Uuid;

/// The enabled policies of a tenant that have a trigger.
#[derive(Debug, Default)]
pub struct PolicySet {
    /// The policies, oldest first.
    pub policies: Vec<policy::Model>,
}

impl PolicySet {
    /// Reads the policies.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn read(db: &impl store::Connection, tenant: Uuid) -> Result<Self, store::DbError> {
        Ok(Self { policies: store::policies::triggered(db, tenant).await? })
    }

    /// Returns the approximate size in bytes.
    pub fn bytes(&self) -> usize {
        let own = size_of::<Self>() + self.policies.len() * size_of::<policy::Model>();
        own + self.policies.iter().map(|it| it.name.len() + it.action_config.len()).sum::<usize>()
    }

    /// Returns the policies that failures trigger.
    pub fn of_failures(&self) -> impl Iterator<Item = &policy::Model> {
        self.policies.iter().filter(|it| it.trigger_type.as_deref() == Some(TriggerType::Failure.as_str()))
    }

    /// Returns the policies of a project that a score of a metric triggers.
    pub fn of_score<'a>(
        &'a self,
        project: Uuid,
        metric: &'a str,
        score: f64,
    ) -> impl Iterator<Item = &'a policy::Model> {
        self.policies.iter().filter(move |it| {
            it.project_id == project
                && it.trigger_type.as_deref() == Some(TriggerType::Evaluation.as_str())
                && it.metric_name.as_deref() == Some(metric)
                && it.max_score.is_some_and(|max| score <= max)
        })
    }
}
