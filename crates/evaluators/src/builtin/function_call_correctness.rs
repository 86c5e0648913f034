//! Evaluates whether the model called the right tools with valid and correct arguments.

use std::collections::{BTreeMap, btree_map::Entry};

use serde_json::{Map, Value, json};

use crate::{
    definition::{ConfigProblem, Definition, Method, Rule},
    judge::{Level, Need, Prefers, Rubric, options},
    subject::{Call, Reading, Subject, Tool},
    tool_use::{
        MOST_EXPECTED, argument, choice, matching, named,
        parameters::{self, Parameters},
        something_happened, told,
    },
    verdict::{Unjudged, Verdict},
};

/// Limits the total size of the schemas of the called tools of a trace, in bytes. The time to compile them
/// grows with their size.
const MOST_SCHEMA: usize = 1024 * 1024;

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
    config_schema,
    method: Method::Both { names: names_what_is_expected, rule: compile, rubric: &RUBRIC },
};

fn config_schema() -> Value {
    let mut schema = options();
    if let Some(properties) = schema["properties"].as_object_mut() {
        let more = json!({
            "expected_calls": {
                "type": "array", "maxItems": MOST_EXPECTED,
                "description": "The calls to be made; empty: none. Without `arguments` any will do.",
                "items": {
                    "type": "object", "required": ["name"], "additionalProperties": false,
                    "properties": {
                        "name": {"type": "string", "minLength": 1},
                        "arguments": {"type": "object"},
                        "alternatives": {
                            "type": "object",
                            "additionalProperties": {"type": "array", "minItems": 1, "maxItems": MAX_ALTERNATIVES},
                            "description": "By argument, values that are as right as the one in `arguments`.",
                        },
                    },
                },
            },
            "validate": {
                "type": "boolean", "default": false,
                "description": "Hold the arguments of every call to the JSON Schema of its tool.",
            },
            "formats": {
                "type": "boolean", "default": true,
                "description": "Whether `validate` checks `format` too, such as date or email.",
            },
            "tools": {
                "type": "array", "maxItems": MOST_EXPECTED, "items": {"type": "object"},
                "description": "The tools with their schemas, as sent to the model; default: those of the trace.",
            },
            "arguments": {
                "enum": ["equal", "subset"], "default": "equal",
                "description": "`subset`: a call may have more arguments than are expected.",
            },
            "order": {
                "enum": ["any", "same"], "default": "any",
                "description": "Whether the calls have to be made in the order given.",
            },
            "extra_calls": {
                "enum": ["refuse", "allow"], "default": "refuse",
                "description": "Whether calls that are not expected count against it.",
            },
        });
        if let Value::Object(more) = more {
            properties.extend(more);
        }
    }
    schema
}

fn names_what_is_expected(config: &Map<String, Value>) -> bool {
    config.get("expected_calls").is_some_and(|it| !it.is_null())
        || config.get("validate") == Some(&Value::Bool(true))
}

struct Calls {
    expected: Option<Vec<Expected>>,
    validate: bool,
    formats: bool,
    /// The tools of the config, compiled once for all traces.
    tools: Option<Vec<(Tool, Parameters)>>,
    subset: bool,
    in_order: bool,
    extra: bool,
    /// Whether the config sets a threshold; the label then follows from the score even if some calls are
    /// wrong.
    threshold: bool,
}

struct Expected {
    name: String,
    arguments: Option<Value>,
    /// Values that are as correct as the expected value, by argument.
    alternatives: Map<String, Value>,
}

impl Expected {
    /// Returns the expected arguments of a call. For an argument with alternatives, the sent value is
    /// expected if it is one of them.
    fn for_call(&self, sent: &Value, said: &parameters::Said<'_>, subset: bool) -> Option<Value> {
        let mut arguments = self.arguments.clone()?;
        let Some(members) = arguments.as_object_mut() else { return Some(arguments) };
        for (name, alternatives) in &self.alternatives {
            let Some(sent) = sent.get(name) else { continue };
            let alone = |value: &Value| Value::Object(Map::from_iter([(name.clone(), value.clone())]));
            let is_sent =
                |it: &&Value| argument::difference(&alone(it), &alone(sent), said, subset).is_none();
            if let Some(right) = alternatives.as_array().into_iter().flatten().find(is_sent) {
                members.insert(name.clone(), right.clone());
            }
        }
        Some(arguments)
    }
}

