//! The clusters of a project, and the choice of the cluster that a failure joins.

mod scope;

use std::collections::HashMap;

use crate::mask::mask;
use crate::template::Template;
use scope::{JoinDecision, Scope};

/// Maximum number of clusters of a failure type in a project. Beyond it, a failure that is near no cluster joins
/// the overflow cluster of its type.
pub const MAX_CLUSTERS_PER_TYPE: usize = 1000;

/// Maximum number of bytes of a span name that are compared.
const MAX_SPAN_NAME_BYTES: usize = 200;

/// A failure to be assigned.
#[derive(Debug, Clone, Copy)]
pub struct FailureText<'a> {
    /// The failure type.
    pub failure_type: &'a str,
    /// The name of the failing span.
    pub span_name: &'a str,
    /// The message as the sender reported it.
    pub message: &'a str,
}

/// A cluster as its row stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCluster<I> {
    /// The ID. Clusters are compared in the order of their IDs. The result is stable if IDs grow with time.
    pub id: I,
    /// The failure type.
    pub failure_type: String,
    /// The span name with its variable parts masked; empty for the overflow cluster of the type.
    pub span_name: String,
    /// [`Template::fingerprint`].
    pub fingerprint: String,
    /// Number of failures that were assigned so far.
    pub count: u64,
}

/// How a failure's assignment changed its cluster, beyond the count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterChange {
    /// The cluster is as before.
    Unchanged,
    /// The cluster is new; its row has to be inserted.
    Created,
    /// The cluster's template became more general; its row has to be updated.
    Generalized,
}

/// The cluster of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment<I> {
    /// The cluster's ID.
    pub cluster: I,
    /// Whether the cluster's row changes beyond its count.
    pub change: ClusterChange,
}

/// The clusters of a project.
#[derive(Debug)]
pub struct ClusterSet<I> {
    clusters: Vec<Cluster<I>>,
    positions: HashMap<I, usize>,
    scopes: HashMap<(String, String), Scope>,
    /// Number of clusters of each failure type, and the type's overflow cluster.
    types: HashMap<String, TypeClusters>,
}

#[derive(Debug)]
struct Cluster<I> {
    id: I,
    failure_type: String,
    span_name: String,
    template: Template,
    count: u64,
}

#[derive(Debug, Default)]
struct TypeClusters {
    count: usize,
    overflow: Option<usize>,
}

impl<I: Copy + Ord + std::hash::Hash> Default for ClusterSet<I> {
    fn default() -> Self {
        Self::load(Vec::new())
    }
}

impl<I: Copy + Ord + std::hash::Hash> ClusterSet<I> {
    /// Creates the set from the rows of a project, in any order. Clusters whose fingerprint has another version are left out.
    pub fn load(mut rows: Vec<StoredCluster<I>>) -> Self {
        rows.sort_by_key(|it| it.id);
        let mut set = Self {
            clusters: Vec::new(),
            positions: HashMap::new(),
            scopes: HashMap::new(),
            types: HashMap::new(),
        };
        for row in rows {
            let Some(template) = Template::parse(&row.fingerprint) else { continue };
            let StoredCluster { id, failure_type, span_name, fingerprint: _, count } = row;
            set.insert(Cluster { id, failure_type, span_name, template, count });
        }
        set
    }

    /// Assigns a failure to a cluster. `new_id` returns the ID of a new cluster.
    pub fn assign(&mut self, failure: &FailureText<'_>, new_id: impl FnOnce() -> I) -> Assignment<I> {
        let template = Template::of_message(failure.message);
        let span_name = mask_span_name(failure.span_name);
        let key = (failure.failure_type.to_owned(), span_name);
        let is_full =
            self.types.get(failure.failure_type).is_some_and(|it| it.count >= MAX_CLUSTERS_PER_TYPE);
        let clusters = &self.clusters;
        let template_of = |at: usize| (&clusters[at].template, clusters[at].count);
        let decision = match self.scopes.get_mut(&key) {
            Some(scope) => scope.decide(&template, template_of, is_full),
            None => JoinDecision::Create,
        };
        match decision {
            JoinDecision::Join(at) => self.count(at, ClusterChange::Unchanged),
            JoinDecision::Generalize(at, template) => {
                self.replace_template(&key, at, template);
                self.count(at, ClusterChange::Generalized)
            }
            JoinDecision::Create if is_full => self.overflow(failure.failure_type, new_id),
            JoinDecision::Create => {
                let (failure_type, span_name) = key;
                let at = self.insert(Cluster { id: new_id(), failure_type, span_name, template, count: 0 });
                self.count(at, ClusterChange::Created)
            }
        }
    }

    /// Returns the row to store for a cluster.
    pub fn stored(&self, id: I) -> Option<StoredCluster<I>> {
        let cluster = &self.clusters[*self.positions.get(&id)?];
        Some(StoredCluster {
            id,
            failure_type: cluster.failure_type.clone(),
            span_name: cluster.span_name.clone(),
            fingerprint: cluster.template.fingerprint(),
            count: cluster.count,
        })
    }

    /// Returns the template of a cluster.
    pub fn template(&self, id: I) -> Option<&Template> {
        self.positions.get(&id).map(|at| &self.clusters[*at].template)
    }

    /// Returns the IDs of all clusters, in the order of their creation.
    pub fn ids(&self) -> impl Iterator<Item = I> {
        self.clusters.iter().map(|it| it.id)
    }

    fn count(&mut self, at: usize, change: ClusterChange) -> Assignment<I> {
        let cluster = &mut self.clusters[at];
        cluster.count += 1;
        Assignment { cluster: cluster.id, change }
    }

    fn insert(&mut self, cluster: Cluster<I>) -> usize {
        let at = self.clusters.len();
        let of_type = self.types.entry(cluster.failure_type.clone()).or_default();
        if cluster.span_name.is_empty() && cluster.template.is_anything() {
            of_type.overflow = Some(at);
        } else {
            of_type.count += 1;
            let key = (cluster.failure_type.clone(), cluster.span_name.clone());
            self.scopes.entry(key).or_default().insert(at, &cluster.template);
        }
        self.positions.insert(cluster.id, at);
        self.clusters.push(cluster);
        at
    }

    fn replace_template(&mut self, key: &(String, String), at: usize, template: Template) {
        let old = std::mem::replace(&mut self.clusters[at].template, template);
        if let Some(scope) = self.scopes.get_mut(key) {
            scope.replace(at, &old, &self.clusters[at].template);
        }
    }

    /// Assigns a failure to the overflow cluster of its type.
    fn overflow(&mut self, failure_type: &str, new_id: impl FnOnce() -> I) -> Assignment<I> {
        if let Some(at) = self.types.get(failure_type).and_then(|it| it.overflow) {
            return self.count(at, ClusterChange::Unchanged);
        }
        let template = Template::of_anything();
        let cluster = Cluster {
            id: new_id(),
            failure_type: failure_type.to_owned(),
            span_name: String::new(),
            template,
            count: 0,
        };
        let at = self.insert(cluster);
        self.count(at, ClusterChange::Created)
    }
}

/// Masks a span name. An empty name becomes `span`, so that the overflow cluster is the only one without a name.
fn mask_span_name(name: &str) -> String {
    let masked = mask(&name[..name.floor_char_boundary(MAX_SPAN_NAME_BYTES)]);
    if masked.is_empty() { "span".to_owned() } else { masked }
}

#[cfg(test)]
mod tests;
