//! The commands: one file or folder for each noun, one function for each verb, with its arguments beside
//! it.
//!
//! This file declares a command in four places: its module, its variant of [`Command`] with the help of one
//! line, its entry in the [`COMMAND_OVERVIEW`], and its arm in [`run`].

pub mod actions;
pub mod anomalies;
pub mod api;
pub mod approvals;
pub mod audit;
pub mod auth;
pub mod completion;
pub mod config;
pub mod console;
pub mod context;
pub mod credentials;
pub mod deployments;
pub mod doctor;
pub mod evals;
pub mod evaluators;
pub mod failure_rules;
pub mod failures;
pub mod feedback;
pub mod help;
pub mod keys;
pub mod man;
pub mod members;
pub mod metrics;
pub mod policies;
pub mod projects;
pub mod prompts;
pub mod rejections;
pub mod rules;
pub mod sessions;
pub mod spans;
pub mod traces;
pub mod webhooks;

// Parts that several commands share.
pub mod action_config;
pub mod command_tree;
pub mod decision;
pub mod flag_value;
pub mod listing;
pub mod outage;
pub mod period;
pub mod rule_filter;
pub mod secret_file;
pub mod seen_ids;

use ::api::text::printable;
use clap::{Parser, Subcommand};
use serde_json::Value;

use crate::{args::GlobalArgs, ctx::Ctx, error::Result, format::Format};

/// Follow, read and send the traces of LLM applications.
#[derive(Debug, Parser)]
#[command(
    name = "loupe",
    version,
    disable_help_subcommand = true,
    infer_long_args = false,
    subcommand_required = false,
    before_help = "Examples:\n  loupe auth login --url https://loupe.example.internal\n  loupe traces tail\n  loupe traces list --filter 'error:true from:-1h'"
)]
pub struct Cli {
    /// Flags of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// The command to run.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The top-level commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Sign in, sign out, see who you are
    #[command(subcommand)]
    Auth(auth::AuthCommand),
    /// Servers by name, each with project and protection: list, use, show, set, delete
    #[command(subcommand, alias = "contexts")]
    Context(context::ContextCommand),
    /// Settings and their sources: list, get, set, unset, path, edit
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// API keys: create, list, get, revoke
    #[command(subcommand, alias = "key")]
    Keys(keys::KeyCommand),
    /// Projects: create, list, get, update, redaction, archive, unarchive, use
    #[command(subcommand, alias = "project")]
    Projects(projects::ProjectCommand),
    /// Members and their seats: list, remove, restore
    #[command(subcommand, alias = "member")]
    Members(members::MemberCommand),
    /// Your own API keys for model providers: list, set, delete
    #[command(subcommand, alias = "credential")]
    Credentials(credentials::CredentialCommand),
    /// Sessions (conversations that traces belong to): list
    #[command(subcommand, alias = "session")]
    Sessions(sessions::SessionCommand),
    /// Traces: list, get, tail, send, export, delete
    #[command(subcommand, alias = "trace")]
    Traces(traces::TraceCommand),
    /// Spans: search by meaning
    #[command(subcommand, alias = "span")]
    Spans(spans::SpanCommand),
    /// Search spans by meaning; the same as `spans search`
    #[command(before_help = spans::SEARCH_EXAMPLES)]
    Search(spans::SearchArgs),
    /// Metrics of traces and of projects: show, project
    #[command(subcommand, alias = "metric")]
    Metrics(metrics::MetricCommand),
    /// Evaluations: list, get, run, wait, bulk, progress
    #[command(subcommand, alias = "eval")]
    Evals(evals::EvaluationCommand),
    /// Evaluators, built-in and custom: list, get, create, update, delete
    #[command(subcommand, alias = "evaluator")]
    Evaluators(evaluators::EvaluatorCommand),
    /// Eval rules, which run an evaluator on each matching trace: create, list, get, update, enable,
    /// disable, delete, test, backfill, decisions
    #[command(subcommand, alias = "rule")]
    Rules(rules::RuleCommand),
    /// Failures and failure clusters: list, clusters, cluster, resolve, mute, reopen
    #[command(subcommand, alias = "failure")]
    Failures(failures::FailureCommand),
    /// Failure rules, which trigger webhooks: create, list, get, update, enable, disable, delete
    #[command(subcommand, alias = "failure-rule")]
    FailureRules(failure_rules::FailureRuleCommand),
    /// Webhooks: create, list, get, update, enable, disable, delete, rotate-secret, test, deliveries,
    /// redeliver; tools for receivers: trigger, verify, listen
    #[command(subcommand, alias = "webhook")]
    Webhooks(webhooks::WebhookCommand),
    /// Anomalies of metrics: list
    #[command(subcommand, alias = "anomaly")]
    Anomalies(anomalies::AnomalyCommand),
    /// Policies of the control loop, which request control actions: list, get, create, update, delete
    #[command(subcommand, alias = "policy")]
    Policies(policies::PolicyCommand),
    /// Control actions on traces: list, get, request, diff, approve, reject
    #[command(subcommand, alias = "action")]
    Actions(actions::ActionCommand),
    /// Versions of prompts: list, get, create, approve, reject, rollback
    #[command(subcommand, alias = "deployment")]
    Deployments(deployments::DeploymentCommand),
    /// What waits for approval: list, watch
    #[command(subcommand, alias = "approval")]
    Approvals(approvals::ApprovalCommand),
    /// Prompts as applications get them: get
    #[command(subcommand, alias = "prompt")]
    Prompts(prompts::PromptCommand),
    /// Feedback of users and reviewers on traces: add, list
    #[command(subcommand)]
    Feedback(feedback::FeedbackCommand),
    /// Rejections (spans and traces that ingest did not store, with the reasons): list
    #[command(subcommand, alias = "rejection")]
    Rejections(rejections::RejectionCommand),
    /// Audit log, newest changes first: list
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Send any API request, authenticated
    Api(api::ApiArgs),
    /// Open the terminal console
    #[command(alias = "ui")]
    Console(console::ConsoleArgs),
    /// Check address, clock, credentials and limits
    Doctor(doctor::DoctorArgs),
    /// Print a completion script for a shell
    Completion(completion::CompletionArgs),
    /// Write manual pages, one file for each command
    Man(man::ManArgs),
    /// Show help on exit codes, filters, output, environment, credentials, custom evaluators,
    /// webhooks
    Help(help::HelpArgs),
}

