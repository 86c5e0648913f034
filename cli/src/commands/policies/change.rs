//! `loupe policies create`, `update` and `delete`: change policies.

use std::path::PathBuf;

use api::{
    FailureType,
    client::calls,
    control::{ActionConfig, ActionType},
    policy::{NewPolicy, NewPolicyTrigger, PolicyChange, TriggerType},
};
use clap::Args;
use serde_json::json;

use super::show;
use crate::{
    commands::{
        action_config::{ActionConfigArgs, requestable_type},
        flag_value, report,
    },
    config::duration,
    ctx::Ctx,
    error::{CliError, Result},
    find, prompt,
};

/// The word that clears a value.
const NONE: &str = "none";

/// Trigger and limits of a policy, as flags.
#[derive(Debug, Args)]
pub struct PolicySettingArgs {
    /// Act on failures of these types, separated by commas: timeout, rate_limit, invalid_response,
    /// context_length, other
    #[arg(long, value_name = "TYPES", value_delimiter = ',', conflicts_with = "on_evaluation")]
    on_failure: Option<Vec<String>>,
    /// Act on low scores of this metric, see `loupe evaluators list`; needs --max-score
    #[arg(long, value_name = "METRIC")]
    on_evaluation: Option<String>,
    /// The highest score of the metric that the policy acts on
    #[arg(long, value_name = "SCORE", allow_hyphen_values = true)]
    max_score: Option<f64>,
    /// Number of retries on a trace from which retries wait for approval, 1 to 10 (default for a new policy:
    /// 3)
    #[arg(long, value_name = "N")]
    max_retry_depth: Option<i64>,
    /// Number of actions on a trace from which actions wait for approval, 1 to 20 (default for a new
    /// policy: 5)
    #[arg(long, value_name = "N")]
    max_cascade_depth: Option<i64>,
    /// Minimum time between two actions on a trace, such as 10m, at most 7d (default for a new policy:
    /// 0s)
    #[arg(long, value_name = "DURATION", value_parser = whole_seconds)]
    cooldown: Option<i64>,
    /// Maximum cost of its actions a day (UTC) in US dollars; `none` for no limit (default for a
    /// new policy)
    #[arg(long, value_name = "USD|none", value_parser = budget, allow_negative_numbers = true)]
    daily_budget: Option<DailyBudget>,
    #[command(flatten)]
    callback: CallbackArgs,
    #[command(flatten)]
    config: ActionConfigArgs,
}

/// The receiver that executes actions instead of the provider, as flags.
#[derive(Debug, Args)]
pub struct CallbackArgs {
    /// Your own https address that repeats the request instead of the provider
    #[arg(long, value_name = "URL")]
    callback_url: Option<String>,
    /// File with the secret that signs requests to the callback; a line break at its end is ignored
    #[arg(long, value_name = "PATH")]
    callback_secret_file: Option<PathBuf>,
}

/// Value of `--daily-budget`; `None` is no limit.
#[derive(Clone, Copy, Debug)]
struct DailyBudget(Option<f64>);

/// Arguments of `policies create`; the project is the one of `--project`.
#[derive(Debug, Args)]
pub struct PolicyCreateArgs {
    /// Descriptive name (default: the action type)
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// What its actions do
    #[arg(long, value_name = "TYPE", value_parser = requestable_type())]
    action: ActionType,
    /// Let every action wait for approval
    #[arg(long)]
    require_approval: bool,
    /// Create the policy disabled
    #[arg(long)]
    disabled: bool,
    #[command(flatten)]
    settings: PolicySettingArgs,
}

/// Arguments of `policies update`. Fields that are not given keep their values.
#[derive(Debug, Args)]
pub struct PolicyUpdateArgs {
    /// Name, id, or the last characters of the id
    policy: String,
    /// New name
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// What its actions do
    #[arg(long, value_name = "TYPE", value_parser = requestable_type())]
    action: Option<ActionType>,
    /// Let every action wait for approval
    #[arg(long, conflicts_with = "no_approval")]
    require_approval: bool,
    /// Let only escalations wait for approval
    #[arg(long)]
    no_approval: bool,
    /// Enable the policy
    #[arg(long, conflicts_with = "disabled")]
    enabled: bool,
    /// Disable the policy: its trigger requests no more actions
    #[arg(long)]
    disabled: bool,
    #[command(flatten)]
    settings: PolicySettingArgs,
}

