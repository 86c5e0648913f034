//! Deltas: the change that one transaction makes to a tenant's metrics.

use std::collections::BTreeMap;

use entities::{metric_delta, trace};
use prost::Message;
use uuid::Uuid;

use super::{
    fact::Fact,
    wire::{Facts, Writer},
};
use crate::ids::new_id;

/// Changes of one tenant's traces, collected during a transaction.
#[derive(Default)]
pub struct Delta {
    projects: BTreeMap<Uuid, Writer>,
    changes: i32,
}

#[derive(Clone, PartialEq, Message)]
struct StoredDelta {
    #[prost(message, repeated, tag = "1")]
    projects: Vec<StoredProject>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredProject {
    /// The 16 bytes of the project's ID.
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    facts: Option<Facts>,
}

impl Delta {
    /// Records that a trace is stored as this row.
    pub fn add(&mut self, trace: &trace::Model) {
        self.push(trace.project_id, &trace.into(), 1);
    }

    /// Records that a trace is no longer stored as this row. A trace that the metrics do not count yet
    /// changes nothing.
    pub fn take(&mut self, trace: &trace::Model) {
        if trace.measured {
            self.push(trace.project_id, &trace.into(), -1);
        }
    }

    /// Records that a trace's row was replaced.
    pub fn replace(&mut self, before: &trace::Model, after: &trace::Model) {
        let (was, is) = (Fact::from(before), Fact::from(after));
        if !before.measured || was != is || before.project_id != after.project_id {
            self.take(before);
            self.push(after.project_id, &is, 1);
        }
    }

    fn push(&mut self, project: Uuid, fact: &Fact, weight: i64) {
        self.projects.entry(project).or_default().push(fact, weight);
        self.changes = self.changes.saturating_add(1);
    }

    /// Returns the row to store; `None` when nothing changed.
    pub fn row(self, tenant_id: Uuid, now: i64) -> Option<metric_delta::Model> {
        if self.changes == 0 {
            return None;
        }
        let projects = self
            .projects
            .into_iter()
            .map(|(id, facts)| StoredProject { id: id.into_bytes().to_vec(), facts: Some(facts.finish()) });
        let data = StoredDelta { projects: projects.collect() }.encode_to_vec();
        Some(metric_delta::Model { tenant_id, id: new_id(), data, changes: self.changes, created_at: now })
    }
}

/// The facts of each project, with weights.
pub type Changes = Vec<(Uuid, Vec<(Fact, i64)>)>;

/// Decodes a delta.
///
/// # Errors
///
/// Fails when the bytes are damaged.
pub fn decode(bytes: &[u8]) -> Result<Changes, prost::DecodeError> {
    let stored = StoredDelta::decode(bytes)?;
    let projects = stored.projects.into_iter().map(|it| {
        let id = Uuid::from_slice(&it.id).unwrap_or_default();
        (id, it.facts.unwrap_or_default().iter().collect())
    });
    Ok(projects.collect())
}
