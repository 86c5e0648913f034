//! `loupe console`: runs the terminal console.

mod demo;
mod first_run;

use std::collections::BTreeMap;

use api::profile::{self, Context, Credentials};
use clap::Args;
use serde::Deserialize;

use crate::{
    config::{DEFAULT_URL, Settings},
    ctx::Ctx,
    env::Env,
    error::{CliError, Result},
    exit::Exit,
};
use first_run::ConsoleStart;

/// Arguments of `console`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  loupe console\n  loupe console --filter 'error:true' --read-only\n  loupe console --trace 01980f6e-5f0a-7c3e-9d2b-3c1a7b20c07b\n",
    after_help = "Without a stored credential, the command offers to try the demo, log in, or read help."
)]
pub struct ConsoleArgs {
    /// Screen to open first
    #[arg(long, value_name = "NAME")]
    screen: Option<String>,
    /// Filter of the trace list, see `loupe help filters`
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Trace to open
    #[arg(long, value_name = "ID")]
    trace: Option<String>,
    /// Disable all actions that change data
    #[arg(long)]
    read_only: bool,
    /// Print the key bindings as TOML and exit
    #[arg(long)]
    print_keymap: bool,
}

/// Runs the console until the user quits.
pub async fn run(ctx: &mut Ctx, args: ConsoleArgs) -> Result {
    let keys = keys(&ctx.settings)?;
    if args.print_keymap {
        let keymap = tui::print_keymap(&keys).map_err(|error| CliError::usage(error.to_string()))?;
        return ctx.out.write(&keymap);
    }
    if !can_draw(&ctx.env) {
        return Err(no_terminal());
    }
    match first_run::run(ctx).await? {
        ConsoleStart::Configured => show(ctx, args, keys).await,
        ConsoleStart::Demo(demo) => {
            let shown = show(ctx, args, keys).await;
            demo.stop().await;
            shown
        }
        ConsoleStart::Cancelled => Ok(()),
    }
}

async fn show(ctx: &Ctx, args: ConsoleArgs, keys: tui::Rebinding) -> Result {
    let settings = &ctx.settings;
    let options = tui::Options {
        connection: tui::Connection {
            url: settings.url.value.clone(),
            api_key: settings.api_key.as_ref().map(|key| key.value.clone()),
            session_token: settings.session.as_ref().map(|token| token.value.clone()),
            context: settings.context_name.as_ref().map(|name| name.value.clone()),
            protected: settings.context.protected,
            read_only: args.read_only || settings.context.read_only,
            project: settings.project.as_ref().map(|project| project.value.clone()),
        },
        contexts: contexts(settings, args.read_only)?,
        filters: settings.filters.clone(),
        state_dir: profile::state_dir(|name| ctx.env.var(name).map(str::to_owned)),
        keys,
        filter: args.filter,
        trace: args.trace,
        screen: args.screen,
    };
    tui::run(options).await.map_err(|error| {
        if error.is::<tui::NoTerminal>() {
            return no_terminal();
        }
        if error.is::<tui::KeymapError>() {
            return CliError::usage(error.to_string());
        }
        CliError::new(Exit::Unexpected, tui::describe(&error))
    })
}

/// Returns whether the console can draw: `TERM=dumb` is a terminal that cannot move its cursor.
fn can_draw(env: &Env) -> bool {
    env.stdin_tty && env.stdout_tty && env.var("TERM") != Some("dumb")
}

fn no_terminal() -> CliError {
    CliError::usage("the console needs a terminal that can move its cursor")
        .hint("in a pipe: loupe traces tail, or loupe traces list")
}