/// Parses a duration in whole seconds. The server checks the maximum.
fn whole_seconds(text: &str) -> std::result::Result<i64, String> {
    let duration = duration(text).map_err(|error| error.message)?;
    match i64::try_from(duration.as_secs()) {
        Ok(seconds) if duration.subsec_nanos() == 0 => Ok(seconds),
        _ => Err(format!("`{text}` is not a whole number of seconds, such as 30s or 10m")),
    }
}

fn budget(text: &str) -> std::result::Result<DailyBudget, String> {
    match (text, text.parse::<f64>()) {
        (NONE, _) => Ok(DailyBudget(None)),
        (_, Ok(amount)) if amount.is_finite() => Ok(DailyBudget(Some(amount))),
        _ => Err("an amount in US dollars such as 2.50, or none".to_owned()),
    }
}

impl PolicySettingArgs {
    /// Returns the trigger: `None` without flags, `Some(None)` if the flags clear it.
    fn trigger(&self) -> Result<Option<Option<NewPolicyTrigger>>> {
        match (self.on_failure.as_deref(), self.on_evaluation.as_deref(), self.max_score) {
            (None, None, None) => Ok(None),
            (Some([word]), None, None) if word == NONE => Ok(Some(None)),
            (None, Some(NONE), None) => Ok(Some(None)),
            (Some(types), None, None) => {
                let parsed: std::result::Result<Vec<FailureType>, _> =
                    types.iter().map(|it| it.parse()).collect();
                let types = parsed.map_err(|error| CliError::usage(format!("--on-failure: {error}")))?;
                Ok(Some(Some(NewPolicyTrigger {
                    trigger_type: TriggerType::Failure.to_string(),
                    failure_types: Some(types.iter().map(ToString::to_string).collect()),
                    ..NewPolicyTrigger::default()
                })))
            }
            (None, Some(metric), Some(score)) if metric != NONE => Ok(Some(Some(NewPolicyTrigger {
                trigger_type: TriggerType::Evaluation.to_string(),
                metric_name: Some(metric.to_owned()),
                max_score: Some(score),
                ..NewPolicyTrigger::default()
            }))),
            _ => Err(CliError::usage("--on-evaluation and --max-score belong together")
                .hint("for example --on-evaluation faithfulness --max-score 0.5")),
        }
    }

    /// Applies the flags of the configuration and of the callback to a configuration.
    fn apply_to(&self, old: Option<ActionConfig>) -> Result<ActionConfig> {
        let mut config = self.config.apply_to(old)?;
        match self.callback.callback_url.as_deref() {
            Some(NONE) => config.callback_url = None,
            Some(url) => config.callback_url = Some(url.to_owned()),
            None => {}
        }
        if let Some(file) = &self.callback.callback_secret_file {
            config.callback_secret = Some(flag_value::secret("--callback-secret-file", file)?);
        }
        Ok(config)
    }

    fn changes_config(&self) -> bool {
        let CallbackArgs { callback_url, callback_secret_file } = &self.callback;
        self.config.is_given() || callback_url.is_some() || callback_secret_file.is_some()
    }
}

