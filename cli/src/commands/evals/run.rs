//! `loupe evals run`: requests one evaluation of one trace.

use api::{
    client::calls,
    eval::{EvaluatorType, ModelTier, NewEvaluation},
};
use clap::Args;
use serde_json::Value;
use uuid::Uuid;

use super::{
    gate::GateArgs,
    show,
    view::{EVALUATION_VIEW, text_member},
    wait::{WaitArgs, combine_results, wait_for_all},
};
use crate::{
    commands::{
        evaluators::{evaluator_name, with_evaluator_hint},
        flag_value,
    },
    ctx::Ctx,
    error::{CliError, Result},
    find,
};

/// Arguments of `evals run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Id, the last characters of a recent id, or an OpenTelemetry trace id
    trace: String,
    #[command(flatten)]
    evaluator: EvaluatorArgs,
    /// Evaluate this span instead of the whole trace: its id, or the last characters of the id
    #[arg(long, value_name = "ID")]
    span: Option<String>,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    gate: GateArgs,
}

impl RunArgs {
    /// Returns whether the command waits for the result, which a gate requires.
    pub fn waits(&self) -> bool {
        self.wait.is_given() || self.gate.is_set()
    }
}

/// Flags that choose the evaluator and its options.
#[derive(Clone, Debug, Args)]
pub struct EvaluatorArgs {
    /// The evaluator, see `loupe evaluators list`
    #[arg(long, value_name = "NAME", value_parser = evaluator_name(), hide_possible_values = true)]
    pub metric: String,
    /// Type, for evaluators that offer both: llm or rule
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<EvaluatorType>,
    /// Options of the evaluator, see `loupe evaluators get NAME`: a JSON object, a file with
    /// one, or - for stdin
    #[arg(long, value_name = "JSON|FILE|-")]
    pub config: Option<String>,
    /// The judge model: cheap or premium
    #[arg(long, value_name = "TIER")]
    pub tier: Option<ModelTier>,
}

/// Requests an evaluation; with `--wait`, shows its result and checks it against the gate.
pub async fn run(ctx: &mut Ctx, args: RunArgs) -> Result {
    ctx.out.check(&EVALUATION_VIEW)?;
    let until = if args.waits() { Some(args.wait.limit.until()?) } else { None };
    let RunArgs { trace, evaluator, span, wait: _, gate } = args;
    let config = evaluator.config.as_deref().map(|it| flag_value::object("--config", it)).transpose()?;
    let client = ctx.client()?;
    let trace_id = find::trace(&client, &ctx.settings, &trace).await?;
    let span_id = match span {
        Some(span) => Some(find::span_id(&client, trace_id, &span).await?),
        None => None,
    };
    let new = NewEvaluation {
        trace_id,
        metric_name: evaluator.metric,
        evaluator_type: evaluator.kind.map(|it| it.to_string()),
        config,
        model_tier: evaluator.tier.map(|it| it.to_string()),
        span_id,
    };
    let requested = ctx.write(&client, &calls::evaluate(&new)).await;
    let Some(requested) = requested.map_err(|error| with_evaluator_hint(error, &new.metric_name))? else {
        return Ok(());
    };
    let id = text_member(&requested, "id");
    // Printed before waiting, because a user who interrupts the command needs it.
    ctx.out.note(&format!("requested {}; show its result: loupe evals wait {id}", new.metric_name));
    let Some(until) = until else { return show(ctx, &requested) };
    let id: Uuid =
        id.parse().map_err(|_| CliError::new(crate::exit::Exit::Unexpected, "the response has no id"))?;
    let rows = wait_for_all(ctx, &client, vec![(id, requested)], until).await?;
    let judged = gate.judge(&rows);
    let shown = show(ctx, rows.first().unwrap_or(&Value::Null));
    combine_results(shown, judged)
}
