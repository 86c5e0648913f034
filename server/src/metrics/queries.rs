//! Answers metrics queries: reads the necessary rows and adds them up.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Context;
use api::{ErrorCode, Timestamp, metrics::Metrics};
use store::{
    Connection, Db,
    metrics::{
        Grouped, Label, Reading, Rows,
        delta::{self, Changes},
        range::ranges as divide_into_ranges,
        wire::EncodedNode,
    },
};
use tokio::{sync::Semaphore, task::spawn_blocking};
use uuid::Uuid;

use super::query_result::{ComputedMetrics, MetricsQuery, MetricsResult, UnknownPeriod};
use crate::error::{Result, problem};

/// Maximum number of traces read for groups by name or tag.
const MAX_GROUPED_TRACES: usize = 50_000;
/// Number of traces read at once.
const TRACES_PER_READ: usize = 1_000;
/// Maximum size in bytes of the tags read for groups.
const MAX_TAG_BYTES: usize = 64 * 1024 * 1024;
/// Maximum number of traces of one model that are read where totals are not known.
const MAX_MODEL_TRACES: usize = 100_000;
/// Maximum number of periods for which the traces of a model are read.
const MAX_UNKNOWN_PERIODS: usize = 64;
/// Maximum number of uncounted traces that a query reads.
const MAX_UNMEASURED_TRACES: usize = 5_000;
/// Minimum size, in bytes or buckets, of a computation that runs on a blocking thread.
const BLOCKING_THRESHOLD: usize = 64 * 1024;

/// The property by which a response is grouped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// The model.
    Model,
    /// The trace's name.
    Name,
    /// The value of the tag with this key.
    Tag(String),
}

/// Answers queries, with limited concurrency of large ones.
#[derive(Debug)]
pub struct MetricsQueries(Semaphore);

impl MetricsQueries {
    /// Creates the value with a maximum number of concurrent large queries.
    pub fn new(max_concurrent: usize) -> Self {
        Self(Semaphore::new(max_concurrent))
    }

    /// Answers a query about a tenant's traces, or those of one project.
    ///
    /// # Errors
    ///
    /// Fails with `overloaded` while traces from before metrics existed are being counted, and with
    /// `invalid_query` when the query would read too many traces.
    pub async fn run(
        &self,
        db: &Db,
        tenant: Uuid,
        project: Option<Uuid>,
        query: MetricsQuery,
        group_by: Option<GroupBy>,
    ) -> Result<Metrics> {
        // Series and groups may be long; other queries are small.
        let large = query.interval.is_some() || group_by.is_some();
        let _permit = match large {
            true => Some(self.0.acquire().await.context("the server is stopping")?),
            false => None,
        };
        let ranges = divide_into_ranges(query.from, query.to, query.widest());
        let projects = project.as_ref().map(std::slice::from_ref);
        let reading = store::metrics::read(&db.read, tenant, projects, &ranges).await?;
        let mut sum = if reading.unmeasured {
            None
        } else {
            let sum = add_up(reading, project, query.clone()).await?;
            sum.unknown_periods.is_empty().then_some(sum)
        };
        if sum.is_none() {
            // Rows must be read from the same snapshot.
            let snapshot = db.snapshot().await?;
            let reading = store::metrics::read(&snapshot, tenant, projects, &ranges).await?;
            let unmeasured = reading.unmeasured;
            let mut complete = add_up(reading, project, query.clone()).await?;
            if unmeasured {
                add_unmeasured(db, &snapshot, (tenant, project), &mut complete.result, &query).await?;
            }
            complete.add_unknown_periods(db, &snapshot, tenant, &query).await?;
            snapshot.commit().await?;
            sum = Some(complete);
        }
        let mut result = sum.context("no totals were computed")?.result;
        let groups_from = match &group_by {
            None | Some(GroupBy::Model) => None,
            Some(by) => add_groups(db, tenant, project, by, &mut result, &query).await?,
        };
        let values = match large {
            true => run_blocking(move || result.values()).await?,
            false => result.values(),
        };
        let ComputedMetrics { all, series, groups, truncated } = values;
        Ok(Metrics {
            from: Timestamp::from_micros(query.from),
            to: Timestamp::from_micros(query.to),
            metrics: all,
            series,
            groups_truncated: group_by.is_some().then_some(truncated),
            groups: group_by.is_some().then_some(groups),
            groups_from: groups_from.map(Timestamp::from_micros),
        })
    }
}

/// The totals of the rows read so far.
struct PartialResult {
    result: MetricsResult,
    /// Periods of projects for which the totals of the model are not known.
    unknown_periods: Vec<(Uuid, UnknownPeriod)>,
    changes: Changes,
}

async fn add_up(reading: Reading, project: Option<Uuid>, query: MetricsQuery) -> Result<PartialResult> {
    let work = move |reading: Reading| {
        let mut result = MetricsResult::new(query);
        let (mut changes, mut unknown_periods) = (Changes::new(), Vec::new());
        for bytes in &reading.deltas {
            let read = delta::decode(bytes).context("a metrics delta can't be decoded")?;
            changes.extend(read.into_iter().filter(|it| project.is_none_or(|of| of == it.0)));
        }
        for (fact, weight) in changes.iter().flat_map(|it| &it.1) {
            result.add(fact, *weight);
        }
        for node in reading.nodes {
            let stored = EncodedNode::open(&node.data);
            let unknown_period = stored.and_then(|it| result.add_node(node.level, node.start, &it));
            unknown_periods.extend(
                unknown_period.context("a metrics node can't be decoded")?.map(|it| (node.project, it)),
            );
        }
        Ok::<_, anyhow::Error>(PartialResult { result, unknown_periods, changes })
    };
    let sum = if reading.bytes() < BLOCKING_THRESHOLD {
        work(reading)
    } else {
        run_blocking(move || work(reading)).await?
    };
    Ok(sum?)
}

