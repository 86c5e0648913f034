//! `--jq`: runs a jq program on JSON, without the program `jq`.

use jaq_core::{
    Compiler, Ctx, Vars, data,
    load::{Arena, File, Loader},
    unwrap_valr,
};
use jaq_json::{Val, read};

use super::json;
use crate::{
    error::{CliError, Result},
    exit::Exit,
};

/// A compiled jq program.
pub struct Program {
    filter: jaq_core::compile::Filter<jaq_core::Native<data::JustLut<Val>>>,
}

impl Program {
    /// Compiles a program. An invalid program is a usage error that names the position.
    pub fn compile(code: &str) -> Result<Self> {
        let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
        let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let arena = Arena::default();
        let program = File { code, path: () };
        let wrong = |what: String| {
            CliError::usage(format!("--jq: {what}")).hint("for example --jq '.traces[0].id' --raw")
        };
        let modules = Loader::new(defs)
            .load(&arena, program)
            .map_err(|_| wrong(format!("`{code}` is not a jq program")))?;
        let filter = Compiler::default().with_funs(funs).compile(modules).map_err(|errors| {
            let undefined = errors.iter().flat_map(|(_, errors)| errors.iter().map(|(name, _)| *name)).next();
            wrong(format!("`{}` is not defined", undefined.unwrap_or(code)))
        })?;
        Ok(Self { filter })
    }

    /// Runs the program on JSON text. Each result is a line, or a block if `pretty`. `raw` writes strings
    /// without quotes.
    pub fn run(&self, input: &str, raw: bool, pretty: bool) -> Result<String> {
        let failed = |what: String| CliError::new(Exit::Unexpected, format!("--jq: {what}"));
        let input = read::parse_single(input.as_bytes())
            .map_err(|_| failed("the input can't be read as JSON".to_owned()))?;
        let context = Ctx::<data::JustLut<Val>>::new(&self.filter.lut, Vars::new([]));
        let mut text = String::new();
        for result in self.filter.id.run((context, input)).map(unwrap_valr) {
            let value = result.map_err(|error| failed(error.to_string()))?;
            text.push_str(&show(&value, raw, pretty));
            text.push('\n');
        }
        Ok(text)
    }
}

fn show(value: &Val, raw: bool, pretty: bool) -> String {
    if let Val::TStr(bytes) | Val::BStr(bytes) = value
        && raw
    {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let compact = value.to_string();
    // Values that are not JSON, such as NaN, stay as jq writes them.
    let parsed = serde_json::from_str::<serde_json::Value>(&compact).ok().filter(|_| pretty);
    let text = parsed.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or(compact);
    json::escape(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(code: &str, input: &str, raw: bool) -> String {
        Program::compile(code)
            .and_then(|program| program.run(input, raw, false))
            .unwrap_or_else(|error| error.message)
    }

    #[test]
    fn jq_program_runs_on_json() {
        let input = r#"{"traces":[{"id":"a","n":1},{"id":"b","n":2}]}"#;
        assert_eq!(run(".traces[].id", input, false), "\"a\"\n\"b\"\n");
        assert_eq!(run(".traces[].id", input, true), "a\nb\n");
        assert_eq!(run("[.traces[] | select(.n > 1)] | length", input, false), "1\n");
        assert_eq!(run(".traces | map(.n) | add", input, false), "3\n");
    }

    #[test]
    fn invalid_jq_program_is_a_usage_error() {
        assert_eq!(Program::compile(".[").err().map(|error| error.exit), Some(Exit::Usage));
        assert!(run("nonsense", "{}", false).contains("`nonsense` is not defined"));
        assert!(run(".a", "[]", false).starts_with("--jq: "));
    }
}