fn compile(config: &Map<String, Value>) -> Result<Box<dyn Rule>, Vec<ConfigProblem>> {
    let mut problems = Vec::new();
    let mut word = |option, words: &[&'static str]| {
        choice(config, option, words).unwrap_or_else(|problem| {
            problems.push(problem);
            ""
        })
    };
    let (arguments, order, extra) = (
        word("arguments", &["equal", "subset"]),
        word("order", &["any", "same"]),
        word("extra_calls", &["refuse", "allow"]),
    );
    let mut switch = |option, default| match config.get(option) {
        None | Some(Value::Null) => default,
        Some(Value::Bool(given)) => *given,
        Some(_) => {
            problems.push(ConfigProblem::new(option, "must be true or false"));
            default
        }
    };
    let (validate, formats) = (switch("validate", false), switch("formats", true));
    let expected = expected(config, &mut problems);
    let tools = match config.get("tools") {
        None | Some(Value::Null) => None,
        Some(given) => {
            let tools = crate::subject::read_tools(given);
            if tools.is_empty() && given.as_array().is_none_or(|it| !it.is_empty()) {
                let message = "holds no tool: send definitions as a model gets them, such as {\"name\", \
                               \"parameters\"}";
                problems.push(ConfigProblem::new("tools", message));
            }
            let mut offered = Vec::new();
            for tool in tools {
                // An unusable schema is a config error and is reported here.
                match Parameters::of(&tool, formats) {
                    Ok(parameters) => offered.push((tool, parameters)),
                    Err(why) => {
                        let message = format!("has an unusable schema for {}: {why}", named(&tool.name));
                        problems.push(ConfigProblem::new("tools", message));
                    }
                }
            }
            Some(offered)
        }
    };
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Box::new(Calls {
        // Without expected calls the evaluator validates the calls against their schemas.
        validate: validate || expected.is_none(),
        expected,
        formats,
        tools,
        subset: arguments == "subset",
        in_order: order == "same",
        extra: extra == "allow",
        threshold: config.get("threshold").is_some_and(|it| !it.is_null()),
    }))
}

fn expected(config: &Map<String, Value>, problems: &mut Vec<ConfigProblem>) -> Option<Vec<Expected>> {
    let list = match config.get("expected_calls") {
        None | Some(Value::Null) => return None,
        Some(Value::Array(list)) if list.len() <= MOST_EXPECTED => list,
        Some(_) => {
            let message = format!("must be a list of at most {MOST_EXPECTED} calls");
            problems.push(ConfigProblem::new("expected_calls", message));
            return None;
        }
    };
    let mut calls = Vec::new();
    for (at, call) in list.iter().enumerate() {
        let name = call.get("name").and_then(Value::as_str).filter(|it| !it.is_empty());
        let arguments = call.get("arguments").filter(|it| !it.is_null());
        match (name, arguments) {
            (Some(name), None | Some(Value::Object(_))) => {
                let alternatives = alternatives(call.get("alternatives"), arguments);
                let alternatives = alternatives.unwrap_or_else(|message| {
                    problems.push(ConfigProblem::new(format!("expected_calls.{at}.alternatives"), message));
                    Map::new()
                });
                calls.push(Expected { name: name.to_owned(), arguments: arguments.cloned(), alternatives });
            }
            (None, _) => problems
                .push(ConfigProblem::new(format!("expected_calls.{at}.name"), "must be the name of a tool")),
            (Some(_), Some(_)) => problems
                .push(ConfigProblem::new(format!("expected_calls.{at}.arguments"), "must be an object")),
        }
    }
    Some(calls)
}

/// Parses the alternatives of a call's arguments.
fn alternatives(given: Option<&Value>, arguments: Option<&Value>) -> Result<Map<String, Value>, String> {
    let Some(given) = given.filter(|it| !it.is_null()) else { return Ok(Map::new()) };
    let is_list = |it: &Value| it.as_array().is_some_and(|it| (1..=MAX_ALTERNATIVES).contains(&it.len()));
    let Some(given) = given.as_object().filter(|it| it.values().all(is_list)) else {
        return Err(format!(
            "must be an object with a list of 1 to {MAX_ALTERNATIVES} values for each argument"
        ));
    };
    match given.keys().find(|name| arguments.and_then(|it| it.get(name.as_str())).is_none()) {
        Some(name) => Err(format!("names {}, which arguments does not have", named(name))),
        None => Ok(given.clone()),
    }
}

