//! Span events: exceptions, contents that some senders put there, documents, evaluations.

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::span::Event,
};

use super::{
    text, time,
    value::{into_text, is_blank, number, write_json, write_object},
};
use crate::draft::{EvaluationDraft, EventDraft};

/// What a span's events say.
#[derive(Default)]
pub(super) struct Observed {
    /// The events worth showing.
    pub(super) drafts: Vec<EventDraft>,
    /// Type and message of the last exception.
    pub(super) exception: Option<(String, String)>,
    /// Prompt, or messages that went in.
    pub(super) input: Option<String>,
    /// Completion, or messages that came out.
    pub(super) output: Option<String>,
    /// Documents that a vector database found, as a JSON list.
    pub(super) documents: Option<String>,
    /// A vector database was asked.
    pub(super) is_query: bool,
    /// Evaluations made of the span.
    pub(super) evaluations: Vec<EvaluationDraft>,
    /// Stream chunks noted one by one.
    pub(super) chunks: usize,
}

/// Reads a span's events.
pub(super) fn read(events: Vec<Event>) -> Observed {
    let mut observed = Observed::default();
    for event in events {
        let Event { time_unix_nano, name, mut attributes, .. } = event;
        match name.as_str() {
            // One for each chunk of a stream, saying nothing else: counted, not kept.
            "llm.content.completion.chunk" | "gen_ai.content.completion.chunk" if attributes.is_empty() => {
                observed.chunks += 1;
                continue;
            }
            "gen_ai.content.prompt" => {
                observed.input = observed.input.take().or_else(|| take(&mut attributes, "gen_ai.prompt"));
                if attributes.iter().all(|it| it.value.is_none()) {
                    continue;
                }
            }
            "gen_ai.content.completion" => {
                observed.output =
                    observed.output.take().or_else(|| take(&mut attributes, "gen_ai.completion"));
                if attributes.iter().all(|it| it.value.is_none()) {
                    continue;
                }
            }
            "gen_ai.client.inference.operation.details" => {
                observed.input =
                    observed.input.take().or_else(|| take(&mut attributes, "gen_ai.input.messages"));
                observed.output =
                    observed.output.take().or_else(|| take(&mut attributes, "gen_ai.output.messages"));
            }
            "gen_ai.evaluation.result" | "gen_ai.evaluation" => {
                observed.evaluations.extend(evaluation(&attributes));
            }
            "db.query.embeddings" => {
                observed.is_query = true;
                continue;
            }
            "db.query.result" => {
                observed.is_query = true;
                add_document(observed.documents.get_or_insert_default(), &attributes);
                continue;
            }
            _ => {}
        }
        let exception = (name == "exception").then(|| exception(&attributes));
        let draft = EventDraft {
            time_us: time(time_unix_nano),
            level: if exception.is_some() { "error" } else { "info" },
            message: match &exception {
                Some((kind, message)) => if message.is_empty() { kind } else { message }.clone(),
                None => text::clean(name),
            },
            metadata: {
                let mut json = String::new();
                write_object(&mut json, &attributes);
                json
            },
        };
        // Some senders note one exception twice, moments apart.
        if exception.is_none() || observed.exception != exception {
            observed.drafts.push(draft);
        }
        observed.exception = exception.or(observed.exception);
    }
    if let Some(documents) = &mut observed.documents {
        documents.push(']');
    }
    observed
}

fn take(attributes: &mut [KeyValue], key: &str) -> Option<String> {
    let attribute = attributes.iter_mut().find(|it| it.key == key)?;
    into_text(attribute.value.take()?.value?)
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
    let (mut kind, message) = (text("exception.type"), text("exception.message"));
    if kind.is_empty() && message.is_empty() {
        kind = "exception".to_owned();
    }
    (kind, message)
}

/// One document found; its vector is left out.
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
    fn exceptions_are_errors_and_noted_once() {
        let twice = event("exception", &[("exception.type", "E"), ("exception.message", "boom")]);
        let seen = read(vec![twice.clone(), twice, event("exception", &[])]);
        assert_eq!(
            seen.drafts.iter().map(|it| (it.level, it.message.as_str())).collect::<Vec<_>>(),
            [("error", "boom"), ("error", "exception")]
        );
    }

    #[test]
    fn contents_documents_and_chunks_are_read() {
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
    fn evaluations_need_a_name() {
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
