//! Logfire and SDKs that report through it: Pydantic AI, and the OpenAI Agents SDK.
//!
//! Names may be templates (`Function: {name}`), and absent values the text `null`.

use api::SpanType;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{attributes::Attributes, keys::Key, text};

/// Returns the span type indicated by the name's template, for spans of the Agents SDK.
pub(super) fn kind(attributes: &Attributes) -> Option<SpanType> {
    let template = attributes.str(Key::LogfireTemplate)?;
    let begins = |words: &str| template.get(..words.len()).is_some_and(|it| it.eq_ignore_ascii_case(words));
    Some(if ["Responses API", "Chat completion", "Message with "].into_iter().any(begins) {
        SpanType::Llm
    } else if template.starts_with("Function: ") {
        SpanType::Tool
    } else {
        SpanType::Other
    })
}

/// Fills the template of the name.
pub(super) fn name(attributes: &mut Attributes, name: String) -> String {
    if name.contains('{') && attributes.has(Key::LogfireMessage) {
        attributes.take_text(Key::LogfireMessage).unwrap_or(name)
    } else {
        if attributes.str(Key::LogfireMessage) == Some(&name) {
            attributes.drop_key(Key::LogfireMessage);
        }
        name
    }
}

/// Returns the function called, for spans of the Agents SDK.
pub(super) fn tool_name(attributes: &mut Attributes) -> Option<String> {
    if attributes.has(Key::LogfireTemplate) { attributes.take_text(Key::PlainName) } else { None }
}

/// Excludes attributes that only serve the sender's display or repeat input and output. Their keys are
/// common words, so they are dropped only for this sender.
pub(super) fn drop_repeated(attributes: &mut Attributes, scope: &str, has_input: bool, has_output: bool) {
    attributes.drop_keys(&[Key::LogfireSchema, Key::LogfireTemplate]);
    if !scope.starts_with("logfire") && !scope.starts_with("pydantic") {
        return;
    }
    if has_input {
        attributes.drop_keys(&[Key::RawInput, Key::RequestData, Key::Events]);
    }
    if has_output {
        attributes.drop_keys(&[Key::Response, Key::ResponseData]);
    }
}

/// Returns the input of an agent or a model call.
pub(super) fn input(attributes: &mut Attributes) -> Option<String> {
    if let Some(messages) = attributes.take_text(Key::AllMessages) {
        return Some(text::readable(messages));
    }
    attributes
        .take_first(&[Key::RawInput, Key::PlainInput])
        .filter(|it| !text::is_placeholder(it))
        .or_else(|| messages_of_request(attributes.str(Key::RequestData)?))
        .or_else(|| exchange(attributes.str(Key::Events)?)?.input)
        .map(text::readable)
}

/// Returns the output of an agent or a model call.
pub(super) fn output(attributes: &mut Attributes) -> Option<String> {
    if let Some(result) = attributes.take_text(Key::FinalResult) {
        return Some(text::readable(result));
    }
    if attributes.has(Key::LogfireTemplate)
        && let Some(answer) = attributes.str(Key::Response).and_then(answer_of_response)
    {
        attributes.drop_keys(&[Key::Response, Key::Events]);
        return Some(answer);
    }
    let output = attributes
        .take_text(Key::PlainOutput)
        .filter(|it| !text::is_placeholder(it))
        .or_else(|| message_of_response(attributes.str(Key::ResponseData)?))
        .or_else(|| exchange(attributes.str(Key::Events)?)?.output)?;
    Some(text::plain_answer(&output).unwrap_or_else(|| text::readable(output)))
}

/// Returns the messages in the parameters of a provider's request.
fn messages_of_request(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct ProviderRequest<'a> {
        #[serde(borrow, alias = "input")]
        messages: &'a RawValue,
    }
    Some(text::clean(serde_json::from_str::<ProviderRequest<'_>>(json).ok()?.messages.get().to_owned()))
}

/// Returns the message in a provider's response, or the concatenated text of a stream.
fn message_of_response(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct ProviderResponse<'a> {
        #[serde(borrow)]
        message: Option<&'a RawValue>,
        combined_chunk_content: Option<String>,
    }
    let ProviderResponse { message, combined_chunk_content } = serde_json::from_str(json).ok()?;
    message.map(|it| it.get().to_owned()).or(combined_chunk_content).map(text::clean)
}

/// Input and output of a call.
struct CallMessages {
    input: Option<String>,
    output: Option<String>,
}

/// Parses the messages that Pydantic AI sent as events before it used attributes.
fn exchange(json: &str) -> Option<CallMessages> {
    #[derive(Deserialize)]
    struct EventMessage<'a> {
        #[serde(rename = "event.name", borrow)]
        name: Option<std::borrow::Cow<'a, str>>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
    }
    let mut sent = Vec::new();
    let mut output = None;
    for item in serde_json::from_str::<Vec<&RawValue>>(json).ok()? {
        let EventMessage { name, message } = serde_json::from_str(item.get()).ok()?;
        match (name.as_deref(), message) {
            (Some("gen_ai.choice"), Some(message)) => output = Some(text::clean(message.get().to_owned())),
            _ => sent.push(item.get()),
        }
    }
    let input = (!sent.is_empty()).then(|| text::clean(format!("[{}]", sent.join(","))));
    Some(CallMessages { input, output })
}

