//! One check of a custom code evaluator. The module `options` parses its options.

use serde_json::Value;

use super::options;
use crate::{
    builtin::{cost_threshold, json_schema_conformance, latency_threshold},
    definition::ConfigProblem,
    form::{
        BLANKS, fence,
        json::{self, Faulty},
        length::Lengths,
    },
    pattern::Pattern,
    schema::{Outcome, Schema},
    sentence::cut,
    subject::{Reading, Subject},
    target::Target,
    verdict::Unjudged,
};

/// Number of characters of a tenant's text that messages repeat.
const SHOWN: usize = 60;

/// A compiled check.
pub(super) struct Check {
    pub(super) kind: &'static str,
    pub(super) test: Test,
    pub(super) target: Target,
    pub(super) negate: bool,
}

/// The condition of a check.
pub(super) enum Test {
    Regex(Box<Pattern>, String),
    /// The text to find, in lower case if the flag says that case is ignored.
    Contains(String, bool),
    Schema(Box<Schema>, Extract),
    Json(Extract),
    Length(Lengths),
    Latency(Bounds),
    Cost(Bounds),
    Tokens(Bounds, Tokens),
    Called(String, Bounds),
}

/// Whether the JSON may be in a fenced block, if the text has exactly one.
pub(super) type Extract = bool;

/// The tokens that a check counts.
#[derive(Clone, Copy)]
pub(super) enum Tokens {
    Prompt,
    Completion,
    Total,
}

/// Inclusive bounds.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
}

impl Check {
    /// Parses a check.
    ///
    /// # Errors
    /// All problems, with paths below the check.
    pub(super) fn of(check: &Value) -> Result<Self, Vec<ConfigProblem>> {
        options::read(check)
    }

    /// Returns the approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        match &self.test {
            Test::Regex(pattern, _) => pattern.bytes(),
            Test::Schema(schema, _) => schema.bytes(),
            _ => 0,
        }
    }

    /// Returns `None` if the check holds, else the reason why it fails.
    ///
    /// # Errors
    /// When the trace lacks data that the check needs.
    pub(super) fn holds(&self, subject: &Subject) -> Result<Option<String>, Unjudged> {
        let wrong = self.test.fails(self.target, subject)?;
        Ok(match (wrong, self.negate) {
            (wrong, false) => wrong,
            (Some(_), true) => None,
            (None, true) => Some(format!("it must not be that {}", self.test.asks(self.target))),
        })
    }
}

impl Test {
    /// Returns `None` if the condition is met, else a description of the actual value.
    fn fails(&self, target: Target, subject: &Subject) -> Result<Option<String>, Unjudged> {
        let unless = |so: bool, why: String| if so { None } else { Some(why) };
        let otherwise = || format!("it is not that {}", self.asks(target));
        Ok(match self {
            Self::Regex(pattern, _) => {
                unless(pattern.is_match(target.bounded_text(subject)?).unwrap_or(false), otherwise())
            }
            Self::Contains(part, any_size) => {
                let text = target.bounded_text(subject)?;
                let found = if *any_size { text.to_lowercase().contains(part) } else { text.contains(part) };
                unless(found, otherwise())
            }
            Self::Json(extract) => {
                let text = target.bounded_text(subject)?.trim_matches(BLANKS);
                let block = || one_block(text).is_some_and(|it| json::well_formed(it).is_ok());
                match json::well_formed(text) {
                    Err(why) if !(*extract && block()) => Some(format!("it is not JSON: {why}")),
                    _ => None,
                }
            }
            Self::Schema(schema, extract) => {
                match parsed(target.bounded_text(subject)?.trim_matches(BLANKS), *extract) {
                    Ok((value, bytes)) => conforms(schema.check(&value, bytes))?,
                    Err(Faulty::Form(why)) => Some(format!("it is not JSON: {why}")),
                    Err(Faulty::Reach(why)) => {
                        return Err(Unjudged::new(format!("the text is JSON, but {why}")));
                    }
                }
            }
            Self::Length(lengths) => lengths.fails(target.bounded_text(subject)?),
            Self::Latency(bounds) => bounds.fail(latency_threshold::known(subject)? as f64, "ms"),
            Self::Cost(bounds) => {
                let cost = cost_threshold::known(subject)?;
                let so = bounds.min.is_none_or(|it| cost_threshold::within(it, cost))
                    && bounds.max.is_none_or(|it| cost_threshold::within(cost, it));
                unless(so, format!("${cost} is not {bounds}"))
            }
            Self::Tokens(bounds, which) => bounds.fail(which.count(subject)? as f64, "tokens"),
            Self::Called(name, bounds) => {
                let calls = Reading::of(subject).calls().iter().filter(|it| it.name == *name).count();
                let why = format!("{} was called {calls} times, not {bounds}", cut(name, SHOWN));
                unless(bounds.hold(calls as f64), why)
            }
        })
    }

