//! Which output format a run uses.

use clap::ValueEnum;

use super::Sourced;
use crate::{
    args::GlobalArgs,
    env::Env,
    error::{CliError, Result},
    format::Format,
};

/// Returns the output format from the flags, `LOUPE_OUTPUT`, the configuration files or the kind of
/// stdout, in this order.
pub fn resolve(
    global: &GlobalArgs,
    env: &Env,
    configured: Option<Sourced<String>>,
) -> Result<Sourced<Format>> {
    let read = |Sourced { value, source }: Sourced<String>| {
        Format::from_str(&value, true).map(|format| Sourced::new(format, source.clone())).map_err(|_| {
            let words: Vec<_> = Format::value_variants().iter().map(|it| it.word()).collect();
            CliError::usage(format!("{source}: `{value}` is not one of {}", words.join(", ")))
        })
    };
    let variable = env.var("LOUPE_OUTPUT").map(|word| Sourced::new(word.to_owned(), "LOUPE_OUTPUT"));
    let wants_json = global.json || global.jq.is_some();
    match (global.output, variable, configured) {
        (Some(Format::Ndjson), ..) if global.jq.is_some() => Ok(Sourced::new(Format::Ndjson, "flag")),
        _ if wants_json => Ok(Sourced::new(Format::Json, "flag")),
        (Some(format), ..) => Ok(Sourced::new(format, "flag")),
        (None, Some(word), _) => read(word),
        // A configured table format applies to terminals only: in a pipe, cells would be padded and
        // cut.
        (None, None, Some(word)) if env.stdout_tty || !matches!(word.value.as_str(), "table" | "wide") => {
            read(word)
        }
        (None, None, _) if env.stdout_tty => Ok(Sourced::new(Format::Table, "default")),
        (None, None, _) => Ok(Sourced::new(Format::Tsv, "default off a terminal")),
    }
}
