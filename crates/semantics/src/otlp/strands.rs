//! Strands Agents: the attributes have GenAI keys; the contents are events of Amazon Bedrock's content
//! blocks, which [`super::events`] and [`super::messages`] parse.

use super::{attributes::Attributes, keys::Key};

/// Substrings of the names of models whose providers exclude cached tokens from the prompt tokens.
const SEPARATE_CACHE_MODELS: &[&str] = &["anthropic.", "amazon.", "claude"];

/// Returns whether the prompt tokens exclude cached tokens: Strands passes on the provider's counts.
pub(super) fn excludes_cached(attributes: &Attributes, scope: &str) -> bool {
    scope.starts_with("strands.")
        && attributes
            .str(Key::RequestModel)
            .is_some_and(|model| SEPARATE_CACHE_MODELS.iter().any(|it| model.contains(it)))
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn strands_cached_tokens_are_separate_for_some_providers() {
        for (model, expected) in [
            ("us.anthropic.claude-sonnet-4-20250514-v1:0", true),
            ("amazon.nova-pro-v1:0", true),
            ("claude-sonnet-4-5", true),
            ("gpt-4o-mini", false),
        ] {
            let given = attributes(&[("gen_ai.request.model", model)]);
            assert_eq!(excludes_cached(&given, "strands.telemetry.tracer"), expected, "{model}");
            assert!(!excludes_cached(&given, "other"));
        }
    }
}
