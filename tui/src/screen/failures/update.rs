//! Key handling of the screen Failures, and the schedule of its requests.

use api::{
    Timestamp,
    anomaly::{Anomaly, AnomalyList},
    client::calls::{self, AnomalyFilter, FeedbackFilter, Page},
    failure::{ClusterFilter, ClusterStatus, FailureCluster, FailureClusterList, FailureFilter, FailureList},
    feedback::{FeedbackLabel, FeedbackList},
    filter::when::Clock,
};
use chrono::SecondsFormat;

use crate::{
    anomalies::{end_of, first_page},
    dialog::Dialog,
    input::{Input, InputKind},
    keymap::Action,
    net::{Destination, Effect, NetError, Response},
    screen::failures::{
        FILTER_LINE, SCREEN_DIGIT,
        change::ClusterChange,
        keys::{MUTE_CLUSTER, RESOLVE_CLUSTER, SHOW_ANOMALIES, SHOW_FEEDBACK},
        layout::{FailuresLayout, parts},
        line,
        state::{ClusterEvents, ClusterSamples, Failures, FailuresRequest, FailuresTab},
    },
    shell::{
        Older, PagedRows, Pending, RowPage, ScreenActions, ScreenRequests, Shell, notice::describe, trouble,
    },
};

/// Number of rows on a page.
const ROWS_PER_PAGE: u32 = 100;
/// Microseconds between two requests for clusters, and for the failures of one.
const CLUSTERS_INTERVAL_MICROS: i64 = 10_000_000;
/// Microseconds between two requests for anomalies and feedback, which are rare.
const ANOMALIES_INTERVAL_MICROS: i64 = 30_000_000;
/// Microseconds after which samples that could not be read are requested again.
const SAMPLES_RETRY_MICROS: i64 = 30_000_000;

impl ScreenActions for Failures {
    fn enter(&mut self, shell: &mut Shell) -> Vec<Effect> {
        // The records are requested once the project is resolved.
        if shell.is_resolving_project() {
            return Vec::new();
        }
        let mut effects = load_clusters(self, shell);
        effects.push(load_anomalies(self, shell));
        if self.tab == FailuresTab::Feedback {
            effects.push(load_feedback(self, shell));
        }
        effects.extend(load_events(self, shell));
        // Rows name their projects.
        effects.extend(shell.need_projects());
        effects
    }

    fn act(&mut self, shell: &mut Shell, action: Action) -> Vec<Effect> {
        let page = layout(self, shell).rows().max(2) - 1;
        let is_movement = match (self.tab, &mut self.events) {
            (FailuresTab::Clusters, Some(events)) => events.rows.travel(action, page),
            (FailuresTab::Clusters, None) => self.clusters.travel(action, page),
            (FailuresTab::Anomalies, _) => self.anomalies.travel(action, page),
            (FailuresTab::Feedback, _) => self.feedback.travel(action, page),
        };
        if is_movement {
            let mut effects = load_older(self, shell);
            effects.extend(load_samples(self, shell));
            return effects;
        }
        match action {
            Action::NextTab | Action::PreviousTab => {
                let tab = self.tab.neighbour(action == Action::NextTab);
                return show(self, shell, tab);
            }
            SHOW_ANOMALIES => return show(self, shell, FailuresTab::Anomalies),
            SHOW_FEEDBACK => return show(self, shell, FailuresTab::Feedback),
            Action::Refresh => {
                self.samples.retain(|_, it| it.result.is_ok());
                return self.enter(shell);
            }
            Action::Open => return open(self, shell),
            Action::OpenTrace => return open_trace(self, shell),
            Action::EditFilter => shell.edit(Input::new(InputKind::Screen(FILTER_LINE), &self.text)),
            Action::WidenTime => return widen(self, shell),
            RESOLVE_CLUSTER => change_status(self, shell, ClusterStatus::Resolved),
            MUTE_CLUSTER => change_status(self, shell, ClusterStatus::Muted),
            Action::Back if self.events.is_some() => {
                self.events = None;
                self.pending
                    .abandon(|it| matches!(it, FailuresRequest::Events | FailuresRequest::MoreEvents));
            }
            Action::Back if self.tab != FailuresTab::Clusters => self.tab = FailuresTab::Clusters,
            Action::Back if !self.text.is_empty() => return set_filter(self, shell, String::new()),
            Action::Back => return vec![Effect::Go(Destination::Screen(1))],
            _ => {}
        }
        Vec::new()
    }

