//! The program `loupe`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
