//! `loupe man`: writes manual pages, without network or configuration.

use std::path::PathBuf;

use clap::Args;

use super::command_tree;
use crate::{
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
};

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  loupe man --dir ~/.local/share/man/man1\n  loupe man --dir pages && man -l pages/loupe-traces.1\n"
)]
pub struct ManArgs {
    /// Folder for the pages; created if it does not exist
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// Writes a manual page for every command.
pub fn run(ctx: &mut Ctx, args: &ManArgs) -> Result {
    std::fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(command_tree::command(), &args.dir))
        .map_err(|error| {
            CliError::new(
                Exit::Unexpected,
                format!("{}: {}", args.dir.display(), api::plain::io_error(&error)),
            )
        })?;
    ctx.out.note(&format!("pages written to {}", args.dir.display()));
    Ok(())
}