/// Returns the contexts that the console can switch to, with their stored credentials. Values from the
/// environment or flags apply only to the context that the console was started with.
fn contexts(settings: &Settings, read_only: bool) -> Result<Vec<tui::Connection>> {
    let credentials = settings.dir.as_deref().map(Credentials::load).transpose()?.unwrap_or_default();
    let connection = |(name, context): (&String, &Context)| {
        let secrets = credentials.contexts.get(name).cloned().unwrap_or_default();
        tui::Connection {
            url: context.url.clone().unwrap_or_else(|| DEFAULT_URL.to_owned()),
            api_key: secrets.api_key,
            session_token: secrets.session_token,
            context: Some(name.clone()),
            protected: context.protected,
            read_only: read_only || context.read_only,
            project: context.project.clone(),
        }
    };
    Ok(settings.config.contexts.iter().map(connection).collect())
}

/// Parses `[keys]` of the configuration: an action's name and one key or a list of keys.
fn keys(settings: &Settings) -> Result<tui::Rebinding> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Keys {
        One(String),
        Several(Vec<String>),
    }
    let Some(section) = settings.config.rest.get("keys") else { return Ok(tui::Rebinding::new()) };
    let keys: BTreeMap<String, Keys> = section.clone().try_into().map_err(|_| {
        CliError::usage("[keys] of config.toml may contain only entries such as `\"action\" = [\"key\"]`")
            .hint("`loupe console --print-keymap` without [keys] prints the names and keys")
    })?;
    let listed = |keys| match keys {
        Keys::One(key) => vec![key],
        Keys::Several(keys) => keys,
    };
    Ok(keys.into_iter().map(|(name, keys)| (name, listed(keys))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::GlobalArgs;

    #[test]
    fn console_needs_a_terminal_that_moves_its_cursor() {
        let terminal = |term: &str| Env {
            vars: [("TERM".to_owned(), term.to_owned())].into(),
            stdin_tty: true,
            stdout_tty: true,
            ..Env::default()
        };
        assert!(can_draw(&terminal("xterm-256color")));
        assert!(!can_draw(&terminal("dumb")), "a shell in an editor");
        assert!(!can_draw(&Env { stdout_tty: false, ..terminal("xterm") }), "a pipe");
    }

    fn settings(config: &str) -> (tempfile::TempDir, Settings) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.toml"), config).unwrap();
        let stored = "[contexts.dev]\napi_key = \"lp_stored\"\n";
        std::fs::write(dir.path().join("credentials.toml"), stored).unwrap();
        let mut env = Env::default();
        env.vars.insert("LOUPE_CONFIG_DIR".into(), dir.path().display().to_string());
        env.vars.insert("LOUPE_API_KEY".into(), "lp_env".into());
        env.vars.insert("LOUPE_URL".into(), "http://env".into());
        let settings = Settings::resolve(&GlobalArgs::default(), &env).unwrap();
        (dir, settings)
    }

    #[test]
    fn other_contexts_get_their_stored_credentials_and_nothing_of_the_environment() {
        let (_dir, settings) = settings(
            "[contexts.dev]\nurl = \"http://dev\"\n[contexts.prod]\nurl = \"https://prod\"\nprotected = true\n",
        );
        let contexts = contexts(&settings, true).unwrap();
        let [dev, prod] = contexts.as_slice() else { panic!("{contexts:?}") };
        assert_eq!((dev.url.as_str(), dev.api_key.as_deref()), ("http://dev", Some("lp_stored")));
        assert_eq!((prod.url.as_str(), prod.api_key.as_deref()), ("https://prod", None));
        assert!(prod.protected && prod.read_only, "--read-only holds everywhere");
    }

    #[test]
    fn configured_keys_are_one_or_several() {
        let (_dir, good) =
            settings("[keys]\n\"list.pause\" = \"ctrl-f\"\n\"find.start\" = [\"f\", \"ctrl-s\"]\n");
        let keys = keys(&good).unwrap();
        assert_eq!(keys["list.pause"], ["ctrl-f"]);
        assert_eq!(keys["find.start"], ["f", "ctrl-s"]);
        let (_dir, bad) = settings("[keys]\n\"list.pause\" = 3\n");
        assert_eq!(super::keys(&bad).unwrap_err().exit.code(), 2);
    }
}
