//! Extracts exceptions, contents, documents and external evaluations from span events.

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::span::Event,
};

use super::{
    messages, text, time,
    value::{into_text, is_blank, number, write_json, write_object},
};
use crate::draft::{EvaluationDraft, EventDraft};

/// The first line of a Python traceback.
const TRACEBACK_START: &str = "Traceback (most recent call last)";

/// The information in a span's events.
#[derive(Default)]
pub(super) struct EventContents {
    /// Events that are stored as such.
    pub(super) drafts: Vec<EventDraft>,
    /// Type and message of the last exception.
    pub(super) exception: Option<(String, String)>,
    /// Prompt or input messages.
    pub(super) input: Option<String>,
    /// System instructions that are sent separately from the messages.
    pub(super) instructions: Option<String>,
    /// The arguments in a tool's event.
    pub(super) tool_input: Option<String>,
    /// Messages sent as one event each.
    messages: Option<String>,
    /// Completion or output messages.
    pub(super) output: Option<String>,
    /// Documents returned by a vector database, as a JSON list.
    pub(super) documents: Option<String>,
    /// Whether the span is a query of a vector database.
    pub(super) is_query: bool,
    /// External evaluations of the span.
    pub(super) evaluations: Vec<EvaluationDraft>,
    /// Number of stream chunks recorded as one event each.
    pub(super) chunks: usize,
}

/// Extracts the information from a span's events.
pub(super) fn read(events: Vec<Event>) -> EventContents {
    let mut contents = EventContents::default();
    for event in events {
        let Event { time_unix_nano, name, mut attributes, .. } = event;
        if contents.absorb(&name, &mut attributes) {
            continue;
        }
        let is_exception = name == "exception" || name == "gen_ai.client.operation.exception";
        let exception = is_exception.then(|| exception(&attributes));
        let mut metadata = String::new();
        write_object(&mut metadata, &attributes);
        let draft = EventDraft {
            time_us: time(time_unix_nano),
            level: if exception.is_some() { "error" } else { "info" },
            message: match &exception {
                Some((kind, message)) => if message.is_empty() { kind } else { message }.clone(),
                None => text::clean(name),
            },
            metadata,
            record: None,
        };
        // Some senders record one exception twice, moments apart.
        if exception.is_none() || contents.exception != exception {
            contents.drafts.push(draft);
        }
        contents.exception = exception.or(contents.exception);
    }
    for list in [&mut contents.documents, &mut contents.messages].into_iter().flatten() {
        list.push(']');
    }
    contents.input = contents.input.or(contents.messages.take());
    contents
}

impl EventContents {
    /// Moves contents of an event into the span's fields; returns whether the event is used up.
    fn absorb(&mut self, name: &str, attributes: &mut [KeyValue]) -> bool {
        let first = |found: &mut Option<String>, attributes: &mut [KeyValue], key| {
            if found.is_none() {
                *found = take(attributes, key);
            }
        };
        match name {
            // One event per stream chunk, without content: counted and dropped.
            "llm.content.completion.chunk" | "gen_ai.content.completion.chunk" => {
                self.chunks += usize::from(attributes.is_empty());
                attributes.is_empty()
            }
            "gen_ai.content.prompt" => {
                first(&mut self.input, attributes, "gen_ai.prompt");
                attributes.iter().all(|it| it.value.is_none())
            }
            "gen_ai.content.completion" => {
                first(&mut self.output, attributes, "gen_ai.completion");
                attributes.iter().all(|it| it.value.is_none())
            }
            "gen_ai.client.inference.operation.details" => {
                first(&mut self.input, attributes, "gen_ai.input.messages");
                first(&mut self.output, attributes, "gen_ai.output.messages");
                first(&mut self.instructions, attributes, "gen_ai.system_instructions");
                attributes.iter().all(|it| it.value.is_none())
            }
            "gen_ai.system.message"
            | "gen_ai.user.message"
            | "gen_ai.assistant.message"
            | "gen_ai.tool.message" => {
                let role = name.trim_start_matches("gen_ai.").trim_end_matches(".message");
                if role == "tool" && self.tool_input.is_none() {
                    self.tool_input = str(attributes, "content").map(|it| text::clean(it.to_owned()));
                }
                add_message(self.messages.get_or_insert_default(), role, attributes);
                true
            }
            "gen_ai.choice" => {
                self.output = self.output.take().or_else(|| choice(attributes));
                true
            }
            "gen_ai.evaluation.result" | "gen_ai.evaluation" => {
                self.evaluations.extend(evaluation(attributes));
                false
            }
            "db.query.embeddings" => {
                self.is_query = true;
                true
            }
            "db.query.result" => {
                self.is_query = true;
                add_document(self.documents.get_or_insert_default(), attributes);
                true
            }
            // MLflow records the chunks of a stream, which add up to the output.
            _ if name.starts_with("mlflow.chunk.item.") => {
                self.chunks += 1;
                true
            }
            _ => false,
        }
    }
}

