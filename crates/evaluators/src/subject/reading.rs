//! Derives documents, tools, calls and turns from a trace.

use std::collections::HashMap;

use api::SpanType;
use serde_json::Value;
use uuid::Uuid;

use super::{
    Call, Document, Message, Step, Subject, Tool, calls, documents,
    json::{Budget, first_text},
    messages, tools,
};

/// Maximum number of calls that are kept of one trace.
const MAX_CALLS: usize = 500;
/// Maximum number of ancestors of a tool span that are searched for the same call.
const MAX_ANCESTORS: usize = 16;
/// Maximum number of call results that are read from one message.
const MAX_RESULTS: usize = 500;

/// The derived view of a subject: documents, tools, calls and turns, independent of the convention of the
/// trace, and readable forms of input and output.
///
/// Its construction takes time in proportion to the size of the trace, up to a limit. Texts beyond the limit
/// are not parsed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    input: Option<String>,
    last_input: Option<String>,
    output: Option<String>,
    documents: Vec<Document>,
    tools: Vec<Tool>,
    calls: Vec<Call>,
    turns: Vec<Message>,
}

impl Reading {
    /// Derives the view from a subject.
    pub fn of(subject: &Subject) -> Self {
        let mut budget = Budget::new();
        let given = subject.input.as_deref().filter(|it| !it.trim().is_empty());
        // The root span may lack input or output; the input of the first model call and the output of the
        // last one take their place.
        let asked = given.or_else(|| models(subject).find_map(|it| it.input.as_deref()));
        let conversation = asked.and_then(|it| messages::read(&budget.parse(it)?)).unwrap_or_default();
        let answered = subject.output.as_deref().filter(|it| !it.trim().is_empty());
        let answered = answered.or_else(|| models(subject).filter_map(|it| it.output.as_deref()).last());
        let answers = answered.and_then(|it| messages::read(&budget.parse(it)?)).unwrap_or_default();
        let (earlier, last) = split(&conversation);
        let mut turns = earlier.to_vec();
        if turns.is_empty() {
            turns = of_session(subject, &mut budget);
        }
        let prompt = prompt(subject, &mut budget);
        let context = if prompt.is_empty() { &conversation } else { &prompt };
        Self {
            documents: documents::of(subject, context, &mut budget),
            input: shown(asked, &conversation),
            last_input: shown(asked, last),
            output: answer(answered, &answers),
            calls: calls_of(subject, &answers, &conversation, &prompt, &mut budget),
            tools: tools::of(subject, &mut budget),
            turns,
        }
    }

    /// Returns the input: a conversation with roles, anything else as it was sent.
    pub fn input(&self) -> Option<&str> {
        self.input.as_deref()
    }

    /// Returns the input without the [turns](Self::turns) before it.
    pub fn last_input(&self) -> Option<&str> {
        self.last_input.as_deref()
    }

    /// Returns the output: the text of the last message, anything else as it was sent.
    pub fn output(&self) -> Option<&str> {
        self.output.as_deref()
    }

    /// Returns the retrieved documents in the order of retrieval, each text once.
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// Returns the tools that were offered to the model, each once.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns the tool calls in their order, each once: the calls that the model made, with the results of
    /// the spans that carried them out, and the tool spans that no model call requested.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Returns the messages before the last user message, from the conversation in the input or else from the
    /// session's earlier traces.
    pub fn turns(&self) -> &[Message] {
        &self.turns
    }
}

/// Returns the messages of the last model call's input.
fn prompt(subject: &Subject, budget: &mut Budget) -> Vec<Message> {
    let last = models(subject).filter_map(|it| it.input.as_deref()).last();
    last.and_then(|it| messages::read(&budget.parse(it)?)).unwrap_or_default()
}

fn models(subject: &Subject) -> impl Iterator<Item = &Step> {
    subject.steps.iter().filter(|it| it.kind == SpanType::Llm)
}

