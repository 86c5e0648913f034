//! The flags that every command takes.

use clap::{Args, ValueEnum};

use crate::{env::Env, format::Format};

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
    /// With --jq: print strings without quotes; with `prompts get`: print only the template
    #[arg(long, global = true)]
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
    /// Do not show long texts in a pager
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
pub fn positive<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|it| *it > 0).and_then(|it: u64| T::try_from(it).ok());
    number.ok_or_else(|| format!("`{text}` is not a whole number from 1"))
}

impl GlobalArgs {
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

    /// Returns the flags without those that choose a server, for commands that need none.
    pub fn without_target(&self) -> Self {
        Self { context: None, url: None, project: None, ..self.clone() }
    }
}
