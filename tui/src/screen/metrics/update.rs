//! Key handling of the screen Metrics, and the schedule of its requests.

use api::{
    Timestamp,
    anomaly::AnomalyList,
    client::calls::{self, FeedbackFilter, MetricQuery, Page},
    metrics::{Metric, Metrics as MetricsReply, ProjectMetric, ProjectMetricValue, ProjectWindow},
    page::MAX_LIMIT,
};
use chrono::SecondsFormat;

use crate::{
    anomalies::first_page,
    keymap::Action,
    layout::frame,
    net::{Destination, Effect, NetError, Response},
    screen::metrics::{
        SCREEN_DIGIT,
        keys::{TOGGLE_NUMBERS, TOGGLE_REFRESH},
        layout::{parts, plot_cols},
        state::{FeedbackCounts, Metrics, MetricsRequest},
    },
    shell::{
        Pending, ScreenActions, ScreenRequests, Shell,
        notice::describe,
        trouble::{PROBE_INTERVAL_MICROS, is_new, retry_after, unauthorized},
    },
    travel,
};

impl ScreenActions for Metrics {
    fn enter(&mut self, shell: &mut Shell) -> Vec<Effect> {
        load(self, shell)
    }

    fn act(&mut self, shell: &mut Shell, action: Action) -> Vec<Effect> {
        let cols = plot_cols(shell.size);
        match action {
            Action::NextTab | Action::PreviousTab => {
                let stretch = self.stretch.turned(action == Action::NextTab);
                if stretch == self.stretch {
                    return Vec::new();
                }
                self.stretch = stretch;
                return reload(self, shell);
            }
            Action::Refresh => return load(self, shell),
            Action::Back if self.numbers => self.numbers = false,
            Action::Back => return vec![Effect::Go(Destination::Screen(1))],
            TOGGLE_NUMBERS => self.numbers = !self.numbers,
            TOGGLE_REFRESH => {
                self.auto = !self.auto;
                shell.notify(if self.auto {
                    "automatic refresh is on"
                } else {
                    "automatic refresh is off; R refreshes"
                });
                if self.auto {
                    return load(self, shell);
                }
            }
            Action::Open => return traces(self, shell),
            Action::Left | Action::Right => {
                let cols = if self.numbers { usize::MAX } else { cols };
                self.step(cols, action == Action::Right);
            }
            _ if self.numbers => walk(self, shell, action),
            Action::Top | Action::Bottom => self.jump(action == Action::Bottom),
            _ => {
                let last = Metric::ALL.len() - 1;
                if let Some(to) = travel::to(action, self.row, last, last) {
                    self.row = to;
                }
            }
        }
        Vec::new()
    }

    fn tick(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let due = self.next.is_some_and(|at| at <= shell.now) && !shell.is_unauthorized();
        if due && shell.screen == SCREEN_DIGIT && self.auto { load(self, shell) } else { Vec::new() }
    }

    fn project_changed(&mut self, shell: &mut Shell) -> Vec<Effect> {
        reload(self, shell)
    }

    fn reconnected(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let open = self.pending.has(|it| *it == MetricsRequest::Current);
        if shell.screen == SCREEN_DIGIT && !open { load(self, shell) } else { Vec::new() }
    }
}

impl ScreenRequests for Metrics {
    type Purpose = MetricsRequest;

    fn pending(&self) -> &Pending<MetricsRequest> {
        &self.pending
    }

    fn pending_mut(&mut self) -> &mut Pending<MetricsRequest> {
        &mut self.pending
    }

    fn fill(
        &mut self,
        shell: &mut Shell,
        purpose: MetricsRequest,
        _sent: Timestamp,
        response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        match purpose {
            MetricsRequest::Current => return Ok(shown(self, shell, response.decoded()?)),
            MetricsRequest::Previous => self.before = Some(response.decoded::<MetricsReply>()?.metrics),
            MetricsRequest::RetryCap => {
                self.retry_cap = Some(response.decoded::<ProjectMetricValue>()?.value)
            }
            MetricsRequest::Feedback => self.verdicts = Some(FeedbackCounts::of(&response.decoded()?)),
            MetricsRequest::Anomalies => {
                self.anomalies = response.decoded::<AnomalyList>()?.anomalies;
                self.anomalies_error = None;
            }
        }
        Ok(Vec::new())
    }

