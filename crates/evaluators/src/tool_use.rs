//! Common parts of the two code evaluators of tool calls.

pub(crate) mod argument;
mod instant;
pub(crate) mod matching;
pub(crate) mod parameters;

use serde_json::{Map, Value};

use crate::{
    definition::ConfigProblem,
    subject::{Reading, Subject},
    verdict::Unjudged,
};

/// Maximum number of names or calls that a config may expect.
pub(crate) const MOST_EXPECTED: usize = 100;
/// Maximum length of the name of a tool or an argument in a message, in characters.
const LONGEST_NAME: usize = 64;

/// Returns a name for a message. Names may come from a trace, so a name with unusual characters is not
/// repeated.
pub(crate) fn named(name: &str) -> &str {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.' | ':' | '/');
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(plain) { name } else { "…" }
}

/// Joins at most ten sentences, and adds the number of omitted ones.
pub(crate) fn told(mut sentences: Vec<String>) -> String {
    if sentences.len() > 10 {
        let more = sentences.len() - 10;
        sentences.truncate(10);
        sentences.push(format!("{more} more"));
    }
    sentences.join("; ")
}

/// Checks that the trace shows an action of a model; only then is the absence of tool calls a choice.
///
/// # Errors
/// When the trace shows no action.
pub(crate) fn something_happened(subject: &Subject, reading: &Reading) -> Result<(), Unjudged> {
    let answered = reading.output().is_some_and(|it| !it.trim().is_empty());
    if answered || !subject.steps.is_empty() || !reading.calls().is_empty() {
        return Ok(());
    }
    Err(Unjudged::new(
        "the trace shows neither an answer nor any span, so that nobody can tell which tools were called: send \
         its spans, or the model's answer with its `tool_calls` as `output`",
    ))
}

/// Parses an option with a few allowed words; the first word is the default.
pub(crate) fn choice<'a>(
    config: &Map<String, Value>,
    option: &str,
    words: &[&'a str],
) -> Result<&'a str, ConfigProblem> {
    let given = match config.get(option) {
        None | Some(Value::Null) => return Ok(words[0]),
        Some(given) => given.as_str().unwrap_or_default(),
    };
    match words.iter().find(|it| **it == given) {
        Some(word) => Ok(word),
        None => Err(ConfigProblem::new(option, format!("must be {}", words.join(" or ")))),
    }
}

/// Parses a list of names.
pub(crate) fn names(config: &Map<String, Value>, option: &str) -> Result<Option<Vec<String>>, ConfigProblem> {
    let wrong =
        || ConfigProblem::new(option, format!("must be a list of at most {MOST_EXPECTED} names of tools"));
    match config.get(option) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(list)) if list.len() <= MOST_EXPECTED => {
            let names = list.iter().map(|it| it.as_str().filter(|it| !it.is_empty()).map(str::to_owned));
            names.collect::<Option<Vec<String>>>().map(Some).ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}
