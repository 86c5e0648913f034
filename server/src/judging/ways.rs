//! Which form of request a model at an address takes, as it was found out.

use std::time::Duration;

use api::credential::Provider;
use moka::sync::Cache;

use crate::providers::judge::{Endpoint, Way};

/// How long a way is kept: servers learn, and then the surer one is tried again.
const KEPT: Duration = Duration::from_secs(3_600);
/// Models that are remembered.
const MANY: u64 = 5_000;

/// Where a way works: protocol, address, model.
type Place = (Provider, Option<String>, String);

/// The ways that work.
pub struct Ways(Cache<Place, Way>);

impl Default for Ways {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(MANY).time_to_live(KEPT).build())
    }
}

impl Ways {
    /// The way to ask, and whether it has worked.
    pub fn of(&self, endpoint: &Endpoint) -> (Way, bool) {
        match self.0.get(&place(endpoint)) {
            Some(way) => (way, true),
            None => (Way::first(endpoint.provider), false),
        }
    }

    /// This way works.
    pub fn works(&self, endpoint: &Endpoint, way: Way) {
        let place = place(endpoint);
        // What is there already keeps its time.
        if self.0.get(&place) != Some(way) {
            self.0.insert(place, way);
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

    #[test]
    fn each_model_at_each_address_has_its_own() {
        let endpoint = |model: &str, base_url: Option<&str>| Endpoint {
            provider: Provider::OpenAi,
            base_url: base_url.map(str::to_owned),
            key: String::new(),
            model: model.to_owned(),
            guarded: false,
        };
        let ways = Ways::default();
        let found = Way { rung: Rung::Json, ..Way::first(Provider::OpenAi) };
        ways.works(&endpoint("a", None), found);
        assert_eq!(ways.of(&endpoint("a", None)), (found, true));
        for other in [endpoint("b", None), endpoint("a", Some("http://x"))] {
            assert_eq!(ways.of(&other), (Way::first(Provider::OpenAi), false));
        }
    }
}
