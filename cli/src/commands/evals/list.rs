//! `loupe evals list`: lists evaluations.

use api::{
    client::calls,
    eval::{EvaluationContext, EvaluationFilter, EvaluationStatus, EvaluatorType},
};
use clap::Args;

use super::view::EVALUATION_VIEW;
use crate::{
    commands::{
        evaluators::evaluator_name,
        listing::{PageArgs, list},
        period::PeriodArgs,
    },
    ctx::Ctx,
    error::{CliError, Result},
    find,
};

/// Arguments of `evals list`; `--project` selects the project.
#[derive(Debug, Args)]
pub struct EvaluationListArgs {
    /// Only of this trace: id, the last characters of a recent id, or an OpenTelemetry trace id
    #[arg(long, value_name = "ID")]
    trace: Option<String>,
    /// Only by this evaluator
    #[arg(long, value_name = "NAME", value_parser = evaluator_name(), hide_possible_values = true)]
    metric: Option<String>,
    /// Only by LLM evaluators or by code evaluators: llm, rule
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<EvaluatorType>,
    /// Only with this status: pending, running, complete, failed
    #[arg(long)]
    status: Option<EvaluationStatus>,
    /// Only with this label: pass, warn, fail, or an evaluator's own
    #[arg(long)]
    label: Option<String>,
    /// Only of ingested traces or of remediated outputs: fresh, remediation
    #[arg(long, value_name = "CONTEXT")]
    eval_context: Option<EvaluationContext>,
    /// Only of this eval rule: id, its last characters, or its metric
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    /// Only with at least this score
    #[arg(long, value_name = "SCORE", value_parser = number, allow_hyphen_values = true)]
    min_score: Option<f64>,
    /// Only with at most this score
    #[arg(long, value_name = "SCORE", value_parser = number, allow_hyphen_values = true)]
    max_score: Option<f64>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    page: PageArgs,
}

/// Parses a score. Scores that clients sent may exceed 1.
fn number(text: &str) -> std::result::Result<f64, String> {
    text.parse().ok().filter(|it: &f64| it.is_finite()).ok_or_else(|| "must be a number".to_owned())
}

/// Lists evaluations.
pub async fn run(ctx: &mut Ctx, args: EvaluationListArgs) -> Result {
    ctx.out.check(&EVALUATION_VIEW)?;
    let EvaluationListArgs { trace, metric, kind, status, label, eval_context, rule, .. } = args;
    let (from, to) = args.period.resolve()?;
    if let (Some(min), Some(max)) = (args.min_score, args.max_score)
        && max < min
    {
        return Err(CliError::usage(format!("--max-score: {max} is below --min-score {min}")));
    }
    let client = ctx.client()?;
    let trace_id = match &trace {
        Some(wanted) => Some(find::trace(&client, &ctx.settings, wanted).await?),
        None => None,
    };
    let rule_id = match &rule {
        Some(wanted) => Some(find::eval_rule(&client, &ctx.settings, wanted).await?),
        None => None,
    };
    let project_id = find::current_project(&client, &ctx.settings).await?;
    let filter = EvaluationFilter {
        project_id,
        trace_id,
        metric_name: metric,
        evaluator_type: kind,
        status,
        label,
        context: eval_context,
        rule_id,
        from,
        to,
        min_score: args.min_score,
        max_score: args.max_score,
    };
    let empty = if filter == EvaluationFilter::default() { "no evaluations" } else { "nothing matches" };
    list(ctx, &client, &EVALUATION_VIEW, args.page, empty, |page| calls::evaluations(&filter, page)).await
}
