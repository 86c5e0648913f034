//! `loupe evaluators`: reads and changes evaluators, built-in and custom.

mod builtin;
mod change;
mod scale;
mod view;

use api::{client::calls, eval::EvaluatorType};
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::{
    commands::listing,
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    pages,
};
pub use builtin::evaluator_name;
use view::EVALUATOR_VIEW;

/// Reference to the help page about custom evaluators, for the help of the commands that change them.
const HELP_REFERENCE: &str = "See `loupe help custom-evaluators` for rubrics, scales and checks.\n";

/// Verbs of `evaluators`.
#[derive(Debug, Subcommand)]
pub enum EvaluatorCommand {
    /// List the evaluators: the built-in ones, then your own
    #[command(
        before_help = "Examples:\n  loupe evaluators list\n  loupe evaluators list --tag safety\n  loupe evaluators list --own --json --jq '.evaluators[].name' --raw\n  loupe evaluators list --offline -o wide\n"
    )]
    List(EvaluatorListArgs),
    /// Show one evaluator: description, options and an example
    #[command(
        before_help = "Examples:\n  loupe evaluators get faithfulness\n  loupe evaluators get latency_threshold --json --jq .config_schema\n"
    )]
    Get(EvaluatorGetArgs),
    /// Create an evaluator of your own: a rubric for a judge, or checks that run as code
    #[command(
        before_help = "Examples:\n  loupe evaluators create polite --rubric rubric.txt --scale 1..5\n  echo 'Does {{output}} name the order that {{input}} asks about?' |\n    loupe evaluators create names_order --rubric - --scale yes=1,no=0\n  loupe evaluators create no_promises \\\n    --checks '[{\"kind\": \"regex\", \"pattern\": \"(?i)guarantee\", \"negate\": true}]'\n  loupe evaluators create quick --checks checks.json \\\n    --combine any --tag performance\n",
        after_help = HELP_REFERENCE
    )]
    Create(change::EvaluatorCreateArgs),
    /// Change an evaluator of your own, which creates a new version
    #[command(
        before_help = "Examples:\n  loupe evaluators update polite --rubric rubric.txt\n  loupe evaluators update quick --checks checks.json --description 'Short'\n",
        after_help = HELP_REFERENCE
    )]
    Update(change::EvaluatorUpdateArgs),
    /// Delete an evaluator of your own
    #[command(
        before_help = "Examples:\n  loupe evaluators delete polite\n  loupe evaluators delete polite --yes\n"
    )]
    Delete(EvaluatorNameArgs),
}

/// Flags that select the source of evaluators.
#[derive(Debug, Args)]
struct EvaluatorSourceArgs {
    /// Do not contact the server; use the built-in evaluators that this program contains
    #[arg(long)]
    offline: bool,
}

/// Arguments of `evaluators list`.
#[derive(Debug, Args)]
pub struct EvaluatorListArgs {
    /// Only of this category: quality, safety, retrieval, cost, tool-use, performance, or your own
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only those that offer this type: llm, rule
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<EvaluatorType>,
    /// Only custom evaluators
    #[arg(long, conflicts_with_all = ["builtin", "offline"])]
    own: bool,
    /// Only built-in evaluators
    #[arg(long)]
    builtin: bool,
    #[command(flatten)]
    source: EvaluatorSourceArgs,
}

/// Arguments of `evaluators get`.
#[derive(Debug, Args)]
pub struct EvaluatorGetArgs {
    /// Name of the evaluator
    #[arg(value_parser = evaluator_name(), hide_possible_values = true)]
    name: String,
    #[command(flatten)]
    source: EvaluatorSourceArgs,
}

/// Argument that names a custom evaluator.
#[derive(Debug, Args)]
pub struct EvaluatorNameArgs {
    /// Name of a custom evaluator
    name: String,
}

/// Runs a verb of `evaluators`.
pub async fn run(ctx: &mut Ctx, command: EvaluatorCommand) -> Result {
    match command {
        // These two can work without a server.
        EvaluatorCommand::List(args) => list(ctx, args).await,
        EvaluatorCommand::Get(args) => get(ctx, args).await,
        EvaluatorCommand::Create(args) => change::create(ctx, args).await,
        EvaluatorCommand::Update(args) => change::update(ctx, args).await,
        EvaluatorCommand::Delete(args) => change::delete(ctx, &args.name).await,
    }
}

