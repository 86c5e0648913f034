//! The command tree and the flags that every command takes.
//!
//! What a command takes of its own stands beside the command, under [`crate::commands`].

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    commands::{api, auth, completion, console, context, doctor, help, keys, man, projects, traces},
    config::env::Env,
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
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Nouns and verbs.
#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one value of it in a run")]
pub enum Command {
    /// Sign in, sign out, see who you are
    #[command(subcommand)]
    Auth(auth::Command),
    /// Servers by name, with project and level of protection
    #[command(subcommand, alias = "contexts")]
    Context(context::Command),
    /// API keys: create, list, revoke
    #[command(subcommand, alias = "key")]
    Keys(keys::Command),
    /// Projects: list, get, archive, unarchive, choose one
    #[command(subcommand, alias = "project")]
    Projects(projects::Command),
    /// Traces: list, get, follow, send
    #[command(subcommand, alias = "trace")]
    Traces(traces::Command),
    /// Any request, authenticated
    Api(api::ApiArgs),
    /// The terminal console
    #[command(alias = "ui")]
    Console(console::ConsoleArgs),
    /// Check address, clock, credentials and limits
    Doctor(doctor::DoctorArgs),
    /// A completion script for a shell
    Completion(completion::CompletionArgs),
    /// Manual pages, a file a command
    Man(man::ManArgs),
    /// Pages about exit codes, filters, output, environment, credentials
    Help(help::HelpArgs),
}

/// Flags that stand before or after the noun.
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
    /// Keep these fields, in this order (a,b.c)
    #[arg(long, global = true, value_delimiter = ',', value_name = "FIELDS")]
    pub fields: Vec<String>,
    /// A jq program over the JSON; implies --json
    #[arg(long, global = true, value_name = "EXPR")]
    pub jq: Option<String>,
    /// With --jq: strings without quotes
    #[arg(long, global = true, requires = "jq")]
    pub raw: bool,
    /// No notes on stderr; errors still print
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// A line on stderr for each request; twice: headers too
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Answer yes to confirmations
    #[arg(short, long, global = true)]
    pub yes: bool,
    /// Never ask; a needed question ends with code 2
    #[arg(long, global = true)]
    pub no_input: bool,
    /// On writes: show the request and send nothing
    #[arg(short = 'n', long, global = true)]
    pub dry_run: bool,
    /// When to use colour; beats NO_COLOR and CLICOLOR_FORCE
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    pub color: Option<ColorWhen>,
    /// Limit for the whole command (default: 30s for each request)
    #[arg(long, global = true, value_name = "DURATION")]
    pub timeout: Option<String>,
    /// Tries for each request (default: 3)
    #[arg(long, global = true, value_name = "N")]
    pub retries: Option<u32>,
    /// The command may name a context that does not exist yet.
    #[arg(skip)]
    pub new_context: bool,
}

/// Values of `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless the environment says otherwise.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl GlobalArgs {
    /// The output format: flags, `LOUPE_OUTPUT`, what the files say, what stdout is.
    pub fn format(&self, env: &Env, configured: Option<&str>) -> Result<Format> {
        let read = |source: &str, word: &str| {
            Format::from_str(word, true).map_err(|_| {
                let words: Vec<_> = Format::value_variants().iter().map(|it| it.word()).collect();
                CliError::usage(format!("{source}: `{word}` is none of {}", words.join(", ")))
            })
        };
        let wants_json = self.json || self.jq.is_some();
        match (self.output, env.var("LOUPE_OUTPUT"), configured) {
            (Some(Format::Ndjson), ..) if self.jq.is_some() => Ok(Format::Ndjson),
            _ if wants_json => Ok(Format::Json),
            (Some(format), ..) => Ok(format),
            (None, Some(word), _) => read("LOUPE_OUTPUT", word),
            // A configured table would put padding and cut cells into pipes.
            (None, None, Some("table" | "wide") | None) if !env.stdout_tty => Ok(Format::Tsv),
            (None, None, Some(word)) => read("configuration", word),
            (None, None, None) => Ok(Format::Table),
        }
    }

    /// Whether to colour stdout.
    pub fn colour(&self, env: &Env) -> bool {
        match self.color {
            Some(ColorWhen::Always) => true,
            Some(ColorWhen::Never) => false,
            Some(ColorWhen::Auto) | None => {
                let forced = env.flag("CLICOLOR_FORCE");
                let refused = env.var("NO_COLOR").is_some() || env.var("TERM") == Some("dumb");
                forced || (env.stdout_tty && !refused)
            }
        }
    }
}

impl GlobalArgs {
    /// The same without what chooses a server, for commands that need none.
    pub fn without_target(&self) -> Self {
        Self { context: None, url: None, project: None, ..self.clone() }
    }
}

impl Command {
    /// Whether it may name a context that does not exist yet.
    pub fn makes_contexts(&self) -> bool {
        matches!(self, Self::Auth(auth::Command::Login(_)) | Self::Context(_))
    }

    /// Whether it goes on until it is stopped, so that `--timeout` means each request only.
    pub fn runs_on(&self) -> bool {
        matches!(self, Self::Console(_) | Self::Traces(traces::Command::Tail(_)))
    }
}
