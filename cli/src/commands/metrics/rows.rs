//! Metrics as table rows: one for all traces, one for each bucket of a series, or one for each group.

use api::metrics::{Metric, MetricGroup, MetricPoint, MetricValues, Metrics};
use present::format;
use serde_json::{Map, Value, json};

use crate::output::{
    Column, View,
    cell::{self, Cell, Style},
    view::SelectedColumn,
};

/// Columns of the metrics, in the order of the API.
const METRIC_COLUMNS: [Column; 7] = [
    Column::new("ERRORS", "error_rate", |row, style| value(row, Metric::ErrorRate, style)).right(),
    Column::new("P50", "latency_p50", |row, style| value(row, Metric::LatencyP50, style)).right(),
    Column::new("P95", "latency_p95", |row, style| value(row, Metric::LatencyP95, style)).right(),
    Column::new("P99", "latency_p99", |row, style| value(row, Metric::LatencyP99, style)).right(),
    Column::new("COST", "total_cost", |row, style| value(row, Metric::TotalCost, style)).right(),
    Column::new("TRACES", "trace_count", |row, style| value(row, Metric::TraceCount, style)).right(),
    Column::new("GOOD", "feedback_good_rate", |row, style| value(row, Metric::FeedbackGoodRate, style))
        .right(),
];

const FROM_COLUMN: Column = Column::new("FROM", "from", |row, style| cell::date(row, "from", style));
const TO_COLUMN: Column = Column::new("TO", "to", |row, style| cell::date(row, "to", style));
const START_COLUMN: Column = Column::new("START", "start", |row, style| cell::date(row, "start", style));
const KEY_COLUMN: Column = Column::new("KEY", "key", |row, style| cell::text(row, "key", style)).elastic();

const FIELDS: &[&str] = &[
    "from",
    "to",
    "key",
    "start",
    "error_rate",
    "latency_p50",
    "latency_p95",
    "latency_p99",
    "total_cost",
    "trace_count",
    "feedback_good_rate",
];

const TOTAL_VIEW: View =
    View { plural: "metrics", id: "from", columns: &[FROM_COLUMN, TO_COLUMN], fields: FIELDS };
const SERIES_VIEW: View = View { plural: "series", id: "start", columns: &[START_COLUMN], fields: FIELDS };
const GROUP_VIEW: View = View { plural: "groups", id: "key", columns: &[KEY_COLUMN], fields: FIELDS };
const GROUP_SERIES_VIEW: View = View { columns: &[KEY_COLUMN, START_COLUMN], ..GROUP_VIEW };

/// Rows of a response and their view. The columns of metrics follow those of the view.
pub struct MetricRows {
    /// The view of the rows, with the columns that identify a row.
    pub view: View,
    /// The rows as flat objects.
    pub rows: Vec<Value>,
}

/// Returns the view of the rows, which does not depend on a response.
pub fn view(has_series: bool, has_groups: bool) -> View {
    match (has_groups, has_series) {
        (false, false) => TOTAL_VIEW,
        (false, true) => SERIES_VIEW,
        (true, false) => GROUP_VIEW,
        (true, true) => GROUP_SERIES_VIEW,
    }
}

/// Converts a response to rows of the wanted metrics.
pub fn rows(metrics: &Metrics, wanted: &[Metric]) -> MetricRows {
    let flat = |members: &[(&str, Value)], values: &MetricValues| {
        let mut row: Map<String, Value> =
            members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        row.extend(wanted.iter().map(|metric| (metric.as_str().to_owned(), number(*metric, values))));
        Value::Object(row)
    };
    let points = |key: Option<&MetricGroup>, points: &[MetricPoint]| -> Vec<Value> {
        let point = |point: &MetricPoint| {
            let mut members = vec![("start", json!(point.start))];
            members.extend(key.map(|group| ("key", json!(group.key))));
            flat(&members, &point.values)
        };
        points.iter().map(point).collect()
    };
    let rows = match (&metrics.groups, &metrics.series) {
        (None, None) => {
            vec![flat(&[("from", json!(metrics.from)), ("to", json!(metrics.to))], &metrics.metrics)]
        }
        (None, Some(series)) => points(None, series),
        (Some(groups), None) => {
            groups.iter().map(|it| flat(&[("key", json!(it.key))], &it.metrics)).collect()
        }
        (Some(groups), Some(_)) => {
            groups.iter().flat_map(|it| points(Some(it), it.series.as_deref().unwrap_or_default())).collect()
        }
    };
    MetricRows { view: view(metrics.series.is_some(), metrics.groups.is_some()), rows }
}

/// Returns the columns of a table of metrics.
pub fn columns(view: &View, wanted: &[Metric]) -> Vec<SelectedColumn<'static>> {
    let metrics =
        wanted.iter().filter_map(|metric| METRIC_COLUMNS.iter().find(|it| it.field == metric.as_str()));
    view.columns.iter().chain(metrics).map(SelectedColumn::Column).collect()
}

/// Returns the fields of the machine formats.
pub fn names(view: &View, wanted: &[Metric]) -> Vec<String> {
    let about = view.columns.iter().map(|column| column.field);
    about.chain(wanted.iter().map(|metric| metric.as_str())).map(str::to_owned).collect()
}

/// Returns the server's response without the metrics that are not wanted.
pub fn keep_metrics(mut document: Value, wanted: &[Metric]) -> Value {
    let unwanted: Vec<&str> =
        Metric::ALL.iter().filter(|it| !wanted.contains(it)).map(|it| it.as_str()).collect();
    let narrow = |values: Option<&mut Value>| {
        if let Some(Value::Object(members)) = values {
            members.retain(|name, _| !unwanted.contains(&name.as_str()));
        }
    };
    fn each<'a>(document: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
        document.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
    }
    narrow(document.get_mut("metrics"));
    each(&mut document, "series").for_each(|point| narrow(Some(point)));
    for group in each(&mut document, "groups") {
        narrow(group.get_mut("metrics"));
        each(group, "series").for_each(|point| narrow(Some(point)));
    }
    document
}

/// Returns a metric as the API writes it: counts are integers, a missing value is null.
fn number(metric: Metric, values: &MetricValues) -> Value {
    match metric {
        Metric::TraceCount => json!(values.trace_count),
        other => json!(values.get(other)),
    }
}

fn value(row: &Value, metric: Metric, style: &Style) -> Cell {
    let number = row.get(metric.as_str()).and_then(Value::as_f64);
    number.map_or_else(|| cell::none(style), |it| Cell::plain(format::metric(metric, it)))
}
