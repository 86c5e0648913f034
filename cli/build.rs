//! Writes the list of the built-in evaluators as data, so that the program can show them without containing
//! the code that evaluates.

use std::{error::Error, fs, path::Path};

use api::evaluator::Evaluator;

#[expect(clippy::disallowed_methods, reason = "this is how cargo tells a build script where to write")]
fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::var("OUT_DIR")?;
    let all: Vec<Evaluator> = evaluators::builtin::ALL.iter().map(|it| it.described()).collect();
    let names: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
    fs::write(Path::new(&folder).join("builtin.json"), serde_json::to_string(&all)?)?;
    fs::write(Path::new(&folder).join("names.rs"), format!("&{names:?}"))?;
    Ok(())
}