    fn tick(&mut self, shell: &mut Shell) -> Vec<Effect> {
        if shell.screen != SCREEN_DIGIT || shell.overlay.is_some() || shell.is_unauthorized() {
            return Vec::new();
        }
        let now = shell.now;
        let mut effects = Vec::new();
        // Nothing is scheduled while the session is refused.
        let is_open = self.pending.has(|it| *it == FailuresRequest::Clusters);
        let is_restored = self.clusters.next.is_none() && !is_open && !shell.is_resolving_project();
        if self.clusters.is_due(now) || is_restored {
            effects.extend(load_clusters(self, shell));
        }
        if self.anomalies.is_due(now) {
            effects.push(load_anomalies(self, shell));
        }
        if self.tab == FailuresTab::Feedback && self.feedback.is_due(now) {
            effects.push(load_feedback(self, shell));
        }
        let is_open = self.pending.has(|it| *it == FailuresRequest::Events);
        let is_due =
            |events: &ClusterEvents| events.rows.is_due(now) || (events.rows.next.is_none() && !is_open);
        if self.events.as_ref().is_some_and(is_due) {
            effects.extend(load_events(self, shell));
        }
        effects
    }

    fn project_changed(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let (text, history) = (std::mem::take(&mut self.text), std::mem::take(&mut self.history));
        *self = Self { tab: self.tab, text, history, ..Self::default() };
        if shell.screen == SCREEN_DIGIT { self.enter(shell) } else { Vec::new() }
    }

    fn reconnected(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let has_failed = [&self.clusters.error, &self.anomalies.error, &self.feedback.error]
            .into_iter()
            .any(Option::is_some)
            || self.events.as_ref().is_some_and(|events| events.rows.error.is_some());
        if shell.screen == SCREEN_DIGIT && has_failed { self.enter(shell) } else { Vec::new() }
    }
}

impl ScreenRequests for Failures {
    type Purpose = FailuresRequest;

    fn pending(&self) -> &Pending<FailuresRequest> {
        &self.pending
    }

    fn pending_mut(&mut self) -> &mut Pending<FailuresRequest> {
        &mut self.pending
    }

    fn fill(
        &mut self,
        shell: &mut Shell,
        purpose: FailuresRequest,
        sent: Timestamp,
        response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        let now = shell.now;
        match purpose {
            FailuresRequest::Clusters => {
                let page = cluster_page(response.decoded()?);
                self.clusters.renew(page, sent, now, CLUSTERS_INTERVAL_MICROS);
                self.pending.abandon(|it| matches!(it, FailuresRequest::MoreClusters(_)));
            }
            FailuresRequest::MoreClusters(at) => self.clusters.extend(cluster_page(response.decoded()?), at),
            FailuresRequest::Cluster(id, last_seen) => {
                let cluster: FailureCluster = response.decoded()?;
                let result = Ok(cluster.samples.unwrap_or_default());
                self.samples.insert(id, ClusterSamples { last_seen, at: now, result });
            }
            FailuresRequest::Anomalies => {
                let page = anomaly_page(response.decoded()?);
                self.anomalies.renew(page, sent, now, ANOMALIES_INTERVAL_MICROS);
            }
            FailuresRequest::MoreAnomalies => self.anomalies.extend(anomaly_page(response.decoded()?), sent),
            FailuresRequest::Feedback => {
                let page = feedback_page(response.decoded()?);
                self.feedback.renew(page, sent, now, ANOMALIES_INTERVAL_MICROS);
            }
            FailuresRequest::MoreFeedback => self.feedback.extend(feedback_page(response.decoded()?), sent),
            FailuresRequest::Events | FailuresRequest::MoreEvents => {
                let page = event_page(response.decoded()?);
                let Some(events) = &mut self.events else { return Ok(Vec::new()) };
                if purpose == FailuresRequest::Events {
                    events.rows.renew(page, sent, now, CLUSTERS_INTERVAL_MICROS);
                } else {
                    events.rows.extend(page, sent);
                }
            }
        }
        Ok(load_samples(self, shell))
    }

