//! `loupe rules create`, `update`, `enable`, `disable` and `delete`: change eval rules.

use api::{
    client::{Client, calls},
    eval::{EvaluatorType, ModelTier},
    eval_rule::{EvalRuleChange, NewEvalRule},
};
use clap::Args;
use present::share;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    show,
    view::{self, RULE_VIEW},
};
use crate::{
    commands::{
        evaluators::{evaluator_name, with_evaluator_hint},
        flag_value, report,
        rule_filter::RuleFilterArgs,
    },
    ctx::Ctx,
    error::{CliError, Result},
    find, prompt,
};

/// Settings of an eval rule, as flags.
#[derive(Debug, Args)]
pub struct RuleSettingArgs {
    /// Options of the evaluator, see `loupe evaluators get NAME`: a JSON object, a file with
    /// one, or - for stdin
    #[arg(long, value_name = "JSON|FILE|-")]
    config: Option<String>,
    /// The judge model: cheap or premium
    #[arg(long, value_name = "TIER")]
    tier: Option<ModelTier>,
    /// Alert if a control action lowers the score by at least this; `none` for the default, any drop
    #[arg(long, value_name = "N|none", value_parser = score_drop, allow_hyphen_values = true)]
    min_score_drop: Option<MinScoreDrop>,
    /// Share of the matching traces to evaluate, chosen by trace id: 0.1 or 10%
    #[arg(long, value_name = "RATE", value_parser = share::parse)]
    sample_rate: Option<f64>,
    #[command(flatten)]
    filter: RuleFilterArgs,
}

/// Arguments of `rules create`; `--project` selects the project.
#[derive(Debug, Args)]
pub struct RuleCreateArgs {
    /// The evaluator, see `loupe evaluators list`
    #[arg(long, value_name = "NAME", value_parser = evaluator_name(), hide_possible_values = true)]
    metric: String,
    /// Type of the evaluator: llm or rule
    #[arg(long = "type", value_name = "TYPE")]
    kind: EvaluatorType,
    #[command(flatten)]
    settings: RuleSettingArgs,
    /// Create the rule disabled
    #[arg(long)]
    disabled: bool,
}

/// Arguments of `rules update`. Fields that are not given keep their values.
#[derive(Debug, Args)]
pub struct RuleUpdateArgs {
    /// Id, its last characters, or the metric if only one rule has it
    rule: String,
    /// Another evaluator
    #[arg(long, value_name = "NAME", value_parser = evaluator_name(), hide_possible_values = true)]
    metric: Option<String>,
    /// Type of the evaluator: llm or rule
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<EvaluatorType>,
    #[command(flatten)]
    settings: RuleSettingArgs,
    /// Clear the filter before applying the other flags
    #[arg(long)]
    no_filter: bool,
}

/// Minimum score drop; `None` is the server's default.
#[derive(Clone, Copy, Debug)]
struct MinScoreDrop(Option<f64>);

/// Parses `--min-score-drop`. The server refuses negative values with a reason, so they are not checked
/// here.
fn score_drop(text: &str) -> std::result::Result<MinScoreDrop, String> {
    if text == "none" {
        return Ok(MinScoreDrop(None));
    }
    match text.parse::<f64>() {
        Ok(drop) if drop.is_finite() => Ok(MinScoreDrop(Some(drop))),
        _ => Err("a number such as 0.05, or none".to_owned()),
    }
}

/// Creates an eval rule.
pub async fn create(ctx: &mut Ctx, client: &Client, args: RuleCreateArgs) -> Result {
    ctx.out.check(&RULE_VIEW)?;
    let RuleSettingArgs { config, tier, min_score_drop, sample_rate, filter } = &args.settings;
    let config = config.as_deref().map(|it| flag_value::object("--config", it)).transpose()?;
    let Some(project_id) = find::current_project(client, &ctx.settings).await? else {
        return Err(CliError::usage("a rule belongs to a project")
            .hint("-p PROJECT, or loupe projects use PROJECT; `loupe projects list` shows them"));
    };
    let new = NewEvalRule {
        project_id,
        metric_name: args.metric,
        evaluator_type: args.kind.to_string(),
        config,
        enabled: args.disabled.then_some(false),
        model_tier: tier.map(|it| it.to_string()),
        min_score_drop: min_score_drop.map(|MinScoreDrop(drop)| drop),
        filter: filter.is_given().then(|| filter.apply_to(None)),
        sample_rate: *sample_rate,
    };
    let rule = ctx.write(client, &calls::create_eval_rule(&new)).await;
    let Some(rule) = rule.map_err(|error| with_evaluator_hint(error, &new.metric_name))? else {
        return Ok(());
    };
    ctx.out.note(&format!("{} Created a rule for {}", ctx.out.style.glyphs.ok, new.metric_name));
    note_pause(ctx, &rule);
    show(ctx, &rule)
}

