//! One check of a custom code evaluator. The module `options` parses its options.

use super::options::TokenKind;
use crate::{
    builtin::json_schema_conformance::SchemaConformance,
    code::CodeEvaluator,
    config::{ConfigProblem, one_problem},
    form::{WHITESPACE_CHARS, fence, json, length::LengthBounds},
    pattern::Pattern,
    sentence::cut,
    subject::{Reading, Subject, is_cost_within},
    target::Target,
    verdict::NotEvaluated,
};

/// Number of characters of a tenant's text that messages repeat.
const MAX_SHOWN_CHARS: usize = 60;

/// A compiled check.
pub(super) struct Check {
    pub(super) kind: &'static str,
    pub(super) condition: Condition,
    pub(super) negate: bool,
}

/// The condition of a check.
pub(super) enum Condition {
    Text(Target, TextMatch),
    JsonSchema(Box<SchemaConformance>),
    Latency(Bounds),
    Cost(Bounds),
    Tokens(Bounds, TokenKind),
    Called(String, Bounds),
}

/// A condition on a text.
pub(super) enum TextMatch {
    Regex(Box<Pattern>, String),
    /// The text to find, in lower case if case is ignored.
    Contains {
        text: String,
        case_insensitive: bool,
    },
    /// The text is JSON; with `extract`, its only fenced block may be JSON instead.
    Json {
        extract: bool,
    },
    Length(LengthBounds),
}

/// Inclusive bounds.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    min: Option<f64>,
    max: Option<f64>,
}

impl Check {
    /// Returns the approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        match &self.condition {
            Condition::Text(_, TextMatch::Regex(pattern, _)) => pattern.bytes(),
            Condition::JsonSchema(conformance) => conformance.bytes(),
            _ => 0,
        }
    }

    /// Returns `None` if the check holds, else the reason why it fails.
    ///
    /// # Errors
    /// Fails when the trace lacks data that the check needs.
    pub(super) fn violation(&self, subject: &Subject) -> Result<Option<String>, NotEvaluated> {
        let violation = self.condition.violation(subject)?;
        Ok(match (violation, self.negate) {
            (violation, false) => violation,
            (Some(_), true) => None,
            (None, true) => Some(format!("{}, which must not be the case", self.condition.statement())),
        })
    }
}

impl Condition {
    /// Returns `None` if the condition is met, else a description of the actual value.
    fn violation(&self, subject: &Subject) -> Result<Option<String>, NotEvaluated> {
        Ok(match self {
            Self::Text(target, test) => test.violation(*target, target.bounded_text(subject)?),
            Self::JsonSchema(conformance) => {
                let measurement = conformance.evaluate(subject)?;
                (measurement.score < 1.0).then_some(measurement.reasoning)
            }
            Self::Latency(bounds) => bounds.violation(subject.known_latency_ms()? as f64, "ms"),
            Self::Cost(bounds) => {
                let cost = subject.known_cost()?;
                let is_within = bounds.min.is_none_or(|it| is_cost_within(it, cost))
                    && bounds.max.is_none_or(|it| is_cost_within(cost, it));
                (!is_within).then(|| format!("the cost is ${cost}, not {bounds}"))
            }
            Self::Tokens(bounds, kind) => bounds.violation(kind.count(subject)? as f64, "tokens"),
            Self::Called(name, bounds) => {
                let calls = Reading::of(subject).calls().iter().filter(|it| it.name == *name).count();
                let times = if calls == 1 { "time" } else { "times" };
                (!bounds.contain(calls as f64)).then(|| {
                    format!("{} was called {calls} {times}, not {bounds}", cut(name, MAX_SHOWN_CHARS))
                })
            }
        })
    }