    fn fail(&mut self, shell: &mut Shell, purpose: FailuresRequest, error: NetError) -> Vec<Effect> {
        let reads_failures = matches!(
            purpose,
            FailuresRequest::Clusters
                | FailuresRequest::MoreClusters(_)
                | FailuresRequest::Cluster(..)
                | FailuresRequest::Events
                | FailuresRequest::MoreEvents
        );
        if reads_failures && trouble::is_session_refused(shell, &error) {
            self.clusters.next = None;
            return trouble::session_refused(shell, &error);
        }
        let effects = trouble::unauthorized(shell, &error);
        match purpose {
            FailuresRequest::Clusters => self.clusters.fail(shell, CLUSTERS_INTERVAL_MICROS, error),
            FailuresRequest::Anomalies => self.anomalies.fail(shell, ANOMALIES_INTERVAL_MICROS, error),
            FailuresRequest::Feedback => self.feedback.fail(shell, ANOMALIES_INTERVAL_MICROS, error),
            FailuresRequest::Events => {
                if let Some(events) = &mut self.events {
                    events.rows.fail(shell, CLUSTERS_INTERVAL_MICROS, error);
                }
            }
            FailuresRequest::Cluster(id, last_seen) => {
                self.samples.insert(id, ClusterSamples { last_seen, at: shell.now, result: Err(error) });
            }
            FailuresRequest::MoreClusters(_)
            | FailuresRequest::MoreAnomalies
            | FailuresRequest::MoreFeedback
            | FailuresRequest::MoreEvents => shell.report(describe(&error)),
        }
        effects
    }
}

fn cluster_page(list: FailureClusterList) -> RowPage<FailureCluster> {
    RowPage { rows: list.clusters, has_more: list.has_more, next_cursor: list.next_cursor }
}

fn anomaly_page(list: AnomalyList) -> RowPage<Anomaly> {
    RowPage { rows: list.anomalies, has_more: list.has_more, next_cursor: list.next_cursor }
}

fn feedback_page(list: FeedbackList) -> RowPage<api::feedback::Feedback> {
    RowPage { rows: list.feedback, has_more: list.has_more, next_cursor: list.next_cursor }
}

fn event_page(list: FailureList) -> RowPage<api::failure::Failure> {
    RowPage { rows: list.failures, has_more: list.has_more, next_cursor: list.next_cursor }
}

/// Returns the layout of the screen.
pub fn layout(failures: &Failures, shell: &Shell) -> FailuresLayout {
    parts(shell.size, failures.tab, failures.events.is_some())
}

/// Returns the filter of the line in the project shown, with times that count from an instant. The line was
/// validated before.
pub fn filter_at(failures: &Failures, shell: &Shell, at: Timestamp) -> ClusterFilter {
    let filter = line::parse(&failures.text, &Clock::of(&shell.zone.of(at))).unwrap_or_default();
    ClusterFilter { project_id: shell.project_id(), ..filter }
}

/// Returns the filter of the failures of a cluster.
pub fn event_filter(cluster: &FailureCluster) -> FailureFilter {
    FailureFilter { cluster_id: Some(cluster.id), ..FailureFilter::default() }
}

/// Returns the filter of bad feedback in the project shown.
pub fn feedback_filter(shell: &Shell) -> FeedbackFilter {
    FeedbackFilter {
        project_id: shell.project_id(),
        label: Some(FeedbackLabel::Bad),
        ..FeedbackFilter::default()
    }
}

fn page_after(cursor: Option<String>) -> Page {
    Page { limit: Some(ROWS_PER_PAGE), cursor }
}

