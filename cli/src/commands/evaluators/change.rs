//! `loupe evaluators create`, `update` and `delete`: change custom evaluators.

use api::{
    client::calls,
    eval::EvaluatorType,
    evaluator::{Combine, EvaluatorChange, NewEvaluator},
};
use clap::Args;
use serde_json::{Value, json};

use super::{builtin::is_builtin, scale, show, view::EVALUATOR_VIEW, with_evaluator_hint};
use crate::{
    commands::{flag_value, report},
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    prompt,
};

/// Fields of a custom evaluator, as flags.
#[derive(Debug, Default, Args)]
pub struct EvaluatorFieldArgs {
    /// For llm: file with the judge's instructions, or - for stdin. {{input}}, {{output}}, {{documents}}
    /// and others name parts of a trace, see `loupe help custom-evaluators`
    #[arg(long, value_name = "FILE|-", conflicts_with = "checks")]
    rubric: Option<String>,
    /// For llm: scale of the judge's scores (default: 0..1): 1..5, or good=1,fair=0.5,bad=0, or JSON
    /// (inline, a file, or - for stdin)
    #[arg(long, value_name = "SCALE|FILE|-", conflicts_with = "checks")]
    scale: Option<String>,
    /// For rule: JSON array of checks (inline, a file, or - for stdin), each an object with a `kind`, see
    /// `loupe help custom-evaluators`
    #[arg(long, value_name = "JSON|FILE|-")]
    checks: Option<String>,
    /// For rule: whether all checks or any check must pass: all, any
    #[arg(long, conflicts_with = "rubric")]
    combine: Option<Combine>,
    /// Description in one sentence
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Display name
    #[arg(long, value_name = "TEXT")]
    display_name: Option<String>,
    /// Category, such as quality or safety; may be repeated or separated by commas
    #[arg(long, value_name = "TAG", value_delimiter = ',')]
    tag: Vec<String>,
    /// JSON Schema of the options: a JSON object, a file, or - for stdin
    #[arg(long, value_name = "JSON|FILE|-")]
    config_schema: Option<String>,
}

/// Arguments of `evaluators create`.
#[derive(Debug, Args)]
pub struct EvaluatorCreateArgs {
    /// Name, which is also the metric name of its evaluations: a-z, 0-9, _ and -, beginning with a letter
    name: String,
    /// llm or rule (default: llm with --rubric, rule with --checks)
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<EvaluatorType>,
    #[command(flatten)]
    fields: EvaluatorFieldArgs,
}

/// Arguments of `evaluators update`. Fields that are not given keep their values.
#[derive(Debug, Args)]
pub struct EvaluatorUpdateArgs {
    /// Name of an evaluator of your own
    name: String,
    #[command(flatten)]
    fields: EvaluatorFieldArgs,
}

/// Fields of a custom evaluator, as they are sent.
struct EvaluatorFields {
    rubric: Option<String>,
    scale: Option<Value>,
    checks: Option<Vec<Value>>,
    combine: Option<String>,
    config_schema: Option<serde_json::Map<String, Value>>,
    tags: Option<Vec<String>>,
}

impl EvaluatorFieldArgs {
    /// Reads and parses the files, before any request.
    fn read(&self) -> Result<EvaluatorFields> {
        Ok(EvaluatorFields {
            rubric: self.rubric.as_deref().map(|it| flag_value::text("--rubric", it)).transpose()?,
            scale: self.scale.as_deref().map(scale::read).transpose()?,
            checks: self.checks.as_deref().map(checks).transpose()?,
            combine: self.combine.map(|it| it.to_string()),
            config_schema: self
                .config_schema
                .as_deref()
                .map(|it| flag_value::object("--config-schema", it))
                .transpose()?,
            tags: (!self.tag.is_empty()).then(|| self.tag.clone()),
        })
    }
}

/// Parses checks: an array, or an object for a single check.
fn checks(given: &str) -> Result<Vec<Value>> {
    match flag_value::value("--checks", given)? {
        Value::Array(checks) => Ok(checks),
        check @ Value::Object(_) => Ok(vec![check]),
        _ => Err(CliError::usage("--checks: must be a JSON array of objects")
            .hint("--checks '[{\"kind\": \"contains\", \"text\": \"order number\"}]'")),
    }
}

