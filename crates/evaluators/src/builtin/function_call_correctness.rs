//! Evaluates whether the model called the right tools with valid and correct arguments.

use std::collections::{BTreeMap, btree_map::Entry};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    code::{CodeConfig, CodeEvaluator, EvaluatorCode},
    config::ConfigProblem,
    definition::{Definition, Method},
    judge::{Level, PreferredProvider, Rubric, TracePart},
    subject::{Call, Reading, Subject, Tool, read_tools},
    tool_use::{
        CallOrder, ExtraCalls, MAX_EXPECTED_CALLS, argument, join_reasons, matching,
        parameters::{self, Parameters},
        require_action, shown_name,
    },
    verdict::{Measurement, NotEvaluated},
};

/// Limits the total size of the schemas of the called tools of a trace, in bytes. The time to compile them
/// grows with their size.
const MAX_SCHEMA_BYTES: usize = 1024 * 1024;

/// Maximum number of alternative values of one argument.
const MAX_ALTERNATIVES: usize = 50;

/// The definition of the evaluator `function_call_correctness`.
pub static DEFINITION: Definition = Definition {
    name: "function_call_correctness",
    display_name: "Function Call",
    tags: &["tool-use"],
    description: "Whether tools were called with the right arguments. By code when the config names \
                  `expected_calls` (the share of expected calls that were made, equivalent forms of arguments \
                  accepted) or says `validate` (the share of calls whose arguments are valid by the JSON Schema of \
                  the tool that was offered). Otherwise a judge decides; it needs the input and the calls, and is \
                  shown the tools. 1.0 when every call is right; unless `threshold` says otherwise, only that passes. Which \
                  tool was chosen, whatever its arguments, is \
                  `tool_choice_correctness`.",
    version: 2,
    method: Method::CodeOrLlm {
        has_expectation: names_expectation,
        code: EvaluatorCode::of::<FunctionCallConfig>(),
        rubric: &RUBRIC,
    },
};

fn names_expectation(config: &Map<String, Value>) -> bool {
    config.get("expected_calls").is_some_and(|it| !it.is_null())
        || config.get("validate") == Some(&Value::Bool(true))
}

#[derive(Deserialize, JsonSchema)]
struct FunctionCallConfig {
    /// The expected calls; empty: none. A call without `arguments` may have any.
    #[schemars(length(max = MAX_EXPECTED_CALLS))]
    expected_calls: Option<Vec<ExpectedCall>>,
    /// Whether the arguments of every call must conform to the JSON Schema of its tool.
    #[serde(default)]
    validate: bool,
    /// Whether `validate` checks `format` too, such as date or email.
    #[serde(default = "enabled")]
    formats: bool,
    /// The tools with their schemas, as sent to the model; default: those of the trace.
    #[schemars(length(max = MAX_EXPECTED_CALLS))]
    tools: Option<Vec<Map<String, Value>>>,
    /// `subset`: a call may have more arguments than are expected.
    #[serde(default)]
    arguments: ArgumentComparison,
    /// `same`: the calls must have this order.
    #[serde(default)]
    order: CallOrder,
    /// Whether calls that are not expected lower the score.
    #[serde(default)]
    extra_calls: ExtraCalls,
}

fn enabled() -> bool {
    true
}

