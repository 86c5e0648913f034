//! The metrics of a query, computed from the rows of the traces one by one.

use std::collections::{BTreeMap, BTreeSet};

use entities::trace;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use serde_json::{Value, json};
use tests::{Caller, TestApp};
use uuid::Uuid;

/// The parameters of a query.
#[derive(Clone, Debug, Default)]
pub struct MetricsQuery {
    pub project: Option<Uuid>,
    pub model: Option<&'static str>,
    pub from: i64,
    pub to: i64,
    pub interval: Option<(&'static str, i64)>,
    pub group_by: Option<&'static str>,
}

/// Returns all traces of the tenant.
pub async fn stored_traces(app: &TestApp) -> Vec<trace::Model> {
    let query = trace::Entity::find().filter(trace::Column::TenantId.eq(app.tenant));
    query.all(&app.app.db.write).await.unwrap()
}

impl MetricsQuery {
    /// Sends the query and compares the response.
    pub async fn check(&self, key: &Caller, rows: &[trace::Model], what: &str) {
        let response = key.get(&self.path()).await.ok();
        let rows: Vec<&trace::Model> = rows.iter().filter(|it| self.selects(it)).collect();
        check_metrics(&response["metrics"], &rows, &format!("{what} {self:?}"));
        if let Some((_, length)) = self.interval {
            let series = response["series"].as_array().unwrap();
            let points = self.to.div_euclid(length) - self.from.div_euclid(length) + 1;
            assert_eq!(series.len() as i64, points, "{what} {self:?}");
            self.check_points(series, &rows, length, what);
        }
        let Some(by) = self.group_by else { return };
        let groups = response["groups"].as_array().unwrap();
        let keys: BTreeSet<Option<String>> = rows.iter().map(|it| key_of(it, by)).collect();
        assert_eq!(
            (groups.len(), &response["groups_truncated"]),
            (keys.len(), &json!(false)),
            "{what} {self:?}"
        );
        for group in groups {
            let key = group["key"].as_str().map(str::to_owned);
            let rows: Vec<&trace::Model> = rows.iter().copied().filter(|it| key_of(it, by) == key).collect();
            check_metrics(&group["metrics"], &rows, &format!("{what} {key:?} {self:?}"));
            if let Some((_, length)) = self.interval {
                let points = group["series"].as_array().unwrap();
                assert!(points.iter().all(|it| it["trace_count"] != 0));
                self.check_points(points, &rows, length, what);
            }
        }
        let sizes: Vec<i64> =
            groups.iter().map(|it| it["metrics"]["trace_count"].as_i64().unwrap()).collect();
        assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    }

    fn check_points(&self, points: &[Value], rows: &[&trace::Model], length: i64, what: &str) {
        let mut by_start: BTreeMap<i64, Vec<&trace::Model>> = BTreeMap::new();
        for row in rows {
            by_start.entry(row.started_at.div_euclid(length) * length).or_default().push(row);
        }
        for point in points {
            let start: api::Timestamp = point["start"].as_str().unwrap().parse().unwrap();
            let rows = by_start.remove(&start.micros()).unwrap_or_default();
            check_metrics(point, &rows, &format!("{what} at {start} {self:?}"));
        }
        assert!(by_start.is_empty(), "{what}: intervals are missing: {:?} {self:?}", by_start.keys());
    }

    fn selects(&self, row: &trace::Model) -> bool {
        self.project.is_none_or(|it| it == row.project_id)
            && self.model.is_none_or(|it| row.model.as_deref() == Some(it))
            && (self.from..=self.to).contains(&row.started_at)
    }

    fn path(&self) -> String {
        let time = |it: i64| api::Timestamp::from_micros(it).to_string();
        let mut path = format!("/v1/metrics?from={}&to={}", time(self.from), time(self.to));
        if let Some(project) = self.project {
            path.push_str(&format!("&project_id={project}"));
        }
        if let Some(model) = self.model {
            path.push_str(&format!("&model={model}"));
        }
        if let Some((interval, _)) = self.interval {
            path.push_str(&format!("&interval={interval}"));
        }
        if let Some(by) = self.group_by {
            path.push_str(&format!("&group_by={by}"));
        }
        path
    }
}

fn key_of(row: &trace::Model, by: &str) -> Option<String> {
    match by.strip_prefix("tag:") {
        Some(tag) => {
            let tags: BTreeMap<String, String> = serde_json::from_str(row.tags.as_deref()?).unwrap();
            tags.get(tag).cloned()
        }
        None if by == "name" => row.name.clone(),
        None => row.model.clone(),
    }
}

fn check_metrics(found: &Value, rows: &[&trace::Model], what: &str) {
    let count = |wanted: &dyn Fn(&trace::Model) -> bool| rows.iter().filter(|it| wanted(it)).count();
    let rate = |part: usize, of: usize| (of > 0).then(|| part as f64 / of as f64);
    assert_eq!(found["trace_count"], json!(rows.len()), "{what}: {found}");
    let (labelled, good) = (count(&|it| it.feedback.is_some()), count(&|it| it.feedback == Some(1)));
    let cost: i128 = rows.iter().filter_map(|it| it.cost).map(i128::from).sum();
    for (metric, right) in [
        ("error_rate", rate(count(&|it| it.error.is_some()), rows.len())),
        ("feedback_good_rate", rate(good, labelled)),
        ("total_cost", Some(cost as f64 / 1e12)),
    ] {
        // Equal up to the rounding of the last digit in JSON.
        let near = |found: f64, right: f64| (found - right).abs() <= right * 1e-15;
        let same = match (found[metric].as_f64(), right) {
            (Some(found), Some(right)) => near(found, right),
            (found, right) => found == right,
        };
        assert!(same, "{what}: {metric} is not {right:?}: {found}");
    }
    let mut latencies: Vec<i64> = rows.iter().filter_map(|it| it.latency_ms).collect();
    latencies.sort_unstable();
    for percent in [50, 95, 99] {
        let found = &found[format!("latency_p{percent}")];
        if latencies.is_empty() {
            assert_eq!(*found, Value::Null, "{what}");
            continue;
        }
        let rank = (latencies.len() - 1) as f64 * f64::from(percent) / 100.0;
        let low = latencies[rank as usize] as f64;
        let high = latencies[(rank.ceil() as usize).min(latencies.len() - 1)] as f64;
        let exact = low + (high - low) * rank.fract();
        let off = (found.as_f64().unwrap() - exact).abs();
        assert!(off <= exact * 0.01 + 1e-9, "{what}: p{percent} is {found}, exactly {exact}");
    }
}
