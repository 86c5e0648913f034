//! Which form of request a model at an address takes, as it was found out.

use std::time::Duration;

use api::credential::Provider;
use moka::sync::Cache;

use crate::providers::judge::{Endpoint, Part, Way};

/// How long a way is kept: servers learn, and then the surer one is tried again.
const KEPT: Duration = Duration::from_secs(3_600);
/// Models that are remembered.
const MANY: u64 = 5_000;

/// Where a way works: protocol, address, model.
type Place = (Provider, Option<String>, String);

/// The way that one conversation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// How to ask next.
    pub way: Way,
    /// This way has worked before, so that an unclear refusal is not of the form.
    is_proven: bool,
    /// Found for this question alone: it says nothing of the next one.
    is_singular: bool,
}

impl Course {
    /// Goes on without the part that is refused. False when there is no other way.
    pub fn refused(&mut self, part: Part, provider: Provider) -> bool {
        let is_unclear = self.is_proven && part == Part::Unknown;
        let Some(way) = self.way.without(part, provider).filter(|_| !is_unclear) else { return false };
        self.way = way;
        // It is this question that is long.
        self.is_singular |= part == Part::Length;
        true
    }

    /// Whoever takes a schema and answers prose does not hold to it; perhaps to another form. One
    /// such answer is no rule.
    pub fn ignored(&mut self, provider: Provider) {
        self.is_proven = false;
        if let Some(way) = self.way.without(Part::Rung, provider) {
            self.way = way;
            self.is_singular = true;
        }
    }
}

/// The ways that work.
pub struct Ways(Cache<Place, Way>);

impl Default for Ways {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(MANY).time_to_live(KEPT).build())
    }
}

impl Ways {
    /// How to begin.
    pub fn of(&self, endpoint: &Endpoint) -> Course {
        let known = self.0.get(&place(endpoint));
        let way = known.unwrap_or_else(|| Way::first(endpoint.provider));
        Course { way, is_proven: known.is_some(), is_singular: false }
    }

    /// This course has led to a verdict.
    pub fn works(&self, endpoint: &Endpoint, course: Course) {
        let place = place(endpoint);
        // What is there already keeps its time.
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
    fn each_model_at_each_address_has_its_own() {
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
    fn what_one_question_needed_is_not_kept() {
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
    fn an_unclear_refusal_of_what_has_worked_is_not_of_the_form() {
        let (ways, place) = (Ways::default(), endpoint("a", None));
        let mut course = ways.of(&place);
        ways.works(&place, course);
        assert!(course.refused(Part::Unknown, OPENAI));
        assert!(!ways.of(&place).refused(Part::Unknown, OPENAI));
    }
}
