//! Answering a question: reading what it needs and adding it up.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Context;
use api::{ErrorCode, Timestamp, metrics::Metrics};
use store::{
    Connection, Db,
    metrics::{
        Grouped, Label, Reading, Rows,
        delta::{self, Changes},
        range::ranges,
        wire::Stored,
    },
};
use tokio::{sync::Semaphore, task::spawn_blocking};
use uuid::Uuid;

use super::answer::{Answer, Question, Unclear, Values};
use crate::error::{Result, problem};

/// Traces that are read for groups by name or tag.
const GROUPED: usize = 50_000;
/// Those that are read at once.
const PAGE: usize = 1_000;
/// Bytes of tags that are read for groups.
const TAGS: usize = 64 * 1024 * 1024;
/// Traces of one model that are read where sums don't tell.
const OF_MODEL: usize = 100_000;
/// Stretches for which they are.
const STRETCHES: usize = 64;
/// Traces that no sum counts yet and that are read.
const UNMEASURED: usize = 5_000;
/// Bytes of nodes and points of series from which on others would notice the work.
const MUCH: usize = 64 * 1024;

/// What the groups of an answer have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// The model.
    Model,
    /// The trace's name.
    Name,
    /// The value of the tag with this key.
    Tag(String),
}

/// Answers questions, the large ones a few at a time.
#[derive(Debug)]
pub struct Asking(Semaphore);

impl Asking {
    /// With room for so many large questions at once.
    pub fn new(at_once: usize) -> Self {
        Self(Semaphore::new(at_once))
    }

    /// Answers a question about a tenant's traces, or those of one project.
    ///
    /// # Errors
    /// `overloaded` while traces from before there were metrics are being counted; `invalid_query`
    /// when more traces would have to be read than one request may.
    pub async fn ask(
        &self,
        db: &Db,
        tenant: Uuid,
        project: Option<Uuid>,
        question: Question,
        group_by: Option<GroupBy>,
    ) -> Result<Metrics> {
        // Series and groups may be long; a plain question never is.
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
            // Rows must be read too, as of the same moment.
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
        let mut answer = sum.context("nothing was added up")?.answer;
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

/// What was read, added up.
struct Sum {
    answer: Answer,
    /// Stretches of projects for which the sums can't tell what is of one model.
    unclear: Vec<(Uuid, Unclear)>,
    changes: Changes,
}

async fn add_up(reading: Reading, project: Option<Uuid>, question: Question) -> Result<Sum> {
    let work = move |reading: Reading| {
        let mut answer = Answer::to(question);
        let (mut changes, mut unclear) = (Changes::new(), Vec::new());
        for bytes in &reading.deltas {
            let read = delta::decode(bytes).context("a delta of metrics can't be read")?;
            changes.extend(read.into_iter().filter(|it| project.is_none_or(|of| of == it.0)));
        }
        for (fact, weight) in changes.iter().flat_map(|it| &it.1) {
            answer.add(fact, *weight);
        }
        for node in reading.nodes {
            let stored = Stored::open(&node.data);
            let told = stored.and_then(|it| answer.add_node(node.level, node.start, &it));
            unclear.extend(told.context("a node of metrics can't be read")?.map(|it| (node.project, it)));
        }
        Ok::<_, anyhow::Error>(Sum { answer, unclear, changes })
    };
    let sum = if reading.bytes() < MUCH { work(reading) } else { elsewhere(move || work(reading)).await? };
    Ok(sum?)
}

/// Works where nobody waits for a thread.
async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    Ok(spawn_blocking(work).await.context("adding up was broken off")?)
}

impl Sum {
    /// Reads the traces of one model in the stretches for which the sums can't tell.
    ///
    /// The rows hold what deltas have yet to bring, so deltas of these stretches are taken off again.
    async fn add_unclear(&mut self, db: &impl Connection, tenant: Uuid, question: &Question) -> Result<()> {
        let stretches = joined(std::mem::take(&mut self.unclear));
        let mut left = OF_MODEL;
        for (place, (project, Unclear { from, to })) in stretches.iter().enumerate() {
            let which = Rows {
                project: Some(*project),
                model: question.model.as_deref(),
                from: *from,
                to: *to,
                measured: Some(true),
                ..Rows::default()
            };
            let rows = store::metrics::rows(db, tenant, &which, left + 1).await?;
            if rows.len() > left || place == STRETCHES {
                let why = "model: there are too many models in this time to tell one of them apart; choose a shorter time";
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

/// Stretches of a project that touch are one.
fn joined(mut stretches: Vec<(Uuid, Unclear)>) -> Vec<(Uuid, Unclear)> {
    stretches.sort_unstable_by_key(|it| (it.0, it.1.from));
    let mut joined: Vec<(Uuid, Unclear)> = Vec::new();
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
    answer: &mut Answer,
    question: &Question,
) -> Result<()> {
    let Question { from, to, .. } = *question;
    let which = Rows { project, from, to, measured: Some(false), ..Rows::default() };
    let rows = store::metrics::rows(db, tenant, &which, UNMEASURED + 1).await?;
    if rows.len() > UNMEASURED {
        let why = "traces from before an update are still being counted; try again shortly";
        return Err(problem(ErrorCode::Overloaded, why));
    }
    for row in rows {
        answer.add(&row.fact, 1);
    }
    Ok(())
}

/// Adds the groups of the newest traces, page by page; answers the start of the last one that was
/// read if there are more.
async fn add_groups(
    db: &Db,
    tenant: Uuid,
    project: Option<Uuid>,
    by: &GroupBy,
    answer: &mut Answer,
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
        let page = store::metrics::rows(&db.read, tenant, &which, PAGE).await?;
        let last = page.last().map(|it| (it.fact.at, it.id));
        let full = page.len() == PAGE;
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
        if read >= GROUPED || bytes >= TAGS {
            // Whether there are more is not looked for: who reads so many may be told so.
            return Ok(last.map(|it| it.0));
        }
    }
}

/// The value of a tag in the JSON object of a trace's tags.
fn tag(tags: Option<&str>, key: &str) -> Option<Arc<str>> {
    let tags: BTreeMap<String, String> = serde_json::from_str(tags?).ok()?;
    tags.get(key).map(|it| Arc::from(it.as_str()))
}
