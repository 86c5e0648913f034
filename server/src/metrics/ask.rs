//! Answers metrics queries: reads the necessary rows and adds them up.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Context;
use api::{ErrorCode, Timestamp, metrics::Metrics};
use store::{
    Connection, Db,
    metrics::{
        Grouped, Label, Reading, Rows,
        delta::{self, Changes},
        range::ranges,
        wire::EncodedNode,
    },
};
use tokio::{sync::Semaphore, task::spawn_blocking};
use uuid::Uuid;

use super::answer::{MetricsResult, Question, UnknownPeriod, Values};
use crate::error::{Result, problem};

/// Maximum number of traces read for groups by name or tag.
const MAX_GROUPED_TRACES: usize = 50_000;
/// Number of traces read at once.
const TRACES_PER_READ: usize = 1_000;
/// Maximum size in bytes of the tags read for groups.
const MAX_TAG_BYTES: usize = 64 * 1024 * 1024;
/// Maximum number of traces of one model that are read where totals are not known.
const MAX_MODEL_TRACES: usize = 100_000;
/// Maximum number of periods for which they are read.
const MAX_UNKNOWN_PERIODS: usize = 64;
/// Maximum number of uncounted traces that a query reads.
const MAX_UNMEASURED_TRACES: usize = 5_000;
/// Size in bytes or buckets from which the computation runs on a blocking thread.
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
    /// Creates it with a maximum number of concurrent large queries.
    pub fn new(at_once: usize) -> Self {
        Self(Semaphore::new(at_once))
    }

    /// Answers a query about a tenant's traces, or those of one project.
    ///
    /// # Errors
    ///
    /// Fails with `overloaded` while traces from before metrics existed are being counted, and with
    /// `invalid_query` when the query would read too many traces.
    pub async fn ask(
        &self,
        db: &Db,
        tenant: Uuid,
        project: Option<Uuid>,
        question: Question,
        group_by: Option<GroupBy>,
    ) -> Result<Metrics> {
        // Series and groups may be long; other queries are small.
        let large = question.interval.is_some() || group_by.is_some();
        let _turn = match large {
            true => Some(self.0.acquire().await.context("the server is stopping")?),
            false => None,
        };
        let parts = ranges(question.from, question.to, question.widest());
        let reading = store::metrics::read(&db.read, tenant, project, &parts).await?;
        let mut sum = if reading.unmeasured {
            None
        } else {
            let sum = add_up(reading, project, question.clone()).await?;
            sum.unclear.is_empty().then_some(sum)
        };
        if sum.is_none() {
            // Rows must be read from the same snapshot.
            let snapshot = db.snapshot().await?;
            let reading = store::metrics::read(&snapshot, tenant, project, &parts).await?;
            let unmeasured = reading.unmeasured;
            let mut again = add_up(reading, project, question.clone()).await?;
            if unmeasured {
                add_unmeasured(&snapshot, tenant, project, &mut again.answer, &question).await?;
            }
            again.add_unclear(&snapshot, tenant, &question).await?;
            snapshot.commit().await?;
            sum = Some(again);
        }
        let mut answer = sum.context("no totals were computed")?.answer;
        let groups_from = match &group_by {
            None | Some(GroupBy::Model) => None,
            Some(by) => add_groups(db, tenant, project, by, &mut answer, &question).await?,
        };
        let values = match large {
            true => elsewhere(move || answer.values()).await?,
            false => answer.values(),
        };
        let Values { all, series, groups, truncated } = values;
        Ok(Metrics {
            from: Timestamp::from_micros(question.from),
            to: Timestamp::from_micros(question.to),
            metrics: all,
            series,
            groups_truncated: group_by.is_some().then_some(truncated),
            groups: group_by.is_some().then_some(groups),
            groups_from: groups_from.map(Timestamp::from_micros),
        })
    }
}

/// The totals of the rows read so far.
struct Sum {
    answer: MetricsResult,
    /// Periods of projects for which the totals of the model are not known.
    unclear: Vec<(Uuid, UnknownPeriod)>,
    changes: Changes,
}

