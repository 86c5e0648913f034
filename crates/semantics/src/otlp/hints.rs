//! Extracts trace hints from a span: session, user, tags, name.

use opentelemetry_proto::tonic::common::v1::any_value::Value;

use super::{
    attributes::Attributes,
    keys::{Group, Key},
    langsmith, text, value,
};
use crate::draft::TraceHints;

/// Metadata keys that applications use for the session ID where the convention defines none.
const SESSION_NAMES: &[&str] = &["session_id", "sessionId", "session.id", "conversation_id", "thread_id"];
const USER_NAMES: &[&str] = &["user_id", "userId", "user.id"];
/// Maximum number of tags of a span; each tag of a trace is a row.
const MAX_TAGS: usize = 100;

/// Takes the trace hints of a span.
pub(super) fn read(attributes: &mut Attributes) -> TraceHints {
    TraceHints {
        name: attributes.take_text(Key::LangfuseTraceName),
        session_id: session(attributes),
        user_id: user(attributes),
        external_id: attributes.take_text(Key::TraceExternalId),
        tags: tags(attributes),
        complete: complete(attributes),
        has_remote_parent: false,
    }
}

fn session(attributes: &mut Attributes) -> Option<String> {
    id_in(attributes, Key::SessionId)
        .or_else(|| id_in(attributes, Key::LangfuseSession))
        .or_else(|| id_in_group(attributes, Group::Association, SESSION_NAMES))
        .or_else(|| id_in_group(attributes, Group::AiMetadata, SESSION_NAMES))
        .or_else(|| id_in_group(attributes, Group::LangsmithMetadata, SESSION_NAMES))
        .or_else(|| id_in(attributes, Key::MlflowSession))
        .or_else(|| conversation(attributes))
        .or_else(|| id_in(attributes, Key::AdkSession))
        .or_else(|| id_in(attributes, Key::LangsmithSession))
        .or_else(|| id_in(attributes, Key::ThreadId))
        .or_else(|| id_in(attributes, Key::GroupId))
}

/// Returns the conversation ID, unless it is OpenAI's ID of the previous response, which differs in
/// every call.
fn conversation(attributes: &mut Attributes) -> Option<String> {
    if attributes.str(Key::ConversationId).is_some_and(|it| it.starts_with("resp_")) {
        return None;
    }
    id_in(attributes, Key::ConversationId)
}

fn user(attributes: &mut Attributes) -> Option<String> {
    id_in(attributes, Key::UserId)
        .or_else(|| id_in(attributes, Key::LangfuseUser))
        .or_else(|| id_in_group(attributes, Group::Association, USER_NAMES))
        .or_else(|| id_in_group(attributes, Group::AiMetadata, USER_NAMES))
        .or_else(|| id_in_group(attributes, Group::LangsmithMetadata, USER_NAMES))
        .or_else(|| id_in(attributes, Key::MlflowUser))
        .or_else(|| id_in(attributes, Key::EndUserId))
        .or_else(|| id_in(attributes, Key::LitellmUser))
}

fn id_in(attributes: &mut Attributes, key: Key) -> Option<String> {
    attributes.take_text(key).filter(|it| is_id(it))
}

fn id_in_group(attributes: &mut Attributes, group: Group, names: &[&str]) -> Option<String> {
    value::into_text(attributes.take_from_group(group, names)?).filter(|it| is_id(it))
}

/// Whether the text is an ID, and not a placeholder of a scrubber.
fn is_id(text: &str) -> bool {
    !text::is_placeholder(text) && !text.starts_with("[Scrubbed due to")
}

fn complete(attributes: &mut Attributes) -> bool {
    match attributes.take(Key::TraceComplete) {
        Some(Value::BoolValue(complete)) => complete,
        Some(Value::StringValue(word)) => word.eq_ignore_ascii_case("true"),
        _ => false,
    }
}