/// Requests the clusters, which only a session token can read.
pub fn load_clusters(failures: &mut Failures, shell: &mut Shell) -> Vec<Effect> {
    failures.clusters.next = None;
    if !shell.has_session() {
        return Vec::new();
    }
    let call = calls::failure_clusters(&filter_at(failures, shell, shell.now), &page_after(None));
    vec![failures.pending.send(shell.ticket(), FailuresRequest::Clusters, call)]
}

fn load_anomalies(failures: &mut Failures, shell: &mut Shell) -> Effect {
    failures.anomalies.next = None;
    let call = first_page(shell.project_id(), ROWS_PER_PAGE);
    failures.pending.send(shell.ticket(), FailuresRequest::Anomalies, call)
}

fn load_feedback(failures: &mut Failures, shell: &mut Shell) -> Effect {
    failures.feedback.next = None;
    let call = calls::feedback(&feedback_filter(shell), &page_after(None));
    failures.pending.send(shell.ticket(), FailuresRequest::Feedback, call)
}

fn load_events(failures: &mut Failures, shell: &mut Shell) -> Option<Effect> {
    let events = failures.events.as_mut().filter(|_| shell.has_session())?;
    events.rows.next = None;
    let call = calls::failures(&event_filter(&events.cluster), &page_after(None));
    Some(failures.pending.send(shell.ticket(), FailuresRequest::Events, call))
}

/// Requests older rows when the cursor approaches the last loaded one.
fn load_older(failures: &mut Failures, shell: &mut Shell) -> Vec<Effect> {
    let pending = &failures.pending;
    let (older, is_open) = match (failures.tab, &failures.events) {
        (FailuresTab::Clusters, Some(events)) => {
            (events.rows.missing_older(), pending.has(|it| *it == FailuresRequest::MoreEvents))
        }
        (FailuresTab::Clusters, None) => (
            failures.clusters.missing_older(),
            pending.has(|it| matches!(it, FailuresRequest::MoreClusters(_))),
        ),
        (FailuresTab::Anomalies, _) => {
            (failures.anomalies.missing_older(), pending.has(|it| *it == FailuresRequest::MoreAnomalies))
        }
        (FailuresTab::Feedback, _) => {
            (failures.feedback.missing_older(), pending.has(|it| *it == FailuresRequest::MoreFeedback))
        }
    };
    let Some(Older { cursor, at }) = older.filter(|_| !is_open) else { return Vec::new() };
    let page = page_after(Some(cursor));
    let ticket = shell.ticket();
    let effect = match (failures.tab, &failures.events) {
        (FailuresTab::Clusters, Some(events)) => {
            let call = calls::failures(&event_filter(&events.cluster), &page);
            failures.pending.send(ticket, FailuresRequest::MoreEvents, call)
        }
        (FailuresTab::Clusters, None) => {
            let call = calls::failure_clusters(&filter_at(failures, shell, at), &page);
            failures.pending.send(ticket, FailuresRequest::MoreClusters(at), call)
        }
        (FailuresTab::Anomalies, _) => {
            let filter = AnomalyFilter { project_id: shell.project_id(), ..AnomalyFilter::default() };
            failures.pending.send(ticket, FailuresRequest::MoreAnomalies, calls::anomalies(&filter, &page))
        }
        (FailuresTab::Feedback, _) => {
            let call = calls::feedback(&feedback_filter(shell), &page);
            failures.pending.send(ticket, FailuresRequest::MoreFeedback, call)
        }
    };
    vec![effect]
}

/// Requests the samples of the cluster under the cursor, one cluster at a time, unless they are current.
fn load_samples(failures: &mut Failures, shell: &mut Shell) -> Vec<Effect> {
    let is_open = failures.pending.has(|it| matches!(it, FailuresRequest::Cluster(..)));
    let is_shown = failures.tab == FailuresTab::Clusters
        && failures.events.is_none()
        && layout(failures, shell).pane.height > 0;
    let Some(cluster) = failures.clusters.current().filter(|_| is_shown && !is_open) else {
        return Vec::new();
    };
    let (id, last_seen) = (cluster.id, cluster.last_seen);
    let is_current = failures.samples.get(&id).is_some_and(|known| match &known.result {
        Ok(_) => known.last_seen == last_seen,
        Err(_) => shell.now.micros() - known.at.micros() < SAMPLES_RETRY_MICROS,
    });
    if is_current || !shell.has_session() {
        return Vec::new();
    }
    let purpose = FailuresRequest::Cluster(id, last_seen);
    vec![failures.pending.send(shell.ticket(), purpose, calls::failure_cluster(id))]
}

