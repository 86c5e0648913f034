//! `loupe rules create`, `update`, `enable`, `disable` and `delete`: change eval rules.

use api::{
    client::{Client, calls},
    eval::{EvaluatorType, ModelTier},
    eval_rule::{EvalRuleChange, NewEvalRule, RuleFilter},
};
use clap::Args;
use present::share;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    show,
    view::{self, VIEW},
};
use crate::{
    commands::{
        document,
        evaluators::{hinted, metric},
        report,
    },
    ctx::Ctx,
    error::{CliError, Result},
    find, prompt,
};

/// Settings of an eval rule, as flags.
#[derive(Debug, Args)]
pub struct SettingArgs {
    /// Options of the evaluator, see `loupe evaluators get NAME`: a JSON object, a file with
    /// one, or - for stdin
    #[arg(long, value_name = "JSON|FILE|-")]
    config: Option<String>,
    /// The judge model: cheap or premium
    #[arg(long, value_name = "TIER")]
    tier: Option<ModelTier>,
    /// Alert if a control action lowers the score by at least this; `none` for the default, any drop
    #[arg(long, value_name = "N|none", value_parser = score_drop, allow_hyphen_values = true)]
    min_score_drop: Option<Drop>,
    /// Share of the matching traces to evaluate, chosen by trace id: 0.1 or 10%
    #[arg(long, value_name = "RATE", value_parser = share::parse)]
    sample_rate: Option<f64>,
    #[command(flatten)]
    filter: FilterArgs,
}

/// Filter of an eval rule, as flags.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which traces")]
struct FilterArgs {
    /// Only traces of this model
    #[arg(long, value_name = "MODEL")]
    filter_model: Option<String>,
    /// Only traces with this tag: KEY, or KEY:VALUE
    #[arg(long, value_name = "TAG")]
    filter_tag: Option<String>,
    /// Only traces of this name
    #[arg(long, value_name = "NAME")]
    filter_name: Option<String>,
    /// Only traces with an error
    #[arg(long, conflicts_with = "no_error")]
    error: bool,
    /// Only traces without an error
    #[arg(long)]
    no_error: bool,
    /// Only traces with a span of this type, such as llm, tool, retrieval
    #[arg(long, value_name = "TYPE")]
    span_type: Option<String>,
}

/// Arguments of `rules create`; the project is the one of `--project`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// The evaluator, see `loupe evaluators list`
    #[arg(long, value_name = "NAME", value_parser = metric(), hide_possible_values = true)]
    metric: String,
    /// Type of the evaluator: llm or rule
    #[arg(long = "type", value_name = "TYPE")]
    kind: EvaluatorType,
    #[command(flatten)]
    settings: SettingArgs,
    /// Create the rule disabled
    #[arg(long)]
    disabled: bool,
}

/// Arguments of `rules update`. Fields that are not given keep their values.
#[derive(Debug, Args)]
pub struct UpdateArgs {
    /// Id, the last characters of it, or the metric if only one rule has it
    rule: String,
    /// Another evaluator
    #[arg(long, value_name = "NAME", value_parser = metric(), hide_possible_values = true)]
    metric: Option<String>,
    /// Type of the evaluator: llm or rule
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<EvaluatorType>,
    #[command(flatten)]
    settings: SettingArgs,
    /// Clear the filter before applying the other flags
    #[arg(long)]
    no_filter: bool,
}

/// Minimum score drop; `None` is the server's default.
#[derive(Clone, Copy, Debug)]
struct Drop(Option<f64>);

/// Parses `--min-score-drop`. The server refuses negative values with a reason, so they are not checked
/// here.
fn score_drop(text: &str) -> std::result::Result<Drop, String> {
    if text == "none" {
        return Ok(Drop(None));
    }
    match text.parse::<f64>() {
        Ok(drop) if drop.is_finite() => Ok(Drop(Some(drop))),
        _ => Err("a number such as 0.05, or none".to_owned()),
    }
}

impl FilterArgs {
    fn is_given(&self) -> bool {
        let Self { filter_model, filter_tag, filter_name, error, no_error, span_type } = self;
        *error
            || *no_error
            || [filter_model, filter_tag, filter_name, span_type].iter().any(|it| it.is_some())
    }

    /// Applies the flags to an existing filter, or to an empty one. `none` removes a part of an existing
    /// filter; in a new filter it is an ordinary value.
    fn over(&self, old: Option<RuleFilter>) -> RuleFilter {
        let changes = old.is_some();
        let old = old.unwrap_or_default();
        let text = |new: &Option<String>, old: Option<String>| match new.as_deref() {
            Some("none") if changes => None,
            Some(new) => Some(new.to_owned()),
            None => old,
        };
        RuleFilter {
            model: text(&self.filter_model, old.model),
            tag: text(&self.filter_tag, old.tag),
            name: text(&self.filter_name, old.name),
            error: if self.error || self.no_error { Some(self.error) } else { old.error },
            span_type: text(&self.span_type, old.span_type),
            unknown: old.unknown,
        }
    }
}