/// Returns the error that the Agents SDK records as JSON: `{"message", "data": {"error"}}`.
pub(super) fn error(attributes: &Attributes) -> Option<String> {
    #[derive(Deserialize)]
    struct RecordedError {
        message: Option<String>,
        data: Option<RecordedErrorData>,
    }
    #[derive(Deserialize)]
    struct RecordedErrorData {
        error: Option<String>,
    }
    let sent = attributes.str(Key::PlainError)?;
    let Ok(RecordedError { message, data }) = serde_json::from_str::<RecordedError>(sent) else {
        return (!text::is_placeholder(sent)).then(|| text::clean(sent.to_owned()));
    };
    match (message, data.and_then(|it| it.error)) {
        (Some(message), Some(detail)) => Some(text::clean(format!("{message}: {detail}"))),
        (message, detail) => message.or(detail).map(text::clean),
    }
}

/// Returns the text of a Responses API response, or its items if they contain more than text.
fn answer_of_response(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct ResponsesApiResponse<'a> {
        #[serde(borrow)]
        output: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct ResponseItem<'a> {
        #[serde(rename = "type")]
        kind: String,
        #[serde(borrow)]
        content: Option<&'a RawValue>,
    }
    let output = serde_json::from_str::<ResponsesApiResponse<'_>>(json).ok()?.output.get();
    let items = serde_json::from_str::<Vec<ResponseItem<'_>>>(output).ok()?;
    if let [ResponseItem { kind, content: Some(content) }] = items.as_slice()
        && kind == "message"
        && let Some(text) = text::plain_parts(content.get())
    {
        return Some(text);
    }
    Some(text::readable(text::clean(output.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn logfire_template_determines_span_type_and_name() {
        let mut given =
            attributes(&[("logfire.msg_template", "Function: {name}"), ("logfire.msg", "Function: weather")]);
        assert_eq!(kind(&given), Some(SpanType::Tool));
        assert_eq!(name(&mut given, "Function: {name}".to_owned()), "Function: weather");
        let mut plain = attributes(&[("logfire.msg", "chat gpt-4o")]);
        assert_eq!(name(&mut plain, "chat gpt-4o".to_owned()), "chat gpt-4o");
        assert!(!plain.has(Key::LogfireMessage));
    }

    #[test]
    fn logfire_calls_are_parsed_from_data_or_events() {
        let mut data = attributes(&[
            ("request_data", r#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#),
            ("response_data", r#"{"message":{"role":"assistant","content":"Hello"},"usage":null}"#),
        ]);
        assert_eq!(input(&mut data).as_deref(), Some(r#"[{"role":"user","content":"Hi"}]"#));
        assert_eq!(output(&mut data).as_deref(), Some("Hello"));
        let events = r#"[{"event.name":"gen_ai.user.message","content":"Hi","role":"user"},
            {"event.name":"gen_ai.choice","index":0,"message":{"role":"assistant","content":"Hello"}}]"#;
        let mut events = attributes(&[("events", events)]);
        let user = r#"[{"event.name":"gen_ai.user.message","content":"Hi","role":"user"}]"#;
        assert_eq!(input(&mut events).as_deref(), Some(user));
        assert_eq!(output(&mut events).as_deref(), Some("Hello"));
    }

    #[test]
    fn response_of_one_text_is_plain_text() {
        let response = r#"{"output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}"#;
        assert_eq!(answer_of_response(response).as_deref(), Some("Hi"));
        let call = r#"{"output":[{"type":"function_call","name":"f"}]}"#;
        assert_eq!(answer_of_response(call).as_deref(), Some(r#"[{"type":"function_call","name":"f"}]"#));
    }

    #[test]
    fn common_attribute_names_of_other_senders_are_kept() {
        let sent = [("events", "[]x"), ("response", "ok"), ("name", "Ada")];
        let kept = |scope: &str| {
            let mut given = attributes(&sent);
            drop_repeated(&mut given, scope, true, true);
            assert_eq!(tool_name(&mut given), None);
            given.into_rest().iter().filter(|it| it.value.is_some()).count()
        };
        assert_eq!((kept("my-app"), kept("logfire.openai")), (3, 1));
    }

    #[test]
    fn logfire_recorded_error_is_extracted() {
        let note = |json| error(&attributes(&[("error", json)]));
        assert_eq!(
            note(r#"{"message":"Error in run","data":{"error":"late"}}"#).as_deref(),
            Some("Error in run: late")
        );
        assert_eq!(note(r#"{"message":"m","data":null}"#).as_deref(), Some("m"));
        assert_eq!(note("boom").as_deref(), Some("boom"));
        assert_eq!(note("null"), None);
    }
}
