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
    view::{VIEW, word},
    wait::{WaitArgs, ended, shown_then},
};
use crate::{
    commands::{
        document,
        evaluators::{hinted, metric},
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
    how: HowArgs,
    /// Evaluate this span instead of the whole trace: its id, or the last characters of it
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
pub struct HowArgs {
    /// The evaluator, see `loupe evaluators list`
    #[arg(long, value_name = "NAME", value_parser = metric(), hide_possible_values = true)]
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
    ctx.out.check(&VIEW)?;
    let until = if args.waits() { Some(args.wait.limit.until()?) } else { None };
    let RunArgs { trace, how, span, wait: _, gate } = args;
    let config = how.config.as_deref().map(|it| document::object("--config", it)).transpose()?;
    let client = ctx.client()?;
    let trace_id = find::trace(&client, &ctx.settings, &trace).await?;
    let span_id = match span {
        Some(span) => Some(find::span_id(&client, trace_id, &span).await?),
        None => None,
    };
    let new = NewEvaluation {
        trace_id,
        metric_name: how.metric,
        evaluator_type: how.kind.map(|it| it.to_string()),
        config,
        model_tier: how.tier.map(|it| it.to_string()),
        span_id,
    };
    let asked = ctx.write(&client, &calls::evaluate(&new)).await;
    let Some(asked) = asked.map_err(|error| hinted(error, &new.metric_name))? else {
        return Ok(());
    };
    let id = word(&asked, "id");
    // Printed before waiting, because a user who interrupts the command needs it.
    ctx.out.note(&format!("requested {}; show its result: loupe evals wait {id}", new.metric_name));
    let Some(until) = until else { return show(ctx, &asked) };
    let id: Uuid =
        id.parse().map_err(|_| CliError::new(crate::exit::Exit::Unexpected, "the answer has no id"))?;
    let rows = ended(ctx, &client, vec![(id, asked)], until).await?;
    let judged = gate.judge(&rows);
    let shown = show(ctx, rows.first().unwrap_or(&Value::Null));
    shown_then(shown, judged)
}
