//! Evaluates whether the model chose the right tools.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    code::{CodeConfig, CodeEvaluator, EvaluatorCode},
    config::ConfigProblem,
    definition::{Definition, Method},
    judge::{Level, PreferredProvider, Rubric, TracePart},
    subject::{Reading, Subject},
    tool_use::{
        CallOrder, ExtraCalls, MAX_EXPECTED_CALLS, join_reasons, matching, require_action, shown_name,
    },
    verdict::{Measurement, NotEvaluated},
};

/// The definition of the evaluator `tool_choice_correctness`.
pub static DEFINITION: Definition = Definition {
    name: "tool_choice_correctness",
    display_name: "Tool Choice",
    tags: &["tool-use"],
    description: "Whether the right tools were called, whatever their arguments (`function_call_correctness` asks \
                  about those). By code when the config names `expected_tool`, `expected_tools` or \
                  `forbidden_tools`: the share of expected and called tools that are both, each counted as \
                  often as it stands in the list; 0.0 when a forbidden one was called. Unless `threshold` says \
                  otherwise, only the right choice passes. Otherwise a judge decides; it needs the input and the tools that were offered. \
                  1.0 is the right choice, which may be none.",
    version: 2,
    method: Method::CodeOrLlm {
        has_expectation: names_expectation,
        code: EvaluatorCode::of::<ToolChoiceConfig>(),
        rubric: &RUBRIC,
    },
};

const EXPECTATION_OPTIONS: [&str; 3] = ["expected_tool", "expected_tools", "forbidden_tools"];

fn names_expectation(config: &Map<String, Value>) -> bool {
    EXPECTATION_OPTIONS.iter().any(|it| config.get(*it).is_some_and(|it| !it.is_null()))
}

#[derive(Deserialize, JsonSchema)]
struct ToolChoiceConfig {
    /// The only expected tool; it may be called repeatedly.
    #[schemars(length(min = 1))]
    expected_tool: Option<String>,
    /// All expected tools, each as often as it is listed; empty: none.
    #[schemars(length(max = MAX_EXPECTED_CALLS), inner(length(min = 1)))]
    expected_tools: Option<Vec<String>>,
    /// Tools that must not be called.
    #[schemars(length(max = MAX_EXPECTED_CALLS), inner(length(min = 1)))]
    forbidden_tools: Option<Vec<String>>,
    /// `same`: the calls must have this order.
    #[serde(default)]
    order: CallOrder,
    /// Whether tools that are not expected lower the score.
    #[serde(default)]
    extra_tools: ExtraCalls,
}

impl CodeConfig for ToolChoiceConfig {
    fn compile(self) -> Result<impl CodeEvaluator + 'static, Vec<ConfigProblem>> {
        let mut problems = Vec::new();
        let Self { expected_tool: one, expected_tools: several, forbidden_tools, order, extra_tools } = self;
        let forbidden = forbidden_tools.unwrap_or_default();
        if one.is_some() && several.is_some() {
            let message = "can't be combined with expected_tools: use one of them";
            problems.push(ConfigProblem::new("expected_tool", message));
        }
        let repetitions_count_once = one.is_some();
        let expected = one.map(|it| vec![it]).or(several);
        if expected.is_none() && forbidden.is_empty() {
            let message = "is required for type rule unless expected_tools or forbidden_tools is set: the name of a tool";
            problems.push(ConfigProblem::new("expected_tool", message));
        }
        if let Some(both) = expected.iter().flatten().find(|it| forbidden.contains(it)) {
            let message = format!("names {}, which is expected too", shown_name(both));
            problems.push(ConfigProblem::new("forbidden_tools", message));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(ToolChoice {
            expected,
            repetitions_count_once,
            forbidden,
            in_order: order == CallOrder::Same,
            allows_extra: extra_tools == ExtraCalls::Allow,
        })
    }
}

struct ToolChoice {
    /// The expected tools; none if the config names only forbidden tools.
    expected: Option<Vec<String>>,
    /// Whether repeated calls of one tool count once.
    repetitions_count_once: bool,
    forbidden: Vec<String>,
    in_order: bool,
    allows_extra: bool,
}

impl CodeEvaluator for ToolChoice {
    fn evaluate(&self, subject: &Subject) -> Result<Measurement, NotEvaluated> {
        let reading = Reading::of(subject);
        require_action(subject, &reading)?;
        let called: Vec<&str> = reading.calls().iter().map(|it| it.name.as_str()).collect();
        if let Some(name) = self.forbidden.iter().find(|it| called.contains(&it.as_str())) {
            return Ok(Measurement::bad(format!("{} was called, which is forbidden", shown_name(name))));
        }
        let Some(expected) = &self.expected else {
            return Ok(Measurement::good("no forbidden tool was called"));
        };
        let called = if self.repetitions_count_once { without_repetitions(called) } else { called };
        Ok(if self.in_order { self.sequence(expected, &called) } else { self.multiset(expected, &called) })
    }