fn take(attributes: &mut [KeyValue], key: &str) -> Option<String> {
    let attribute = attributes.iter_mut().find(|it| it.key == key)?;
    into_text(attribute.value.take()?.value?)
}

/// Adds an input message: JSON, or text with the role given by the event's name.
fn add_message(list: &mut String, role: &str, attributes: &mut [KeyValue]) {
    list.push(if list.is_empty() { '[' } else { ',' });
    match take(attributes, "gen_ai.event.content") {
        Some(json) if serde_json::from_str::<serde::de::IgnoredAny>(&json).is_ok() => list.push_str(&json),
        content => {
            let content = content.or_else(|| take(attributes, "content")).unwrap_or_default();
            if let Some(message) = messages::of_bedrock(role, &content) {
                return list.push_str(&message);
            }
            list.push_str("{\"role\":");
            text::push_json_str(list, role);
            list.push_str(",\"content\":");
            text::push_json_str(list, &content);
            if let Some(calls) = take(attributes, "tool_calls") {
                list.push_str(",\"tool_calls\":");
                push_json_or_text(list, &calls);
            }
            list.push('}');
        }
    }
}

fn push_json_or_text(out: &mut String, json: &str) {
    match serde_json::from_str::<serde::de::IgnoredAny>(json) {
        Ok(_) => out.push_str(json),
        Err(_) => text::push_json_str(out, json),
    }
}

/// Returns the response: the message, or the object that contains it.
fn choice(attributes: &mut [KeyValue]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Choice<'a> {
        #[serde(borrow)]
        message: &'a serde_json::value::RawValue,
    }
    if let Some(message) = take(attributes, "message").or_else(|| take(attributes, "content")) {
        let blocks = messages::of_bedrock("assistant", &message);
        return Some(blocks.map_or(message, |it| format!("[{it}]")));
    }
    let sent = take(attributes, "gen_ai.event.content")?;
    let message = serde_json::from_str::<Choice<'_>>(&sent).ok().map(|it| it.message.get().to_owned());
    Some(message.unwrap_or(sent))
}

fn get<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    attributes.iter().find(|it| it.key == key)?.value.as_ref()?.value.as_ref()
}

fn str<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    match get(attributes, key)? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

fn exception(attributes: &[KeyValue]) -> (String, String) {
    let text = |key| text::clean(str(attributes, key).unwrap_or_default().to_owned());
    let (mut kind, mut message) = (text("exception.type"), text("exception.message"));
    // Some senders append the whole traceback to the message.
    if let Some(at) = message.find(TRACEBACK_START).filter(|at| *at > 0) {
        message.truncate(at);
        message.truncate(message.trim_end().len());
    }
    if kind.is_empty() && message.is_empty() {
        kind = "exception".to_owned();
    }
    (kind, message)
}