/// The overview that `loupe` prints without arguments. A test requires the name of every command in it.
pub const COMMAND_OVERVIEW: &str = "\
loupe: follow, read and send the traces of LLM applications

  auth        login, logout, status, token     who you are, limits and usage
  context, config                              servers by name, settings
  projects    create, list, get, update, redaction, archive, unarchive, use
  keys        create, list, get, revoke        needs a session
  members, credentials, failures               need a session too
  traces      list, get, tail, send, export, delete
  search      TEXT                             spans by meaning
  metrics     show, project                    numbers, charts, gates
  evals       run, wait, bulk, list, get       evaluate traces, gate a build
  evaluators, rules, failure-rules             what is evaluated and reported
  webhooks    create, test, listen, trigger, verify, deliveries
  policies, actions, approvals, deployments    the control loop; prompts get
  feedback    add, list           anomalies, rejections, sessions, audit   list
  api, console, doctor, completion, man        any request; terminal and shell
  help        TOPIC                            auth, filters, output and others

Start:
  loupe auth login --url https://loupe.example.internal
  loupe traces tail
  loupe console

Every command has examples: loupe traces list --help
";

/// Runs a command.
pub async fn run(ctx: &mut Ctx, command: Command) -> Result {
    match command {
        Command::Auth(command) => auth::run(ctx, command).await,
        Command::Context(command) => context::run(ctx, command).await,
        Command::Config(command) => config::run(ctx, command).await,
        Command::Keys(command) => keys::run(ctx, command).await,
        Command::Projects(command) => projects::run(ctx, command).await,
        Command::Members(command) => members::run(ctx, command).await,
        Command::Credentials(command) => credentials::run(ctx, command).await,
        Command::Sessions(command) => sessions::run(ctx, command).await,
        Command::Traces(command) => traces::run(ctx, command).await,
        Command::Spans(spans::SpanCommand::Search(args)) | Command::Search(args) => {
            spans::search(ctx, args).await
        }
        Command::Metrics(command) => metrics::run(ctx, command).await,
        Command::Evals(command) => evals::run(ctx, command).await,
        Command::Evaluators(command) => evaluators::run(ctx, command).await,
        Command::Rules(command) => rules::run(ctx, command).await,
        Command::Failures(command) => failures::run(ctx, command).await,
        Command::FailureRules(command) => failure_rules::run(ctx, command).await,
        Command::Webhooks(command) => webhooks::run(ctx, command).await,
        Command::Policies(command) => policies::run(ctx, command).await,
        Command::Actions(command) => actions::run(ctx, command).await,
        Command::Deployments(command) => deployments::run(ctx, command).await,
        Command::Approvals(command) => approvals::run(ctx, command).await,
        Command::Prompts(command) => prompts::run(ctx, command).await,
        Command::Anomalies(command) => anomalies::run(ctx, command).await,
        Command::Feedback(command) => feedback::run(ctx, command).await,
        Command::Rejections(command) => rejections::run(ctx, command).await,
        Command::Audit(command) => audit::run(ctx, command).await,
        Command::Api(args) => api::run(ctx, args).await,
        Command::Console(args) => console::run(ctx, args).await,
        Command::Doctor(args) => doctor::run(ctx, args).await,
        Command::Completion(args) => completion::run(ctx, &args),
        Command::Man(args) => man::run(ctx, &args),
        Command::Help(args) => help::run(ctx, &args),
    }
}