    fn needs_full_score(&self) -> bool {
        true
    }
}

impl ToolChoice {
    /// Scores calls in any order; each tool counts as often as it is expected.
    fn multiset(&self, expected: &[String], called: &[&str]) -> Measurement {
        let mut left: BTreeMap<&str, usize> = BTreeMap::new();
        for name in called {
            *left.entry(name).or_default() += 1;
        }
        let mut missing = Vec::new();
        for name in expected {
            match left.get_mut(name.as_str()).filter(|it| **it > 0) {
                Some(count) => *count -= 1,
                None => missing.push(name.as_str()),
            }
        }
        let extra: Vec<&str> = match self.allows_extra {
            true => Vec::new(),
            false => left.into_iter().flat_map(|(name, count)| std::iter::repeat_n(name, count)).collect(),
        };
        let right = expected.len() - missing.len();
        share_of_tools(right, right + missing.len() + extra.len(), &missing, &extra)
    }

    /// Scores calls against the expected sequence, and allows other calls in between if the config does.
    fn sequence(&self, expected: &[String], called: &[&str]) -> Measurement {
        let fits: Vec<Vec<bool>> =
            expected.iter().map(|name| called.iter().map(|it| it == name).collect()).collect();
        let pairs = matching::in_order(&fits, called.len());
        let right = pairs.iter().flatten().count();
        let missing: Vec<&str> = expected
            .iter()
            .zip(&pairs)
            .filter(|(_, pair)| pair.is_none())
            .map(|(name, _)| name.as_str())
            .collect();
        let extra: Vec<&str> = if self.allows_extra {
            Vec::new()
        } else {
            called
                .iter()
                .enumerate()
                .filter(|(at, _)| !pairs.contains(&Some(*at)))
                .map(|(_, it)| *it)
                .collect()
        };
        let all = if self.allows_extra { expected.len() } else { expected.len().max(called.len()) };
        share_of_tools(right, all, &missing, &extra)
    }
}

/// Returns the tools in the order of their first calls, each once.
fn without_repetitions(called: Vec<&str>) -> Vec<&str> {
    let mut seen = Vec::new();
    for name in called {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

fn share_of_tools(right: usize, all: usize, missing: &[&str], extra: &[&str]) -> Measurement {
    if all == 0 {
        return Measurement::good("no tool was expected, and none was called");
    }
    if right == all {
        return Measurement::good("the expected tools were called");
    }
    let mut reasons: Vec<String> =
        missing.iter().map(|it| format!("{} was expected and not called", shown_name(it))).collect();
    reasons.extend(extra.iter().map(|it| format!("{} was called and not expected", shown_name(it))));
    // Counts of calls are far below 2^52.
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    Measurement::new(right as f64 / all as f64, join_reasons(reasons))
}

static RUBRIC: Rubric = Rubric {
    question: "Were the right tools chosen for what the input asks, and none without need?",
    steps: &[
        "From the input, work out what has to be looked up, computed or done, and what the model could do by \
         itself.",
        "Go through the tools that were offered, by their descriptions, and decide which of them, in which order, \
         serve that best. It may be none.",
        "Compare with the calls that were made. If the section calls is missing, no tool was called.",
        "Score by the calls that were right, those that were missing and those that were needless or wrong.",
    ],
    counts: &[
        "A tool called that does not do what was needed, when a fitting one was offered.",
        "No tool called where the answer or deed is not to be had without one; an answer invented in its place.",
        "A tool called though nothing called for it, above all one that changes, sends or pays something.",
        "A tool that was not offered.",
        "Tools in an order that can't work.",
    ],
    ignores: &[
        "The arguments: `function_call_correctness` asks about those.",
        "A tool that failed or found nothing, and a second try after that.",
        "One of several tools that serve equally well.",
        "A harmless look-up more than the shortest way has.",
        "The wording of the answer.",
    ],
    levels: &[
        Level { score: 1.0, meaning: "The right tools, or rightly none." },
        Level { score: 0.75, meaning: "The right tools, with one needless but harmless call." },
        Level { score: 0.5, meaning: "Some are right; one that was needed is missing or another is wrong." },
        Level { score: 0.25, meaning: "Mostly wrong, though in the direction of what was asked." },
        Level { score: 0.0, meaning: "The wrong tool, none where one was needed, or a harmful one." },
    ],
    needs: &[TracePart::Input, TracePart::Tools],
    uses: &[TracePart::Calls, TracePart::Output, TracePart::Turns],
    prefers: PreferredProvider::OpenAi,
};

#[cfg(test)]
mod tests;
