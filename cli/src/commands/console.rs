//! `loupe console`: hands over to the terminal console.

use clap::Args;

use crate::{
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
};

/// Arguments of `console`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  loupe console\n  loupe console --filter 'error:true' --read-only\n  loupe console --trace 01980f6e-5f0a-7c3e-9d2b-3c1a7b20c07b\n"
)]
pub struct ConsoleArgs {
    /// Screen to begin with
    #[arg(long, value_name = "NAME")]
    screen: Option<String>,
    /// Filter of the trace list, see `loupe help filters`
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Trace to open
    #[arg(long, value_name = "ID")]
    trace: Option<String>,
    /// Offer nothing that changes anything
    #[arg(long)]
    read_only: bool,
    /// Print the keys as TOML and end
    #[arg(long)]
    print_keymap: bool,
}

/// Runs the console until it is left.
pub async fn run(ctx: &mut Ctx, args: ConsoleArgs) -> Result {
    if args.print_keymap {
        return ctx.out.write(&tui::print_keymap());
    }
    let settings = &ctx.settings;
    let options = tui::Options {
        url: settings.url.value.clone(),
        api_key: settings.api_key.as_ref().map(|key| key.value.clone()),
        session_token: settings.session.as_ref().map(|token| token.value.clone()),
        context_name: settings.context_name.as_ref().map(|name| name.value.clone()),
        protected: settings.context.protected,
        read_only: args.read_only || settings.context.read_only,
        project: settings.project.as_ref().map(|project| project.value.clone()),
        filter: args.filter,
        trace: args.trace,
        screen: args.screen,
    };
    tui::run(options).await.map_err(|error| {
        if error.is::<tui::NoTerminal>() {
            return CliError::usage(error.to_string());
        }
        CliError::new(Exit::Unexpected, format!("{error:#}"))
    })
}
