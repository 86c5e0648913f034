//! Clap's command tree, for parsing, help texts, completions and manual pages.

use clap::{CommandFactory, builder::StyledStr};

use super::Cli;

/// Replaces spaces in the examples of help texts, so that their lines are not wrapped.
const UNBREAKABLE_BLANK: &str = "\u{a0}";

/// Number of examples in the help of a noun.
const NOUN_EXAMPLES: usize = 2;

/// Returns clap's command tree with the examples placed before the usage. A noun shows the first example of its
/// first verbs.
pub fn command() -> clap::Command {
    fn examples_first(command: clap::Command) -> clap::Command {
        let examples = match command.get_before_help() {
            Some(_) => String::new(),
            None => {
                let verbs = command.get_subcommands().filter_map(clap::Command::get_before_help);
                verbs.filter_map(|it| first_example(&it.to_string())).take(NOUN_EXAMPLES).collect()
            }
        };
        let command = match examples.as_str() {
            "" => command,
            _ => command.before_help(format!("Examples:\n{examples}")),
        };
        command
            .help_template(
                "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}",
            )
            .mut_subcommands(examples_first)
    }
    examples_first(Cli::command())
}

/// Returns the first example of a help text with its continuation lines, which are indented further.
fn first_example(help: &str) -> Option<String> {
    let mut lines = help.strip_prefix("Examples:\n")?.lines();
    let first = lines.next()?;
    let continued = lines.take_while(|it| it.starts_with("    "));
    Some(std::iter::once(first).chain(continued).map(|it| format!("{it}\n")).collect())
}

/// Returns the command tree for a terminal: clap wraps help texts to the terminal's width, but not the
/// examples, which must stay copyable.
pub fn terminal_command() -> clap::Command {
    fn unbroken(command: clap::Command) -> clap::Command {
        let examples = command.get_before_help().map(|it| {
            let text = it.to_string();
            let lines = text.lines().map(|line| match line.starts_with(' ') {
                true => line.replace(' ', UNBREAKABLE_BLANK) + "\n",
                false => line.to_owned() + "\n",
            });
            lines.collect::<String>()
        });
        let command = match examples {
            Some(examples) => command.before_help(examples),
            None => command,
        };
        command.mut_subcommands(unbroken)
    }
    unbroken(command())
}

/// Converts text that clap rendered to the printed form, with or without colours.
pub fn printed_text(text: &StyledStr, colour: bool) -> String {
    let text = if colour { text.ansi().to_string() } else { text.to_string() };
    text.replace(UNBREAKABLE_BLANK, " ")
}