/// Splits a conversation into the messages before the last exchange and those of the last exchange. No
/// message is earlier until the assistant has answered.
fn split(conversation: &[Message]) -> (&[Message], &[Message]) {
    let last_user = conversation.iter().rposition(|it| it.role == "user" && !it.text.is_empty());
    match last_user {
        Some(at) if conversation[..at].iter().any(|it| it.role == "assistant" && !it.text.is_empty()) => {
            conversation.split_at(at)
        }
        _ => (&[], conversation),
    }
}

fn of_session(subject: &Subject, budget: &mut Budget) -> Vec<Message> {
    let mut turns = Vec::new();
    for turn in &subject.turns {
        for (role, text) in [("user", &turn.input), ("assistant", &turn.output)] {
            let Some(text) = text.as_deref().filter(|it| !it.trim().is_empty()) else { continue };
            let read = budget.parse(text).and_then(|it| messages::read(&it)).unwrap_or_default();
            let calls_in = read.iter().rev().find(|it| it.role == role && !it.text.is_empty());
            let text = calls_in.map_or_else(|| text.to_owned(), |it| it.text.clone());
            turns.push(Message { role: role.to_owned(), text, ..Message::default() });
        }
    }
    turns
}

/// Returns a conversation with roles; only the text if it is a single user message.
fn shown(given: Option<&str>, conversation: &[Message]) -> Option<String> {
    match conversation {
        [] => given.map(str::to_owned),
        [Message { role, text, calls, results }]
            if role == "user" && calls.is_empty() && results.is_empty() && !text.is_empty() =>
        {
            Some(text.clone())
        }
        messages => {
            let shown: Vec<String> =
                messages.iter().map(Message::to_string).filter(|it| !it.is_empty()).collect();
            if shown.is_empty() { given.map(str::to_owned) } else { Some(shown.join("\n\n")) }
        }
    }
}

fn answer(given: Option<&str>, answers: &[Message]) -> Option<String> {
    let calls_in = answers.iter().rev().find(|it| it.role == "assistant" && !it.text.is_empty());
    match (calls_in, answers.iter().rev().find(|it| !it.calls.is_empty())) {
        (Some(calls_in), _) => Some(calls_in.text.clone()),
        (None, Some(calling)) => Some(calling.to_string()),
        (None, None) => given.map(str::to_owned),
    }
}

fn calls_of(
    subject: &Subject,
    answers: &[Message],
    conversation: &[Message],
    history: &[Message],
    budget: &mut Budget,
) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    // Results that later requests send back to the model.
    let mut results = Vec::new();
    for step in models(subject) {
        let output = step.output.as_deref().and_then(|it| budget.parse(it));
        // Two libraries that record the same request record its calls twice.
        add(&mut calls, output.iter().flat_map(calls_in));
        if let Some(list) = step.metadata.get("ai.response.toolCalls").and_then(|it| budget.unpacked(it)) {
            add(&mut calls, calls::list(&list).unwrap_or_default());
        }
    }
    let (_, current) = split(history);
    for message in current {
        results.extend(message.results.iter().take(MAX_RESULTS).cloned());
    }
    // If the spans of models report no calls, other spans may.
    if calls.is_empty() {
        add(&mut calls, current.iter().flat_map(|it| it.calls.iter().cloned()));
        add(&mut calls, answers.iter().flat_map(|it| it.calls.iter().cloned()));
        if calls.is_empty() {
            let output = subject.output.as_deref().and_then(|it| budget.parse(it));
            add(&mut calls, output.iter().flat_map(calls_in));
        }
        if calls.is_empty()
            && let Some(list) = subject.metadata.get("tool_calls").and_then(|it| budget.unpacked(it))
        {
            add(&mut calls, calls::list(&list).unwrap_or_default());
        }
        if calls.is_empty() && subject.steps.is_empty() {
            let (_, current) = split(conversation);
            add(&mut calls, current.iter().flat_map(|it| it.calls.iter().cloned()));
            results.extend(current.iter().flat_map(|it| it.results.iter().take(MAX_RESULTS).cloned()));
        }
    }
    carried_out(subject, &mut calls, budget);
    calls.truncate(MAX_CALLS);
    for result in results {
        let call = calls.iter_mut().find(|it| {
            it.result.is_none()
                && match (&result.id, &it.id) {
                    (Some(result), Some(call)) => result == call,
                    _ => result.name.as_ref() == Some(&it.name),
                }
        });
        if let Some(call) = call {
            call.result = Some(result.text);
        }
    }
    calls
}

