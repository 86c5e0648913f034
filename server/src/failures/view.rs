//! Converts rows of failures, clusters and rules to wire types.

use std::collections::{BTreeSet, HashMap};

use api::{
    FailureType, Timestamp,
    failure::{Failure, FailureCluster, TrendPoint},
    failure_rule::FailureRule,
};

use entities::{failure, failure_cluster, failure_rule};
use store::{failure_clusters, failures, traces::failure_of};
use uuid::Uuid;

use super::{
    changes::{ClusterSample, HOUR},
    rule_set::ParsedFailureRule,
};
use crate::{app::App, error::Result};

/// Returns a failure.
///
/// # Errors
///
/// Fails when the row is invalid.
pub fn failure(row: failure::Model) -> Result<Failure> {
    let failure::Model {
        tenant_id: _,
        id,
        project_id,
        trace_id,
        span_id,
        failure_type,
        source_id: _,
        message,
        model,
        span_name,
        cluster_id,
        created_at,
    } = row;
    Ok(Failure {
        id,
        project_id,
        trace_id,
        span_id: Some(span_id).filter(|it| !it.is_nil()),
        span_name,
        failure_type: stored_type(failure_type)?,
        message,
        model,
        cluster_id,
        created_at: Timestamp::from_micros(created_at),
    })
}

/// Returns clusters with their trends of the last `hours` hours. `in_detail` adds the failures of the samples.
///
/// # Errors
///
/// Fails when the database fails, or a row is invalid.
pub async fn clusters(
    app: &App,
    tenant: Uuid,
    rows: Vec<failure_cluster::Model>,
    hours: i64,
    in_detail: bool,
) -> Result<Vec<FailureCluster>> {
    let ids: Vec<Uuid> = rows.iter().map(|it| it.id).collect();
    let first_hour = (app.clock.now().div_euclid(HOUR) + 1 - hours) * HOUR;
    let mut trends = failure_clusters::trends(app.db.current(), tenant, &ids, first_hour).await?;
    let samples: Vec<Vec<ClusterSample>> = rows
        .iter()
        .map(|it| serde_json::from_str(&it.samples))
        .collect::<Result<_, _>>()
        .map_err(anyhow::Error::from)?;
    let ids: Vec<Uuid> = samples.iter().flatten().map(ClusterSample::failure).collect();
    // Failures are deleted with their traces.
    let existing: HashMap<Uuid, failure::Model> =
        failures::some(app.db.current(), tenant, &ids).await?.into_iter().map(|it| (it.id, it)).collect();
    let rows = rows.into_iter().zip(samples).map(|(row, samples)| {
        let counts: HashMap<i64, i64> = trends.remove(&row.id).unwrap_or_default().into_iter().collect();
        let trend = (0..hours).map(|it| first_hour + it * HOUR).map(|hour| TrendPoint {
            start: Timestamp::from_micros(hour),
            count: counts.get(&hour).copied().unwrap_or(0),
        });
        let samples = samples.iter().filter_map(|it| existing.get(&it.failure())).cloned().collect();
        cluster(row, samples, trend.collect(), in_detail)
    });
    rows.collect()
}

fn cluster(
    row: failure_cluster::Model,
    samples: Vec<failure::Model>,
    trend: Vec<TrendPoint>,
    in_detail: bool,
) -> Result<FailureCluster> {
    let failure_cluster::Model {
        tenant_id: _,
        id,
        project_id,
        failure_type,
        span_name,
        fingerprint,
        title,
        status,
        count,
        trace_count,
        first_seen,
        last_seen,
        samples: _,
        models,
        resolved_at,
        updated_at: _,
    } = row;
    let models: BTreeSet<String> = serde_json::from_str(&models).map_err(anyhow::Error::from)?;
    // The version of the template's rules is not shown to users.
    let signature = fingerprint.split_once(':').map_or(fingerprint.as_str(), |it| it.1).to_owned();
    let sample_trace_ids = samples.iter().map(|it| it.trace_id).collect();
    let samples: Option<Vec<Failure>> =
        in_detail.then(|| samples.into_iter().map(failure).collect::<Result<_>>()).transpose()?;
    Ok(FailureCluster {
        id,
        project_id,
        failure_type: stored_type(failure_type)?,
        status: status.parse().map_err(anyhow::Error::from)?,
        signature,
        title,
        span_name,
        count,
        trace_count,
        first_seen: Timestamp::from_micros(first_seen),
        last_seen: Timestamp::from_micros(last_seen),
        resolved_at: resolved_at.map(Timestamp::from_micros),
        sample_trace_ids,
        models: models.into_iter().collect(),
        trend,
        samples,
    })
}

/// Returns a failure rule.
///
/// # Errors
///
/// Fails when the row is invalid.
pub fn rule(row: failure_rule::Model) -> Result<FailureRule> {
    let parsed = ParsedFailureRule::of(row)?;
    let failure_types = parsed.types();
    let ParsedFailureRule { row, failure_types: _, filter } = parsed;
    let failure_rule::Model {
        tenant_id: _,
        id,
        name,
        enabled,
        project_id,
        failure_types: _,
        metric_name,
        max_score,
        filter: _,
        min_count,
        window_minutes,
        created_at,
        updated_at,
        last_fired_at,
    } = row;
    Ok(FailureRule {
        id,
        name,
        enabled,
        project_id,
        failure_types,
        metric_name,
        max_score,
        filter,
        min_count,
        window_minutes,
        created_at: Timestamp::from_micros(created_at),
        updated_at: Timestamp::from_micros(updated_at),
        last_fired_at: last_fired_at.map(Timestamp::from_micros),
    })
}

fn stored_type(bit: i16) -> anyhow::Result<FailureType> {
    failure_of(bit).ok_or_else(|| anyhow::anyhow!("{bit} is not the bit of a failure type"))
}