/// How the arguments of a call are compared with the expected ones.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ArgumentComparison {
    #[default]
    Equal,
    Subset,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExpectedCall {
    #[schemars(length(min = 1))]
    name: String,
    arguments: Option<Map<String, Value>>,
    /// By argument, values that are as correct as the one in `arguments`.
    alternatives: Option<BTreeMap<String, AlternativeValues>>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct AlternativeValues(#[schemars(length(min = 1, max = MAX_ALTERNATIVES))] Vec<Value>);

impl CodeConfig for FunctionCallConfig {
    fn compile(self) -> Result<impl CodeEvaluator + 'static, Vec<ConfigProblem>> {
        let mut problems = Vec::new();
        for (index, call) in self.expected_calls.iter().flatten().enumerate() {
            if let Some(name) = call.alternative_without_argument() {
                problems.push(ConfigProblem::new(
                    format!("expected_calls.{index}.alternatives"),
                    format!("names {}, which is not in arguments", shown_name(name)),
                ));
            }
        }
        let tools = self.tools.map(|tools| {
            let is_empty = tools.is_empty();
            let tools = read_tools(&tools.into_iter().map(Value::Object).collect());
            if tools.is_empty() && !is_empty {
                let message = "contains no tool: send definitions as the model receives them, such as {\"name\", \
                               \"parameters\"}";
                problems.push(ConfigProblem::new("tools", message));
            }
            let mut compiled = Vec::new();
            for tool in tools {
                // An unusable schema is a config error and is reported here.
                match Parameters::of(&tool, self.formats) {
                    Ok(parameters) => compiled.push((tool, parameters)),
                    Err(why) => {
                        let message = format!("has an unusable schema for {}: {why}", shown_name(&tool.name));
                        problems.push(ConfigProblem::new("tools", message));
                    }
                }
            }
            compiled
        });
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(CallComparison {
            // Without expected calls the evaluator validates the calls against their schemas.
            validate: self.validate || self.expected_calls.is_none(),
            expected: self.expected_calls,
            formats: self.formats,
            tools,
            subset: self.arguments == ArgumentComparison::Subset,
            in_order: self.order == CallOrder::Same,
            allows_extra: self.extra_calls == ExtraCalls::Allow,
        })
    }
}

struct CallComparison {
    expected: Option<Vec<ExpectedCall>>,
    validate: bool,
    formats: bool,
    /// The tools of the config, compiled once for all traces.
    tools: Option<Vec<(Tool, Parameters)>>,
    subset: bool,
    in_order: bool,
    allows_extra: bool,
}

impl ExpectedCall {
    /// Returns an argument that has alternatives but no expected value.
    fn alternative_without_argument(&self) -> Option<&str> {
        let has = |name: &str| self.arguments.as_ref().is_some_and(|it| it.contains_key(name));
        self.alternatives.iter().flatten().map(|it| it.0.as_str()).find(|it| !has(it))
    }

    /// Returns the expected arguments of a call. For an argument with alternatives, the sent value is
    /// expected if it is one of them.
    fn arguments_for(
        &self,
        sent: &Value,
        schemas: &parameters::ParameterSchemas<'_>,
        subset: bool,
    ) -> Option<Value> {
        let mut arguments = self.arguments.clone()?;
        for (name, AlternativeValues(alternatives)) in self.alternatives.iter().flatten() {
            let Some(sent) = sent.get(name) else { continue };
            let alone = |value: &Value| Value::Object(Map::from_iter([(name.clone(), value.clone())]));
            let is_sent =
                |it: &&Value| argument::difference(&alone(it), &alone(sent), schemas, subset).is_none();
            if let Some(right) = alternatives.iter().find(is_sent) {
                arguments.insert(name.clone(), right.clone());
            }
        }
        Some(Value::Object(arguments))
    }
}

impl CodeEvaluator for CallComparison {
    fn evaluate(&self, subject: &Subject) -> Result<Measurement, NotEvaluated> {
        let reading = Reading::of(subject);
        require_action(subject, &reading)?;
        let tools: Vec<&Tool> = match &self.tools {
            Some(own) => own.iter().map(|(tool, _)| tool).collect(),
            None => reading.tools().iter().collect(),
        };
        let calls = reading.calls();
        let invalid = if self.validate { self.invalid(calls, &tools)? } else { vec![None; calls.len()] };
        Ok(match &self.expected {
            Some(expected) => self.compare(expected, calls, &tools, &invalid),
            None => share_of_calls(
                invalid.iter().filter(|it| it.is_none()).count(),
                calls.len(),
                invalid.into_iter().flatten().collect(),
                "the arguments of every call are valid",
            ),
        })
    }

    // Four correct transfers do not make up for a wrong one.
    fn needs_full_score(&self) -> bool {
        true
    }
}

impl CallComparison {
    /// Returns for each call why it is invalid, or `None` if it is valid.
    fn invalid(&self, calls: &[Call], tools: &[&Tool]) -> Result<Vec<Option<String>>, NotEvaluated> {
        let nothing_expected = self.expected.as_ref().is_some_and(Vec::is_empty);
        if calls.is_empty() && self.expected.is_none() {
            return Err(NotEvaluated::new(
                "no tool was called, so there are no arguments to check: evaluate traces with tool calls (an eval \
                 rule's filter `span_type: tool` selects them), or name `expected_calls`",
            ));
        }
        if tools.is_empty() && !calls.is_empty() && !nothing_expected {
            return Err(NotEvaluated::new(
                "the trace does not say which tools were offered: send the request's `tools` in the input of the \
                 span that calls the model, as `metadata.tools`, or as `tools` of the config",
            ));
        }
        if self.expected.is_none() && tools.iter().all(|it| it.schema.is_none()) {
            return Err(NotEvaluated::new(
                "the tools that were offered have no JSON Schema of their arguments: send them whole, or as \
                 `tools` of the config",
            ));
        }
        let mut compiled: BTreeMap<&str, Parameters> = BTreeMap::new();
        let mut left = MAX_SCHEMA_BYTES;
        calls
            .iter()
            .map(|call| {
                let name = shown_name(&call.name);
                let unusable = |why: String| {
                    NotEvaluated::new(format!(
                        "the JSON Schema of the tool {name} can't be used ({why}): send a valid one with the \
                         trace, or as `tools` of the config"
                    ))
                };
                let Some(tool) = tools.iter().find(|it| it.name == call.name) else {
                    return Ok(Some(format!("{name} was not offered")));
                };
                let own = self.tools.iter().flatten().find(|(it, _)| it.name == call.name);
                let parameters = match (own, compiled.entry(&call.name)) {
                    (Some((_, parameters)), _) => parameters,
                    (None, Entry::Occupied(known)) => known.into_mut(),
                    (None, Entry::Vacant(free)) => {
                        let size = tool.schema.as_ref().map_or(0, |it| it.to_string().len());
                        left = left.checked_sub(size).ok_or_else(|| {
                            NotEvaluated::new(format!(
                                "the JSON Schemas of the tools that were called have more than {} MiB in all: send \
                                 shorter ones with the trace, or those that matter as `tools` of the config",
                                MAX_SCHEMA_BYTES >> 20
                            ))
                        })?;
                        free.insert(Parameters::of(tool, self.formats).map_err(unusable)?)
                    }
                };
                let why = parameters.invalid(&call.arguments).map_err(unusable)?;
                Ok(why.map(|why| format!("{name}: {why}")))
            })
            .collect()
    }

    fn compare(
        &self,
        expected: &[ExpectedCall],
        calls: &[Call],
        tools: &[&Tool],
        invalid: &[Option<String>],
    ) -> Measurement {
        let schemas: Vec<Option<Value>> = expected
            .iter()
            .map(|it| {
                tools.iter().find(|tool| tool.name == it.name)?.schema.as_ref().map(parameters::normalized)
            })
            .collect();
        let difference = |at: usize, call: &Call| -> Option<String> {
            let schemas = parameters::ParameterSchemas::of(schemas[at].as_ref());
            let expected_arguments = expected[at].arguments_for(&call.arguments, &schemas, self.subset)?;
            argument::difference(&expected_arguments, &call.arguments, &schemas, self.subset)
        };
        let fits: Vec<Vec<bool>> = (0..expected.len())
            .map(|at| {
                let fits = |(call, invalid): (&Call, &Option<String>)| {
                    call.name == expected[at].name && invalid.is_none() && difference(at, call).is_none()
                };
                calls.iter().zip(invalid).map(fits).collect()
            })
            .collect();
        let pairs = if self.in_order {
            matching::in_order(&fits, calls.len())
        } else {
            matching::in_any_order(&fits, calls.len())
        };
        let mut left: Vec<usize> = (0..calls.len()).filter(|it| !pairs.contains(&Some(*it))).collect();
        let mut reasons = Vec::new();
        for (at, call) in expected.iter().enumerate().filter(|(at, _)| pairs[*at].is_none()) {
            let name = shown_name(&call.name);
            // Picks the first unmatched call with the same name.
            match left.iter().position(|it| calls[*it].name == call.name) {
                Some(nearest) => {
                    let nearest = left.remove(nearest);
                    let why = invalid[nearest].clone().or_else(|| {
                        difference(at, &calls[nearest]).map(|why| format!("{name} was called, but {why}"))
                    });
                    reasons.push(why.unwrap_or_else(|| format!("{name} was called out of order")));
                }
                None => reasons.push(format!("{name} was not called")),
            }
        }
        let right = pairs.iter().flatten().count();
        if self.allows_extra {
            return share_of_calls(right, expected.len(), reasons, "the expected calls were made");
        }
        reasons.extend(
            left.iter().map(|it| format!("a call of {} is not expected", shown_name(&calls[*it].name))),
        );
        share_of_calls(right, expected.len().max(calls.len()), reasons, "the expected calls were made")
    }
}

fn share_of_calls(right: usize, all: usize, reasons: Vec<String>, good: &str) -> Measurement {
    if right == all {
        return Measurement::good(if all == 0 { "no call was expected, and none was made" } else { good });
    }
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    Measurement::new(right as f64 / all as f64, join_reasons(reasons))
}

static RUBRIC: Rubric = Rubric {
    question: "Was each tool that was called the right one, with arguments that are valid and say what was meant?",
    steps: &[
        "From the input and the conversation, work out what had to be done and with which values.",
        "For each call, find its tool among those offered and compare the arguments with its description and \
         schema: all that is required, right types, allowed words, nothing that does not exist.",
        "Then compare the values with what was asked for: names, numbers, units, dates, filters. Values may also \
         come from the results of earlier calls.",
        "Score by the share of calls that are right in both respects; a value that changes the effect makes a call \
         wrong.",
    ],
    counts: &[
        "A value that was made up, or taken from the wrong place of the conversation.",
        "A required argument that is missing, an argument that the tool does not have, a wrong type or unit.",
        "A condition of the request that did not become an argument though there is one for it.",
        "A call of a tool that was not offered or does something else.",
        "A call that had to be made and was not.",
    ],
    ignores: &[
        "Another form of the same value: 5 and 5.0, a date in another notation that the tool accepts, another \
         order of arguments.",
        "A default that is spelled out or left out.",
        "Free text in other words with the same meaning, such as a search query.",
        "A tool that failed, and a second call that corrects the first.",
        "The wording of the answer.",
    ],
    levels: &[
        Level { score: 1.0, meaning: "Every call is right." },
        Level { score: 0.75, meaning: "A slip that changes nothing of the effect." },
        Level { score: 0.5, meaning: "Half of the calls are right, or one that matters less is wrong." },
        Level { score: 0.25, meaning: "The tools are right, but arguments that matter are wrong." },
        Level { score: 0.0, meaning: "Wrong tools, invalid or made-up arguments." },
    ],
    needs: &[TracePart::Input, TracePart::Calls],
    uses: &[TracePart::Tools, TracePart::Turns],
    prefers: PreferredProvider::OpenAi,
};

#[cfg(test)]
mod tests;