async fn add_up(reading: Reading, project: Option<Uuid>, question: Question) -> Result<Sum> {
    let work = move |reading: Reading| {
        let mut answer = MetricsResult::to(question);
        let (mut changes, mut unclear) = (Changes::new(), Vec::new());
        for bytes in &reading.deltas {
            let read = delta::decode(bytes).context("a metrics delta can't be decoded")?;
            changes.extend(read.into_iter().filter(|it| project.is_none_or(|of| of == it.0)));
        }
        for (fact, weight) in changes.iter().flat_map(|it| &it.1) {
            answer.add(fact, *weight);
        }
        for node in reading.nodes {
            let stored = EncodedNode::open(&node.data);
            let told = stored.and_then(|it| answer.add_node(node.level, node.start, &it));
            unclear.extend(told.context("a metrics node can't be decoded")?.map(|it| (node.project, it)));
        }
        Ok::<_, anyhow::Error>(Sum { answer, unclear, changes })
    };
    let sum = if reading.bytes() < BLOCKING_THRESHOLD {
        work(reading)
    } else {
        elsewhere(move || work(reading)).await?
    };
    Ok(sum?)
}

/// Runs a computation on a blocking thread.
async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    Ok(spawn_blocking(work).await.context("the computation was interrupted")?)
}

impl Sum {
    /// Reads the traces of one model in the periods for which the totals are not known.
    ///
    /// The rows include changes that are still in deltas, so deltas of these periods are subtracted.
    async fn add_unclear(&mut self, db: &impl Connection, tenant: Uuid, question: &Question) -> Result<()> {
        let stretches = joined(std::mem::take(&mut self.unclear));
        let mut left = MAX_MODEL_TRACES;
        for (place, (project, UnknownPeriod { from, to })) in stretches.iter().enumerate() {
            let which = Rows {
                project: Some(*project),
                model: question.model.as_deref(),
                from: *from,
                to: *to,
                measured: Some(true),
                ..Rows::default()
            };
            let rows = store::metrics::rows(db, tenant, &which, left + 1).await?;
            if rows.len() > left || place == MAX_UNKNOWN_PERIODS {
                let why = "model: there are too many models in this period to compute one of them; choose a shorter period";
                return Err(problem(ErrorCode::InvalidQuery, why));
            }
            left -= rows.len();
            for row in rows {
                self.answer.add(&row.fact, 1);
            }
            let changed = self.changes.iter().filter(|it| it.0 == *project).flat_map(|it| &it.1);
            for (fact, weight) in changed.filter(|it| (*from..=*to).contains(&it.0.at)) {
                self.answer.add(fact, -weight);
            }
        }
        Ok(())
    }
}

/// Joins adjacent periods of a project.
fn joined(mut stretches: Vec<(Uuid, UnknownPeriod)>) -> Vec<(Uuid, UnknownPeriod)> {
    stretches.sort_unstable_by_key(|it| (it.0, it.1.from));
    let mut joined: Vec<(Uuid, UnknownPeriod)> = Vec::new();
    for (project, stretch) in stretches {
        match joined.last_mut() {
            Some((of, last)) if *of == project && stretch.from <= last.to.saturating_add(1) => {
                last.to = last.to.max(stretch.to);
            }
            _ => joined.push((project, stretch)),
        }
    }
    joined
}

async fn add_unmeasured(
    db: &impl Connection,
    tenant: Uuid,
    project: Option<Uuid>,
    answer: &mut MetricsResult,
    question: &Question,
) -> Result<()> {
    let Question { from, to, .. } = *question;
    let which = Rows { project, from, to, measured: Some(false), ..Rows::default() };
    let rows = store::metrics::rows(db, tenant, &which, MAX_UNMEASURED_TRACES + 1).await?;
    if rows.len() > MAX_UNMEASURED_TRACES {
        let why = "traces from before an update are still being counted; try again shortly";
        return Err(problem(ErrorCode::Overloaded, why));
    }
    for row in rows {
        answer.add(&row.fact, 1);
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
    answer: &mut MetricsResult,
    question: &Question,
) -> Result<Option<i64>> {
    let label = match by {
        GroupBy::Model => Label::None,
        GroupBy::Name => Label::Name,
        GroupBy::Tag(_) => Label::Tags,
    };
    let Question { from, to, model, .. } = question;
    let (model, from, to) = (model.as_deref(), *from, *to);
    let mut which = Rows { project, model, from, to, label, ..Rows::default() };
    let (mut read, mut bytes) = (0, 0);
    loop {
        let page = store::metrics::rows(&db.read, tenant, &which, TRACES_PER_READ).await?;
        let last = page.last().map(|it| (it.fact.at, it.id));
        let full = page.len() == TRACES_PER_READ;
        read += page.len();
        for Grouped { fact, label, .. } in page {
            bytes += label.as_ref().map_or(0, String::len);
            let key = match by {
                GroupBy::Model => fact.model.clone(),
                GroupBy::Name => label.map(Arc::from),
                GroupBy::Tag(key) => tag(label.as_deref(), key),
            };
            answer.add_to_group(key, &fact, 1);
        }
        if !full {
            return Ok(None);
        }
        which.before = last;
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
