//! `loupe help`: the help of each command, and pages about topics that concern several commands.

use api::filter::fields;
use clap::Args;

use crate::{
    commands::{COMMAND_OVERVIEW, command_tree},
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
};

const OUTPUT_PAGE: &str = include_str!("output.txt");
const ENVIRONMENT_PAGE: &str = include_str!("environment.txt");
const AUTH_PAGE: &str = include_str!("auth.txt");
const CUSTOM_EVALUATORS_PAGE: &str = include_str!("custom-evaluators.txt");
const WEBHOOKS_PAGE: &str = include_str!("webhooks.txt");

/// Arguments of `help`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  loupe help exit-codes\n  loupe help filters\n  loupe help webhooks\n  loupe help traces list\n"
)]
pub struct HelpArgs {
    /// A topic (exit-codes, filters, output, environment, auth, custom-evaluators, webhooks) or a command
    topic: Vec<String>,
    /// Print every command, one per line
    #[arg(long, hide = true)]
    list_commands: bool,
}

/// Writes a help page.
pub fn run(ctx: &mut Ctx, args: &HelpArgs) -> Result {
    if args.list_commands {
        return ctx.out.write(&commands());
    }
    let topic: Vec<&str> = args.topic.iter().map(String::as_str).collect();
    let page = match topic.as_slice() {
        [] => COMMAND_OVERVIEW.to_owned(),
        ["exit-codes"] => exit_codes(),
        ["filters"] => filters(),
        ["output"] => OUTPUT_PAGE.to_owned(),
        ["environment"] => ENVIRONMENT_PAGE.to_owned(),
        ["auth"] => AUTH_PAGE.to_owned(),
        ["custom-evaluators"] => CUSTOM_EVALUATORS_PAGE.to_owned(),
        // The page about the topic; `loupe webhooks --help` is the help of the command.
        ["webhooks"] => WEBHOOKS_PAGE.to_owned(),
        words => of_command(words)?,
    };
    ctx.out.show(&page)
}

fn exit_codes() -> String {
    let mut page = String::from("Exit codes\n\n");
    for exit in Exit::ALL {
        page.push_str(&format!("{:>5}  {}\n", exit.code(), exit.meaning()));
    }
    page
}

fn filters() -> String {
    let mut page = String::from(
        "Filters of `traces list` and `traces tail`\n\nTerms are joined by AND. Quote values with blanks: tag:note=\"a b\".\n\n",
    );
    for field in fields() {
        page.push_str(&format!("  {:<24} {}\n", field.term.example, field.term.help));
    }
    page.push_str(
        "  @slow                    a filter saved under [filters] in config.toml or .loupe.toml\n",
    );
    page.push_str("\nDurations: 250ms, 2s, 15m, 1h, 7d. Dates without a zone are local.\n");
    page.push_str("The flags (--model, --error, --latency-min and so on) are equivalent to terms.\n");
    page
}

fn of_command(words: &[&str]) -> Result<String> {
    let mut command = command_tree::terminal_command();
    // The full help contains the full command line, which clap knows only after `build`.
    command.build();
    let mut found = &mut command;
    for word in words {
        found = found.find_subcommand_mut(word).ok_or_else(|| {
            CliError::usage(format!("there is no help about `{}`", words.join(" "))).hint(
                "topics: exit-codes, filters, output, environment, auth, custom-evaluators, webhooks; or a command",
            )
        })?;
    }
    Ok(command_tree::printed_text(&found.render_long_help(), false))
}

/// Returns every command that can be run, one per line.
fn commands() -> String {
    fn walk(command: &clap::Command, path: &str, list: &mut String) {
        for it in command.get_subcommands() {
            let path = format!("{path}{}", it.get_name());
            if it.has_subcommands() {
                walk(it, &format!("{path} "), list);
            } else {
                list.push_str(&format!("{path}\n"));
            }
        }
    }
    let mut list = String::new();
    walk(&command_tree::command(), "", &mut list);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_help_begins_with_examples() {
        for line in commands().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let page = of_command(&words).unwrap();
            let examples = page.find("Examples:").unwrap_or(usize::MAX);
            assert!(examples < page.find("Usage:").unwrap_or_default(), "{line}:\n{page}");
        }
    }

    #[test]
    fn help_pages_fit_a_narrow_terminal() {
        for page in [
            COMMAND_OVERVIEW,
            OUTPUT_PAGE,
            ENVIRONMENT_PAGE,
            AUTH_PAGE,
            CUSTOM_EVALUATORS_PAGE,
            WEBHOOKS_PAGE,
        ] {
            let wide: Vec<&str> = page.lines().filter(|it| it.chars().count() > 80).collect();
            assert_eq!(wide, [] as [&str; 0]);
        }
    }

    #[test]
    fn exit_code_page_lists_every_code() {
        let page = exit_codes();
        assert!(Exit::ALL.iter().all(|exit| page.contains(&format!("{:>5}  ", exit.code()))), "{page}");
    }
}
