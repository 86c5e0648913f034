//! Compares clusters with labels.

use std::collections::{BTreeMap, HashMap};

use clustering::{ClusterSet, FailureText};

use super::LabelledMessage;

/// How well clusters agree with labels.
#[derive(Debug, Clone, Copy)]
pub struct Score {
    /// Number of templates.
    pub templates: usize,
    /// Number of clusters.
    pub clusters: usize,
    /// Share of messages whose label is the most frequent one of their cluster.
    pub purity: f64,
    /// Share of pairs in one cluster that have one label.
    pub precision: f64,
    /// Share of pairs with one label that are in one cluster.
    pub recall: f64,
}

impl Score {
    /// Returns harmonic mean of precision and recall of pairs.
    pub fn pair_f1(&self) -> f64 {
        if self.precision + self.recall == 0.0 {
            return 0.0;
        }
        2.0 * self.precision * self.recall / (self.precision + self.recall)
    }
}

/// Assigns messages in order; returns the cluster of each, and the clusters.
pub fn cluster(messages: &[LabelledMessage]) -> (Vec<u64>, ClusterSet<u64>) {
    let mut set = ClusterSet::default();
    let mut next = 0;
    let assigned = messages
        .iter()
        .map(|it| {
            let failure = FailureText { failure_type: "other", span_name: "chat", message: &it.text };
            let id = || {
                next += 1;
                next
            };
            set.assign(&failure, id).cluster
        })
        .collect();
    (assigned, set)
}

/// Compares the cluster of each message with its label.
pub fn score(labels: &[usize], clusters: &[u64]) -> Score {
    let mut cells: HashMap<(u64, usize), f64> = HashMap::new();
    let mut by_cluster: HashMap<u64, f64> = HashMap::new();
    let mut by_label: HashMap<usize, f64> = HashMap::new();
    for (label, cluster) in labels.iter().zip(clusters) {
        *cells.entry((*cluster, *label)).or_default() += 1.0;
        *by_cluster.entry(*cluster).or_default() += 1.0;
        *by_label.entry(*label).or_default() += 1.0;
    }
    let pairs = |counts: &mut dyn Iterator<Item = f64>| counts.map(|it| it * (it - 1.0) / 2.0).sum::<f64>();
    let both = pairs(&mut cells.values().copied());
    let mut largest: HashMap<u64, f64> = HashMap::new();
    for ((cluster, _), count) in &cells {
        let most = largest.entry(*cluster).or_default();
        *most = most.max(*count);
    }
    Score {
        templates: by_label.len(),
        clusters: by_cluster.len(),
        purity: largest.values().sum::<f64>() / labels.len() as f64,
        precision: both / pairs(&mut by_cluster.values().copied()).max(1.0),
        recall: both / pairs(&mut by_label.values().copied()).max(1.0),
    }
}

/// Describes the labels that share a cluster, and those that several clusters have; the most frequent first.
pub fn confusions(
    messages: &[LabelledMessage],
    clusters: &[u64],
    set: &ClusterSet<u64>,
    names: &[String],
) -> String {
    let mut by_cluster: BTreeMap<u64, BTreeMap<usize, usize>> = BTreeMap::new();
    let mut by_label: BTreeMap<usize, BTreeMap<u64, usize>> = BTreeMap::new();
    for (message, cluster) in messages.iter().zip(clusters) {
        *by_cluster.entry(*cluster).or_default().entry(message.label).or_default() += 1;
        *by_label.entry(message.label).or_default().entry(*cluster).or_default() += 1;
    }
    let text = |id: &u64| set.template(*id).map_or("", |it| it.text()).replace('\n', " ");
    let mut found = String::new();
    for (cluster, labels) in by_cluster.iter().filter(|it| it.1.len() > 1) {
        found += &format!("mixed: {}\n", text(cluster));
        for (label, count) in labels {
            found += &format!("    {count:>5} {}\n", names[*label].replace('\n', " "));
        }
    }
    for (label, parts) in by_label.iter().filter(|it| it.1.len() > 1) {
        found += &format!("split: {}\n", names[*label].replace('\n', " "));
        let mut parts: Vec<_> = parts.iter().collect();
        parts.sort_by_key(|it| std::cmp::Reverse(it.1));
        for (cluster, count) in parts.iter().take(8) {
            found += &format!("    {count:>5} {}\n", text(cluster));
        }
        if parts.len() > 8 {
            found += &format!("    and {} more\n", parts.len() - 8);
        }
    }
    found
}
