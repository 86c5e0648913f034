//! Caches, per provider endpoint and model, which structured-output mode the model supports.

use std::time::Duration;

use api::credential::Provider;
use moka::sync::Cache;

use crate::providers::judge::{Endpoint, RequestFeature, RequestFeatures};

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
    pub way: RequestFeatures,
    /// Whether this mode has worked before, so that an unspecific error is not attributed to it.
    is_proven: bool,
    /// Whether the mode was adapted to this prompt only and must not be cached.
    is_singular: bool,
}

impl OutputModeAttempt {
    /// Continues without the rejected feature. Returns false when there is no other mode.
    pub fn refused(&mut self, part: RequestFeature, provider: Provider) -> bool {
        let is_unclear = self.is_proven && part == RequestFeature::Unknown;
        let Some(way) = self.way.without(part, provider).filter(|_| !is_unclear) else { return false };
        self.way = way;
        // This prompt is too long.
        self.is_singular |= part == RequestFeature::Length;
        true
    }

    /// Falls back after a reply in prose, because the model ignores the schema. One such reply is not
    /// cached.
    pub fn ignored(&mut self, provider: Provider) {
        self.is_proven = false;
        if let Some(way) = self.way.without(RequestFeature::OutputMode, provider) {
            self.way = way;
            self.is_singular = true;
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
    pub fn of(&self, endpoint: &Endpoint) -> OutputModeAttempt {
        let known = self.0.get(&place(endpoint));
        let way = known.unwrap_or_else(|| RequestFeatures::first(endpoint.provider));
        OutputModeAttempt { way, is_proven: known.is_some(), is_singular: false }
    }

    /// Records that this mode led to a verdict.
    pub fn works(&self, endpoint: &Endpoint, course: OutputModeAttempt) {
        let place = place(endpoint);
        // An existing entry keeps its expiry time.
        if !course.is_singular && self.0.get(&place) != Some(course.way) {
            self.0.insert(place, course.way);
        }
    }
}

fn place(endpoint: &Endpoint) -> ModelKey {
    (endpoint.provider, endpoint.base_url.clone(), endpoint.model.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use outbound::AddressOwner;

    use crate::providers::judge::OutputMode;

    const OPENAI: Provider = Provider::OpenAi;

    fn endpoint(model: &str, base_url: Option<&str>) -> Endpoint {
        Endpoint {
            provider: OPENAI,
            base_url: base_url.map(str::to_owned),
            key: String::new(),
            model: model.to_owned(),
            set_by: AddressOwner::Operator,
        }
    }

    #[test]
    fn output_mode_is_cached_per_model_and_address() {
        let ways = OutputModeCache::default();
        let mut course = ways.of(&endpoint("a", None));
        assert!(course.refused(RequestFeature::OutputMode, OPENAI));
        ways.works(&endpoint("a", None), course);
        let way = RequestFeatures { rung: OutputMode::Tool, ..RequestFeatures::first(OPENAI) };
        let known = OutputModeAttempt { way, is_proven: true, is_singular: false };
        assert_eq!(ways.of(&endpoint("a", None)), known);
        let first =
            OutputModeAttempt { way: RequestFeatures::first(OPENAI), is_proven: false, is_singular: false };
        for other in [endpoint("b", None), endpoint("a", Some("http://x"))] {
            assert_eq!(ways.of(&other), first);
        }
    }

    #[test]
    fn output_mode_of_one_prompt_is_not_cached() {
        let (ways, place) = (OutputModeCache::default(), endpoint("a", None));
        let first = ways.of(&place);
        let (mut long, mut prose) = (first, first);
        assert!(long.refused(RequestFeature::Length, OPENAI) && long.way.limit.is_none());
        prose.ignored(OPENAI);
        assert_eq!(prose.way.rung, OutputMode::Tool);
        for course in [long, prose] {
            ways.works(&place, course);
            assert_eq!(ways.of(&place), first);
        }
    }

    #[test]
    fn unspecific_error_of_proven_mode_is_not_attributed_to_mode() {
        let (ways, place) = (OutputModeCache::default(), endpoint("a", None));
        let mut course = ways.of(&place);
        ways.works(&place, course);
        assert!(course.refused(RequestFeature::Unknown, OPENAI));
        assert!(!ways.of(&place).refused(RequestFeature::Unknown, OPENAI));
    }
}
