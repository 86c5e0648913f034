//! Evaluates whether the model chose the right tools.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    definition::{ConfigProblem, Definition, Method, Rule},
    judge::{Level, Need, Prefers, Rubric, options},
    subject::{Reading, Subject},
    tool_use::{MOST_EXPECTED, choice, matching, named, names, something_happened, told},
    verdict::{Unjudged, Verdict},
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
    config_schema,
    method: Method::Both { names: names_what_is_expected, rule: compile, rubric: &RUBRIC },
};

const EXPECTATIONS: [&str; 3] = ["expected_tool", "expected_tools", "forbidden_tools"];

fn config_schema() -> Value {
    let list = |description: &str| {
        json!({
            "type": "array", "maxItems": MOST_EXPECTED, "items": {"type": "string", "minLength": 1},
            "description": description,
        })
    };
    let mut schema = options();
    if let Some(properties) = schema["properties"].as_object_mut() {
        let more = json!({
            "expected_tool": {"type": "string", "minLength": 1, "description": "The only tool to be called, however often."},
            "expected_tools": list("All tools to be called, each as often as it stands here; empty: none."),
            "forbidden_tools": list("Tools that must not be called."),
            "order": {
                "enum": ["any", "same"], "default": "any",
                "description": "`same`: the calls have to be this sequence.",
            },
            "extra_tools": {
                "enum": ["refuse", "allow"], "default": "refuse",
                "description": "Whether tools that are not expected count against the choice.",
            },
        });
        if let Value::Object(more) = more {
            properties.extend(more);
        }
    }
    schema
}

fn names_what_is_expected(config: &Map<String, Value>) -> bool {
    EXPECTATIONS.iter().any(|it| config.get(*it).is_some_and(|it| !it.is_null()))
}

struct Choice {
    /// The expected tools; none if the config names only forbidden tools.
    expected: Option<Vec<String>>,
    /// Whether repeated calls of one tool count once.
    once: bool,
    /// Whether the config sets a threshold; the label then follows from the score even if some calls are
    /// wrong.
    threshold: bool,
    forbidden: Vec<String>,
    in_order: bool,
    extra: bool,
}

fn compile(config: &Map<String, Value>) -> Result<Box<dyn Rule>, Vec<ConfigProblem>> {
    let mut problems = Vec::new();
    let mut read = |option| {
        names(config, option).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        })
    };
    let (several, forbidden) = (read("expected_tools"), read("forbidden_tools").unwrap_or_default());
    let one = match config.get("expected_tool") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) if !name.is_empty() => Some(vec![name.clone()]),
        Some(_) => {
            problems.push(ConfigProblem::new("expected_tool", "must be the name of a tool"));
            None
        }
    };
    let mut word = |option, words: &[&'static str]| {
        choice(config, option, words).unwrap_or_else(|problem| {
            problems.push(problem);
            ""
        })
    };
    let (order, extra) = (word("order", &["any", "same"]), word("extra_tools", &["refuse", "allow"]));
    if one.is_some() && several.is_some() {
        problems.push(ConfigProblem::new(
            "expected_tool",
            "must not stand beside expected_tools: use one of them",
        ));
    }
    let once = one.is_some();
    let expected = one.or(several);
    if problems.is_empty() && expected.is_none() && forbidden.is_empty() {
        problems.push(ConfigProblem::new(
            "expected_tool",
            "is required for type rule, or else expected_tools or forbidden_tools: the names to look for",
        ));
    }
    if let Some(both) = expected.iter().flatten().find(|it| forbidden.contains(it)) {
        let message = format!("names {}, which is expected too", named(both));
        problems.push(ConfigProblem::new("forbidden_tools", message));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let threshold = config.get("threshold").is_some_and(|it| !it.is_null());
    let (in_order, extra) = (order == "same", extra == "allow");
    Ok(Box::new(Choice { expected, once, threshold, forbidden, in_order, extra }))
}

impl Rule for Choice {
    fn judge(&self, subject: &Subject) -> Result<Verdict, Unjudged> {
        let reading = Reading::of(subject);
        something_happened(subject, &reading)?;
        let called: Vec<&str> = reading.calls().iter().map(|it| it.name.as_str()).collect();
        if let Some(name) = self.forbidden.iter().find(|it| called.contains(&it.as_str())) {
            return Ok(Verdict::bad(format!("{} was called, which is forbidden", named(name))));
        }
        let Some(expected) = &self.expected else {
            return Ok(Verdict::good("no forbidden tool was called"));
        };
        let called = if self.once { once(called) } else { called };
        let mut verdict =
            if self.in_order { self.sequence(expected, &called) } else { self.multiset(expected, &called) };
        if verdict.score < 1.0 && !self.threshold {
            verdict.label = Some("fail".to_owned());
        }
        Ok(verdict)
    }
}

impl Choice {
    /// Scores calls in any order; each tool counts as often as it is expected.
    fn multiset(&self, expected: &[String], called: &[&str]) -> Verdict {
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
        let extra: Vec<&str> = match self.extra {
            true => Vec::new(),
            false => left.into_iter().flat_map(|(name, count)| std::iter::repeat_n(name, count)).collect(),
        };
        let right = expected.len() - missing.len();
        verdict(right, right + missing.len() + extra.len(), &missing, &extra)
    }

    /// Scores calls against the expected sequence, and allows other calls in between if the config does.
    fn sequence(&self, expected: &[String], called: &[&str]) -> Verdict {
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
        let extra: Vec<&str> = if self.extra {
            Vec::new()
        } else {
            called
                .iter()
                .enumerate()
                .filter(|(at, _)| !pairs.contains(&Some(*at)))
                .map(|(_, it)| *it)
                .collect()
        };
        let all = if self.extra { expected.len() } else { expected.len().max(called.len()) };
        verdict(right, all, &missing, &extra)
    }
}

/// Returns the tools in the order of their first calls, each once.
fn once(called: Vec<&str>) -> Vec<&str> {
    let mut seen = Vec::new();
    for name in called {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

fn verdict(right: usize, all: usize, missing: &[&str], extra: &[&str]) -> Verdict {
    if all == 0 {
        return Verdict::good("no tool was to be called, and none was");
    }
    if right == all {
        return Verdict::good("the expected tools were called");
    }
    let mut said: Vec<String> =
        missing.iter().map(|it| format!("{} was not called where it was expected", named(it))).collect();
    said.extend(extra.iter().map(|it| format!("{} was called and is not expected", named(it))));
    // Counts of calls are far below 2^52.
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    Verdict::new(right as f64 / all as f64, told(said))
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
    needs: &[Need::Input, Need::Tools],
    uses: &[Need::Calls, Need::Output, Need::Turns],
    prefers: Prefers::OpenAi,
};

#[cfg(test)]
mod tests;
