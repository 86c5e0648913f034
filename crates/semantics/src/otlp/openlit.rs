//! OpenLIT: one text each for prompt and completion before version 1.40, GenAI messages since then.

use api::SpanType;

use super::{attributes::Attributes, keys::Key, text};

/// Recognizes failed calls, which have only a name: `chat <model>`.
pub(super) fn kind(scope: &str, name: &str) -> Option<SpanType> {
    (is_sender(scope) && name.starts_with("chat ")).then_some(SpanType::Llm)
}

/// Whether a scope belongs to this SDK.
pub(super) fn is_sender(scope: &str) -> bool {
    scope.starts_with("openlit")
}

/// Returns the model in the name of a failed call.
pub(super) fn model(scope: &str, name: &str) -> Option<String> {
    if !is_sender(scope) {
        return None;
    }
    name.strip_prefix("chat ").filter(|model| !model.is_empty() && !model.contains(' ')).map(str::to_owned)
}

/// Returns whether token counts exclude cached tokens: OpenLIT passes on the counts of Anthropic and Amazon
/// Bedrock.
pub(super) fn excludes_cached(attributes: &Attributes, scope: &str) -> bool {
    is_sender(scope)
        && [Key::ProviderName, Key::System]
            .into_iter()
            .any(|key| matches!(attributes.str(key), Some("anthropic" | "aws.bedrock")))
}

/// Returns the input as `role: text` lines.
pub(super) fn input(attributes: &mut Attributes) -> Option<String> {
    attributes.take_text(Key::OpenlitPrompt)
}

/// Returns the completion's text, else the tool call of the model.
pub(super) fn output(attributes: &mut Attributes) -> Option<String> {
    attributes.take_text(Key::OpenlitCompletion).or_else(|| tool_call(attributes))
}

fn tool_call(attributes: &mut Attributes) -> Option<String> {
    let name = attributes.str(Key::ToolName)?.to_owned();
    let arguments = attributes.take_text(Key::OpenlitToolArguments)?;
    let mut out = String::from(r#"[{"role":"assistant","tool_calls":[{"function":{"name":"#);
    text::push_json_str(&mut out, &name);
    out.push_str(r#","arguments":"#);
    text::push_json_str(&mut out, &arguments);
    out.push_str("}}]}]");
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn openlit_tool_call_is_the_output() {
        let call =
            [("gen_ai.completion", ""), ("gen_ai.tool.name", "f"), ("gen_ai.tool.args", r#"{"a":"b"}"#)];
        assert_eq!(
            output(&mut attributes(&call)).as_deref(),
            Some(
                r#"[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":\"b\"}"}}]}]"#
            )
        );
    }

    #[test]
    fn openlit_failed_call_is_recognized_by_name() {
        assert_eq!(kind("openlit.otel.openai", "chat gpt-4o"), Some(SpanType::Llm));
        assert_eq!(kind("my-app", "chat gpt-4o"), None);
        assert_eq!(model("openlit.instrumentation.openai", "chat gpt-4o").as_deref(), Some("gpt-4o"));
        assert_eq!(model("openlit", "chat with the user"), None);
    }
}
