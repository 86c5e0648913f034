//! Keys of Metrics, and when its numbers are asked for.

use api::{
    client::calls::{FeedbackFilter, MetricQuery},
    metrics::{Metric, Metrics as Answer},
};
use chrono::SecondsFormat;

use crate::{
    keymap::Action,
    layout,
    metrics::Verdicts,
    msg::{Effect, Reply},
    state::{METRICS, Place, Purpose, State},
};

use super::{go, network, travel};

/// Asks for everything that the screen shows. What belongs to the same time as the answer, such
/// as the time before it, is asked for once the answer says which time that is.
pub(super) fn load(state: &mut State) -> Vec<Effect> {
    state.metrics.next = None;
    // The project asked for by its name is still being looked up; its metrics come with it.
    if state.target.project.is_some() && state.project.is_none() {
        return Vec::new();
    }
    let query = state.metrics.stretch.query(state.project.as_ref(), state.now);
    let request = state.request(Purpose::Metrics);
    let mut effects = vec![Effect::LoadMetrics { request, query }];
    if let Some(project) = state.project.as_ref().map(|project| project.id) {
        effects.push(Effect::LoadRetryCap { request: state.request(Purpose::RetryCap), project });
    }
    effects
}

/// Forgets the numbers and asks for others, if the screen is in sight.
pub(super) fn reload(state: &mut State) -> Vec<Effect> {
    state.metrics.forget();
    let asked = |it: &Purpose| {
        matches!(it, Purpose::Metrics | Purpose::Before | Purpose::RetryCap | Purpose::Feedback)
    };
    state.open.retain(|_, (it, _)| !asked(it));
    if state.screen == METRICS { load(state) } else { Vec::new() }
}

/// The clock moved on.
pub(super) fn tick(state: &mut State) -> Vec<Effect> {
    let due = state.metrics.next.is_some_and(|at| at <= state.now) && !state.is_unauthorized();
    if due && state.screen == METRICS && state.metrics.auto { load(state) } else { Vec::new() }
}

/// Takes in an answer.
pub(super) fn fill(state: &mut State, purpose: &Purpose, reply: Reply) -> Vec<Effect> {
    match (purpose, reply) {
        (Purpose::Metrics, Reply::Metrics(answer)) => shown(state, *answer),
        (Purpose::Before, Reply::Metrics(answer)) => {
            state.metrics.before = Some(answer.metrics);
            Vec::new()
        }
        (Purpose::RetryCap, Reply::ProjectMetric(value)) => {
            state.metrics.retry_cap = Some(value);
            Vec::new()
        }
        (Purpose::Feedback, Reply::Feedback(page)) => {
            state.metrics.verdicts = Some(Verdicts::of(&page));
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn shown(state: &mut State, answer: Answer) -> Vec<Effect> {
    let project_id = state.project.as_ref().map(|project| project.id);
    let (from, to) = (answer.from, answer.to);
    state.metrics.shown = Some(answer);
    state.metrics.at = Some(state.now);
    state.metrics.error = None;
    state.metrics.next = network::after(state, state.metrics.stretch.refresh());
    let length = to.micros() - from.micros();
    let earlier = |micros: i64| Some(api::Timestamp::from_micros(from.micros() - micros));
    let query = MetricQuery { project_id, from: earlier(length), to: earlier(1), ..MetricQuery::default() };
    let mut effects = vec![Effect::LoadMetrics { request: state.request(Purpose::Before), query }];
    if layout::metrics(state.size, state.metrics.numbers).feedback.is_some() {
        let filter =
            FeedbackFilter { project_id, from: Some(from), to: Some(to), ..FeedbackFilter::default() };
        effects.push(Effect::LoadFeedback { request: state.request(Purpose::Feedback), filter });
    }
    effects
}

pub(super) fn act(state: &mut State, action: Action) -> Vec<Effect> {
    let cols = layout::plot_cols(state.size);
    match action {
        Action::NextTab | Action::PreviousTab => {
            let stretch = state.metrics.stretch.turned(action == Action::NextTab);
            if stretch == state.metrics.stretch {
                return Vec::new();
            }
            state.metrics.stretch = stretch;
            return reload(state);
        }
        Action::Refresh => return load(state),
        Action::Back if state.metrics.numbers => state.metrics.numbers = false,
        Action::Back => return go(state, Place { screen: 1, trace: None }),
        Action::Numbers => state.metrics.numbers = !state.metrics.numbers,
        Action::Auto => {
            state.metrics.auto = !state.metrics.auto;
            state.tell(if state.metrics.auto { "asked again by itself" } else { "asked again with R only" });
            if state.metrics.auto {
                return load(state);
            }
        }
        Action::Open => return traces(state),
        Action::Left | Action::Right => {
            let cols = if state.metrics.numbers { usize::MAX } else { cols };
            state.metrics.step(cols, action == Action::Right);
        }
        _ if state.metrics.numbers => walk(state, action),
        Action::Top | Action::Bottom => state.metrics.jump(action == Action::Bottom),
        _ => {
            let last = Metric::ALL.len() - 1;
            if let Some(to) = travel::to(action, state.metrics.row, last, last) {
                state.metrics.row = to;
            }
        }
    }
    Vec::new()
}

/// Moves over the table of numbers, which has the newest point on top.
fn walk(state: &mut State, action: Action) {
    let last = state.metrics.points().len().saturating_sub(1);
    let page = usize::from(layout::frame(state.size).body.height).max(3) - 2;
    let at = last.saturating_sub(state.metrics.point());
    let Some(to) = travel::to(action, at, last, page) else { return };
    let point = state.metrics.points().get(last - to).map(|point| point.start);
    state.metrics.cursor = point.filter(|_| to > 0);
}

/// Opens the traces of the column or point under the cursor; on the error rate, the failed ones.
fn traces(state: &mut State) -> Vec<Effect> {
    let cols = if state.metrics.numbers { usize::MAX } else { layout::plot_cols(state.size) };
    let metrics = &state.metrics;
    let Some((from, to)) = metrics.bounds(metrics.column(cols)) else { return Vec::new() };
    let written = |at: api::Timestamp| at.to_chrono().to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let failed = if metrics.metric() == Metric::ErrorRate { "error:true " } else { "" };
    let filter = format!("{failed}from:{} to:{}", written(from), written(to));
    let mut effects = go(state, Place { screen: 1, trace: None });
    effects.extend(network::set_filter(state, filter));
    effects
}
