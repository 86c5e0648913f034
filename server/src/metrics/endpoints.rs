//! Handlers of trace metrics and project metrics.

use std::{str::FromStr, sync::Arc};

use api::{
    ErrorCode, Timestamp,
    metrics::{Interval, Metrics, ProjectMetric, ProjectMetricValue, ProjectWindow, Window},
};
use axum::{
    Json,
    extract::{Path, State},
};
use store::{control_actions, projects, rates::RateBucket};

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::{Result, not_found, problem},
    feature::Feature,
    http::{
        query::{Query, invalid, path_id},
        route::{Route, route},
    },
    metrics::{queries::GroupBy, query_result::MetricsQuery},
};

/// Maximum number of buckets of a series: a week by minute.
const MAX_POINTS: i64 = 7 * 24 * 60 + 1;
/// Maximum number of buckets of a series with groups: 30 days by hour, and the current one.
const MAX_GROUP_POINTS: i64 = 30 * 24 + 1;

/// Rolling metrics.
pub const FEATURE: Feature = Feature { routes, ..Feature::NONE };

fn routes() -> Vec<Route> {
    vec![
        route!(show, Access::viewer().keys(Keys::Query))
            .counts_to(RateBucket::Metrics)
            .parameter_type::<Window>()
            .parameter_type::<Interval>(),
        route!(of_project, Access::viewer().keys(Keys::Query)),
    ]
}

/// Show metrics of the traces that started within a period.
///
/// Traces are counted as soon as they are acknowledged; percentiles are within 1 %. Groups by `name`
/// and `tag:<key>` are computed from the newest 50,000 traces; groups by `model` are not limited.
#[utoipa::path(get, path = "/v1/metrics", tag = "Metrics", params(
    ("project_id" = Option<Uuid>, Query, description = "of this project"),
    ("model" = Option<String>, Query, description = "of this model, exactly"),
    ("window" = Option<Window>, Query, description = "the period up to now; default 24h"),
    ("from" = Option<Timestamp>, Query, description = "start of the period; overrides window"),
    ("to" = Option<Timestamp>, Query, description = "end of the period; default now"),
    ("interval" = Option<Interval>, Query, description = "adds `series`: at most 10,081 buckets, with `group_by` 721"),
    ("group_by" = Option<String>, Query, description = "adds `groups`: model, name or tag:<key>")),
    responses((status = 200, body = Metrics)))]
pub async fn show(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<Metrics>> {
    let (from, to) = time(&query, app.clock.now())?;
    let group_by = query.get("group_by").map(group_by).transpose()?;
    let metrics_query = MetricsQuery {
        from,
        to,
        model: query.text("model"),
        interval: word(&query, "interval")?,
        by_model: group_by == Some(GroupBy::Model),
    };
    let max_points = if group_by.is_some() { MAX_GROUP_POINTS } else { MAX_POINTS };
    if metrics_query.points() > max_points {
        let message = format!(
            "would give {} buckets of at most {max_points}: choose a longer interval or a shorter period",
            metrics_query.points()
        );
        return Err(invalid("interval", &message));
    }
    let project = query.uuid("project_id")?;
    Ok(Json(app.metrics_queries.run(&app.db, caller.tenant_id, project, metrics_query, group_by).await?))
}

/// Show a metric of a project: `retry_cap_hit`, the number of traces on which a policy reached its
/// `max_retry_depth`.
#[utoipa::path(get, path = "/v1/projects/{id}/metrics", tag = "Metrics", params(
    ("id" = Uuid, Path, description = "the project"),
    ("metric" = ProjectMetric, Query, description = "retry_cap_hit"),
    ("window" = ProjectWindow, Query, description = "the period up to now")),
    responses((status = 200, body = ProjectMetricValue)))]
pub async fn of_project(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    query: Query,
) -> Result<Json<ProjectMetricValue>> {
    let id = path_id(&id)?;
    let needed = |name: &'static str| move || invalid(name, "is required");
    let metric: ProjectMetric = word(&query, "metric")?.ok_or_else(needed("metric"))?;
    let window: ProjectWindow = word(&query, "window")?.ok_or_else(needed("window"))?;
    projects::get(&app.db.read, caller.tenant_id, id).await?.ok_or_else(|| not_found("project"))?;
    let value = match metric {
        ProjectMetric::RetryCapHit => {
            let since = app.clock.now().saturating_sub(window.micros());
            control_actions::retry_cap_hits(&app.db, caller.tenant_id, id, since).await?
        }
    };
    Ok(Json(ProjectMetricValue { metric, value, window }))
}

/// Returns the requested period, both ends inclusive, in microseconds.
fn time(query: &Query, now: i64) -> Result<(i64, i64)> {
    let window = word(query, "window")?.unwrap_or(Window::Day);
    let (from, to) = Query::ordered(("from", "to"), (query.time("from")?, query.time("to")?))?;
    let to = to.unwrap_or_else(|| from.map_or(now, |it| it.max(now)));
    Ok((from.unwrap_or_else(|| to.saturating_sub(window.micros())), to))
}

fn group_by(text: &str) -> Result<GroupBy> {
    match text {
        "model" => Ok(GroupBy::Model),
        "name" => Ok(GroupBy::Name),
        _ => match text.strip_prefix("tag:") {
            Some(key) if !key.is_empty() => Ok(GroupBy::Tag(key.to_owned())),
            _ => Err(invalid("group_by", "must be model, name or tag:<key>")),
        },
    }
}

/// Parses a word of an enumeration.
fn word<T: FromStr<Err: std::fmt::Display>>(query: &Query, name: &str) -> Result<Option<T>> {
    let parse =
        |it: &str| it.parse().map_err(|error| problem(ErrorCode::InvalidQuery, format!("{name}: {error}")));
    query.get(name).map(parse).transpose()
}
