//! Judging tool calls by code: what both tool evaluators share.

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

/// Names or calls that a config may expect.
pub(crate) const MOST_EXPECTED: usize = 100;
/// Characters of a tool's or an argument's name that are repeated.
const LONGEST_NAME: usize = 64;

/// Returns a name for a sentence. Names come from a trace too: what is no plain name is not repeated.
pub(crate) fn named(name: &str) -> &str {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.' | ':' | '/');
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(plain) { name } else { "…" }
}

/// At most ten of these sentences.
pub(crate) fn told(mut sentences: Vec<String>) -> String {
    if sentences.len() > 10 {
        let more = sentences.len() - 10;
        sentences.truncate(10);
        sentences.push(format!("{more} more"));
    }
    sentences.join("; ")
}

/// Checks whether the trace shows anything that a model did; calling no tool is a choice only then.
///
/// # Errors
/// When it shows nothing.
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

/// Reads an option that is one of a few words, the first being the default.
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

/// Reads a list of names.
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