async fn list(ctx: &mut Ctx, args: EvaluatorListArgs) -> Result {
    ctx.out.check(&EVALUATOR_VIEW)?;
    let result = if args.source.offline { builtin::all() } else { rows(ctx).await };
    let mut rows = match result {
        Err(error) if !args.own && is_server_unavailable(&error) => {
            let notice = "showing the built-in evaluators that this program contains";
            ctx.out.note(&format!("{}; {notice}", error.message));
            builtin::all()?
        }
        result => result?,
    };
    rows.retain(|row| if view::is_builtin(row) { !args.own } else { !args.builtin });
    let any = !rows.is_empty();
    rows.retain(|row| {
        let tagged = args.tag.as_deref().is_none_or(|tag| view::list(row, "tags").contains(&tag));
        let offered = args.kind.is_none_or(|it| view::list(row, "evaluator_types").contains(&it.as_str()));
        tagged && offered
    });
    if rows.is_empty() {
        let none = args.own && !any;
        let hint = "no custom evaluators yet; loupe evaluators create --help";
        ctx.out.note(if none { hint } else { "nothing matches" });
    }
    ctx.out.list(&EVALUATOR_VIEW, listing::last_page(EVALUATOR_VIEW.plural, rows))
}

async fn get(ctx: &mut Ctx, args: EvaluatorGetArgs) -> Result {
    ctx.out.check(&EVALUATOR_VIEW)?;
    let builtin_evaluator =
        builtin::all()?.into_iter().find(|it| it.get("name").and_then(Value::as_str) == Some(&args.name));
    let missing = || {
        CliError::new(Exit::NotFound, format!("there is no evaluator `{}`", args.name))
            .hint("list the names: loupe evaluators list -o id")
    };
    if args.source.offline {
        return show(ctx, &builtin_evaluator.ok_or_else(missing)?);
    }
    let result = match ctx.client() {
        Ok(client) => client.value(&calls::evaluator(&args.name)).await.map_err(CliError::from),
        Err(error) => Err(error),
    };
    match (result, builtin_evaluator) {
        (Ok(evaluator), _) => show(ctx, &evaluator),
        (Err(error), Some(builtin_evaluator)) if is_server_unavailable(&error) => {
            ctx.out.note(&format!(
                "{}; showing the built-in evaluator that this program contains",
                error.message
            ));
            show(ctx, &builtin_evaluator)
        }
        (Err(error), None) if error.exit == Exit::NotFound => {
            Err(CliError { response: error.response, ..missing() })
        }
        (Err(error), _) => Err(error),
    }
}

/// Returns every evaluator of the server.
async fn rows(ctx: &Ctx) -> Result<Vec<Value>> {
    pages::all(&ctx.client()?, EVALUATOR_VIEW.plural, calls::evaluators).await
}

/// Adds a hint to an error about a refused metric, option or field of an evaluator: the command that shows
/// the valid values.
pub fn with_evaluator_hint(error: CliError, metric: &str) -> CliError {
    let fields = error.response.as_ref().and_then(|it| it.body.get("fields"));
    let field = fields.and_then(|it| it.get(0)?.get("field")?.as_str()).unwrap_or_default();
    // Paths are written with dots or with brackets.
    let hint = match field.split(['.', '[']).next().unwrap_or_default() {
        "metric_name" => "list the names: loupe evaluators list -o id".to_owned(),
        "config" | "evaluator_type" => format!("show its options: loupe evaluators get {metric}"),
        "checks" | "rubric" | "scale" | "combine" => "see `loupe help custom-evaluators`".to_owned(),
        _ => return error,
    };
    error.hint(hint)
}

/// Returns whether the server is unreachable or there is no credential. A refusal by the server is not
/// included.
fn is_server_unavailable(error: &CliError) -> bool {
    error.exit == Exit::Unreachable || (error.exit == Exit::Unauthenticated && error.response.is_none())
}

/// Shows an evaluator: in full on a terminal, otherwise as a row.
fn show(ctx: &mut Ctx, evaluator: &Value) -> Result {
    ctx.out.whole(&EVALUATOR_VIEW, evaluator, view::sheet)
}
