//! Caches, per provider endpoint and model, which structured-output mode the model supports.

use std::time::Duration;

use api::credential::Provider;
use moka::sync::Cache;

use crate::providers::judge::{Endpoint, Part, Way};

/// How long a mode is cached: services improve, and then a stricter mode is tried again.
const KEPT: Duration = Duration::from_secs(3_600);
/// Maximum number of cached models.
const MANY: u64 = 5_000;

/// Identifies a model: protocol, address, name.
type Place = (Provider, Option<String>, String);

/// The mode used in one conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// The mode of the next request.
    pub way: Way,
    /// Whether this mode has worked before, so that an unspecific error is not attributed to it.
    is_proven: bool,
    /// Whether the mode was adapted to this prompt only and must not be cached.
    is_singular: bool,
}

impl Course {
    /// Continues without the rejected feature. Returns false when there is no other mode.
    pub fn refused(&mut self, part: Part, provider: Provider) -> bool {
        let is_unclear = self.is_proven && part == Part::Unknown;
        let Some(way) = self.way.without(part, provider).filter(|_| !is_unclear) else { return false };
        self.way = way;
        // This prompt is too long.
        self.is_singular |= part == Part::Length;
        true
    }

    /// Falls back after a reply in prose, because the model ignores the schema. One such reply is not
    /// cached.
    pub fn ignored(&mut self, provider: Provider) {
        self.is_proven = false;
        if let Some(way) = self.way.without(Part::Rung, provider) {
            self.way = way;
            self.is_singular = true;
        }
    }
}

/// The cache of working modes.
pub struct Ways(Cache<Place, Way>);

impl Default for Ways {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(MANY).time_to_live(KEPT).build())
    }
}

impl Ways {
    /// Returns the first mode to try.
    pub fn of(&self, endpoint: &Endpoint) -> Course {
        let known = self.0.get(&place(endpoint));
        let way = known.unwrap_or_else(|| Way::first(endpoint.provider));
        Course { way, is_proven: known.is_some(), is_singular: false }
    }

    /// Records that this mode led to a verdict.
    pub fn works(&self, endpoint: &Endpoint, course: Course) {
        let place = place(endpoint);
        // An existing entry keeps its expiry time.
        if !course.is_singular && self.0.get(&place) != Some(course.way) {
            self.0.insert(place, course.way);
        }
    }
}

fn place(endpoint: &Endpoint) -> Place {
    (endpoint.provider, endpoint.base_url.clone(), endpoint.model.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::judge::Rung;

    const OPENAI: Provider = Provider::OpenAi;

    fn endpoint(model: &str, base_url: Option<&str>) -> Endpoint {
        Endpoint {
            provider: OPENAI,
            base_url: base_url.map(str::to_owned),
            key: String::new(),
            model: model.to_owned(),
            guarded: false,
        }
    }

    #[test]
    fn output_mode_is_cached_per_model_and_address() {
        let ways = Ways::default();
        let mut course = ways.of(&endpoint("a", None));
        assert!(course.refused(Part::Rung, OPENAI));
        ways.works(&endpoint("a", None), course);
        let way = Way { rung: Rung::Tool, ..Way::first(OPENAI) };
        let known = Course { way, is_proven: true, is_singular: false };
        assert_eq!(ways.of(&endpoint("a", None)), known);
        let first = Course { way: Way::first(OPENAI), is_proven: false, is_singular: false };
        for other in [endpoint("b", None), endpoint("a", Some("http://x"))] {
            assert_eq!(ways.of(&other), first);
        }
    }

    #[test]
    fn output_mode_of_one_prompt_is_not_cached() {
        let (ways, place) = (Ways::default(), endpoint("a", None));
        let first = ways.of(&place);
        let (mut long, mut prose) = (first, first);
        assert!(long.refused(Part::Length, OPENAI) && long.way.limit.is_none());
        prose.ignored(OPENAI);
        assert_eq!(prose.way.rung, Rung::Tool);
        for course in [long, prose] {
            ways.works(&place, course);
            assert_eq!(ways.of(&place), first);
        }
    }

    #[test]
    fn unspecific_error_of_proven_mode_is_not_attributed_to_mode() {
        let (ways, place) = (Ways::default(), endpoint("a", None));
        let mut course = ways.of(&place);
        ways.works(&place, course);
        assert!(course.refused(Part::Unknown, OPENAI));
        assert!(!ways.of(&place).refused(Part::Unknown, OPENAI));
    }
}
