//! `loupe console` without a credential: offers the demo, a login, or help.

use std::time::Duration;

use api::profile::Config;
use present::format;

use super::demo::Demo;
use crate::{
    commands::{COMMAND_OVERVIEW, auth},
    config::{DEFAULT_URL, Settings},
    ctx::Ctx,
    error::{CliError, Result, no_credential},
    exit::Exit,
    prompt::{self, MenuItem},
};

/// The credential that the console uses.
pub enum ConsoleStart {
    /// The existing credential, or the one that was just stored.
    Configured,
    /// The credential of a demo server, which stops with the console.
    Demo(Demo),
    /// None: the user read the help or chose nothing, and the console does not open.
    Cancelled,
}

const FIRST_RUN_MENU: [MenuItem; 4] = [
    MenuItem {
        key: '1',
        label: "Try the demo",
        note: "sample traces on this machine, deleted when you quit",
    },
    MenuItem { key: '2', label: "Log in", note: "to a server, with an API key or a session token" },
    MenuItem { key: '3', label: "Help", note: "the commands, and how to send a first trace" },
    MenuItem { key: 'q', label: "Quit", note: "" },
];

/// Makes sure that there is a credential. Without one, asks how to continue.
pub async fn run(ctx: &mut Ctx) -> Result<ConsoleStart> {
    if ctx.settings.api_key.is_some() || ctx.settings.session.is_some() {
        return Ok(ConsoleStart::Configured);
    }
    if ctx.global.no_input || ctx.env.flag("LOUPE_NO_INPUT") {
        return Err(no_credential());
    }
    let place = match &ctx.settings.context_name {
        Some(name) => format!("There is no credential for the context {} yet.", name.value),
        None => "Loupe is not set up on this machine yet.".to_owned(),
    };
    match prompt::choose(ctx, &format!("{place} What would you like to do?"), &FIRST_RUN_MENU).await? {
        Some(0) => Ok(ConsoleStart::Demo(demo(ctx).await?)),
        Some(1) => {
            log_in(ctx).await?;
            Ok(ConsoleStart::Configured)
        }
        Some(2) => {
            // Without a pager, so that the text stays on the screen.
            ctx.out.write(COMMAND_OVERVIEW)?;
            ctx.out.write(FIRST_TRACE)?;
            Ok(ConsoleStart::Cancelled)
        }
        _ => Ok(ConsoleStart::Cancelled),
    }
}

const FIRST_TRACE: &str = "
A server on this machine, and a first trace:
  loupe-server                                   starts it and prints an API key
  loupe auth login                               stores the key
  echo '{\"name\":\"hello\"}' | loupe traces send -  sends a trace
  loupe console                                  shows it
";

/// Starts a demo and switches the settings to its context.
async fn demo(ctx: &mut Ctx) -> Result<Demo> {
    // The demo writes its context to this folder.
    let profile = ctx.settings.profile_dir()?.to_owned();
    ctx.out.note("Starting the demo; this takes a few seconds. It stops when you quit the console.");
    let sentence = |elapsed: Duration| format!("creating traces, {}", format::elapsed(elapsed.as_secs()));
    let demo = ctx.out.waiting("").during(sentence, Demo::start(&ctx.env)).await?;
    // The context's name depends on the existing contexts.
    let contexts = Config::load(&profile)?.contexts;
    let written = contexts.into_iter().find(|(_, context)| context.url.as_deref() == Some(demo.url.as_str()));
    let Some((name, _)) = written else {
        return Err(CliError::new(Exit::Unexpected, "the demo wrote no context")
            .hint("start the demo yourself: loupe-server demo"));
    };
    ctx.global.context = Some(name);
    ctx.global.url = Some(demo.url.clone());
    ctx.settings = Settings::resolve(&ctx.global, &ctx.env)?;
    Ok(demo)
}

/// Asks for a server and a credential, and stores both.
async fn log_in(ctx: &mut Ctx) -> Result {
    if ctx.settings.url.source == "default" {
        ctx.out.ask(&format!("Address of the server [{DEFAULT_URL}]: "));
        let typed = prompt::line().await?;
        let url = if typed.is_empty() { DEFAULT_URL.to_owned() } else { typed };
        ctx.global.url = Some(url);
        ctx.settings = Settings::resolve(&ctx.global, &ctx.env)?;
    }
    auth::sign_in(ctx).await?;
    ctx.settings = Settings::resolve(&ctx.global, &ctx.env)?;
    Ok(())
}
