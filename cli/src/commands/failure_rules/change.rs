//! `loupe failure-rules create`, `update`, `enable`, `disable` and `delete`: change failure rules.

use api::{
    FailureType,
    client::{Auth, Client, calls},
    failure_rule::{FailureRuleChange, NewFailureRule},
};
use clap::Args;
use serde_json::json;
use uuid::Uuid;

use super::show;
use crate::{
    args::positive,
    commands::{report, rule_filter::RuleFilterArgs},
    config::duration,
    ctx::Ctx,
    error::{CliError, Result},
    find, prompt,
};

/// Length of a minute in milliseconds.
const MINUTE_MILLIS: u128 = 60_000;

/// Condition of a failure rule, as flags.
#[derive(Debug, Args)]
pub struct FailureConditionArgs {
    /// Failure types that match, separated by commas: timeout, rate_limit, invalid_response,
    /// context_length, other, RemediationRegression
    #[arg(long = "type", value_name = "TYPES", value_delimiter = ',')]
    failure_types: Option<Vec<FailureType>>,
    /// The highest score of the metric that matches
    #[arg(long, value_name = "SCORE", allow_hyphen_values = true)]
    max_score: Option<f64>,
    /// Minimum number of matching traces within the window for the rule to fire (default: 1)
    #[arg(long, value_name = "N", value_parser = positive::<i64>)]
    min_count: Option<i64>,
    /// The window in whole minutes, such as 15m, 1h or 7d (default: 1h)
    #[arg(long, value_name = "DURATION", value_parser = window_minutes)]
    window: Option<i64>,
    #[command(flatten)]
    filter: RuleFilterArgs,
}

/// Arguments of `failure-rules create`; `--project` selects the project.
#[derive(Debug, Args)]
pub struct FailureRuleCreateArgs {
    /// Descriptive name
    name: String,
    /// Metric whose low scores match, see `loupe evaluators list`
    #[arg(long, value_name = "NAME", requires = "max_score")]
    metric: Option<String>,
    #[command(flatten)]
    condition: FailureConditionArgs,
    /// Apply the rule to all projects, even if one is selected
    #[arg(long)]
    all_projects: bool,
    /// Create the rule disabled
    #[arg(long)]
    disabled: bool,
}

/// Arguments of `failure-rules update`. Fields that are not given keep their values.
#[derive(Debug, Args)]
pub struct FailureRuleUpdateArgs {
    /// Name, id, or the last characters of the id
    rule: String,
    /// New name
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Metric whose low scores match; `none` for no metric
    #[arg(long, value_name = "NAME|none")]
    metric: Option<String>,
    #[command(flatten)]
    condition: FailureConditionArgs,
    /// Apply the rule to another project: its name or id
    #[arg(long, value_name = "PROJECT", conflicts_with = "all_projects")]
    move_to: Option<String>,
    /// Apply the rule to all projects
    #[arg(long)]
    all_projects: bool,
    /// Clear the filter before applying the other flags
    #[arg(long)]
    no_filter: bool,
}

/// Parses `--window`. The server checks the maximum.
fn window_minutes(text: &str) -> std::result::Result<i64, String> {
    let window = duration(text).map_err(|error| error.message)?.as_millis();
    match i64::try_from(window / MINUTE_MILLIS) {
        Ok(minutes) if minutes > 0 && window % MINUTE_MILLIS == 0 => Ok(minutes),
        _ => Err(format!("`{text}` is not a whole number of minutes, such as 15m or 1h")),
    }
}

fn words(types: Option<Vec<FailureType>>) -> Option<Vec<String>> {
    types.map(|types| types.into_iter().map(|it| it.to_string()).collect())
}

