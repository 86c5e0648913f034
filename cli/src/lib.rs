//! The command line of Loupe: arguments in, one command, an exit code out.
//!
//! Commands are under [`commands`], one file each; what they write goes through [`output`],
//! what they go by is settled in [`config`]. Talking to the server is `api::client`'s part,
//! the terminal console is the crate `tui`.

pub mod args;
pub mod commands;
pub mod config;
pub mod ctx;
pub mod error;
pub mod exit;
pub mod find;
pub mod output;
pub mod prompt;

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory, FromArgMatches};

use args::Cli;
use config::{env::Env, expiry::Expiry};
use ctx::Ctx;
use error::{CliError, Result};
use exit::Exit;

/// Runs the process's command line.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let wants_json = asks_for_json(&args);
    let mut matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => return usage(&error, wants_json),
    };
    let cli = match Cli::from_arg_matches_mut(&mut matches) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, wants_json),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let error = CliError::new(Exit::Unexpected, format!("can't start: {error}"));
            return finish(Err(error), wants_json);
        }
    };
    let ended = runtime.block_on(async {
        let signals = signals();
        tokio::select! {
            // What ended has ended: a Ctrl-C that was meant for the pager does not count.
            biased;
            ended = Box::pin(run(cli, Env::of_process(), wants_json)) => ended,
            exit = signals => exit.into(),
        }
    });
    // A read of stdin that nobody answers must not hold up the end.
    runtime.shutdown_background();
    ended
}

/// Whether errors are to be JSON, also where the command line can't be read.
fn asks_for_json(args: &[OsString]) -> bool {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let alone = ["--json", "--jq", "-ojson", "-ondjson", "--output=json", "--output=ndjson"];
    words.iter().any(|word| alone.contains(word))
        || words.windows(2).any(|pair| matches!(pair, ["-o" | "--output", "json" | "ndjson"]))
}

/// The command tree as clap knows it, with examples ahead of the usage.
pub fn command() -> clap::Command {
    fn examples_first(command: clap::Command) -> clap::Command {
        command
            .help_template(
                "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}",
            )
            .mut_subcommands(examples_first)
    }
    examples_first(Cli::command())
}

async fn run(cli: Cli, env: Env, wants_json: bool) -> ExitCode {
    let Cli { mut global, command } = cli;
    let Some(command) = command else {
        let mut out = match output::Out::of_process(&global, &env, output::Format::Table, false) {
            Ok(out) => out,
            Err(error) => return finish(Err(error), wants_json),
        };
        return finish(out.write(commands::help::SHORT), wants_json);
    };
    global.new_context = command.makes_contexts();
    let settings = if command.is_offline() {
        config::Settings::resolve(
            &global.without_target(),
            &Env { vars: Default::default(), cwd: None, ..env.clone() },
        )
    } else {
        config::Settings::resolve(&global, &env)
    };
    let ctx = settings.and_then(|settings| Ctx::new(global, env, settings));
    let mut ctx = match ctx {
        Ok(ctx) => ctx,
        Err(error) => return finish(Err(error), wants_json),
    };
    let as_json = ctx.out.format.is_json();
    let limit = ctx.settings.timeout.as_ref().map(|limit| limit.value).filter(|_| !command.runs_on());
    let work = commands::run(&mut ctx, command);
    let mut ended = match limit {
        None => work.await,
        Some(limit) => tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
            Err(CliError::new(Exit::Unreachable, format!("not done within {limit:?}")).hint("see --timeout"))
        }),
    };
    if let Err(error) = &mut ended
        && error.exit == Exit::Unauthenticated
    {
        error.detail.extend(Expiry::of(&ctx.settings).and_then(|expiry| expiry.over()));
    }
    finish(ended, as_json)
}

/// Prints what went wrong, and turns it into the exit code.
fn finish(ended: Result, as_json: bool) -> ExitCode {
    match ended {
        Ok(()) => Exit::Done.into(),
        Err(error) if error.is_closed_pipe() => Exit::Done.into(),
        Err(error) => {
            output::error(&error, as_json);
            error.exit.into()
        }
    }
}

/// Help and version are no errors, and a wrong command line is one of ours.
fn usage(error: &clap::Error, wants_json: bool) -> ExitCode {
    if !error.use_stderr() {
        // A closed pipe is the reader's choice.
        _ = error.print();
        return Exit::Done.into();
    }
    if wants_json {
        let text = error.render().to_string();
        let message = text.trim_start_matches("error: ").lines().next().unwrap_or_default().to_owned();
        output::error(&CliError::usage(message).hint("see --help"), true);
    } else {
        _ = error.print();
    }
    Exit::Usage.into()
}

/// The signals that end the program. They are caught from this call on, not only once the
/// answer is awaited.
fn signals() -> impl Future<Output = Exit> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (interrupt, terminate) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
        async move {
            // Where signals can't be caught they end the program as they always do.
            let (Ok(mut interrupt), Ok(mut terminate)) = (interrupt, terminate) else {
                return std::future::pending().await;
            };
            tokio::select! {
                _ = interrupt.recv() => Exit::Interrupted,
                _ = terminate.recv() => Exit::Terminated,
            }
        }
    }
    #[cfg(not(unix))]
    async {
        _ = tokio::signal::ctrl_c().await;
        Exit::Interrupted
    }
}