    /// Returns the condition as a clause that follows "that".
    fn asks(&self, target: Target) -> String {
        let text = match target {
            Target::Output => "the output",
            Target::Input => "the input",
        };
        match self {
            Self::Regex(_, pattern) => format!("{text} matches {}", cut(pattern, SHOWN)),
            Self::Contains(part, _) => format!("{text} contains {:?}", cut(part, SHOWN)),
            Self::Schema(..) => format!("{text} conforms to the schema"),
            Self::Json(_) => format!("{text} is JSON"),
            Self::Length(_) => format!("{text} is of that length"),
            Self::Latency(bounds) => format!("the latency in ms is {bounds}"),
            Self::Cost(bounds) => format!("the cost in US dollars is {bounds}"),
            Self::Tokens(bounds, _) => format!("the count of tokens is {bounds}"),
            Self::Called(name, bounds) => format!("{} is called {bounds} times", cut(name, SHOWN)),
        }
    }
}

/// Parses a text, or its only fenced block, as JSON; returns the value and the length of the parsed text.
fn parsed(text: &str, extract: Extract) -> Result<(Value, usize), Faulty> {
    match (json::value(text), one_block(text)) {
        (Err(_), Some(block)) if extract => Ok((json::value(block)?, block.len())),
        (value, _) => Ok((value?, text.len())),
    }
}

fn one_block(text: &str) -> Option<&str> {
    fence::only(text, &["json"])
}

fn conforms(outcome: Outcome) -> Result<Option<String>, Unjudged> {
    let verdict = json_schema_conformance::verdict(outcome)?;
    Ok(if verdict.score < 1.0 { Some(verdict.reasoning) } else { None })
}

impl Tokens {
    fn count(self, subject: &Subject) -> Result<i64, Unjudged> {
        let (prompt, completion) = (subject.prompt_tokens, subject.completion_tokens);
        let count = match self {
            Self::Prompt => prompt,
            Self::Completion => completion,
            // Some providers report only one of the two; embeddings have no completion tokens.
            Self::Total if prompt.is_none() && completion.is_none() => None,
            Self::Total => Some(prompt.unwrap_or(0).saturating_add(completion.unwrap_or(0))),
        };
        count.ok_or_else(|| Unjudged::new("the tokens are not known: send the usage with the spans"))
    }
}

impl Bounds {
    fn hold(self, value: f64) -> bool {
        self.min.is_none_or(|it| value >= it) && self.max.is_none_or(|it| value <= it)
    }

    fn fail(self, value: f64, unit: &str) -> Option<String> {
        if self.hold(value) { None } else { Some(format!("{value} {unit} is not {self}")) }
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) => write!(f, "{min} to {max}"),
            (Some(min), None) => write!(f, "{min} or more"),
            (None, Some(max)) => write!(f, "at most {max}"),
            (None, None) => f.write_str("anything"),
        }
    }
}