impl Command {
    /// Returns whether the command may name a context that does not exist yet.
    pub fn makes_contexts(&self) -> bool {
        matches!(self, Self::Auth(auth::AuthCommand::Login(_)) | Self::Context(_))
    }

    /// Returns whether the command works without configuration, and so even if the configuration files are
    /// invalid.
    pub fn is_offline(&self) -> bool {
        use config::ConfigCommand::{Edit, Path};
        let about_files = matches!(self, Self::Config(Path | Edit));
        about_files || matches!(self, Self::Help(_) | Self::Completion(_) | Self::Man(_))
    }

    /// Returns whether the command sends requests to clean up after a signal. It then ends by itself.
    pub fn cleans_up(&self) -> bool {
        matches!(self, Self::Webhooks(command) if command.cleans_up())
    }

    /// Returns whether `--raw` has a meaning for the command without `--jq`.
    pub fn accepts_raw(&self) -> bool {
        matches!(self, Self::Prompts(command) if command.accepts_raw())
    }

    /// Returns whether the command runs until it is stopped or reaches its own limit. `--timeout` then
    /// limits each request only.
    pub fn runs_on(&self) -> bool {
        match self {
            Self::Evals(command) => command.waits(),
            Self::Rules(command) => command.waits(),
            Self::Webhooks(command) => command.runs_on(),
            Self::Actions(command) => command.waits(),
            Self::Approvals(command) => command.runs_on(),
            Self::Console(_) => true,
            Self::Traces(command) => {
                matches!(command, traces::TraceCommand::Tail(_) | traces::TraceCommand::Export(_))
            }
            _ => false,
        }
    }
}

/// Reports a change without further output: a sentence on a terminal, otherwise a document or the id of
/// the changed resource.
fn report(ctx: &mut Ctx, sentence: &str, id: &str, document: Value) -> Result {
    match ctx.out.format {
        Format::Json | Format::Ndjson => ctx.out.json(&document),
        Format::Id => ctx.out.write(&format!("{}\n", printable(id))),
        _ => {
            ctx.out.note(sentence);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overview_names_every_command() {
        let words: Vec<&str> = COMMAND_OVERVIEW.split(|c: char| !c.is_alphanumeric() && c != '-').collect();
        for command in command_tree::command().get_subcommands() {
            let name = command.get_name();
            assert!(words.contains(&name), "the overview does not name `{name}`:\n{COMMAND_OVERVIEW}");
        }
    }
}