/// Adds a document without its vector.
fn add_document(list: &mut String, attributes: &[KeyValue]) {
    list.push(if list.is_empty() { '[' } else { ',' });
    list.push('{');
    let mut first = true;
    for KeyValue { key, value, .. } in attributes {
        let name = match key.strip_prefix("db.query.result.") {
            Some("vector") | None => continue,
            Some("document") => "content",
            Some(name) => name,
        };
        if let Some(AnyValue { value: Some(value) }) = value
            && !is_blank(value)
        {
            if !first {
                list.push(',');
            }
            first = false;
            text::push_json_str(list, name);
            list.push(':');
            write_json(list, value);
        }
    }
    list.push('}');
}

fn evaluation(attributes: &[KeyValue]) -> Option<EvaluationDraft> {
    let text = |key| Some(text::clean(str(attributes, key).filter(|it| !it.is_empty())?.to_owned()));
    Some(EvaluationDraft {
        name: text("gen_ai.evaluation.name")?,
        score: get(attributes, "gen_ai.evaluation.score.value").and_then(number),
        label: text("gen_ai.evaluation.score.label"),
        explanation: text("gen_ai.evaluation.explanation"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, pairs: &[(&str, &str)]) -> Event {
        Event {
            time_unix_nano: 1_000,
            name: name.to_owned(),
            attributes: pairs
                .iter()
                .map(|(key, text)| KeyValue {
                    key: (*key).to_owned(),
                    value: Some(AnyValue { value: Some(Value::StringValue((*text).to_owned())) }),
                    key_strindex: 0,
                })
                .collect(),
            dropped_attributes_count: 0,
        }
    }

    #[test]
    fn repeated_exception_event_is_stored_once() {
        let twice = event("exception", &[("exception.type", "E"), ("exception.message", "boom")]);
        let seen = read(vec![twice.clone(), twice, event("exception", &[])]);
        assert_eq!(
            seen.drafts.iter().map(|it| (it.level, it.message.as_str())).collect::<Vec<_>>(),
            [("error", "boom"), ("error", "exception")]
        );
    }

    #[test]
    fn events_contents_documents_and_chunks_are_extracted() {
        let seen = read(vec![
            event("gen_ai.content.prompt", &[("gen_ai.prompt", "user: Hi")]),
            event("llm.content.completion.chunk", &[]),
            event("db.query.result", &[("db.query.result.id", "a"), ("db.query.result.vector", "[1]")]),
            event("db.query.result", &[("db.query.result.document", "text")]),
            event("note", &[]),
        ]);
        assert_eq!(seen.input.as_deref(), Some("user: Hi"));
        assert_eq!(seen.chunks, 1);
        assert_eq!(seen.documents.as_deref(), Some(r#"[{"id":"a"},{"content":"text"}]"#));
        assert_eq!(seen.drafts.len(), 1);
        assert_eq!((seen.drafts[0].time_us, seen.drafts[0].level), (Some(1), "info"));
    }

    #[test]
    fn messages_sent_as_events_are_joined() {
        let seen = read(vec![
            event("gen_ai.system.message", &[("content", "Be terse")]),
            event("gen_ai.user.message", &[("gen_ai.event.content", r#"{"role":"user","content":"Hi"}"#)]),
            event(
                "gen_ai.choice",
                &[("gen_ai.event.content", r#"{"message":{"role":"assistant","content":"Hello"}}"#)],
            ),
        ]);
        let input = r#"[{"role":"system","content":"Be terse"},{"role":"user","content":"Hi"}]"#;
        assert_eq!(seen.input.as_deref(), Some(input));
        assert_eq!(seen.output.as_deref(), Some(r#"{"role":"assistant","content":"Hello"}"#));
        assert!(seen.drafts.is_empty());
    }

    #[test]
    fn external_evaluation_without_name_is_ignored() {
        let seen = read(vec![
            event(
                "gen_ai.evaluation.result",
                &[("gen_ai.evaluation.name", "tone"), ("gen_ai.evaluation.score.value", "0.5")],
            ),
            event("gen_ai.evaluation.result", &[]),
        ]);
        assert_eq!(seen.evaluations.len(), 1);
        assert_eq!(seen.evaluations[0].score, Some(0.5));
    }
}
