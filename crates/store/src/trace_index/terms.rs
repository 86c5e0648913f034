//! Terms: the properties of a trace by which lists find it, as hashes.
//!
//! A term is a keyed hash of tenant, kind and value. The tenant's ID is the key of the hash, so that users of an
//! application, who choose values but do not know the ID, cannot make many values share a term. Traces whose terms
//! collide do no harm, because lists compare the rows.

use std::hash::Hasher;

use api::{
    FailureType,
    trace_filter::{Bounds, FilterValue, Tag, TraceConditions, TraceFilter},
};
use entities::trace;
use siphasher::sip::SipHasher13;
use uuid::Uuid;

use crate::trace_filters::{SessionScope, bit_of, overlapping_classes, tags_of};

/// The properties that have terms. The numbers are part of the stored terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Model = 1,
    Name = 2,
    Project = 3,
    User = 4,
    External = 5,
    Error = 6,
    Failure = 7,
    LatencyClass = 8,
    TokenClass = 9,
    CostClass = 10,
    TagPair = 11,
    TagKey = 12,
    /// Every trace has it.
    Trace = 13,
    Session = 14,
    /// The trace belongs to a session.
    InSession = 15,
}

/// Alternatives; a trace must have at least one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnyOf(pub Vec<u64>);

/// Computes the terms of a tenant's traces.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    key: (u64, u64),
}

impl Terms {
    /// Returns the terms of a tenant.
    pub fn of(tenant: Uuid) -> Self {
        Self { key: tenant.as_u64_pair() }
    }

    fn term(&self, kind: Kind, parts: &[&[u8]]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.key.0, self.key.1);
        hasher.write_u8(kind as u8);
        for part in parts {
            // The length separates a part from the next one.
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part);
        }
        hasher.finish()
    }

    fn text(&self, kind: Kind, text: &str) -> u64 {
        self.term(kind, &[text.as_bytes()])
    }

    fn class(&self, kind: Kind, class: i16) -> u64 {
        self.term(kind, &[&class.to_le_bytes()])
    }

    fn pair(&self, key: &str, value: &str) -> u64 {
        self.term(Kind::TagPair, &[key.as_bytes(), value.as_bytes()])
    }

    fn project(&self, id: Uuid) -> u64 {
        self.term(Kind::Project, &[id.as_bytes()])
    }

    /// Returns the term that every trace has.
    pub fn of_all_traces(&self) -> u64 {
        self.term(Kind::Trace, &[])
    }

    /// Returns the terms of a trace.
    pub fn of_trace(&self, row: &trace::Model) -> Vec<u64> {
        let texts = [
            (Kind::Model, &row.model),
            (Kind::Name, &row.name),
            (Kind::User, &row.user_id),
            (Kind::External, &row.external_id),
            (Kind::Session, &row.session_id),
        ];
        let mut terms: Vec<u64> =
            texts.into_iter().filter_map(|(kind, it)| Some(self.text(kind, it.as_deref()?))).collect();
        terms.push(self.of_all_traces());
        terms.push(self.project(row.project_id));
        if row.session_id.is_some() {
            terms.push(self.term(Kind::InSession, &[]));
        }
        if row.error.is_some() {
            terms.push(self.term(Kind::Error, &[]));
        }
        let bits = FailureType::ALL.iter().map(|it| bit_of(*it)).filter(|it| row.failure_types & it != 0);
        terms.extend(bits.map(|it| self.class(Kind::Failure, it)));
        let classes = [
            (Kind::LatencyClass, row.latency_class),
            (Kind::TokenClass, Some(row.token_class)),
            (Kind::CostClass, row.cost_class),
        ];
        terms.extend(classes.into_iter().filter_map(|(kind, it)| Some(self.class(kind, it?))));
        for (key, value) in tags_of(row) {
            terms.push(self.text(Kind::TagKey, &key));
            terms.push(self.pair(&key, &value));
        }
        terms
    }

    /// Returns the terms that every trace with these conditions has, or one term of all traces if there are no others.
    pub fn of_conditions(&self, conditions: &TraceConditions, sessions: SessionScope<'_>) -> Vec<AnyOf> {
        let set = TraceFilter::ALL.iter().filter_map(|it| Some((*it, conditions.value(*it)?)));
        let mut terms: Vec<AnyOf> = set.flat_map(|(filter, value)| self.of_filter(filter, value)).collect();
        match sessions {
            SessionScope::AllTraces => {}
            SessionScope::InAnySession => terms.push(AnyOf(vec![self.term(Kind::InSession, &[])])),
            SessionScope::InSessions(ids) => {
                terms.push(AnyOf(ids.iter().map(|it| self.text(Kind::Session, it)).collect()));
            }
        }
        if terms.is_empty() {
            terms.push(AnyOf(vec![self.of_all_traces()]));
        }
        terms
    }

    fn of_filter(&self, filter: TraceFilter, value: FilterValue<'_>) -> Vec<AnyOf> {
        let text = |kind| match value {
            FilterValue::Text(text) => vec![AnyOf(vec![self.text(kind, text)])],
            _ => Vec::new(),
        };
        let range = |kind| match value {
            FilterValue::Range(bounds) => vec![self.classes(kind, bounds)],
            _ => Vec::new(),
        };
        match (filter, value) {
            (TraceFilter::ProjectId, FilterValue::Id(id)) => vec![AnyOf(vec![self.project(id)])],
            (TraceFilter::SessionId, _) => text(Kind::Session),
            (TraceFilter::Model, _) => text(Kind::Model),
            (TraceFilter::Name, _) => text(Kind::Name),
            (TraceFilter::UserId, _) => text(Kind::User),
            (TraceFilter::ExternalId, _) => text(Kind::External),
            (TraceFilter::Error, FilterValue::Switch(true)) => {
                vec![AnyOf(vec![self.term(Kind::Error, &[])])]
            }
            (TraceFilter::FailureType, FilterValue::Failure(failure)) => {
                vec![AnyOf(vec![self.class(Kind::Failure, bit_of(failure))])]
            }
            (TraceFilter::Latency, _) => range(Kind::LatencyClass),
            (TraceFilter::Tokens, _) => range(Kind::TokenClass),
            (TraceFilter::Cost, _) => range(Kind::CostClass),
            (TraceFilter::Tags, FilterValue::Tags(tags)) => tags.iter().map(|it| self.tag(it)).collect(),
            // The other filters are compared with the rows.
            (
                TraceFilter::ProjectId
                | TraceFilter::Error
                | TraceFilter::FailureType
                | TraceFilter::From
                | TraceFilter::To
                | TraceFilter::StoredUntil
                | TraceFilter::Tags
                | TraceFilter::Words,
                _,
            ) => Vec::new(),
        }
    }

    fn classes(&self, kind: Kind, bounds: Bounds) -> AnyOf {
        AnyOf(overlapping_classes(bounds).map(|it| self.class(kind, it)).collect())
    }

    fn tag(&self, tag: &Tag) -> AnyOf {
        match tag {
            Tag::Pair(key, value) => AnyOf(vec![self.pair(key, value)]),
            Tag::Key(key) => AnyOf(vec![self.text(Kind::TagKey, key)]),
            Tag::Written(text) => {
                let pairs = text.match_indices(':').map(|(at, _)| self.pair(&text[..at], &text[at + 1..]));
                AnyOf(std::iter::once(self.text(Kind::TagKey, text)).chain(pairs).collect())
            }
        }
    }
}
