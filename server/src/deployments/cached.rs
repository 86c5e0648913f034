//! What the access cache keeps of prompt deployments: the versions that applications get, and the metrics whose scores count.

use std::{collections::HashSet, sync::Arc};

use api::deployment::TestMode;
use entities::prompt_deployment;
use store::DbError;
use uuid::Uuid;

use super::state::TestSettings;

/// A version of a prompt that applications get.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptVersion {
    /// The deployment.
    pub deployment_id: Uuid,
    /// The version.
    pub version: i32,
    /// The text of the prompt.
    pub template: String,
    /// The model that the application should use.
    pub model: Option<String>,
}

/// A live test of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveTest {
    /// The tested version.
    pub candidate: PromptVersion,
    /// The share of the traffic that gets it.
    pub traffic_share: f64,
}

/// The versions of a prompt that applications get.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedVersions {
    /// The shipped version.
    pub shipped: PromptVersion,
    /// The live test that runs.
    pub test: Option<LiveTest>,
}

impl ServedVersions {
    /// Reads the versions of a prompt; `None` if no version is shipped.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn read(
        db: &impl store::Connection,
        tenant: Uuid,
        project: Uuid,
        name: &str,
    ) -> Result<Option<Arc<Self>>, DbError> {
        let current = store::prompts::current(db, tenant, project, name).await?;
        let Some(served) = current.served else { return Ok(None) };
        let running = current.running.filter(|it| it.mode == TestMode::Live.as_str());
        let test = match running {
            Some(row) => live_test(row)?,
            None => None,
        };
        Ok(Some(Arc::new(Self { shipped: version(served), test })))
    }

    /// Returns the approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let candidate = self.test.as_ref().map_or(0, |it| it.candidate.template.len());
        size_of::<Self>() + self.shipped.template.len() + candidate
    }
}

fn version(row: prompt_deployment::Model) -> PromptVersion {
    let prompt_deployment::Model { id, version, template, model, .. } = row;
    PromptVersion { deployment_id: id, version, template, model }
}

fn live_test(row: prompt_deployment::Model) -> Result<Option<LiveTest>, DbError> {
    let settings =
        TestSettings::of(&row).map_err(|it| DbError::Custom(format!("settings of a test: {it}")))?;
    Ok(settings.map(|it| LiveTest { candidate: version(row), traffic_share: it.traffic_share }))
}

/// The metrics whose scores count in live tests and in watches, with their projects. Empty for tenants without such
/// deployments, which therefore pay nothing.
#[derive(Debug, Default)]
pub struct ScoredMetrics(HashSet<(Uuid, String)>);

impl ScoredMetrics {
    /// Reads the metrics of a tenant.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn read(db: &impl store::Connection, tenant: Uuid) -> Result<Self, DbError> {
        let mut metrics = HashSet::new();
        for (project, test) in store::prompts::scored_tests(db, tenant).await? {
            match serde_json::from_str::<TestSettings>(&test) {
                Ok(settings) => _ = metrics.insert((project, settings.metric_name)),
                Err(error) => {
                    tracing::error!(%tenant, %error, "the settings of a prompt's test can't be parsed")
                }
            }
        }
        Ok(Self(metrics))
    }

    /// Whether no score counts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether scores of a metric in a project count.
    pub fn contains(&self, project: Uuid, metric: &str) -> bool {
        // The key owns its text, so a look-up without an allocation compares the few entries one by one.
        self.0.iter().any(|it| it.0 == project && it.1 == metric)
    }
}
