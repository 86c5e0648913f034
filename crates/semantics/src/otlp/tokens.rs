//! Extracts token counts and the sender's own cost, in any convention.

use super::{adk, attributes::Attributes, keys::Key, langfuse, mlflow, openlit, strands, vercel};
use crate::usage::Usage;

const PROMPT_KEYS: &[Key] = &[
    Key::LlmPrompt,
    Key::UsageInput,
    Key::UsagePrompt,
    Key::AiInputTokens,
    Key::AiPromptTokens,
    Key::AiTokens,
];
const COMPLETION_KEYS: &[Key] = &[
    Key::LlmCompletion,
    Key::UsageOutput,
    Key::UsageCompletion,
    Key::AiOutputTokens,
    Key::AiCompletionTokens,
];
const CACHED_KEYS: &[Key] = &[
    Key::LlmCacheRead,
    Key::UsageCacheRead,
    Key::UsageCacheReadOld,
    Key::DetailsCacheRead,
    Key::DetailsCacheReadNew,
    Key::DetailsCachedContent,
    Key::AiCachedTokens,
];
const CACHE_WRITE_KEYS: &[Key] = &[
    Key::LlmCacheWrite,
    Key::UsageCacheCreation,
    Key::UsageCacheWrite,
    Key::UsageCacheCreationOld,
    Key::UsageCacheWriteOld,
    Key::DetailsCacheWrite,
    Key::DetailsCacheWriteNew,
];
const REASONING_KEYS: &[Key] = &[
    Key::LlmReasoning,
    Key::UsageReasoning,
    Key::UsageReasoningOutput,
    Key::DetailsReasoning,
    Key::DetailsThoughts,
    Key::AiReasoningTokens,
];
/// Scopes that pass on the counts of Amazon Bedrock, whose input tokens exclude cache reads and cache
/// writes.
const BEDROCK_SCOPES: &[&str] =
    &["opentelemetry.instrumentation.botocore.bedrock-runtime", "opentelemetry.instrumentation.bedrock"];
/// Keys of a total cost, in order of precedence.
const COST_KEYS: &[Key] = &[Key::LlmCost, Key::OperationCost, Key::LitellmCost, Key::OpenlitCost];

/// Takes the usage. Of counts that several conventions repeat on one span, the first is used.
pub(super) fn usage(attributes: &mut Attributes, scope: &str) -> Usage {
    let apart = openlit::excludes_cached(attributes, scope)
        || vercel::excludes_cached(attributes)
        || BEDROCK_SCOPES.contains(&scope)
        || strands::excludes_cached(attributes, scope);
    let flat = Usage {
        prompt: attributes.first_tokens(PROMPT_KEYS),
        completion: attributes.first_tokens(COMPLETION_KEYS),
        cached: attributes.first_tokens(CACHED_KEYS),
        cache_write: attributes.first_tokens(CACHE_WRITE_KEYS),
        reasoning: attributes.first_tokens(REASONING_KEYS),
        cached_in_prompt: !apart,
    };
    let detailed = langfuse::usage(attributes)
        .or_else(|| provider_usage(attributes))
        .or_else(|| adk::usage(attributes))
        .or_else(|| mlflow::usage(attributes));
    match detailed {
        Some(detailed) => Usage {
            prompt: detailed.prompt.or(flat.prompt),
            completion: detailed.completion.or(flat.completion),
            cached: detailed.cached.or(flat.cached),
            cache_write: detailed.cache_write.or(flat.cache_write),
            reasoning: detailed.reasoning.or(flat.reasoning),
            cached_in_prompt: holds_cached(&detailed),
        },
        None => Usage { cached_in_prompt: holds_cached(&flat), ..flat },
    }
}

/// Returns the provider's usage object, which Logfire sends beside flat counts.
fn provider_usage(attributes: &Attributes) -> Option<Usage> {
    langfuse::usage_of(attributes.str(Key::UsageRaw)?)
}

/// Whether the prompt count can include the cached tokens: a part cannot be larger than the whole.
fn holds_cached(usage: &Usage) -> bool {
    let parts = usage.cached.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
    usage.cached_in_prompt && usage.prompt.is_none_or(|prompt| parts <= prompt)
}

/// Returns the sender's own cost in US dollars. SDKs write zero for models without a known price, so
/// zero is ignored.
pub(super) fn cost(attributes: &Attributes) -> Option<f64> {
    let known = |cost: &f64| cost.is_finite() && *cost > 0.0;
    COST_KEYS
        .iter()
        .find_map(|key| attributes.number(*key).filter(known))
        .or_else(|| langfuse::cost(attributes).filter(known))
        .or_else(|| mlflow::cost(attributes).filter(known))
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn repeated_token_counts_are_used_once() {
        let mut given = attributes(&[
            ("gen_ai.usage.input_tokens", "25"),
            ("gen_ai.usage.output_tokens", "7"),
            ("ai.usage.promptTokens", "25"),
            ("ai.usage.completionTokens", "7"),
        ]);
        let usage = usage(&mut given, "ai");
        assert_eq!((usage.prompt, usage.completion), (Some(25), Some(7)));
        assert!(given.into_rest().iter().all(|it| it.value.is_none()));
    }

    #[test]
    fn cost_of_zero_does_not_hide_another_one() {
        let given = attributes(&[("llm.cost.total", "0"), ("gen_ai.usage.cost", "0.5")]);
        assert_eq!(cost(&given), Some(0.5));
        assert_eq!(cost(&attributes(&[("llm.cost.total", "0")])), None);
    }

    #[test]
    fn cached_tokens_are_included_or_separate() {
        let anthropic = [
            ("gen_ai.usage.input_tokens", "612"),
            ("gen_ai.usage.cache_read.input_tokens", "2048"),
            ("gen_ai.provider.name", "anthropic"),
        ];
        assert!(!usage(&mut attributes(&anthropic), "openlit.instrumentation.anthropic").cached_in_prompt);
        assert!(!usage(&mut attributes(&anthropic), "unknown").cached_in_prompt, "more cached than sent");
        let whole = [("gen_ai.usage.input_tokens", "2916"), ("gen_ai.usage.cache_read.input_tokens", "2048")];
        assert!(usage(&mut attributes(&whole), "unknown").cached_in_prompt);
    }

    #[test]
    fn bedrock_input_tokens_exclude_cache_reads() {
        let converse = [
            ("gen_ai.system", "aws.bedrock"),
            ("gen_ai.usage.input_tokens", "31"),
            ("gen_ai.usage.output_tokens", "12"),
            ("gen_ai.usage.cache_read.input_tokens", "5"),
        ];
        for scope in BEDROCK_SCOPES {
            let buckets = usage(&mut attributes(&converse), scope).buckets();
            assert_eq!((buckets.input, buckets.cached_input, buckets.output), (31, 5, 12), "{scope}");
        }
        assert!(!usage(&mut attributes(&converse), "openlit.instrumentation.bedrock").cached_in_prompt);
        assert!(usage(&mut attributes(&converse), "my-app").cached_in_prompt);
    }

    #[test]
    fn sent_cost_of_zero_is_ignored() {
        assert_eq!(cost(&attributes(&[("gen_ai.usage.cost", "0.5")])), Some(0.5));
        assert_eq!(cost(&attributes(&[("gen_ai.usage.cost", "0")])), None);
        assert_eq!(
            cost(&attributes(&[("langfuse.observation.cost_details", r#"{"total":0.25}"#)])),
            Some(0.25)
        );
    }
}
