//! `loupe completion`: prints a completion script for a shell, without network or configuration.

use clap::Args;
use clap_complete::{Shell, generate};

use super::command_tree;
use crate::{ctx::Ctx, error::Result};

/// Arguments of `completion`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  loupe completion bash > ~/.local/share/bash-completion/completions/loupe\n  loupe completion zsh > \"${fpath[1]}/_loupe\"\n"
)]
pub struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes the script.
pub fn run(ctx: &mut Ctx, args: &CompletionArgs) -> Result {
    let mut script = Vec::new();
    generate(args.shell, &mut command_tree::command(), "loupe", &mut script);
    ctx.out.write(&String::from_utf8_lossy(&script))
}
