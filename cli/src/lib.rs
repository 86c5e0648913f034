//! The command line of Loupe: parses the arguments, runs one command and returns its exit code.
//!
//! Commands are under [`commands`], one file each. They write through [`output`] and get their settings
//! from [`config`]. The module `api::client` talks to the server; the crate `tui` is the terminal console.

pub mod args;
pub mod commands;
pub mod config;
pub mod ctx;
pub mod env;
pub mod error;
pub mod exit;
pub mod find;
pub mod format;
pub mod output;
pub mod pages;
pub mod prompt;

use std::{ffi::OsString, process::ExitCode, time::Duration};

use clap::FromArgMatches;
use tokio::sync::watch;

use commands::{Cli, command_tree};
use config::expiry::SessionExpiry;
use ctx::{Ctx, Signal};
use env::Env;
use error::{CliError, Result};
use exit::Exit;

/// Time that a command gets to clean up after a signal. A command that reads stdin on the main thread does not
/// notice the signal.
const CLEAN_UP_WAIT: Duration = Duration::from_millis(300);
/// The same for a command that must send a request to clean up.
const REQUEST_CLEAN_UP_WAIT: Duration = Duration::from_secs(5);

/// Runs the process's command line.
#[expect(clippy::disallowed_methods, reason = "the server's way to spawn is not for a command line")]
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let wants_json = requests_json(&args);
    let parsed = command_tree::terminal_command()
        .try_get_matches_from(&args)
        .and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &args, wants_json),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let why = api::plain::io_error(&error);
            let error = CliError::new(Exit::Unexpected, format!("can't start: {why}"));
            return finish(Err(error), wants_json);
        }
    };
    let cleans_up = cli.command.as_ref().is_some_and(commands::Command::cleans_up);
    let result = runtime.block_on(async {
        let (notice, signal) = watch::channel(None);
        let wait = if cleans_up { REQUEST_CLEAN_UP_WAIT } else { CLEAN_UP_WAIT };
        tokio::spawn(end_on_signal(signals(), notice, wait));
        let work = Box::pin(run(cli, Env::of_process(), wants_json, Signal(signal.clone())));
        tokio::select! {
            // A finished command takes precedence over a signal: Ctrl-C may have been meant for the pager.
            biased;
            result = work => match *signal.borrow() {
                Some(exit) if cleans_up => exit.into(),
                _ => result,
            },
            exit = Signal(signal.clone()).received(), if !cleans_up => exit.into(),
        }
    });
    // A prompt's thread may still be waiting for a key in raw mode. The process ends without joining it.
    prompt::restore_terminal();
    // A pending read of stdin must not delay the exit.
    runtime.shutdown_background();
    result
}

/// Returns whether errors are printed as JSON; also works if the command line is invalid.
fn requests_json(args: &[OsString]) -> bool {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let alone = ["--json", "--jq", "-ojson", "-ondjson", "--output=json", "--output=ndjson"];
    words.iter().any(|word| alone.contains(word))
        || words.windows(2).any(|pair| matches!(pair, ["-o" | "--output", "json" | "ndjson"]))
}

/// Cancels the command at the first signal, so that it cleans up; a command that sends requests for this ends by itself.
/// Ends the process if the command does not end in time, or at the second signal.
async fn end_on_signal(mut signals: Signals, notice: watch::Sender<Option<Exit>>, wait: Duration) {
    let exit = loop {
        match signals.next().await {
            // Ctrl-C reaches the pager too, which keeps running.
            Exit::Interrupted if output::pager::is_open() => {}
            exit => break exit,
        }
    };
    // The send fails if the command has ended in the meantime, which is harmless.
    _ = notice.send(Some(exit));
    prompt::restore_terminal();
    _ = tokio::time::timeout(wait, signals.next()).await;
    std::process::exit(exit.code().into());
}