/// Changes the given fields of an eval rule.
pub async fn update(ctx: &mut Ctx, client: &Client, args: RuleUpdateArgs) -> Result {
    ctx.out.check(&RULE_VIEW)?;
    let RuleUpdateArgs { rule, metric, kind, settings, no_filter } = args;
    let RuleSettingArgs { config, tier, min_score_drop, sample_rate, filter } = settings;
    let config = config.as_deref().map(|it| flag_value::object("--config", it)).transpose()?;
    let mut change = EvalRuleChange {
        metric_name: metric,
        evaluator_type: kind.map(|it| it.to_string()),
        config,
        model_tier: tier.map(|it| it.to_string()),
        min_score_drop: min_score_drop.map(|MinScoreDrop(drop)| drop),
        sample_rate,
        ..EvalRuleChange::default()
    };
    let changes_filter = no_filter || filter.is_given();
    if !changes_filter && json!(change).as_object().is_some_and(|it| it.is_empty()) {
        return Err(CliError::usage("nothing to change")
            .hint("set --config, --sample-rate, --filter-model or another field"));
    }
    let id = find::eval_rule(client, &ctx.settings, &rule).await?;
    if changes_filter {
        // The request replaces the whole filter, so parts that are not given are copied from the old one.
        let old = if no_filter { None } else { Some(client.call(&calls::eval_rule(id)).await?.filter) };
        change.filter = Some(filter.apply_to(old));
    }
    changed(ctx, client, id, &change, &format!("Changed the rule {rule}")).await
}

/// Enables or disables an eval rule.
pub async fn switch(ctx: &mut Ctx, client: &Client, wanted: &str, enabled: bool) -> Result {
    ctx.out.check(&RULE_VIEW)?;
    let id = find::eval_rule(client, &ctx.settings, wanted).await?;
    let change = EvalRuleChange { enabled: Some(enabled), ..EvalRuleChange::default() };
    let verb = if enabled { "Enabled" } else { "Disabled" };
    changed(ctx, client, id, &change, &format!("{verb} the rule {wanted}")).await
}

async fn changed(
    ctx: &mut Ctx,
    client: &Client,
    id: Uuid,
    change: &EvalRuleChange,
    sentence: &str,
) -> Result {
    let rule = ctx.write(client, &calls::update_eval_rule(id, change)).await;
    let metric = change.metric_name.as_deref().unwrap_or("METRIC");
    let Some(rule) = rule.map_err(|error| with_evaluator_hint(error, metric))? else {
        return Ok(());
    };
    ctx.out.note(&format!("{} {sentence}", ctx.out.style.glyphs.ok));
    note_pause(ctx, &rule);
    show(ctx, &rule)
}

/// Prints why a rule is paused, which would otherwise show only in missing evaluations.
fn note_pause(ctx: &mut Ctx, rule: &Value) {
    if let Some(reason) = view::pause_sentence(rule) {
        ctx.out.note(&format!("the rule is paused: {reason}"));
    }
}

/// Deletes an eval rule.
pub async fn delete(ctx: &mut Ctx, client: &Client, wanted: &str) -> Result {
    prompt::require_answer(ctx)?;
    let id = find::eval_rule(client, &ctx.settings, wanted).await?;
    let what = format!("This deletes the rule {wanted} ({id}). Its evaluations are kept.");
    prompt::confirm(ctx, &what, "delete").await?;
    if ctx.write(client, &calls::delete_eval_rule(id)).await?.is_none() {
        return Ok(());
    }
    report(ctx, &format!("deleted the rule {id}"), &id.to_string(), json!({ "id": id, "deleted": true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn score_drop_is_a_number_or_none() {
        assert!(matches!(score_drop("none"), Ok(MinScoreDrop(None))));
        assert!(matches!(score_drop("0.05"), Ok(MinScoreDrop(Some(_)))));
        assert!(score_drop("NaN").is_err() && score_drop("some").is_err());
    }
}