impl Rule for Calls {
    fn judge(&self, subject: &Subject) -> Result<Verdict, Unjudged> {
        let reading = Reading::of(subject);
        something_happened(subject, &reading)?;
        let tools: Vec<&Tool> = match &self.tools {
            Some(own) => own.iter().map(|(tool, _)| tool).collect(),
            None => reading.tools().iter().collect(),
        };
        let calls = reading.calls();
        let invalid = if self.validate { self.invalid(calls, &tools)? } else { vec![None; calls.len()] };
        let mut verdict = match &self.expected {
            Some(expected) => self.compared(expected, calls, &tools, &invalid),
            None => share(
                invalid.iter().filter(|it| it.is_none()).count(),
                calls.len(),
                invalid.into_iter().flatten().collect(),
                "the arguments of every call are valid",
            ),
        };
        // Four correct transfers do not make up for a wrong one.
        if verdict.score < 1.0 && !self.threshold {
            verdict.label = Some("fail".to_owned());
        }
        Ok(verdict)
    }
}

impl Calls {
    /// Returns for each call why it is invalid, or `None` if it is valid.
    fn invalid(&self, calls: &[Call], tools: &[&Tool]) -> Result<Vec<Option<String>>, Unjudged> {
        let nothing_expected = self.expected.as_ref().is_some_and(Vec::is_empty);
        if calls.is_empty() && self.expected.is_none() {
            return Err(Unjudged::new(
                "no tool was called, so that there are no arguments to check: judge traces with tool calls (a \
                 rule's filter `span_type: tool` selects them), or name `expected_calls`",
            ));
        }
        if tools.is_empty() && !calls.is_empty() && !nothing_expected {
            return Err(Unjudged::new(
                "the trace does not say which tools were offered: send the request's `tools` in the input of the \
                 span that calls the model, as `metadata.tools`, or as `tools` of the config",
            ));
        }
        if self.expected.is_none() && tools.iter().all(|it| it.schema.is_none()) {
            return Err(Unjudged::new(
                "the tools that were offered have no JSON Schema of their arguments: send them whole, or as \
                 `tools` of the config",
            ));
        }
        let mut compiled: BTreeMap<&str, Parameters> = BTreeMap::new();
        let mut left = MOST_SCHEMA;
        calls
            .iter()
            .map(|call| {
                let name = named(&call.name);
                let unusable = |why: String| {
                    Unjudged::new(format!(
                        "the JSON Schema of the tool {name} can't be used ({why}): send a right one with the \
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
                            Unjudged::new(format!(
                                "the JSON Schemas of the tools that were called have more than {} MiB in all: send \
                                 shorter ones with the trace, or those that matter as `tools` of the config",
                                MOST_SCHEMA >> 20
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

    fn compared(
        &self,
        expected: &[Expected],
        calls: &[Call],
        tools: &[&Tool],
        invalid: &[Option<String>],
    ) -> Verdict {
        let schemas: Vec<Option<Value>> = expected
            .iter()
            .map(|it| {
                tools.iter().find(|tool| tool.name == it.name)?.schema.as_ref().map(parameters::normalized)
            })
            .collect();
        let difference = |at: usize, call: &Call| -> Option<String> {
            let said = parameters::Said::of(schemas[at].as_ref());
            let wanted = expected[at].for_call(&call.arguments, &said, self.subset)?;
            argument::difference(&wanted, &call.arguments, &said, self.subset)
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
        let mut said = Vec::new();
        for (at, call) in expected.iter().enumerate().filter(|(at, _)| pairs[*at].is_none()) {
            let name = named(&call.name);
            // Picks the first unmatched call with the same name.
            match left.iter().position(|it| calls[*it].name == call.name) {
                Some(nearest) => {
                    let nearest = left.remove(nearest);
                    let why = invalid[nearest].clone().or_else(|| {
                        difference(at, &calls[nearest]).map(|why| format!("{name} was called, but {why}"))
                    });
                    said.push(why.unwrap_or_else(|| format!("{name} was called out of order")));
                }
                None => said.push(format!("{name} was not called")),
            }
        }
        let right = pairs.iter().flatten().count();
        if self.extra {
            return share(right, expected.len(), said, "the expected calls were made");
        }
        said.extend(left.iter().map(|it| format!("a call of {} is not expected", named(&calls[*it].name))));
        share(right, expected.len().max(calls.len()), said, "the expected calls were made")
    }
}

fn share(right: usize, all: usize, said: Vec<String>, good: &str) -> Verdict {
    if right == all {
        return Verdict::good(if all == 0 { "no call was to be made, and none was" } else { good });
    }
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    Verdict::new(right as f64 / all as f64, told(said))
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
    needs: &[Need::Input, Need::Calls],
    uses: &[Need::Tools, Need::Turns],
    prefers: Prefers::OpenAi,
};

#[cfg(test)]
mod tests;