async fn run(cli: Cli, env: Env, wants_json: bool, signal: Signal) -> ExitCode {
    let Cli { mut global, command } = cli;
    let Some(command) = command else {
        let mut out = match output::Output::of_process(&global, &env, format::Format::Table, false) {
            Ok(out) => out,
            Err(error) => return finish(Err(error), wants_json),
        };
        return finish(out.write(commands::COMMAND_OVERVIEW), wants_json);
    };
    if global.raw && global.jq.is_none() && !command.accepts_raw() {
        let error = CliError::usage("--raw needs --jq EXPR").hint("see `loupe help output`");
        return finish(Err(error), wants_json);
    }
    global.new_context = command.makes_contexts();
    let settings = if command.is_offline() {
        config::Settings::resolve(
            &global.without_target(),
            &Env { vars: Default::default(), cwd: None, ..env.clone() },
        )
    } else {
        config::Settings::resolve(&global, &env)
    };
    let ctx = settings.and_then(|settings| Ctx::new(global, env, settings, signal));
    let mut ctx = match ctx {
        Ok(ctx) => ctx,
        Err(error) => return finish(Err(error), wants_json),
    };
    let as_json = ctx.out.format.is_json();
    let limit = ctx.settings.timeout.as_ref().map(|limit| limit.value).filter(|_| !command.runs_on());
    let work = commands::run(&mut ctx, command);
    let mut result = match limit {
        None => work.await,
        Some(limit) => tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
            Err(CliError::new(Exit::Unreachable, format!("the command did not finish within {limit:?}"))
                .hint("see --timeout"))
        }),
    };
    if let Err(error) = &mut result
        && error.exit == Exit::Unauthenticated
    {
        error.detail.extend(SessionExpiry::of(&ctx.settings).and_then(|expiry| expiry.expired_message()));
    }
    finish(result, as_json)
}

/// Prints the error of a command, if any, and returns the exit code.
fn finish(result: Result, as_json: bool) -> ExitCode {
    match result {
        Ok(()) => Exit::Success.into(),
        Err(error) if error.is_closed_pipe() => Exit::Success.into(),
        Err(error) => {
            output::error(&error, as_json);
            error.exit.into()
        }
    }
}

/// Handles an error of clap: prints help and version texts to stdout, and reports an invalid command line
/// as a [`CliError`].
fn usage(error: &clap::Error, args: &[OsString], wants_json: bool) -> ExitCode {
    let env = Env::of_process();
    let is_help = !error.use_stderr();
    let flags = args::GlobalArgs { color: requested_colour(args), ..Default::default() };
    let is_terminal = if is_help { env.stdout_tty } else { env.stderr_tty };
    let colour = flags.colour(&Env { stdout_tty: is_terminal, ..env });
    let text = command_tree::printed_text(&error.render(), colour);
    if is_help {
        output::help(&text);
        return Exit::Success.into();
    }
    if wants_json {
        let text = command_tree::printed_text(&error.render(), false);
        let message = text.trim_start_matches("error: ").lines().next().unwrap_or_default().to_owned();
        output::error(&CliError::usage(message).hint("see --help"), true);
    } else {
        output::usage(&text);
    }
    Exit::Usage.into()
}

/// Returns the value of `--color`, even if the command line is invalid.
fn requested_colour(args: &[OsString]) -> Option<args::ColorWhen> {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let joined = words.iter().find_map(|word| word.strip_prefix("--color="));
    let apart = words.windows(2).find_map(|pair| (pair[0] == "--color").then_some(pair[1]));
    clap::ValueEnum::from_str(joined.or(apart)?, true).ok()
}

/// The signals that end the program, caught from the moment of creation.
struct Signals {
    #[cfg(unix)]
    interrupt: Option<tokio::signal::unix::Signal>,
    #[cfg(unix)]
    terminate: Option<tokio::signal::unix::Signal>,
}

/// Starts to catch the signals that end the program.
fn signals() -> Signals {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        // A signal that cannot be caught keeps its default effect.
        let caught = |kind| signal(kind).ok();
        Signals { interrupt: caught(SignalKind::interrupt()), terminate: caught(SignalKind::terminate()) }
    }
    #[cfg(not(unix))]
    Signals {}
}

impl Signals {
    /// Waits for the next signal and returns its exit code.
    async fn next(&mut self) -> Exit {
        #[cfg(unix)]
        {
            async fn received(signal: &mut Option<tokio::signal::unix::Signal>) {
                match signal {
                    Some(signal) => _ = signal.recv().await,
                    None => std::future::pending().await,
                }
            }
            tokio::select! {
                () = received(&mut self.interrupt) => Exit::Interrupted,
                () = received(&mut self.terminate) => Exit::Terminated,
            }
        }
        #[cfg(not(unix))]
        {
            _ = tokio::signal::ctrl_c().await;
            Exit::Interrupted
        }
    }
}
