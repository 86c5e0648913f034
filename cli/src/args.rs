//! The command tree and the flags that every command takes.
//!
//! Arguments of a single command are declared beside the command, under [`crate::commands`].

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    commands::{
        api, audit, auth, completion, config, console, context, credentials, doctor, evals, evaluators,
        feedback, help, keys, man, members, metrics, projects, rules, sessions, spans, traces,
    },
    config::{Sourced, env::Env},
    error::{CliError, Result},
    output::Format,
};

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

/// Flags of every command; they may stand before or after the command.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Flags of every command")]
pub struct GlobalArgs {
    /// Context for this run
    #[arg(short, long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Project, by id or name
    #[arg(short, long, global = true, value_name = "ID_OR_NAME")]
    pub project: Option<String>,
    /// Server base address
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
    /// Output format; default: table on a terminal, tsv otherwise
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT")]
    pub output: Option<Format>,
    /// Same as -o json
    #[arg(long, global = true, conflicts_with = "output")]
    pub json: bool,
    /// Show only these fields, in this order (a,b.c)
    #[arg(long, global = true, value_delimiter = ',', value_name = "FIELDS")]
    pub fields: Vec<String>,
    /// Apply a jq program to the JSON output; implies --json
    #[arg(long, global = true, value_name = "EXPR")]
    pub jq: Option<String>,
    /// With --jq: print strings without quotes
    #[arg(long, global = true, requires = "jq")]
    pub raw: bool,
    /// No notes on stderr; errors still print
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Log each request to stderr; twice: with headers
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Answer yes to confirmations
    #[arg(short, long, global = true)]
    pub yes: bool,
    /// Never prompt; end with code 2 if a prompt is needed
    #[arg(long, global = true)]
    pub no_input: bool,
    /// For commands that write: show the request without sending it
    #[arg(short = 'n', long, global = true)]
    pub dry_run: bool,
    /// When to use colour; overrides NO_COLOR and CLICOLOR_FORCE
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    pub color: Option<ColorWhen>,
    /// Time limit of the whole command (default: 30s for each request)
    #[arg(long, global = true, value_name = "DURATION")]
    pub timeout: Option<String>,
    /// Maximum attempts for each request (default: 3)
    #[arg(long, global = true, value_name = "N", value_parser = positive::<u32>)]
    pub retries: Option<u32>,
    /// Don't show long texts in a pager
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// Whether the command may name a context that does not exist yet.
    #[arg(skip)]
    pub new_context: bool,
}

/// Values of `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// Coloured on a terminal, unless an environment variable decides otherwise.
    Auto,
    /// Always coloured.
    Always,
    /// Never coloured.
    Never,
}

/// Parses a whole number of at least 1.
pub fn positive<T: TryFrom<u64>>(text: &str) -> std::result::Result<T, String> {
    let number = text.parse().ok().filter(|it| *it > 0).and_then(|it: u64| T::try_from(it).ok());
    number.ok_or_else(|| format!("`{text}` is not a whole number from 1"))
}

impl GlobalArgs {
    /// Returns the output format from the flags, `LOUPE_OUTPUT`, the configuration files or the kind of
    /// stdout, in this order.
    pub fn format(&self, env: &Env, configured: Option<Sourced<String>>) -> Result<Sourced<Format>> {
        let read = |Sourced { value, source }: Sourced<String>| {
            Format::from_str(&value, true).map(|format| Sourced::new(format, source.clone())).map_err(|_| {
                let words: Vec<_> = Format::value_variants().iter().map(|it| it.word()).collect();
                CliError::usage(format!("{source}: `{value}` is none of {}", words.join(", ")))
            })
        };
        let variable = env.var("LOUPE_OUTPUT").map(|word| Sourced::new(word.to_owned(), "LOUPE_OUTPUT"));
        let wants_json = self.json || self.jq.is_some();
        match (self.output, variable, configured) {
            (Some(Format::Ndjson), ..) if self.jq.is_some() => Ok(Sourced::new(Format::Ndjson, "flag")),
            _ if wants_json => Ok(Sourced::new(Format::Json, "flag")),
            (Some(format), ..) => Ok(Sourced::new(format, "flag")),
            (None, Some(word), _) => read(word),
            // A configured table format applies to terminals only: in a pipe, cells would be padded and
            // cut.
            (None, None, Some(word))
                if env.stdout_tty || !matches!(word.value.as_str(), "table" | "wide") =>
            {
                read(word)
            }
            (None, None, _) if env.stdout_tty => Ok(Sourced::new(Format::Table, "default")),
            (None, None, _) => Ok(Sourced::new(Format::Tsv, "default off a terminal")),
        }
    }

    /// Returns whether to colour stdout: the flag decides, then `NO_COLOR`, then `CLICOLOR_FORCE`, then
    /// whether stdout is a terminal.
    pub fn colour(&self, env: &Env) -> bool {
        match self.color {
            Some(ColorWhen::Always) => true,
            Some(ColorWhen::Never) => false,
            Some(ColorWhen::Auto) | None if env.var("NO_COLOR").is_some() => false,
            Some(ColorWhen::Auto) | None => {
                env.flag("CLICOLOR_FORCE") || (env.stdout_tty && env.var("TERM") != Some("dumb"))
            }
        }
    }
}

impl GlobalArgs {
    /// Returns the flags without those that choose a server, for commands that need none.
    pub fn without_target(&self) -> Self {
        Self { context: None, url: None, project: None, ..self.clone() }
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
