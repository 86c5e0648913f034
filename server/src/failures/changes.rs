//! The clusters that failures join, and the changes of their rows.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use api::failure::ClusterStatus;
use clustering::{ClusterChange, ClusterSet, FailureText, Samples, StoredCluster, Template};
use entities::{failure, failure_cluster, failure_trend};
use serde::{Deserialize, Serialize};
use store::{Transaction, failure_clusters, failures, new_id, traces::failure_of};
use uuid::Uuid;

use super::recorder::NewFailure;
use crate::{app::App, error::Result};

/// Number of models that are kept for a cluster.
const MAX_MODELS: usize = 20;
/// An hour in microseconds.
pub const HOUR: i64 = 3_600_000_000;

/// A failure that is shown with its cluster. Each sample has a trace of its own.
#[derive(Clone, Copy, Debug, Eq, Serialize, Deserialize)]
pub struct ClusterSample(pub Uuid, pub Uuid);

impl ClusterSample {
    /// Returns the trace.
    pub fn trace(&self) -> Uuid {
        self.0
    }

    /// Returns the failure.
    pub fn failure(&self) -> Uuid {
        self.1
    }
}

// Two failures of a trace are the same sample.
impl PartialEq for ClusterSample {
    fn eq(&self, other: &Self) -> bool {
        self.trace() == other.trace()
    }
}

/// The clusters of a project whose clustering this transaction has locked.
pub struct ProjectClusters {
    tenant: Uuid,
    project: Uuid,
    version: i64,
    set: ClusterSet<Uuid>,
    /// How failures changed clusters beyond their numbers of failures.
    changed: HashMap<Uuid, ClusterChange>,
    /// Whether the copies of other processes are out of date.
    is_changed: bool,
}

impl ProjectClusters {
    /// Locks the clustering of a project, and reads the clusters unless this process has them.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn lock(app: &App, txn: &Transaction, tenant: Uuid, project: Uuid) -> Result<Self> {
        let version = failure_clusters::lock_project(txn, tenant, project).await?;
        let set = match app.clusters.take(tenant, project, version) {
            Some(set) => set,
            None => read(txn, tenant, project).await?,
        };
        Ok(Self { tenant, project, version, set, changed: HashMap::new(), is_changed: false })
    }

    /// Assigns failures to clusters. Returns the cluster of each, and the locked rows of the clusters that existed.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn assign(
        &mut self,
        txn: &Transaction,
        failures: &[&NewFailure],
    ) -> Result<(Vec<Uuid>, HashMap<Uuid, failure_cluster::Model>)> {
        for attempt in 0..2 {
            let assigned: Vec<Uuid> = failures.iter().map(|it| self.assign_one(it)).collect();
            let is_new = |it: &Uuid| self.changed.get(it) == Some(&ClusterChange::Created);
            let existing: BTreeSet<Uuid> = assigned.iter().filter(|it| !is_new(it)).copied().collect();
            let existing: Vec<Uuid> = existing.into_iter().collect();
            let rows = failure_clusters::lock(txn, self.tenant, &existing).await?;
            if rows.len() == existing.len() {
                return Ok((assigned, rows.into_iter().map(|it| (it.id, it)).collect()));
            }
            // One of the clusters has expired since this process read them.
            tracing::debug!(project = %self.project, attempt, "failure clusters are read again");
            self.set = read(txn, self.tenant, self.project).await?;
            self.changed.clear();
        }
        Err(anyhow::anyhow!("a failure cluster expired while a failure joined it").into())
    }

    fn assign_one(&mut self, failure: &NewFailure) -> Uuid {
        let text = FailureText {
            failure_type: failure.failure_type.as_str(),
            span_name: &failure.span_name,
            message: &failure.message,
        };
        let assignment = self.set.assign(&text, new_id);
        let cluster = assignment.cluster;
        if assignment.change != ClusterChange::Unchanged {
            self.is_changed = true;
            // A new cluster whose template becomes more general is still to be inserted.
            self.changed.entry(cluster).or_insert(assignment.change);
        } else if self.set.stored(cluster).is_some_and(|it| it.count == 2) {
            // Clustering treats clusters of a single failure specially, so other processes must learn of a
            // second failure.
            self.is_changed = true;
        }
        cluster
    }

    /// Keeps the clusters for the next job, after the transaction was committed.
    pub fn keep(self, app: &App) {
        app.clusters.put(self.tenant, self.project, self.version, self.set);
    }
}

async fn read(txn: &Transaction, tenant: Uuid, project: Uuid) -> Result<ClusterSet<Uuid>> {
    let rows = failure_clusters::templates(txn, tenant, project).await?;
    let stored = rows.into_iter().filter_map(|it| {
        Some(StoredCluster {
            id: it.id,
            failure_type: failure_of(it.failure_type)?.as_str().to_owned(),
            span_name: it.span_name,
            fingerprint: it.fingerprint,
            count: u64::try_from(it.count).unwrap_or(0),
        })
    });
    Ok(ClusterSet::load(stored.collect()))
}

