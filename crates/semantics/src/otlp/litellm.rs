//! LiteLLM: GenAI attributes on `litellm_request`, and a child that repeats the call in the
//! provider's words, as Python literals under `llm.<provider>.*`.

use super::{attributes::Attributes, keys::Key};

/// The messages as the provider got them. Python text, not JSON.
pub(super) fn input(attributes: &mut Attributes) -> Option<String> {
    attributes.take_first(&[Key::LitellmMessages, Key::LitellmAnthropicMessages, Key::LitellmEmbedded])
}

/// The answer as the provider gave it. Python text, not JSON.
pub(super) fn output(attributes: &mut Attributes) -> Option<String> {
    attributes.take_first(&[Key::LitellmChoices, Key::LitellmAnthropicContent])
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn the_raw_call_is_kept_as_it_came() {
        let mut given = attributes(&[
            ("llm.openai.messages", "[{'role': 'user'}]"),
            ("llm.anthropic.content", "[{'text': 'x'}]"),
        ]);
        assert_eq!(input(&mut given).as_deref(), Some("[{'role': 'user'}]"));
        assert_eq!(output(&mut given).as_deref(), Some("[{'text': 'x'}]"));
    }
}
