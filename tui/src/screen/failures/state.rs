//! The records of Failures: clusters with their samples, anomalies, feedback, and the failures of an opened cluster.

use std::collections::HashMap;

use api::{
    Timestamp,
    anomaly::Anomaly,
    failure::{Failure, FailureCluster},
    feedback::Feedback,
};
use uuid::Uuid;

use crate::{
    net::NetError,
    shell::{PagedRow, PagedRows, Pending, RequestPurpose},
};

/// A tab of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailuresTab {
    /// Failure clusters.
    #[default]
    Clusters,
    /// Anomalies.
    Anomalies,
    /// Bad feedback.
    Feedback,
}

impl FailuresTab {
    /// The tabs, from left to right.
    pub const ALL: [Self; 3] = [Self::Clusters, Self::Anomalies, Self::Feedback];

    /// Returns the title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Clusters => "Clusters",
            Self::Anomalies => "Anomalies",
            Self::Feedback => "Feedback",
        }
    }

    /// Returns the next or the previous tab, wrapping around at the ends.
    pub const fn neighbour(self, forward: bool) -> Self {
        match (self, forward) {
            (Self::Clusters, true) | (Self::Feedback, false) => Self::Anomalies,
            (Self::Anomalies, true) | (Self::Clusters, false) => Self::Feedback,
            (Self::Feedback, true) | (Self::Anomalies, false) => Self::Clusters,
        }
    }
}

/// The purpose of an open request of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailuresRequest {
    /// The first page of the clusters.
    Clusters,
    /// An older page, with a filter whose times count from this instant.
    MoreClusters(Timestamp),
    /// A cluster with its samples, and the time of its newest failure as listed.
    Cluster(Uuid, Timestamp),
    /// The first page of the anomalies.
    Anomalies,
    /// An older page of the anomalies.
    MoreAnomalies,
    /// The first page of bad feedback.
    Feedback,
    /// An older page of bad feedback.
    MoreFeedback,
    /// The first page of the failures of the opened cluster.
    Events,
    /// An older page of these failures.
    MoreEvents,
}

impl RequestPurpose for FailuresRequest {}

impl PagedRow for FailureCluster {
    fn id(&self) -> Uuid {
        self.id
    }

    fn time(&self) -> Timestamp {
        self.last_seen
    }
}

impl PagedRow for Failure {
    fn id(&self) -> Uuid {
        self.id
    }

    fn time(&self) -> Timestamp {
        self.created_at
    }
}

impl PagedRow for Anomaly {
    fn id(&self) -> Uuid {
        self.id
    }

    fn time(&self) -> Timestamp {
        self.created_at
    }
}

impl PagedRow for Feedback {
    fn id(&self) -> Uuid {
        self.id
    }

    fn time(&self) -> Timestamp {
        self.created_at
    }
}

/// The samples of a cluster, or why they could not be read.
#[derive(Debug)]
pub struct ClusterSamples {
    /// Time of the newest failure of the cluster when the samples were requested.
    pub last_seen: Timestamp,
    /// Time at which the response arrived.
    pub at: Timestamp,
    /// The failures.
    pub result: Result<Vec<Failure>, NetError>,
}

/// An opened cluster.
#[derive(Debug)]
pub struct ClusterEvents {
    /// The cluster.
    pub cluster: FailureCluster,
    /// Its failures.
    pub rows: PagedRows<Failure>,
}

/// The state of the screen.
#[derive(Debug, Default)]
pub struct Failures {
    /// The selected tab.
    pub tab: FailuresTab,
    /// The filter line that is applied.
    pub text: String,
    /// Lines used before, oldest first.
    pub history: Vec<String>,
    /// The clusters, by their newest failures.
    pub clusters: PagedRows<FailureCluster>,
    /// The samples of clusters, by id.
    pub samples: HashMap<Uuid, ClusterSamples>,
    /// The anomalies, newest first.
    pub anomalies: PagedRows<Anomaly>,
    /// Bad feedback, newest first.
    pub feedback: PagedRows<Feedback>,
    /// The opened cluster.
    pub events: Option<ClusterEvents>,
    /// Open requests.
    pub pending: Pending<FailuresRequest>,
}

impl Failures {
    /// Returns the samples of the cluster under the cursor.
    pub fn current_samples(&self) -> Option<&ClusterSamples> {
        self.samples.get(&self.clusters.current()?.id)
    }

    /// Replaces the row of a cluster that changed.
    pub fn revise(&mut self, cluster: FailureCluster) {
        if let Some(row) = self.clusters.items.iter_mut().find(|row| row.id == cluster.id) {
            *row = cluster;
        }
    }

    /// Returns the trace and the span that the row under the cursor leads to: for a cluster, its newest sample.
    pub fn current_target(&self) -> Option<(Uuid, Option<Uuid>)> {
        match (self.tab, &self.events) {
            (FailuresTab::Clusters, Some(events)) => {
                events.rows.current().map(|it| (it.trace_id, it.span_id))
            }
            (FailuresTab::Clusters, None) => {
                let samples = self.current_samples().and_then(|it| it.result.as_ref().ok());
                let newest = samples.and_then(|it| it.iter().max_by_key(|failure| failure.created_at));
                let newest = newest.map(|it| (it.trace_id, it.span_id));
                let listed = || self.clusters.current()?.sample_trace_ids.last().map(|id| (*id, None));
                newest.or_else(listed)
            }
            (FailuresTab::Anomalies, _) => None,
            (FailuresTab::Feedback, _) => self.feedback.current().map(|it| (it.trace_id, it.span_id)),
        }
    }
}