/// Creates an evaluator.
pub async fn create(ctx: &mut Ctx, args: EvaluatorCreateArgs) -> Result {
    ctx.out.check(&EVALUATOR_VIEW)?;
    let fields = &args.fields;
    let (has_rubric, has_checks) = (fields.rubric.is_some(), fields.checks.is_some());
    let kind = match (args.kind, has_rubric, has_checks) {
        (Some(EvaluatorType::Llm) | None, true, _) => EvaluatorType::Llm,
        (Some(EvaluatorType::Rule) | None, _, true) => EvaluatorType::Rule,
        (kind, ..) => {
            let message = match kind {
                Some(EvaluatorType::Llm) => "an evaluator of type llm needs a --rubric",
                Some(EvaluatorType::Rule) => "an evaluator of type rule needs --checks",
                None => "an evaluator needs a --rubric for a judge, or --checks for code",
            };
            return Err(CliError::usage(message).hint("examples: loupe evaluators create --help"));
        }
    };
    let EvaluatorFields { rubric, scale, checks, combine, config_schema, tags } = fields.read()?;
    let new = NewEvaluator {
        name: args.name.clone(),
        display_name: args.fields.display_name,
        tags,
        evaluator_type: kind.to_string(),
        description: args.fields.description,
        config_schema,
        rubric,
        scale,
        checks,
        combine,
    };
    let client = ctx.client()?;
    let created =
        ctx.write(&client, &calls::create_evaluator(&new)).await.map_err(|error| match error.exit {
            // The server says that a built-in evaluator cannot be changed, so the hint must not suggest an
            // update.
            Exit::Conflict if is_builtin(&args.name) => {
                error.hint("list the names in use: loupe evaluators list -o id")
            }
            Exit::Conflict => error.hint(format!("change it: loupe evaluators update {}", args.name)),
            _ => with_evaluator_hint(error, &args.name),
        })?;
    let Some(created) = created else { return Ok(()) };
    let name = &args.name;
    ctx.out.note(&format!("{} Created {name}", ctx.out.style.glyphs.ok));
    show(ctx, &created)
}

/// Changes the given fields of an evaluator.
pub async fn update(ctx: &mut Ctx, args: EvaluatorUpdateArgs) -> Result {
    ctx.out.check(&EVALUATOR_VIEW)?;
    let EvaluatorFields { rubric, scale, checks, combine, config_schema, tags } = args.fields.read()?;
    let EvaluatorFieldArgs { display_name, description, .. } = args.fields;
    let change =
        EvaluatorChange { display_name, tags, description, config_schema, rubric, scale, checks, combine };
    if json!(change).as_object().is_some_and(|it| it.is_empty()) {
        return Err(CliError::usage("nothing to change")
            .hint("set --rubric, --scale, --checks, --description or another field"));
    }
    let client = ctx.client()?;
    let changed = ctx.write(&client, &calls::update_evaluator(&args.name, &change)).await;
    let Some(changed) = changed.map_err(|error| with_evaluator_hint(error, &args.name))? else {
        return Ok(());
    };
    let version = changed.get("version").and_then(Value::as_i64).unwrap_or_default();
    ctx.out.note(&format!("{} Changed {}, now version {version}", ctx.out.style.glyphs.ok, args.name));
    show(ctx, &changed)
}

/// Deletes an evaluator.
pub async fn delete(ctx: &mut Ctx, name: &str) -> Result {
    prompt::require_answer(ctx)?;
    let client = ctx.client()?;
    let what = format!(
        "This deletes the evaluator {name}. Its evaluations are kept. Rules that use it must be deleted first."
    );
    prompt::confirm(ctx, &what, name).await?;
    let deleted =
        ctx.write(&client, &calls::delete_evaluator(name)).await.map_err(|error| match error.exit {
            Exit::Conflict => error.hint("list the rules that use it: loupe rules list"),
            _ => error,
        })?;
    if deleted.is_none() {
        return Ok(());
    }
    report(ctx, &format!("deleted {name}"), name, json!({ "name": name, "deleted": true }))
}
