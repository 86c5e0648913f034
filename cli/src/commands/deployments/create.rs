//! `loupe deployments create`: creates a version of a prompt.

use api::{
    client::calls,
    deployment::{NewPromptDeployment, NewPromptTest, TestMode},
};
use clap::Args;
use present::share;

use super::view::{DEPLOYMENT_VIEW, sheet, title};
use crate::{
    args::positive,
    commands::{action_config::template, actions::action_id, evals::view::text_member},
    config::duration,
    ctx::Ctx,
    error::{CliError, Result},
    find,
};

/// Length of an hour in milliseconds.
const HOUR_MILLIS: u128 = 3_600_000;

/// Name of the group of flags that give the text; exactly one is required.
const TEXT_GROUP: &str = "text";

/// Arguments of `deployments create`; the project is the one of `--project`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new(TEXT_GROUP).required(true))]
pub struct DeploymentCreateArgs {
    /// The name of the prompt
    #[arg(long, value_name = "NAME")]
    prompt: String,
    /// File with the text of the prompt, or - for stdin; a line break at its end is ignored
    #[arg(long, value_name = "FILE|-", group = TEXT_GROUP)]
    template: Option<String>,
    /// A successful prompt_modification whose system message becomes the text: its id, or the last
    /// characters of it
    #[arg(long, value_name = "ID", group = TEXT_GROUP)]
    from_action: Option<String>,
    /// The model that applications should use
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    #[command(flatten)]
    test: TestArgs,
}

/// The test against the shipped version, as flags.
#[derive(Debug, Args)]
#[command(next_help_heading = "Test against the shipped version")]
pub struct TestArgs {
    /// The metric whose scores are compared, see `loupe evaluators list`
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
    /// Run the version on stored inputs with the tenant's key, instead of on a share of the traffic
    #[arg(long)]
    replay: bool,
    /// Share of the traffic that gets the version: 0.1 or 10% (default: 50%)
    #[arg(long, value_name = "SHARE", value_parser = share::parse, conflicts_with = "replay")]
    traffic_share: Option<f64>,
    /// Scores of each version at which the test is decided (default: 100)
    #[arg(long, value_name = "N", value_parser = positive::<i64>)]
    min_samples: Option<i64>,
    /// Probability of passing a version that is worse by the permitted regression (default: 0.05)
    #[arg(long, value_name = "P")]
    alpha: Option<f64>,
    /// By how much the mean score may be lower (default: 0, it must be higher)
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true)]
    max_regression: Option<f64>,
    /// Time in whole hours after which an undecided test fails (default: 7d)
    #[arg(long, value_name = "DURATION", value_parser = whole_hours)]
    max_duration: Option<i64>,
}

/// Parses `--max-duration`. The server checks the maximum.
fn whole_hours(text: &str) -> std::result::Result<i64, String> {
    let duration = duration(text).map_err(|error| error.message)?.as_millis();
    match i64::try_from(duration / HOUR_MILLIS) {
        Ok(hours) if hours > 0 && duration % HOUR_MILLIS == 0 => Ok(hours),
        _ => Err(format!("`{text}` is not a whole number of hours, such as 12h or 7d")),
    }
}

impl TestArgs {
    /// Returns the test of the request; `None` without flags.
    fn to_test(&self) -> Option<NewPromptTest> {
        let Self { metric, replay: _, traffic_share, min_samples, alpha, max_regression, max_duration } =
            self;
        let test = NewPromptTest {
            metric_name: metric.clone(),
            traffic_share: *traffic_share,
            min_samples: *min_samples,
            alpha: *alpha,
            max_regression: *max_regression,
            max_duration_hours: *max_duration,
        };
        (test != NewPromptTest::default()).then_some(test)
    }
}

/// Creates a version of a prompt.
pub async fn run(ctx: &mut Ctx, args: DeploymentCreateArgs) -> Result {
    let client = ctx.session_client("creating a prompt deployment")?;
    let template = args.template.as_deref().map(|it| template("--template", it)).transpose()?;
    let Some(project_id) = find::current_project(&client, &ctx.settings).await? else {
        return Err(CliError::usage("a prompt belongs to a project")
            .hint("-p PROJECT, or loupe projects use PROJECT; `loupe projects list` shows them"));
    };
    let source_action_id = match &args.from_action {
        Some(wanted) => Some(action_id(ctx, &client, wanted).await?),
        None => None,
    };
    let new = NewPromptDeployment {
        project_id,
        prompt_name: args.prompt,
        template,
        source_action_id,
        model: args.model,
        mode: args.test.replay.then(|| TestMode::Replay.to_string()),
        ab: args.test.to_test(),
    };
    let Some(deployment) = ctx.write(&client, &calls::create_deployment(&new)).await? else {
        return Ok(());
    };
    let id = text_member(&deployment, "id");
    let next = match text_member(&deployment, "status") {
        "ab_passed" => format!("it waits for approval: loupe deployments approve {id}"),
        status => format!("it is {status}; see loupe deployments get {id}"),
    };
    ctx.out.note(&format!("{} Created {}, {next}", ctx.out.style.glyphs.ok, title(&deployment)));
    ctx.out.whole(&DEPLOYMENT_VIEW, &deployment, sheet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_a_whole_number_of_hours() {
        for (text, hours) in [("1h", 1), ("7d", 168), ("120m", 2)] {
            assert_eq!(whole_hours(text), Ok(hours), "{text}");
        }
        assert!(whole_hours("90m").is_err() && whole_hours("0").is_err());
    }
}