/// Stores the changes that new failures cause in their clusters. `rows` has the locked rows of the clusters that
/// existed. Returns the muted clusters.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn store(
    app: &App,
    txn: &Transaction,
    clusters: &mut ProjectClusters,
    mut rows: HashMap<Uuid, failure_cluster::Model>,
    failures: &[failure::Model],
    now: i64,
) -> Result<HashSet<Uuid>> {
    let mut by_cluster: BTreeMap<Uuid, Vec<&failure::Model>> = BTreeMap::new();
    for it in failures {
        by_cluster.entry(it.cluster_id).or_default().push(it);
    }
    let traces: BTreeSet<(Uuid, Uuid)> = failures.iter().map(|it| (it.trace_id, it.cluster_id)).collect();
    let known: Vec<(Uuid, Uuid)> = traces.iter().filter(|it| rows.contains_key(&it.1)).copied().collect();
    let counted = failures::counted_traces(txn, &app.db, clusters.tenant, &known).await?;
    let (mut changed, mut trends, mut muted) = (Vec::new(), BTreeMap::new(), HashSet::new());
    for (id, failures) in by_cluster {
        let mut row = match rows.remove(&id) {
            Some(row) => row,
            None => new_row(clusters, id, failures[0])?,
        };
        if clusters.changed.contains_key(&id) {
            describe(clusters, &mut row)?;
        }
        let new_traces = traces.iter().filter(|it| it.1 == id && !counted.contains(it)).count();
        row.trace_count += i64::try_from(new_traces).unwrap_or(i64::MAX);
        add(&mut row, &failures, now)?;
        for it in &failures {
            *trends.entry((id, it.created_at.div_euclid(HOUR) * HOUR)).or_insert(0) += 1;
        }
        if row.status == ClusterStatus::Muted.as_str() {
            muted.insert(id);
        }
        changed.push(row);
    }
    failure_clusters::save(txn, &changed).await?;
    let tenant_id = clusters.tenant;
    let trends = trends.into_iter().map(|((cluster_id, hour), count)| failure_trend::Model {
        tenant_id,
        cluster_id,
        hour,
        count,
    });
    failure_clusters::add_trends(txn, &trends.collect::<Vec<_>>()).await?;
    if clusters.is_changed {
        clusters.version += 1;
        failure_clusters::set_version(txn, tenant_id, clusters.project, clusters.version).await?;
    }
    Ok(muted)
}

/// Returns the row of a cluster that its first failure created, without that failure.
fn new_row(
    clusters: &ProjectClusters,
    id: Uuid,
    first: &failure::Model,
) -> anyhow::Result<failure_cluster::Model> {
    let mut row = failure_cluster::Model {
        tenant_id: clusters.tenant,
        id,
        project_id: clusters.project,
        failure_type: first.failure_type,
        span_name: String::new(),
        fingerprint: String::new(),
        title: String::new(),
        status: ClusterStatus::Open.as_str().to_owned(),
        count: 0,
        trace_count: 0,
        first_seen: first.created_at,
        last_seen: first.created_at,
        samples: "[]".to_owned(),
        models: "[]".to_owned(),
        resolved_at: None,
        updated_at: first.created_at,
    };
    describe(clusters, &mut row)?;
    Ok(row)
}

/// Copies the template into a row.
fn describe(clusters: &ProjectClusters, row: &mut failure_cluster::Model) -> anyhow::Result<()> {
    let stored =
        clusters.set.stored(row.id).ok_or_else(|| anyhow::anyhow!("cluster {} is not in its set", row.id))?;
    row.title = clusters.set.template(row.id).map(Template::title).unwrap_or_default();
    row.span_name = stored.span_name;
    row.fingerprint = stored.fingerprint;
    Ok(())
}

/// Adds failures to the row of their cluster. A resolved cluster opens again.
fn add(row: &mut failure_cluster::Model, failures: &[&failure::Model], now: i64) -> anyhow::Result<()> {
    let mut samples = Samples::new(serde_json::from_str::<Vec<ClusterSample>>(&row.samples)?);
    let mut models: BTreeSet<String> = serde_json::from_str(&row.models)?;
    for it in failures {
        row.count += 1;
        row.first_seen = row.first_seen.min(it.created_at);
        row.last_seen = row.last_seen.max(it.created_at);
        samples.add(ClusterSample(it.trace_id, it.id));
        if let Some(model) = it.model.as_ref().filter(|_| models.len() < MAX_MODELS) {
            models.insert(model.clone());
        }
        if row.resolved_at.is_some_and(|at| it.created_at >= at) {
            row.status = ClusterStatus::Open.as_str().to_owned();
            row.resolved_at = None;
        }
    }
    row.samples = serde_json::to_string(samples.list())?;
    row.models = serde_json::to_string(&models)?;
    row.updated_at = now;
    Ok(())
}