/// Creates a failure rule.
pub async fn create(ctx: &mut Ctx, client: &Client, args: FailureRuleCreateArgs) -> Result {
    let FailureRuleCreateArgs { name, metric, condition, all_projects, disabled } = args;
    let FailureConditionArgs { failure_types, max_score, min_count, window, filter } = condition;
    if max_score.is_some() && metric.is_none() {
        return Err(CliError::usage("--max-score needs the metric that it limits")
            .hint("for example --metric faithfulness --max-score 0.5"));
    }
    let project_id = if all_projects { None } else { find::current_project(client, &ctx.settings).await? };
    let new = NewFailureRule {
        name,
        enabled: disabled.then_some(false),
        project_id,
        failure_types: words(failure_types),
        metric_name: metric,
        max_score,
        filter: filter.is_given().then(|| filter.apply_to(None)),
        min_count,
        window_minutes: window,
    };
    let Some(rule) = ctx.write(client, &calls::create_failure_rule(&new)).await? else {
        return Ok(());
    };
    ctx.out.note(&format!("{} Created the failure rule {}", ctx.out.style.glyphs.ok, new.name));
    show(ctx, &rule)
}

/// Changes the given fields of a failure rule.
pub async fn update(ctx: &mut Ctx, client: &Client, args: FailureRuleUpdateArgs) -> Result {
    let FailureRuleUpdateArgs { rule, name, metric, condition, move_to, all_projects, no_filter } = args;
    let FailureConditionArgs { failure_types, max_score, min_count, window, filter } = condition;
    let project_id = match move_to {
        Some(project) => Some(Some(find::project(client, &project).await?.id)),
        None => all_projects.then_some(None),
    };
    let mut change = FailureRuleChange {
        name,
        project_id,
        failure_types: words(failure_types),
        metric_name: metric.map(|it| Some(it).filter(|it| it != "none")),
        max_score: max_score.map(Some),
        min_count,
        window_minutes: window,
        ..FailureRuleChange::default()
    };
    let changes_filter = no_filter || filter.is_given();
    if !changes_filter && json!(change).as_object().is_some_and(|it| it.is_empty()) {
        return Err(CliError::usage("nothing to change")
            .hint("set --type, --max-score, --min-count, --filter-model or another field"));
    }
    let id = find::failure_rule(client, &ctx.settings, &rule).await?;
    if changes_filter {
        // The request replaces the whole filter, so parts that are not given are copied from the old one.
        let old = if no_filter { None } else { Some(client.call(&calls::failure_rule(id)).await?.filter) };
        change.filter = Some(Some(filter.apply_to(old)));
    }
    changed(ctx, client, id, &change, &format!("Changed the failure rule {rule}")).await
}

/// Enables or disables a failure rule.
pub async fn switch(ctx: &mut Ctx, client: &Client, wanted: &str, enabled: bool) -> Result {
    let id = find::failure_rule(client, &ctx.settings, wanted).await?;
    let change = FailureRuleChange { enabled: Some(enabled), ..FailureRuleChange::default() };
    let verb = if enabled { "Enabled" } else { "Disabled" };
    changed(ctx, client, id, &change, &format!("{verb} the failure rule {wanted}")).await
}

async fn changed(
    ctx: &mut Ctx,
    client: &Client,
    id: Uuid,
    change: &FailureRuleChange,
    sentence: &str,
) -> Result {
    let Some(rule) = ctx.write(client, &calls::update_failure_rule(id, change)).await? else {
        return Ok(());
    };
    ctx.out.note(&format!("{} {sentence}", ctx.out.style.glyphs.ok));
    show(ctx, &rule)
}

/// Deletes a failure rule.
pub async fn delete(ctx: &mut Ctx, client: &Client, wanted: &str) -> Result {
    prompt::require_answer(ctx)?;
    let id = find::failure_rule(client, &ctx.settings, wanted).await?;
    let what = format!(
        "This deletes the failure rule {wanted} ({id}). It no longer triggers webhooks; failures are kept."
    );
    prompt::confirm(ctx, &what, "delete").await?;
    // The session of an owner is sent rather than an API key: only owners may delete failure rules.
    if ctx.write(client, &calls::delete_failure_rule(id).with(Auth::Session)).await?.is_none() {
        return Ok(());
    }
    let document = json!({ "id": id, "deleted": true });
    report(ctx, &format!("deleted the failure rule {id}"), &id.to_string(), document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_is_a_whole_number_of_minutes() {
        for (text, minutes) in [("1m", 1), ("15m", 15), ("1h", 60), ("90s", 0), ("0", 0), ("7d", 10_080)] {
            assert_eq!(window_minutes(text).unwrap_or_default(), minutes, "{text}");
        }
        assert!(window_minutes("soon").is_err());
    }
}