/// Returns the calls in an output.
fn calls_in(output: &Value) -> Vec<Call> {
    match messages::read(output) {
        Some(messages) => messages.into_iter().flat_map(|it| it.calls).collect(),
        None => calls::list(output).unwrap_or_default(),
    }
}

/// Adds calls that are not in the list yet. A repeated call has the same ID, which is not sufficient, because
/// some servers number the calls of each answer from the start. No calls are read after the list is full.
fn add(calls: &mut Vec<Call>, more: impl IntoIterator<Item = Call>) {
    for call in more {
        if calls.len() >= MAX_CALLS {
            return;
        }
        let same = |it: &Call| it.id == call.id && it.name == call.name && it.arguments == call.arguments;
        if call.id.is_none() || !calls.iter().any(same) {
            calls.push(call);
        }
    }
}

/// Returns the tool that a span names.
fn tool_of(step: &Step) -> &str {
    let tool = step.metadata.get("tool").and_then(Value::as_object);
    tool.and_then(|it| first_text(it, &["name"])).unwrap_or(&step.name)
}

/// Returns whether an ancestor of the span reports the same call: an agent, its Model Context Protocol
/// client and the server each report the tool call.
fn repeats_ancestor(step: &Step, by_id: &HashMap<Uuid, &Step>) -> bool {
    let mut parent = step.parent;
    for _ in 0..MAX_ANCESTORS {
        let Some(above) = parent.and_then(|it| by_id.get(&it)) else { return false };
        let same_call = above.input.is_none() || step.input.is_none() || above.input == step.input;
        if above.kind == SpanType::Tool && tool_of(above) == tool_of(step) && same_call {
            return true;
        }
        parent = above.parent;
    }
    false
}

/// Assigns tool spans to the calls that they carried out.
fn carried_out(subject: &Subject, calls: &mut Vec<Call>, budget: &mut Budget) {
    let asked_for = calls.len();
    let mut taken = vec![false; asked_for];
    let by_id: HashMap<Uuid, &Step> = subject.steps.iter().map(|it| (it.id, it)).collect();
    let tools = subject.steps.iter().filter(|it| it.kind == SpanType::Tool);
    for step in tools.filter(|it| !repeats_ancestor(it, &by_id)) {
        let tool = step.metadata.get("tool").and_then(Value::as_object);
        let name = tool_of(step);
        let id = tool.and_then(|it| first_text(it, &["call_id"]));
        let input =
            step.input.as_deref().map(|it| budget.parse(it).unwrap_or_else(|| Value::String(it.to_owned())));
        let arguments = input.map(|it| calls::arguments_of_span(&it, name));
        let span = Call::new(name, arguments.as_ref(), id);
        let fits = |at: &usize, how: &dyn Fn(&Call) -> bool| {
            !taken[*at] && calls[*at].name == span.name && how(&calls[*at])
        };
        let at = (0..asked_for)
            .find(|at| fits(at, &|it| it.id.is_some() && it.id == span.id))
            .or_else(|| (0..asked_for).find(|at| fits(at, &|it| it.arguments == span.arguments)))
            .or_else(|| (0..asked_for).find(|at| fits(at, &|_| true)));
        let call = match at {
            Some(at) => {
                taken[at] = true;
                &mut calls[at]
            }
            None => {
                calls.push(span);
                let Some(last) = calls.last_mut() else { continue };
                last
            }
        };
        call.result = step.output.clone().or(call.result.take());
        call.error = step.error.clone();
    }
}

#[cfg(test)]
mod tests;