/// Runs a computation on a blocking thread.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    Ok(spawn_blocking(work).await.context("the computation was interrupted")?)
}

impl PartialResult {
    /// Reads the traces of one model in the periods for which the totals are not known.
    ///
    /// The rows include changes that are still in deltas, so deltas of these periods are subtracted.
    async fn add_unknown_periods(
        &mut self,
        db: &Db,
        snapshot: &impl Connection,
        tenant: Uuid,
        query: &MetricsQuery,
    ) -> Result<()> {
        let periods = join_periods(std::mem::take(&mut self.unknown_periods));
        let mut left = MAX_MODEL_TRACES;
        for (number, (project, UnknownPeriod { from, to })) in periods.iter().enumerate() {
            let filter = Rows {
                project: Some(*project),
                model: query.model.as_deref(),
                from: *from,
                to: *to,
                measured: Some(true),
                ..Rows::default()
            };
            let rows = store::metrics::rows(db, snapshot, tenant, &filter, left + 1).await?;
            if rows.len() > left || number == MAX_UNKNOWN_PERIODS {
                let message = "model: there are too many models in this period to compute the metrics of one of them; choose a shorter period";
                return Err(problem(ErrorCode::InvalidQuery, message));
            }
            left -= rows.len();
            for row in rows {
                self.result.add(&row.fact, 1);
            }
            let changed = self.changes.iter().filter(|it| it.0 == *project).flat_map(|it| &it.1);
            for (fact, weight) in changed.filter(|it| (*from..=*to).contains(&it.0.at)) {
                self.result.add(fact, -weight);
            }
        }
        Ok(())
    }
}

/// Joins adjacent periods of a project.
fn join_periods(mut periods: Vec<(Uuid, UnknownPeriod)>) -> Vec<(Uuid, UnknownPeriod)> {
    periods.sort_unstable_by_key(|it| (it.0, it.1.from));
    let mut joined: Vec<(Uuid, UnknownPeriod)> = Vec::new();
    for (project, period) in periods {
        match joined.last_mut() {
            Some((of, last)) if *of == project && period.from <= last.to.saturating_add(1) => {
                last.to = last.to.max(period.to);
            }
            _ => joined.push((project, period)),
        }
    }
    joined
}

async fn add_unmeasured(
    db: &Db,
    snapshot: &impl Connection,
    (tenant, project): (Uuid, Option<Uuid>),
    result: &mut MetricsResult,
    query: &MetricsQuery,
) -> Result<()> {
    let MetricsQuery { from, to, .. } = *query;
    let filter = Rows { project, from, to, measured: Some(false), ..Rows::default() };
    let rows = store::metrics::rows(db, snapshot, tenant, &filter, MAX_UNMEASURED_TRACES + 1).await?;
    if rows.len() > MAX_UNMEASURED_TRACES {
        let message = "traces from before an update are still being counted; try again shortly";
        return Err(problem(ErrorCode::Overloaded, message));
    }
    for row in rows {
        result.add(&row.fact, 1);
    }
    Ok(())
}

/// Adds the groups of the newest traces, page by page; returns the start of the last one read if there
/// are more.
async fn add_groups(
    db: &Db,
    tenant: Uuid,
    project: Option<Uuid>,
    by: &GroupBy,
    result: &mut MetricsResult,
    query: &MetricsQuery,
) -> Result<Option<i64>> {
    let label = match by {
        GroupBy::Model => Label::None,
        GroupBy::Name => Label::Name,
        GroupBy::Tag(_) => Label::Tags,
    };
    let MetricsQuery { from, to, model, .. } = query;
    let (model, from, to) = (model.as_deref(), *from, *to);
    let mut filter = Rows { project, model, from, to, label, ..Rows::default() };
    let (mut read, mut bytes) = (0, 0);
    loop {
        let page = store::metrics::rows(db, &db.read, tenant, &filter, TRACES_PER_READ).await?;
        let last = page.last().map(|it| (it.fact.at, it.key));
        let full = page.len() == TRACES_PER_READ;
        read += page.len();
        for Grouped { fact, label, .. } in page {
            bytes += label.as_ref().map_or(0, String::len);
            let key = match by {
                GroupBy::Model => fact.model.clone(),
                GroupBy::Name => label.map(Arc::from),
                GroupBy::Tag(key) => tag(label.as_deref(), key),
            };
            result.add_to_group(key, &fact, 1);
        }
        if !full {
            return Ok(None);
        }
        filter.before = last;
        if read >= MAX_GROUPED_TRACES || bytes >= MAX_TAG_BYTES {
            // Whether there are more is not checked.
            return Ok(last.map(|it| it.0));
        }
    }
}

/// Returns the value of a tag in the JSON object of a trace's tags.
fn tag(tags: Option<&str>, key: &str) -> Option<Arc<str>> {
    let tags: BTreeMap<String, String> = serde_json::from_str(tags?).ok()?;
    tags.get(key).map(|it| Arc::from(it.as_str()))
}
