//! Caches, per provider endpoint and model, which structured-output mode the model supports.

use std::time::Duration;

use api::credential::Provider;
use moka::sync::Cache;

use crate::providers::judge::{JudgeEndpoint, RequestFeature, RequestFeatures};

/// How long a mode is cached: services improve, and then a stricter mode is tried again.
const MODE_TTL: Duration = Duration::from_secs(3_600);
/// Maximum number of cached models.
const MAX_CACHED_MODELS: u64 = 5_000;

/// Identifies a model: protocol, address, name.
type ModelKey = (Provider, Option<String>, String);

/// The mode used in one conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputModeAttempt {
    /// The mode of the next request.
    pub features: RequestFeatures,
    /// Whether this mode has worked before, so that an unspecific error is not attributed to it.
    is_proven: bool,
    /// Whether the mode was adapted to this prompt only and must not be cached.
    is_prompt_specific: bool,
}

impl OutputModeAttempt {
    /// Continues without the rejected feature. Returns false when there is no other mode.
    pub fn drop_feature(&mut self, feature: RequestFeature, provider: Provider) -> bool {
        let is_unspecific = self.is_proven && feature == RequestFeature::Unknown;
        let Some(features) = self.features.without(feature, provider).filter(|_| !is_unspecific) else {
            return false;
        };
        self.features = features;
        // This prompt is too long.
        self.is_prompt_specific |= feature == RequestFeature::Length;
        true
    }

    /// Falls back after a reply in prose, because the model ignores the schema. One such reply is not
    /// cached.
    pub fn relax_after_prose(&mut self, provider: Provider) {
        self.is_proven = false;
        if let Some(features) = self.features.without(RequestFeature::OutputMode, provider) {
            self.features = features;
            self.is_prompt_specific = true;
        }
    }
}

/// The cache of working modes.
pub struct OutputModeCache(Cache<ModelKey, RequestFeatures>);

impl Default for OutputModeCache {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(MAX_CACHED_MODELS).time_to_live(MODE_TTL).build())
    }
}

impl OutputModeCache {
    /// Returns the first mode to try.
    pub fn first_attempt(&self, endpoint: &JudgeEndpoint) -> OutputModeAttempt {
        let cached = self.0.get(&model_key_of(endpoint));
        let features = cached.unwrap_or_else(|| RequestFeatures::first(endpoint.provider));
        OutputModeAttempt { features, is_proven: cached.is_some(), is_prompt_specific: false }
    }

    /// Records that this mode led to a verdict.
    pub fn record_success(&self, endpoint: &JudgeEndpoint, attempt: OutputModeAttempt) {
        let model_key = model_key_of(endpoint);
        // An existing entry keeps its expiry time.
        if !attempt.is_prompt_specific && self.0.get(&model_key) != Some(attempt.features) {
            self.0.insert(model_key, attempt.features);
        }
    }
}

fn model_key_of(endpoint: &JudgeEndpoint) -> ModelKey {
    (endpoint.provider, endpoint.base_url.clone(), endpoint.model.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use outbound::AddressOwner;

    use crate::providers::judge::OutputMode;

    const OPENAI: Provider = Provider::OpenAi;

    fn endpoint(model: &str, base_url: Option<&str>) -> JudgeEndpoint {
        JudgeEndpoint {
            provider: OPENAI,
            base_url: base_url.map(str::to_owned),
            key: String::new(),
            model: model.to_owned(),
            set_by: AddressOwner::Operator,
        }
    }

    #[test]
    fn output_mode_is_cached_per_model_and_address() {
        let output_modes = OutputModeCache::default();
        let mut attempt = output_modes.first_attempt(&endpoint("a", None));
        assert!(attempt.drop_feature(RequestFeature::OutputMode, OPENAI));
        output_modes.record_success(&endpoint("a", None), attempt);
        let features = RequestFeatures { output_mode: OutputMode::Tool, ..RequestFeatures::first(OPENAI) };
        let cached = OutputModeAttempt { features, is_proven: true, is_prompt_specific: false };
        assert_eq!(output_modes.first_attempt(&endpoint("a", None)), cached);
        let first = OutputModeAttempt {
            features: RequestFeatures::first(OPENAI),
            is_proven: false,
            is_prompt_specific: false,
        };
        for other in [endpoint("b", None), endpoint("a", Some("http://x"))] {
            assert_eq!(output_modes.first_attempt(&other), first);
        }
    }

    #[test]
    fn output_mode_of_one_prompt_is_not_cached() {
        let (output_modes, model_key) = (OutputModeCache::default(), endpoint("a", None));
        let first = output_modes.first_attempt(&model_key);
        let (mut long, mut prose) = (first, first);
        assert!(long.drop_feature(RequestFeature::Length, OPENAI) && long.features.limit.is_none());
        prose.relax_after_prose(OPENAI);
        assert_eq!(prose.features.output_mode, OutputMode::Tool);
        for attempt in [long, prose] {
            output_modes.record_success(&model_key, attempt);
            assert_eq!(output_modes.first_attempt(&model_key), first);
        }
    }

    #[test]
    fn unspecific_error_of_proven_mode_is_not_attributed_to_mode() {
        let (output_modes, model_key) = (OutputModeCache::default(), endpoint("a", None));
        let mut attempt = output_modes.first_attempt(&model_key);
        output_modes.record_success(&model_key, attempt);
        assert!(attempt.drop_feature(RequestFeature::Unknown, OPENAI));
        assert!(!output_modes.first_attempt(&model_key).drop_feature(RequestFeature::Unknown, OPENAI));
    }
}