/// Shows a tab.
fn show(failures: &mut Failures, shell: &mut Shell, tab: FailuresTab) -> Vec<Effect> {
    failures.tab = tab;
    if tab == FailuresTab::Feedback && !failures.pending.has(|it| *it == FailuresRequest::Feedback) {
        return vec![load_feedback(failures, shell)];
    }
    load_samples(failures, shell)
}

/// Applies another filter.
pub fn set_filter(failures: &mut Failures, shell: &mut Shell, text: String) -> Vec<Effect> {
    failures.text = text;
    failures.clusters = PagedRows::default();
    failures.pending.abandon(|it| {
        matches!(
            it,
            FailuresRequest::Clusters | FailuresRequest::MoreClusters(_) | FailuresRequest::Cluster(..)
        )
    });
    load_clusters(failures, shell)
}

/// Removes the time bounds from the filter.
fn widen(failures: &mut Failures, shell: &mut Shell) -> Vec<Effect> {
    let terms = failures.text.split_whitespace();
    let kept: Vec<&str> =
        terms.filter(|term| !term.starts_with("from:") && !term.starts_with("to:")).collect();
    let text = kept.join(" ");
    if text == failures.text {
        shell.notify("the filter has no time bounds");
        return Vec::new();
    }
    set_filter(failures, shell, text)
}

/// Opens the row under the cursor: the failures of a cluster, the traces of an anomaly, or a trace.
fn open(failures: &mut Failures, shell: &mut Shell) -> Vec<Effect> {
    match (failures.tab, &failures.events) {
        (FailuresTab::Clusters, None) => {
            let Some(cluster) = failures.clusters.current().cloned() else { return Vec::new() };
            failures.events = Some(ClusterEvents { cluster, rows: PagedRows::default() });
            load_events(failures, shell).into_iter().collect()
        }
        (FailuresTab::Anomalies, _) => match failures.anomalies.current() {
            Some(it) => {
                vec![Effect::Go(Destination::Traces { filter: traces_of(it, shell.now) })]
            }
            None => Vec::new(),
        },
        _ => open_trace(failures, shell),
    }
}

/// Returns the filter of the traces that began during an anomaly.
fn traces_of(it: &Anomaly, now: Timestamp) -> String {
    let written = |at: Timestamp| at.to_chrono().to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let failed = if it.metric == "error_rate" { "error:true " } else { "" };
    format!("{failed}from:{} to:{}", written(it.window_start), written(end_of(it, now)))
}

fn open_trace(failures: &Failures, shell: &mut Shell) -> Vec<Effect> {
    let Some((id, span)) = failures.current_target() else {
        let is_cluster = failures.tab == FailuresTab::Clusters && failures.clusters.current().is_some();
        shell.notify(if is_cluster { "no trace of this cluster is kept" } else { "no row is selected" });
        return Vec::new();
    };
    vec![Effect::Go(Destination::Trace { id, span, from: Some(SCREEN_DIGIT) })]
}

/// Opens the dialog that gives the cluster under the cursor a status, or opens the cluster again if it has that status.
fn change_status(failures: &Failures, shell: &mut Shell, status: ClusterStatus) {
    let Some(cluster) = failures.clusters.current() else {
        shell.notify("no cluster is selected");
        return;
    };
    let status = if cluster.status == status { ClusterStatus::Open } else { status };
    let change = ClusterChange { id: cluster.id, name: cluster.title.clone(), status };
    shell.dialog = Some(Dialog::confirm(change, shell.target.protected, shell.now));
}
