//! Prompt deployments: versions of a prompt that are tested, shipped, watched and rolled back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Timestamp, enums::words};

/// The tag with which a trace names its prompt.
pub const PROMPT_NAME_TAG: &str = "prompt.name";
/// The tag with which a trace names the version of its prompt.
pub const PROMPT_VERSION_TAG: &str = "prompt.version";

words! {
    /// The state of a prompt deployment.
    DeploymentStatus {
        /// The test collects scores.
        AbRunning = "ab_running",
        /// The test passed, or there was no shipped version to compare with. Waits for approval.
        AbPassed = "ab_passed",
        /// The test failed.
        AbFailed = "ab_failed",
        /// Applications get this version.
        Shipped = "shipped",
        /// Applications get this version, and its scores fell significantly below its baseline's.
        Regressed = "regressed",
        /// An owner rejected it.
        Rejected = "rejected",
        /// An owner rolled it back.
        RolledBack = "rolled_back",
        /// A later version was shipped.
        Superseded = "superseded",
    }
}

impl DeploymentStatus {
    /// Whether applications get the version.
    pub const fn is_served(self) -> bool {
        matches!(self, Self::Shipped | Self::Regressed)
    }

    /// Whether an owner may reject the deployment.
    pub const fn is_rejectable(self) -> bool {
        matches!(self, Self::AbRunning | Self::AbPassed | Self::Shipped | Self::Regressed)
    }
}

words! {
    /// How a test collects scores.
    TestMode {
        /// A share of the applications' traffic gets the candidate.
        Live = "live",
        /// The candidate is run on stored inputs of the baseline.
        Replay = "replay",
    }
}

words! {
    /// The version of a prompt that an application gets during a test.
    TestArm {
        /// The shipped version.
        Baseline = "baseline",
        /// The tested version.
        Candidate = "candidate",
    }
}

/// A version of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PromptDeployment {
    /// Identifies the deployment.
    pub id: Uuid,
    /// The project of the prompt.
    pub project_id: Uuid,
    /// The name of the prompt, unique within the project.
    pub prompt_name: String,
    /// The version, counted from 1 for each prompt.
    pub version: i32,
    /// The text of the prompt.
    pub template: String,
    /// The model that the application should use; null if the application chooses the model.
    pub model: Option<String>,
    /// The state.
    pub status: DeploymentStatus,
    /// Why the test failed, or which scores regressed; null otherwise.
    pub reason: Option<String>,
    /// The deployment that was shipped when this one was created; null if none was.
    pub baseline_id: Option<Uuid>,
    /// How the test collects scores.
    pub mode: TestMode,
    /// The test; null without a baseline.
    pub ab: Option<PromptTest>,
    /// The watch after shipping; null until scores of a shipped version with a baseline arrive.
    pub watch: Option<PromptWatch>,
    /// The control action whose prompt this version has.
    pub source_action_id: Option<Uuid>,
    /// The subject of the session that created the deployment.
    pub created_by: Option<String>,
    /// The subject of the session that took the last decision, or `autoship`.
    pub decided_by: Option<String>,
    /// Time of that decision.
    pub decided_at: Option<Timestamp>,
    /// The note of that decision.
    pub decision_note: Option<String>,
    /// Time at which the version was last shipped or restored.
    pub shipped_at: Option<Timestamp>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// The test of a deployment against its baseline. It is decided once, by a one-sided t-test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PromptTest {
    /// The metric whose scores are compared.
    pub metric_name: String,
    /// The share of the traffic that gets the candidate, 0 to 1; only used by live tests.
    pub traffic_share: f64,
    /// Number of scores of each arm at which the test is decided.
    pub min_samples: i32,
    /// The probability of passing a candidate whose true effect is `-max_regression`.
    pub alpha: f64,
    /// By how much the candidate's mean may be lower than the baseline's. With 0 it must be higher.
    pub max_regression: f64,
    /// Hours after which an undecided test fails.
    pub max_duration_hours: i32,
    /// The scores of the baseline.
    pub baseline: ArmStatistics,
    /// The scores of the candidate.
    pub candidate: ArmStatistics,
    /// The probability of this effect, or a greater one, if the true effect is `-max_regression`; null before the decision.
    pub p_value: Option<f64>,
    /// The mean of the candidate minus the mean of the baseline; null before the decision.
    pub effect: Option<f64>,
    /// The one-sided lower bound of the effect at `alpha`; null before the decision.
    pub lower_bound: Option<f64>,
    /// Time of the decision.
    pub completed_at: Option<Timestamp>,
}

/// The scores of a version in a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ArmStatistics {
    /// The number of scores.
    pub n: i64,
    /// The mean; null without scores.
    pub mean: Option<f64>,
    /// The standard deviation; null with fewer than two scores.
    pub stddev: Option<f64>,
}

/// The watch over a shipped version: its scores are compared with the baseline's in windows of `min_samples`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PromptWatch {
    /// The number of complete windows.
    pub windows: i32,
    /// The scores of the current window.
    pub current: ArmStatistics,
    /// The mean of the last complete window minus the baseline's.
    pub effect: Option<f64>,
}

/// Body of `POST /v1/prompts/deployments`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewPromptDeployment {
    /// The project of the prompt.
    pub project_id: Uuid,
    /// The name of the prompt, at most 200 characters.
    pub prompt_name: String,
    /// The text of the prompt, at most 64 KiB; required without `source_action_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// A successful `prompt_modification` whose system message becomes the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_action_id: Option<Uuid>,
    /// The model that the application should use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `live` or `replay`; default: `live`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<TestMode>))]
    pub mode: Option<String>,
    /// The test; required if a version of the prompt is shipped.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::one")]
    pub ab: Option<NewPromptTest>,
}

/// The test in a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewPromptTest {
    /// The metric whose scores are compared; required if a version of the prompt is shipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric_name: Option<String>,
    /// Greater than 0 and less than 1, default 0.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_share: Option<f64>,
    /// 2 to 100,000 (of a replay test: to 500), default 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_samples: Option<i64>,
    /// Greater than 0 and less than 0.5, default 0.05.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// 0 to 1, default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_regression: Option<f64>,
    /// 1 to 8,760, default 168 (7 days).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_duration_hours: Option<i64>,
}

/// Body of the decisions about a deployment. It may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeploymentDecision {
    /// Why, at most 2,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A page of prompt deployments, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PromptDeploymentList {
    /// The deployments.
    pub deployments: Vec<PromptDeployment>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// The filters of `GET /v1/prompts/deployments`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentFilter {
    /// Only deployments of this project.
    pub project_id: Option<Uuid>,
    /// Only deployments of this prompt.
    pub prompt_name: Option<String>,
    /// Only deployments with this status.
    pub status: Option<DeploymentStatus>,
}

/// Response of `GET /v1/prompts/{name}`: the version that an application uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServedPrompt {
    /// The name of the prompt.
    pub prompt_name: String,
    /// The project of the prompt.
    pub project_id: Uuid,
    /// The deployment of the version.
    pub deployment_id: Uuid,
    /// The version.
    pub version: i32,
    /// The text of the prompt.
    pub template: String,
    /// The model that the application should use; null if the application chooses the model.
    pub model: Option<String>,
    /// The arm of the live test that runs; null if none does.
    pub arm: Option<TestArm>,
    /// The tags that the application sets on its traces, so that their scores count for this version.
    pub tags: BTreeMap<String, String>,
}

/// The `data` of the webhook events `prompt_deployment.ab_passed` and `prompt_deployment.regressed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeploymentEvent {
    /// The deployment.
    pub deployment: PromptDeployment,
}
