//! What the keys of Metrics do, and when its values are requested.

use api::{
    client::calls::{FeedbackFilter, MetricQuery},
    metrics::{Metric, Metrics as MetricsReply},
};
use chrono::SecondsFormat;

use crate::{
    keymap::Action,
    layout::frame,
    net::{Destination, Effect, NetError, Reply},
    screen::metrics::{
        SCREEN_DIGIT,
        keys::{TOGGLE_NUMBERS, TOGGLE_REFRESH},
        layout::{parts, plot_cols},
        state::{Metrics, MetricsRequest, Verdicts},
    },
    shell::{
        Shell,
        notice::describe,
        trouble::{PROBE_INTERVAL_MICROS, is_new, retry_after},
    },
    travel,
};

/// Asks for everything that the screen shows. What belongs to the same time as the answer, such
/// as the time before it, is asked for once the answer says which time that is.
pub fn load(metrics: &mut Metrics, shell: &mut Shell) -> Vec<Effect> {
    metrics.next = None;
    // The metrics are requested once the project is resolved.
    if shell.is_resolving_project() {
        return Vec::new();
    }
    let query = metrics.stretch.query(shell.project.as_ref(), shell.now);
    let request = metrics.pending.start(shell.ticket(), MetricsRequest::Current);
    let mut effects = vec![Effect::LoadMetrics { request, query }];
    if let Some(project) = shell.project_id() {
        effects.push(Effect::LoadRetryCap {
            request: metrics.pending.start(shell.ticket(), MetricsRequest::RetryCap),
            project,
        });
    }
    effects
}

/// Discards the values and requests others if the screen is shown.
pub fn reload(metrics: &mut Metrics, shell: &mut Shell) -> Vec<Effect> {
    metrics.forget();
    metrics.pending.abandon(|_| true);
    if shell.screen == SCREEN_DIGIT { load(metrics, shell) } else { Vec::new() }
}

/// Handles the passing of time.
pub fn tick(metrics: &mut Metrics, shell: &mut Shell) -> Vec<Effect> {
    let due = metrics.next.is_some_and(|at| at <= shell.now) && !shell.is_unauthorized();
    if due && shell.screen == SCREEN_DIGIT && metrics.auto { load(metrics, shell) } else { Vec::new() }
}

/// Stores a response.
pub fn fill(metrics: &mut Metrics, shell: &mut Shell, purpose: MetricsRequest, reply: Reply) -> Vec<Effect> {
    match (purpose, reply) {
        (MetricsRequest::Current, Reply::Metrics(answer)) => shown(metrics, shell, *answer),
        (MetricsRequest::Previous, Reply::Metrics(answer)) => {
            metrics.before = Some(answer.metrics);
            Vec::new()
        }
        (MetricsRequest::RetryCap, Reply::ProjectMetric(value)) => {
            metrics.retry_cap = Some(value);
            Vec::new()
        }
        (MetricsRequest::Feedback, Reply::Feedback(page)) => {
            metrics.verdicts = Some(Verdicts::of(&page));
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn shown(metrics: &mut Metrics, shell: &mut Shell, answer: MetricsReply) -> Vec<Effect> {
    let project_id = shell.project_id();
    let (from, to) = (answer.from, answer.to);
    metrics.shown = Some(answer);
    metrics.at = Some(shell.now);
    metrics.error = None;
    metrics.next = shell.after(metrics.stretch.refresh());
    let length = to.micros() - from.micros();
    let earlier = |micros: i64| Some(api::Timestamp::from_micros(from.micros() - micros));
    let query = MetricQuery { project_id, from: earlier(length), to: earlier(1), ..MetricQuery::default() };
    let mut effects = vec![Effect::LoadMetrics {
        request: metrics.pending.start(shell.ticket(), MetricsRequest::Previous),
        query,
    }];
    if parts(shell.size, metrics.numbers).feedback.is_some() {
        let filter =
            FeedbackFilter { project_id, from: Some(from), to: Some(to), ..FeedbackFilter::default() };
        effects.push(Effect::LoadFeedback {
            request: metrics.pending.start(shell.ticket(), MetricsRequest::Feedback),
            filter,
        });
    }
    effects
}

/// Handles a failed request.
pub fn fail(metrics: &mut Metrics, shell: &mut Shell, purpose: MetricsRequest, error: NetError) {
    match purpose {
        MetricsRequest::Current => {
            if is_new(metrics.error.as_ref(), &error) {
                shell.report(describe(&error));
            }
            let wait = metrics.stretch.refresh().min(PROBE_INTERVAL_MICROS);
            metrics.next = shell.after(retry_after(&error).max(wait));
            metrics.error = Some(error);
        }
        // The request for the current values fails too and is reported.
        MetricsRequest::Previous => metrics.before = None,
        MetricsRequest::RetryCap => metrics.retry_cap = None,
        MetricsRequest::Feedback => metrics.verdicts = None,
    }
}

/// Performs an action of the screen.
pub fn act(metrics: &mut Metrics, shell: &mut Shell, action: Action) -> Vec<Effect> {
    let cols = plot_cols(shell.size);
    match action {
        Action::NextTab | Action::PreviousTab => {
            let stretch = metrics.stretch.turned(action == Action::NextTab);
            if stretch == metrics.stretch {
                return Vec::new();
            }
            metrics.stretch = stretch;
            return reload(metrics, shell);
        }
        Action::Refresh => return load(metrics, shell),
        Action::Back if metrics.numbers => metrics.numbers = false,
        Action::Back => return vec![Effect::Go(Destination::Screen(1))],
        TOGGLE_NUMBERS => metrics.numbers = !metrics.numbers,
        TOGGLE_REFRESH => {
            metrics.auto = !metrics.auto;
            shell.notify(if metrics.auto { "asked again by itself" } else { "asked again with R only" });
            if metrics.auto {
                return load(metrics, shell);
            }
        }
        Action::Open => return traces(metrics, shell),
        Action::Left | Action::Right => {
            let cols = if metrics.numbers { usize::MAX } else { cols };
            metrics.step(cols, action == Action::Right);
        }
        _ if metrics.numbers => walk(metrics, shell, action),
        Action::Top | Action::Bottom => metrics.jump(action == Action::Bottom),
        _ => {
            let last = Metric::ALL.len() - 1;
            if let Some(to) = travel::to(action, metrics.row, last, last) {
                metrics.row = to;
            }
        }
    }
    Vec::new()
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
    let written = |at: api::Timestamp| at.to_chrono().to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let failed = if metrics.metric() == Metric::ErrorRate { "error:true " } else { "" };
    let filter = format!("{failed}from:{} to:{}", written(from), written(to));
    vec![Effect::Go(Destination::Traces { filter })]
}
