//! Validates requests for deployments. Pure.

use std::ops::RangeInclusive;

use api::{
    deployment::{NewPromptDeployment, NewPromptTest, TestMode},
    enums::UnknownWord,
};
use uuid::Uuid;

use super::state::TestSettings;
use crate::error::{Problem, Result};

/// Maximum length of a name or a model in characters.
pub const MAX_NAME_CHARS: usize = 200;
/// Maximum length of a template in bytes: every process keeps served templates in memory.
const MAX_TEMPLATE_BYTES: usize = 64 * 1024;
/// Names that would be ambiguous in a path.
const RESERVED_NAMES: [&str; 3] = ["deployments", ".", ".."];
/// Limits of `min_samples`.
const SAMPLE_LIMITS: RangeInclusive<i64> = 2..=100_000;
/// Limits of `min_samples` of a replay test, which calls a model for each sample.
const REPLAY_SAMPLE_LIMITS: RangeInclusive<i64> = 2..=500;
/// Limits of `max_duration_hours`.
const DURATION_LIMITS_HOURS: RangeInclusive<i64> = 1..=8_760;
/// Limits of `max_regression`.
const REGRESSION_LIMITS: RangeInclusive<f64> = 0.0..=1.0;

const DEFAULT_TRAFFIC_SHARE: f64 = 0.5;
const DEFAULT_SAMPLES: i64 = 100;
const DEFAULT_ALPHA: f64 = 0.05;
const DEFAULT_DURATION_HOURS: i64 = 168;

/// Where the text of a deployment comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum TemplateSource {
    /// The request.
    Template(String),
    /// The system message that a control action sent.
    Action(Uuid),
}

/// A valid request for a deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct DeploymentRequest {
    /// The project of the prompt.
    pub project_id: Uuid,
    /// The name of the prompt.
    pub prompt_name: String,
    /// Where the text comes from.
    pub source: TemplateSource,
    /// The model that the application should use.
    pub model: Option<String>,
    /// How a test collects scores.
    pub mode: TestMode,
    /// The settings of a test; `None` if the request names no metric.
    pub test: Option<TestSettings>,
}

impl DeploymentRequest {
    /// Validates a request.
    ///
    /// # Errors
    ///
    /// Fails with `invalid_body` without a text, and with `validation_failed` for a value that is not allowed.
    pub fn validate(body: NewPromptDeployment) -> Result<Self> {
        let NewPromptDeployment { project_id, prompt_name, template, source_action_id, model, mode, ab } =
            body;
        let source = match (template, source_action_id) {
            (Some(_), Some(_)) => {
                return Err(Problem::field("template", "is not allowed with source_action_id").into());
            }
            (Some(template), None) => TemplateSource::Template(validate_template("template", template)?),
            (None, Some(action)) => TemplateSource::Action(action),
            (None, None) => {
                return Err(Problem::missing(
                    "template",
                    "the text of the prompt, unless source_action_id is given",
                )
                .into());
            }
        };
        let unknown = |it: UnknownWord| Problem::field("mode", it.to_string());
        let mode = mode.as_deref().map(str::parse).transpose().map_err(unknown)?.unwrap_or(TestMode::Live);
        Ok(Self {
            project_id,
            prompt_name: validate_prompt_name(prompt_name)?,
            source,
            model: model.map(|it| validate_name("model", it)).transpose()?,
            mode,
            test: validate_test(ab.unwrap_or_default(), mode)?,
        })
    }
}

/// Validates the text of a prompt.
///
/// # Errors
///
/// Fails with `validation_failed`.
pub fn validate_template(field: &str, template: String) -> Result<String> {
    if template.trim().is_empty() || template.contains('\0') || template.len() > MAX_TEMPLATE_BYTES {
        let message = format!("must have 1 to {MAX_TEMPLATE_BYTES} bytes, none of them NUL");
        return Err(Problem::field(field, message).into());
    }
    Ok(template)
}

fn validate_prompt_name(name: String) -> Result<String> {
    let field = "prompt_name";
    if RESERVED_NAMES.contains(&name.as_str()) {
        return Err(Problem::field(
            field,
            format!("must not be {name:?}, which has another meaning in a path"),
        )
        .into());
    }
    if name.trim() != name || name.chars().any(char::is_control) {
        let message = "must not have control characters, or whitespace at its beginning or end";
        return Err(Problem::field(field, message).into());
    }
    validate_name(field, name)
}

fn validate_name(field: &str, name: String) -> Result<String> {
    if name.trim().is_empty() || name.contains('\0') || name.chars().count() > MAX_NAME_CHARS {
        let message = format!("must have 1 to {MAX_NAME_CHARS} characters, none of them NUL");
        return Err(Problem::field(field, message).into());
    }
    Ok(name)
}

fn validate_test(test: NewPromptTest, mode: TestMode) -> Result<Option<TestSettings>> {
    let NewPromptTest { metric_name, traffic_share, min_samples, alpha, max_regression, max_duration_hours } =
        test;
    let traffic_share = traffic_share.unwrap_or(DEFAULT_TRAFFIC_SHARE);
    if !(traffic_share > 0.0 && traffic_share < 1.0) {
        return Err(Problem::field("ab.traffic_share", "must be greater than 0 and less than 1").into());
    }
    let samples = if mode == TestMode::Replay { REPLAY_SAMPLE_LIMITS } else { SAMPLE_LIMITS };
    let min_samples = bounded("ab.min_samples", &samples, min_samples.unwrap_or(DEFAULT_SAMPLES))?;
    let alpha = alpha.unwrap_or(DEFAULT_ALPHA);
    if !(alpha > 0.0 && alpha < 0.5) {
        return Err(Problem::field("ab.alpha", "must be greater than 0 and less than 0.5").into());
    }
    let max_regression = max_regression.unwrap_or(0.0);
    if !REGRESSION_LIMITS.contains(&max_regression) {
        return Err(Problem::field("ab.max_regression", "must be from 0 to 1").into());
    }
    let hours = max_duration_hours.unwrap_or(DEFAULT_DURATION_HOURS);
    let max_duration_hours = bounded("ab.max_duration_hours", &DURATION_LIMITS_HOURS, hours)?;
    Ok(metric_name.map(|metric_name| TestSettings {
        metric_name,
        traffic_share,
        min_samples,
        alpha,
        max_regression,
        max_duration_hours,
    }))
}

fn bounded(field: &str, range: &RangeInclusive<i64>, value: i64) -> Result<u32> {
    let message = || format!("must be from {} to {}", range.start(), range.end());
    let value = Some(value).filter(|it| range.contains(it)).and_then(|it| u32::try_from(it).ok());
    Ok(value.ok_or_else(|| Problem::field(field, message()))?)
}
