//! LiteLLM: GenAI attributes on `litellm_request`, and a child that repeats the call with the
//! provider's names, as Python literals under `llm.<provider>.*`.

use super::{attributes::Attributes, keys::Key};

/// Returns the messages as sent to the provider: Python text, not JSON.
pub(super) fn input(attributes: &mut Attributes) -> Option<String> {
    attributes.take_first(&[Key::LitellmMessages, Key::LitellmAnthropicMessages, Key::LitellmEmbedded])
}

/// Returns the response as received from the provider: Python text, not JSON.
pub(super) fn output(attributes: &mut Attributes) -> Option<String> {
    attributes.take_first(&[Key::LitellmChoices, Key::LitellmAnthropicContent])
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn litellm_raw_call_is_stored_unchanged() {
        let mut given = attributes(&[
            ("llm.openai.messages", "[{'role': 'user'}]"),
            ("llm.anthropic.content", "[{'text': 'x'}]"),
        ]);
        assert_eq!(input(&mut given).as_deref(), Some("[{'role': 'user'}]"));
        assert_eq!(output(&mut given).as_deref(), Some("[{'text': 'x'}]"));
    }
}