    /// Returns a sentence that states the condition.
    fn statement(&self) -> String {
        match self {
            Self::Text(target, test) => format!("{} {}", text_name(*target), test.predicate(true)),
            Self::JsonSchema(_) => "the JSON conforms to the schema".to_owned(),
            Self::Latency(bounds) => format!("the latency in ms is {bounds}"),
            Self::Cost(bounds) => format!("the cost in US dollars is {bounds}"),
            Self::Tokens(bounds, _) => format!("the number of tokens is {bounds}"),
            Self::Called(name, bounds) => {
                format!("the number of calls of {} is {bounds}", cut(name, MAX_SHOWN_CHARS))
            }
        }
    }
}

impl TextMatch {
    /// Returns `None` if a text meets the condition, else the reason why it does not.
    fn violation(&self, target: Target, text: &str) -> Option<String> {
        let is_met = match self {
            Self::Regex(pattern, _) => pattern.is_match(text).unwrap_or(false),
            Self::Contains { text: part, case_insensitive: true } => text.to_lowercase().contains(part),
            Self::Contains { text: part, case_insensitive: false } => text.contains(part),
            Self::Json { extract } => {
                let text = text.trim_matches(WHITESPACE_CHARS);
                let is_block_json =
                    || fence::only(text, &["json"]).is_some_and(|it| json::well_formed(it).is_ok());
                return match json::well_formed(text) {
                    Err(why) if !(*extract && is_block_json()) => Some(format!("it is not JSON: {why}")),
                    _ => None,
                };
            }
            Self::Length(bounds) => return bounds.violation(text),
        };
        (!is_met).then(|| format!("{} {}", text_name(target), self.predicate(false)))
    }

    /// Returns the predicate of a sentence about a text that meets the condition, or does not.
    fn predicate(&self, is_met: bool) -> String {
        let verb = |met: &str, unmet: &str| if is_met { met.to_owned() } else { unmet.to_owned() };
        match self {
            Self::Regex(_, pattern) => {
                format!("{} {}", verb("matches", "does not match"), cut(pattern, MAX_SHOWN_CHARS))
            }
            Self::Contains { text, .. } => {
                format!("{} {:?}", verb("contains", "does not contain"), cut(text, MAX_SHOWN_CHARS))
            }
            Self::Json { .. } => verb("is JSON", "is not JSON"),
            Self::Length(_) => verb("has a length within the bounds", "has a length out of bounds"),
        }
    }
}

/// Returns the subject of a sentence about a text.
fn text_name(target: Target) -> &'static str {
    match target {
        Target::Output => "the output",
        Target::Input => "the input",
    }
}

impl TokenKind {
    fn count(self, subject: &Subject) -> Result<i64, NotEvaluated> {
        let (prompt, completion) = (subject.prompt_tokens, subject.completion_tokens);
        let count = match self {
            Self::Prompt => prompt,
            Self::Completion => completion,
            // Some providers report only one of the two; embeddings have no completion tokens.
            Self::Total if prompt.is_none() && completion.is_none() => None,
            Self::Total => Some(prompt.unwrap_or(0).saturating_add(completion.unwrap_or(0))),
        };
        count.ok_or_else(|| NotEvaluated::new("the tokens are not known: send the usage with the spans"))
    }
}

impl Bounds {
    /// Creates bounds.
    ///
    /// # Errors
    /// Fails when both are absent, or the minimum is above the maximum.
    pub(super) fn new(min: Option<f64>, max: Option<f64>) -> Result<Self, Vec<ConfigProblem>> {
        match (min, max) {
            (None, None) => Err(one_problem("", "needs min, max or both")),
            (Some(low), Some(high)) if low > high => Err(one_problem("min", "is above max")),
            _ => Ok(Self { min, max }),
        }
    }

    fn contain(self, value: f64) -> bool {
        self.min.is_none_or(|it| value >= it) && self.max.is_none_or(|it| value <= it)
    }

    fn violation(self, value: f64, unit: &str) -> Option<String> {
        if self.contain(value) { None } else { Some(format!("{value} {unit} is not {self}")) }
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