    fn fail(&mut self, shell: &mut Shell, purpose: MetricsRequest, error: NetError) -> Vec<Effect> {
        let effects = unauthorized(shell, &error);
        match purpose {
            MetricsRequest::Current => {
                if is_new(self.error.as_ref(), &error) {
                    shell.report(describe(&error));
                }
                let wait = self.stretch.refresh().min(PROBE_INTERVAL_MICROS);
                self.next = shell.after(retry_after(&error).max(wait));
                self.error = Some(error);
            }
            // The request for the current values fails too and is reported.
            MetricsRequest::Previous => self.before = None,
            MetricsRequest::RetryCap => self.retry_cap = None,
            MetricsRequest::Feedback => self.verdicts = None,
            // Without them the chart stays, and its legend states that marks may be missing.
            MetricsRequest::Anomalies => {
                if is_new(self.anomalies_error.as_ref(), &error) {
                    shell.report(format!("anomalies: {}", describe(&error)));
                }
                self.anomalies_error = Some(error);
            }
        }
        effects
    }
}

/// Requests everything that the screen shows. The previous window, the anomalies and the feedback follow once the
/// response states the window.
pub fn load(metrics: &mut Metrics, shell: &mut Shell) -> Vec<Effect> {
    metrics.next = None;
    // The metrics are requested once the project is resolved.
    if shell.is_resolving_project() {
        return Vec::new();
    }
    let query = metrics.stretch.query(shell.project.as_ref(), shell.now);
    let mut effects =
        vec![metrics.pending.send(shell.ticket(), MetricsRequest::Current, calls::metrics(&query))];
    if let Some(project) = shell.project_id() {
        let call = calls::project_metric(project, ProjectMetric::RetryCapHit, ProjectWindow::Week);
        effects.push(metrics.pending.send(shell.ticket(), MetricsRequest::RetryCap, call));
    }
    effects
}

/// Discards the values and requests others if the screen is shown.
pub fn reload(metrics: &mut Metrics, shell: &mut Shell) -> Vec<Effect> {
    metrics.forget();
    metrics.pending.abandon(|_| true);
    if shell.screen == SCREEN_DIGIT { load(metrics, shell) } else { Vec::new() }
}

fn shown(metrics: &mut Metrics, shell: &mut Shell, answer: MetricsReply) -> Vec<Effect> {
    let project_id = shell.project_id();
    let (from, to) = (answer.from, answer.to);
    metrics.shown = Some(answer);
    metrics.at = Some(shell.now);
    metrics.error = None;
    metrics.next = shell.after(metrics.stretch.refresh());
    let length = to.micros() - from.micros();
    let earlier = |micros: i64| Some(Timestamp::from_micros(from.micros() - micros));
    let query = MetricQuery { project_id, from: earlier(length), to: earlier(1), ..MetricQuery::default() };
    let mut effects =
        vec![metrics.pending.send(shell.ticket(), MetricsRequest::Previous, calls::metrics(&query))];
    // An anomaly that began before the window can last into it, so the newest ones are read whatever the window is.
    let anomalies = first_page(project_id, MAX_LIMIT);
    effects.push(metrics.pending.send(shell.ticket(), MetricsRequest::Anomalies, anomalies));
    if parts(shell.size, metrics.numbers).feedback.is_some() {
        let filter =
            FeedbackFilter { project_id, from: Some(from), to: Some(to), ..FeedbackFilter::default() };
        let call = calls::feedback(&filter, &Page { limit: Some(MAX_LIMIT), cursor: None });
        effects.push(metrics.pending.send(shell.ticket(), MetricsRequest::Feedback, call));
    }
    effects
}

/// Moves over the table of numbers, which has the newest point on top.
fn walk(metrics: &mut Metrics, shell: &mut Shell, action: Action) {
    let last = metrics.points().len().saturating_sub(1);
    let page = usize::from(frame(shell.size).body.height).max(3) - 2;
    let at = last.saturating_sub(metrics.point());
    let Some(to) = travel::to(action, at, last, page) else { return };
    let point = metrics.points().get(last - to).map(|point| point.start);
    metrics.cursor = point.filter(|_| to > 0);
}

/// Opens the traces of the column or point under the cursor; on the error rate, the failed ones.
fn traces(metrics: &Metrics, shell: &mut Shell) -> Vec<Effect> {
    let cols = if metrics.numbers { usize::MAX } else { plot_cols(shell.size) };
    let Some((from, to)) = metrics.bounds(metrics.column(cols)) else { return Vec::new() };
    let written = |at: Timestamp| at.to_chrono().to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let failed = if metrics.metric() == Metric::ErrorRate { "error:true " } else { "" };
    let filter = format!("{failed}from:{} to:{}", written(from), written(to));
    vec![Effect::Go(Destination::Traces { filter })]
}
