//! The commands: one file or folder for each noun, one function for each verb, with its arguments beside
//! it.
//!
//! This file declares a command in four places: its module, its variant of [`Command`] with the help of one
//! line, its entry in the [`OVERVIEW`], and its arm in [`run`].

pub mod api;
pub mod audit;
pub mod auth;
pub mod completion;
pub mod config;
pub mod console;
pub mod context;
pub mod credentials;
pub mod doctor;
pub mod evals;
pub mod evaluators;
pub mod feedback;
pub mod help;
pub mod keys;
pub mod man;
pub mod members;
pub mod metrics;
pub mod projects;
pub mod rules;
pub mod sessions;
pub mod spans;
pub mod traces;

// Parts that several commands share.
pub mod between;
pub mod document;
pub mod listing;
pub mod secret_file;
pub mod tree;

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
    Auth(auth::Command),
    /// Servers by name, each with project and protection: list, use, show, set, delete
    #[command(subcommand, alias = "contexts")]
    Context(context::Command),
    /// Settings and their sources: list, get, set, unset, path, edit
    #[command(subcommand)]
    Config(config::Command),
    /// API keys: create, list, get, revoke
    #[command(subcommand, alias = "key")]
    Keys(keys::Command),
    /// Projects: create, list, get, update, archive, unarchive, choose one
    #[command(subcommand, alias = "project")]
    Projects(projects::Command),
    /// Members and their seats: list, remove, restore
    #[command(subcommand, alias = "member")]
    Members(members::Command),
    /// Your own API keys for model providers: list, set, delete
    #[command(subcommand, alias = "credential")]
    Credentials(credentials::Command),
    /// Sessions (conversations that traces belong to): list
    #[command(subcommand, alias = "session")]
    Sessions(sessions::Command),
    /// Traces: list, get, follow, send, export, delete
    #[command(subcommand, alias = "trace")]
    Traces(traces::Command),
    /// Spans: search by meaning
    #[command(subcommand, alias = "span")]
    Spans(spans::Command),
    /// Search spans by meaning; the same as `spans search`
    #[command(before_help = spans::EXAMPLES)]
    Search(spans::SearchArgs),
    /// Metrics of traces and of projects: show, project
    #[command(subcommand, alias = "metric")]
    Metrics(metrics::Command),
    /// Evaluations: list, get, run, wait, bulk, progress
    #[command(subcommand, alias = "eval")]
    Evals(evals::Command),
    /// Evaluators, built-in and your own: list, get, create, update, delete
    #[command(subcommand, alias = "evaluator")]
    Evaluators(evaluators::Command),
    /// Eval rules, which run an evaluator on each matching trace: create, list, get, update, enable,
    /// disable, delete, test, backfill, decisions
    #[command(subcommand, alias = "rule")]
    Rules(rules::Command),
    /// Feedback of users and reviewers on traces: add, list
    #[command(subcommand)]
    Feedback(feedback::Command),
    /// Audit log, newest changes first: list
    #[command(subcommand)]
    Audit(audit::Command),
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
    /// Show help on exit codes, filters, output, environment, credentials, evaluators of your own
    Help(help::HelpArgs),
}

/// The overview that `loupe` prints without arguments. A test requires the name of every command in it.
pub const OVERVIEW: &str = "\
loupe: follow, read and send the traces of LLM applications

  auth        login, logout, status, token     who you are, limits and usage
  context     list, use, show, set, delete     servers by name
  config      list, get, set, unset, path, edit
  projects    create, list, get, update, archive, unarchive, use
  keys        create, list, get, revoke        needs a session
  members, credentials                         need a session too
  traces      list, get, tail, send, export, delete
  search      TEXT                             spans by meaning
  metrics     show, project                    numbers, charts, gates
  evals       run, wait, bulk, list, get       judge traces, gate a build
  evaluators, rules                            what judges, and which traces
  feedback    add, list                        sessions, audit   list
  api         METHOD PATH                      any request
  console, doctor, completion, man             for your terminal and shell
  help        exit-codes, filters, output, environment, auth, own-evaluators

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
        Command::Spans(spans::Command::Search(args)) | Command::Search(args) => {
            spans::search(ctx, args).await
        }
        Command::Metrics(command) => metrics::run(ctx, command).await,
        Command::Evals(command) => evals::run(ctx, command).await,
        Command::Evaluators(command) => evaluators::run(ctx, command).await,
        Command::Rules(command) => rules::run(ctx, command).await,
        Command::Feedback(command) => feedback::run(ctx, command).await,
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
        matches!(self, Self::Auth(auth::Command::Login(_)) | Self::Context(_))
    }

    /// Returns whether the command works without configuration, and so even if the configuration files are
    /// invalid.
    pub fn is_offline(&self) -> bool {
        use config::Command::{Edit, Path};
        let about_files = matches!(self, Self::Config(Path | Edit));
        about_files || matches!(self, Self::Help(_) | Self::Completion(_) | Self::Man(_))
    }

    /// Returns whether the command runs until it is stopped or reaches its own limit. `--timeout` then
    /// limits each request only.
    pub fn runs_on(&self) -> bool {
        match self {
            Self::Evals(command) => command.waits(),
            Self::Rules(command) => command.waits(),
            Self::Console(_) => true,
            Self::Traces(command) => {
                matches!(command, traces::Command::Tail(_) | traces::Command::Export(_))
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
        let words: Vec<&str> = OVERVIEW.split(|c: char| !c.is_alphanumeric()).collect();
        for command in tree::command().get_subcommands() {
            let name = command.get_name();
            assert!(words.contains(&name), "the overview does not name `{name}`:\n{OVERVIEW}");
        }
    }
}
