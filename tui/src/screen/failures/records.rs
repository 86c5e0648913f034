//! The records of Failures for copying and exporting.

use api::client::calls::{self, AnomalyFilter, Page};
use serde::Serialize;
use uuid::Uuid;

use super::{
    state::{Failures, FailuresTab},
    update::{event_filter, feedback_filter, filter_at},
};
use crate::{
    keymap::Action,
    shell::{Export, LoadedIds, ScreenRecords, Shell},
};

impl ScreenRecords for Failures {
    fn current_trace(&self) -> Option<Uuid> {
        self.current_target().map(|(trace, _)| trace)
    }

    fn loaded_ids(&self, ids: &mut LoadedIds) {
        let events = self.events.iter().flat_map(|it| &it.rows.items).map(|failure| failure.trace_id);
        ids.traces.extend(events);
        ids.traces.extend(self.clusters.items.iter().flat_map(|it| &it.sample_trace_ids));
        ids.traces.extend(self.feedback.items.iter().map(|it| it.trace_id));
    }

    fn export_name(&self) -> Option<String> {
        let (name, is_empty) = match (self.tab, &self.events) {
            (FailuresTab::Clusters, Some(events)) => ("failures", events.rows.items.is_empty()),
            (FailuresTab::Clusters, None) => ("clusters", self.clusters.items.is_empty()),
            (FailuresTab::Anomalies, _) => ("anomalies", self.anomalies.items.is_empty()),
            (FailuresTab::Feedback, _) => ("feedback", self.feedback.items.is_empty()),
        };
        (!is_empty).then(|| format!("{name}.ndjson"))
    }

    fn export(&self, _shell: &Shell) -> Option<Export> {
        Some(match (self.tab, &self.events) {
            (FailuresTab::Clusters, Some(events)) => Export::rows(&events.rows.items),
            (FailuresTab::Clusters, None) => Export::rows(&self.clusters.items),
            (FailuresTab::Anomalies, _) => Export::rows(&self.anomalies.items),
            (FailuresTab::Feedback, _) => Export::rows(&self.feedback.items),
        })
    }

    fn copy(&self, shell: &Shell, action: Action) -> Option<(&'static str, String)> {
        let page = Page::default();
        if action == Action::CopyCurl {
            let target = match (self.tab, &self.events) {
                (FailuresTab::Clusters, Some(events)) => {
                    calls::failures(&event_filter(&events.cluster), &page).target()
                }
                (FailuresTab::Clusters, None) => {
                    calls::failure_clusters(&filter_at(self, shell, shell.now), &page).target()
                }
                (FailuresTab::Anomalies, _) => {
                    let filter = AnomalyFilter { project_id: shell.project_id(), ..AnomalyFilter::default() };
                    calls::anomalies(&filter, &page).target()
                }
                (FailuresTab::Feedback, _) => calls::feedback(&feedback_filter(shell), &page).target(),
            };
            return Some(("the curl command", shell.curl(&target)));
        }
        if action == Action::CopyUrl {
            let trace = self.current_trace()?;
            return Some(("the address", format!("{}/v1/traces/{trace}", shell.target.url)));
        }
        match (self.tab, &self.events) {
            (FailuresTab::Clusters, Some(events)) => {
                let it = events.rows.current()?;
                match action {
                    Action::CopyText => Some(("the error message", it.message.clone())),
                    _ => copied(action, ["the failure's id", "the failure"], it.id, it),
                }
            }
            (FailuresTab::Clusters, None) => {
                let it = self.clusters.current()?;
                copied(action, ["the cluster's id", "the cluster"], it.id, it)
            }
            (FailuresTab::Anomalies, _) => {
                let it = self.anomalies.current()?;
                copied(action, ["the anomaly's id", "the anomaly"], it.id, it)
            }
            (FailuresTab::Feedback, _) => {
                let it = self.feedback.current()?;
                match action {
                    Action::CopyText => Some(("the comment", it.comment.clone()?)),
                    _ => copied(action, ["the feedback's id", "the feedback"], it.id, it),
                }
            }
        }
    }
}

/// Returns the id or the JSON of a record, with its name.
fn copied(
    action: Action,
    [id_name, record_name]: [&'static str; 2],
    id: Uuid,
    record: &impl Serialize,
) -> Option<(&'static str, String)> {
    match action {
        Action::CopyId => Some((id_name, id.to_string())),
        Action::CopyJson => Some((record_name, serde_json::to_string_pretty(record).ok()?)),
        _ => None,
    }
}