/// Creates an eval rule.
pub async fn create(ctx: &mut Ctx, client: &Client, args: CreateArgs) -> Result {
    ctx.out.check(&VIEW)?;
    let SettingArgs { config, tier, min_score_drop, sample_rate, filter } = &args.settings;
    let config = config.as_deref().map(|it| document::object("--config", it)).transpose()?;
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
        min_score_drop: min_score_drop.map(|Drop(drop)| drop),
        filter: filter.is_given().then(|| filter.over(None)),
        sample_rate: *sample_rate,
    };
    let rule = ctx.write(client, &calls::create_eval_rule(&new)).await;
    let Some(rule) = rule.map_err(|error| hinted(error, &new.metric_name))? else {
        return Ok(());
    };
    ctx.out.note(&format!("{} Created a rule for {}", ctx.out.style.glyphs.ok, new.metric_name));
    tell_paused(ctx, &rule);
    show(ctx, &rule)
}

/// Changes the given fields of an eval rule.
pub async fn update(ctx: &mut Ctx, client: &Client, args: UpdateArgs) -> Result {
    ctx.out.check(&VIEW)?;
    let UpdateArgs { rule, metric, kind, settings, no_filter } = args;
    let SettingArgs { config, tier, min_score_drop, sample_rate, filter } = settings;
    let config = config.as_deref().map(|it| document::object("--config", it)).transpose()?;
    let mut change = EvalRuleChange {
        metric_name: metric,
        evaluator_type: kind.map(|it| it.to_string()),
        config,
        model_tier: tier.map(|it| it.to_string()),
        min_score_drop: min_score_drop.map(|Drop(drop)| drop),
        sample_rate,
        ..EvalRuleChange::default()
    };
    let filtered = no_filter || filter.is_given();
    if !filtered && json!(change).as_object().is_some_and(|it| it.is_empty()) {
        return Err(CliError::usage("nothing to change")
            .hint("give --config, --sample-rate, --filter-model or another setting"));
    }
    let id = find::eval_rule(client, &ctx.settings, &rule).await?;
    if filtered {
        // The request replaces the whole filter, so parts that are not given are copied from the old one.
        let old = if no_filter { None } else { Some(client.call(&calls::eval_rule(id)).await?.filter) };
        change.filter = Some(filter.over(old));
    }
    changed(ctx, client, id, &change, &format!("Changed the rule {rule}")).await
}

/// Enables or disables an eval rule.
pub async fn switch(ctx: &mut Ctx, client: &Client, wanted: &str, enabled: bool) -> Result {
    ctx.out.check(&VIEW)?;
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
    let Some(rule) = rule.map_err(|error| hinted(error, metric))? else {
        return Ok(());
    };
    ctx.out.note(&format!("{} {sentence}", ctx.out.style.glyphs.ok));
    tell_paused(ctx, &rule);
    show(ctx, &rule)
}

/// Warns if a rule is paused, so that the user need not find out from missing evaluations.
fn tell_paused(ctx: &mut Ctx, rule: &Value) {
    if let Some(reason) = view::paused(rule) {
        ctx.out.note(&format!("it is paused: {reason}"));
    }
}

/// Deletes an eval rule.
pub async fn delete(ctx: &mut Ctx, client: &Client, wanted: &str) -> Result {
    prompt::require_answer(ctx)?;
    let id = find::eval_rule(client, &ctx.settings, wanted).await?;
    let what = format!("This deletes the rule {wanted} ({id}). The evaluations that it asked for stay.");
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
    fn a_filter_keeps_what_is_not_named() {
        let nothing = FilterArgs {
            filter_model: None,
            filter_tag: None,
            filter_name: None,
            error: false,
            no_error: false,
            span_type: None,
        };
        let old = RuleFilter { model: Some("m".into()), error: Some(true), ..RuleFilter::default() };
        assert!(!nothing.is_given());
        assert_eq!(nothing.over(Some(old.clone())), old);
        let given = FilterArgs {
            filter_model: Some("none".into()),
            filter_tag: Some("env:prod".into()),
            no_error: true,
            ..nothing
        };
        let new = RuleFilter { tag: Some("env:prod".into()), error: Some(false), ..RuleFilter::default() };
        assert!(given.is_given());
        assert_eq!(given.over(Some(old)), new);
        let anew = RuleFilter { model: Some("none".into()), ..new };
        assert_eq!(given.over(None), anew, "what is new drops nothing");
    }

    #[test]
    fn a_drop_is_a_number_or_none() {
        assert!(matches!(score_drop("none"), Ok(Drop(None))));
        assert!(matches!(score_drop("0.05"), Ok(Drop(Some(_)))));
        assert!(score_drop("NaN").is_err() && score_drop("some").is_err());
    }
}