fn tags(attributes: &mut Attributes) -> Vec<(String, String)> {
    let mut tags = Vec::new();
    for key in [Key::TagTags, Key::LangfuseTraceTags, Key::Tags, Key::LogfireTags] {
        if let Some(value) = attributes.take(key) {
            add(&mut tags, value);
        }
    }
    if let Some(sent) = attributes.take_text(Key::LangsmithTags) {
        let chosen = sent.split(',').map(str::trim).filter(|it| langsmith::is_chosen_tag(it));
        chosen.for_each(|tag| push(&mut tags, split(tag)));
    }
    for (key, value) in attributes.take_group(Group::MlflowTag) {
        push(&mut tags, (text::clean(key), value::into_text(value).unwrap_or_default()));
    }
    for group in [Group::Association, Group::AiMetadata] {
        if let Some(value) = attributes.take_from_group(group, &["tags"]) {
            add(&mut tags, value);
        }
    }
    tags
}

/// Adds the tags of a list, a map, a JSON list, or text separated by commas.
fn add(tags: &mut Vec<(String, String)>, value: Value) {
    match value {
        Value::ArrayValue(list) => {
            for text in list.values.into_iter().filter_map(|it| value::into_text(it.value?)) {
                push(tags, split(&text));
            }
        }
        Value::KvlistValue(map) => {
            for pair in map.values {
                let text = pair.value.and_then(|it| value::into_text(it.value?)).unwrap_or_default();
                push(tags, (text::clean(pair.key), text));
            }
        }
        Value::StringValue(sent) => match serde_json::from_str::<Vec<String>>(&sent) {
            Ok(list) => list.into_iter().for_each(|text| push(tags, split(&text::clean(text)))),
            Err(_) => sent.split(',').for_each(|text| push(tags, split(&text::clean(text.to_owned())))),
        },
        _ => {}
    }
}

/// Splits a tag at the first colon; without a colon the value is empty.
fn split(tag: &str) -> (String, String) {
    let (key, value) = tag.split_once(':').unwrap_or((tag, ""));
    (key.trim().to_owned(), value.trim().to_owned())
}

fn push(tags: &mut Vec<(String, String)>, tag: (String, String)) {
    if !tag.0.is_empty() && tags.len() < MAX_TAGS && !tags.contains(&tag) {
        tags.push(tag);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    fn check_tags(key: &str, sent: &str, expected: &[(&str, &str)]) {
        let tags = read(&mut attributes(&[(key, sent)])).tags;
        let tags: Vec<_> = tags.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(tags, expected, "{key}={sent}");
    }

    #[test]
    fn tags_of_every_form_are_extracted() {
        check_tags("tag.tags", r#"["env:prod:eu","beta"]"#, &[("env", "prod:eu"), ("beta", "")]);
        check_tags(
            "traceloop.association.properties.tags",
            "beta, checkout",
            &[("beta", ""), ("checkout", "")],
        );
        check_tags("ai.telemetry.metadata.tags", "beta", &[("beta", "")]);
        check_tags("tags", "[]", &[]);
        check_tags("tags", "a,a,:x,", &[("a", "")]);
    }

    #[test]
    fn first_session_key_takes_precedence() {
        let hints = read(&mut attributes(&[
            ("gen_ai.conversation.id", "c"),
            ("traceloop.association.properties.session_id", "t"),
            ("ai.telemetry.metadata.userId", "u"),
            ("trace.complete", "true"),
        ]));
        assert_eq!(hints.session_id.as_deref(), Some("t"));
        assert_eq!(hints.user_id.as_deref(), Some("u"));
        assert!(hints.complete);
    }

    #[test]
    fn previous_response_id_is_not_a_session() {
        let mut given = attributes(&[("gen_ai.conversation.id", "resp_0001")]);
        assert_eq!(read(&mut given).session_id, None);
        assert!(given.has(Key::ConversationId), "it remains metadata");
        let langsmith =
            [("langsmith.metadata.thread_id", "t"), ("langsmith.span.tags", "a, seq:step:1, env:prod")];
        let hints = read(&mut attributes(&langsmith));
        assert_eq!(hints.session_id.as_deref(), Some("t"));
        let tags: Vec<_> = hints.tags.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(tags, [("a", ""), ("env", "prod")]);
    }

    #[test]
    fn scrubbed_session_id_is_ignored() {
        let scrubbed = [("session.id", "[Scrubbed due to 'session']"), ("gen_ai.conversation.id", "c")];
        assert_eq!(read(&mut attributes(&scrubbed)).session_id.as_deref(), Some("c"));
        assert_eq!(read(&mut attributes(&[("group_id", "null")])).session_id, None);
    }
}