/// Creates a policy.
pub async fn create(ctx: &mut Ctx, args: PolicyCreateArgs) -> Result {
    let PolicyCreateArgs { name, action, require_approval, disabled, settings } = args;
    let client = ctx.session_client("creating a policy")?;
    let trigger = settings.trigger()?.flatten();
    let action_config = settings.changes_config().then(|| settings.apply_to(None)).transpose()?;
    let Some(project_id) = find::current_project(&client, &ctx.settings).await? else {
        return Err(CliError::usage("a policy belongs to a project")
            .hint("-p PROJECT, or loupe projects use PROJECT; `loupe projects list` shows them"));
    };
    let new = NewPolicy {
        project_id,
        action_type: action.to_string(),
        name,
        enabled: disabled.then_some(false),
        trigger,
        action_config,
        require_approval: require_approval.then_some(true),
        max_retry_depth: settings.max_retry_depth,
        max_cascade_depth: settings.max_cascade_depth,
        cooldown_seconds: settings.cooldown,
        daily_budget_usd: settings.daily_budget.and_then(|DailyBudget(limit)| limit),
    };
    let Some(policy) = ctx.write(&client, &calls::create_policy(&new)).await? else {
        return Ok(());
    };
    let name = new.name.as_deref().unwrap_or(action.as_str());
    ctx.out.note(&format!("{} Created the policy {name}", ctx.out.style.glyphs.ok));
    show(ctx, &policy)
}

/// Changes the given fields of a policy.
pub async fn update(ctx: &mut Ctx, args: PolicyUpdateArgs) -> Result {
    let PolicyUpdateArgs {
        policy: wanted,
        name,
        action,
        require_approval,
        no_approval,
        enabled,
        disabled,
        settings,
    } = args;
    let client = ctx.session_client("changing a policy")?;
    let mut change = PolicyChange {
        name,
        enabled: (enabled || disabled).then_some(enabled),
        trigger: settings.trigger()?,
        action_type: action.map(|it| it.to_string()),
        require_approval: (require_approval || no_approval).then_some(require_approval),
        max_retry_depth: settings.max_retry_depth,
        max_cascade_depth: settings.max_cascade_depth,
        cooldown_seconds: settings.cooldown,
        daily_budget_usd: settings.daily_budget.map(|DailyBudget(limit)| limit),
        ..PolicyChange::default()
    };
    if !settings.changes_config() && change == PolicyChange::default() {
        return Err(CliError::usage("nothing to change")
            .hint("set --on-failure, --model, --cooldown, --daily-budget, --disabled or another field"));
    }
    let id = find::policy(&client, &ctx.settings, &wanted).await?;
    if settings.changes_config() || action.is_some() {
        // The request replaces the whole configuration, so parts that are not given are copied from the old one.
        let old = client.call(&calls::policy(id)).await?;
        let mut config = old.action_config;
        if action.is_some_and(|it| it != old.action_type) {
            // These parts are valid for one action type only.
            (config.model, config.system_suffix, config.prompt_template) = (None, None, None);
        }
        change.action_config = Some(settings.apply_to(Some(config))?);
    }
    let Some(policy) = ctx.write(&client, &calls::update_policy(id, &change)).await? else {
        return Ok(());
    };
    ctx.out.note(&format!("{} Changed the policy {wanted}", ctx.out.style.glyphs.ok));
    show(ctx, &policy)
}

/// Deletes a policy.
pub async fn delete(ctx: &mut Ctx, wanted: &str) -> Result {
    let client = ctx.session_client("deleting a policy")?;
    prompt::require_answer(ctx)?;
    let id = find::policy(&client, &ctx.settings, wanted).await?;
    let what = format!(
        "This deletes the policy {wanted} ({id}). It requests no more control actions; its actions are kept."
    );
    prompt::confirm(ctx, &what, "delete").await?;
    if ctx.write(&client, &calls::delete_policy(id)).await?.is_none() {
        return Ok(());
    }
    let document = json!({ "id": id, "deleted": true });
    report(ctx, &format!("deleted the policy {id}"), &id.to_string(), document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cooldown_is_a_whole_number_of_seconds() {
        for (text, seconds) in [("0s", 0), ("90s", 90), ("10m", 600), ("7d", 604_800)] {
            assert_eq!(whole_seconds(text), Ok(seconds), "{text}");
        }
        assert!(whole_seconds("1500ms").is_err() && whole_seconds("soon").is_err());
    }
}
