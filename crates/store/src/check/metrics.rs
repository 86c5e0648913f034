//! Compares roll-ups of metrics with the traces, and the levels of the roll-up tree with each other.
//!
//! Statements are SQL, because they group by expressions that differ between the databases.

use std::collections::BTreeMap;

use entities::{dialect::Dialect, metric_delta};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter, QueryOrder,
    QueryResult, QuerySelect, Statement,
};
use uuid::Uuid;

use super::{Findings, is_same};
use crate::{
    db::Db,
    metrics::{delta, level::Level, sums::Totals, wire},
    trace_filters::{PROJECT_DAY_INDEX, STARTED_DAY, STARTED_DAY_MICROS},
};

/// Number of days compared at once.
const DAYS_PER_PAGE: i64 = 30;
/// Number of deltas read at once.
const DELTAS_PER_PAGE: u64 = 16;
/// Number of projects read at once.
const PROJECTS_PER_PAGE: usize = 200;

/// The totals of a set of traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rollup {
    totals: Totals,
    latencies: i64,
}

impl Rollup {
    fn merge(&mut self, other: &Self) {
        self.totals.merge(&other.totals);
        self.latencies += other.latencies;
    }

    /// Decodes a node; `None` if its bytes are damaged.
    fn of_node(data: &[u8]) -> Option<Self> {
        let stored = wire::EncodedNode::open(data).ok()?;
        let mut rollup = Self::default();
        match stored.facts() {
            Some(facts) => facts.for_each(|(fact, weight)| rollup.add(&fact, weight)),
            None => {
                let sums = stored.all();
                rollup =
                    Self { totals: sums.totals, latencies: sums.latencies.0.iter().map(|it| it.1).sum() };
            }
        }
        Some(rollup)
    }

    fn add(&mut self, fact: &crate::metrics::fact::Fact, weight: i64) {
        self.totals.add(fact, weight);
        self.latencies += if fact.latency_ms.is_some() { weight } else { 0 };
    }
}

/// A node as stored.
struct NodeRow {
    start: i64,
    is_leaf: bool,
    data: Vec<u8>,
}

/// Compares the metrics of all projects of a tenant, each project in its own snapshot.
pub(super) async fn of_tenant(db: &Db, tenant: Uuid, findings: &mut Findings) -> Result<(), DbErr> {
    let mut last = Uuid::nil();
    loop {
        let sql = format!(
            "SELECT id FROM project WHERE tenant_id = $1 AND id > $2 ORDER BY id LIMIT {PROJECTS_PER_PAGE}"
        );
        let values = [tenant.into(), last.into()];
        let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
        let rows = db.read.query_all_raw(statement).await?;
        let projects: Vec<Uuid> = rows.iter().map(|it| it.try_get_by_index(0)).collect::<Result<_, _>>()?;
        for project in &projects {
            let snapshot = db.snapshot().await?;
            of_project(&snapshot, (tenant, *project), findings).await?;
            snapshot.commit().await?;
        }
        match projects.last() {
            Some(project) if projects.len() == PROJECTS_PER_PAGE => last = *project,
            _ => return Ok(()),
        }
    }
}

/// Tenant and project.
type Owner = (Uuid, Uuid);

async fn of_project(db: &DatabaseTransaction, owner: Owner, findings: &mut Findings) -> Result<(), DbErr> {
    let mut pending = pending(db, owner).await?;
    let mut cursor = i64::MIN;
    while let Some(first) = first_day(db, owner, cursor, &pending).await? {
        let end = first.saturating_add(DAYS_PER_PAGE * Level::DAY.length());
        let mut counted: BTreeMap<i64, Rollup> = BTreeMap::new();
        while let Some(entry) = pending.first_entry().filter(|it| *it.key() < end) {
            let (day, rollup) = entry.remove_entry();
            counted.entry(day).or_default().merge(&rollup);
        }
        for node in nodes(db, owner, Level::DAY, (first, end)).await? {
            match Rollup::of_node(&node.data) {
                Some(rollup) => counted.entry(node.start).or_default().merge(&rollup),
                None => unreadable(findings, owner, node.start),
            }
            if !node.is_leaf {
                below(db, owner, node, findings).await?;
            }
        }
        let stored = stored(db, owner, (first, end)).await?;
        let days = counted.keys().chain(stored.keys().filter(|it| !counted.contains_key(it)));
        for day in days {
            findings.compared("metrics", 1);
            let counted = counted.get(day).copied().unwrap_or_default();
            let stored = stored.get(day).copied().unwrap_or_default();
            if let Some(problem) = stored.differs(&counted) {
                findings.add("metrics", Some(owner.0), subject(owner, *day), problem);
            }
        }
        cursor = end;
    }
    Ok(())
}

/// Compares an inner node with the sum of its children, recursively.
async fn below(
    db: &DatabaseTransaction,
    owner: Owner,
    day: NodeRow,
    findings: &mut Findings,
) -> Result<(), DbErr> {
    let mut todo = vec![(Level::DAY, day)];
    while let Some((level, node)) = todo.pop() {
        let (Some(next), Some(own)) = (level.next(), Rollup::of_node(&node.data)) else { continue };
        let mut sum = Rollup::default();
        for child in nodes(db, owner, next, (node.start, node.start.saturating_add(level.length()))).await? {
            match Rollup::of_node(&child.data) {
                Some(rollup) => sum.merge(&rollup),
                None => unreadable(findings, owner, child.start),
            }
            if !child.is_leaf {
                todo.push((next, child));
            }
        }
        findings.compared("metrics", 1);
        if sum != own {
            let problem = format!(
                "a roll-up counts {} traces, and the shorter roll-ups within its period count {}",
                own.totals.traces, sum.totals.traces
            );
            findings.add("metrics", Some(owner.0), subject(owner, node.start), problem);
        }
    }
    Ok(())
}

fn unreadable(findings: &mut Findings, owner: Owner, start: i64) {
    let problem = "the roll-up can't be read".to_owned();
    findings.add("metrics", Some(owner.0), subject(owner, start), problem);
}

fn subject(owner: Owner, start: i64) -> String {
    format!("project {} from {}", owner.1, api::Timestamp::from_micros(start))
}

/// Returns the traces that are not in the nodes yet, by day.
async fn pending(db: &DatabaseTransaction, (tenant, project): Owner) -> Result<BTreeMap<i64, Rollup>, DbErr> {
    let mut days: BTreeMap<i64, Rollup> = BTreeMap::new();
    let mut last = Uuid::nil();
    loop {
        let deltas = metric_delta::Entity::find()
            .filter(metric_delta::Column::TenantId.eq(tenant))
            .filter(metric_delta::Column::Id.gt(last))
            .order_by_asc(metric_delta::Column::Id)
            .limit(DELTAS_PER_PAGE)
            .all(db)
            .await?;
        for row in &deltas {
            let changes = delta::decode(&row.data).map_err(|it| DbErr::Custom(it.to_string()))?;
            for (fact, weight) in changes.into_iter().filter(|it| it.0 == project).flat_map(|it| it.1) {
                days.entry(Level::DAY.start(fact.at)).or_default().add(&fact, weight);
            }
        }
        match deltas.last() {
            Some(row) if deltas.len() as u64 == DELTAS_PER_PAGE => last = row.id,
            _ => return Ok(days),
        }
    }
}

/// Returns the first day from `cursor` on that has any data.
async fn first_day(
    db: &DatabaseTransaction,
    (tenant, project): Owner,
    cursor: i64,
    pending: &BTreeMap<i64, Rollup>,
) -> Result<Option<i64>, DbErr> {
    let dialect = Dialect::of(db.get_database_backend());
    let mut days: Vec<i64> = pending.keys().next().copied().into_iter().collect();
    let hint = dialect.index_hint(PROJECT_DAY_INDEX);
    for sql in [
        format!(
            "SELECT started_at FROM trace{hint} WHERE tenant_id = $1 AND project_id = $2 \
             AND {STARTED_DAY} >= $3 / {STARTED_DAY_MICROS} AND started_at >= $3 \
             ORDER BY {STARTED_DAY}, started_at LIMIT 1"
        ),
        "SELECT start FROM metric_node WHERE tenant_id = $1 AND project_id = $2 AND level = 0 AND start >= $3 \
         ORDER BY start LIMIT 1"
            .to_owned(),
    ] {
        let values = [tenant.into(), project.into(), cursor.into()];
        let row = db.query_one_raw(Statement::from_sql_and_values(dialect.backend(), sql, values)).await?;
        if let Some(row) = row {
            days.push(Level::DAY.start(row.try_get_by_index(0)?));
        }
    }
    Ok(days.into_iter().min())
}

async fn nodes(
    db: &DatabaseTransaction,
    (tenant, project): Owner,
    level: Level,
    (from, end): (i64, i64),
) -> Result<Vec<NodeRow>, DbErr> {
    let sql = "SELECT start, leaf, data FROM metric_node WHERE tenant_id = $1 AND project_id = $2 \
        AND level = $3 AND start >= $4 AND start < $5 ORDER BY start";
    let values = [tenant.into(), project.into(), level.stored().into(), from.into(), end.into()];
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    let read = |row: &QueryResult| {
        Ok(NodeRow {
            start: row.try_get_by_index(0)?,
            is_leaf: row.try_get_by_index(1)?,
            data: row.try_get_by_index(2)?,
        })
    };
    db.query_all_raw(statement).await?.iter().map(read).collect()
}

/// The totals of the trace rows of a day.
#[derive(Clone, Copy, Debug, Default)]
struct StoredRollups {
    traces: i64,
    errors: i64,
    cost: f64,
    labelled: i64,
    good: i64,
    latencies: i64,
    tokens: f64,
}

impl StoredRollups {
    /// Describes the first difference to the metrics, if any.
    fn differs(&self, counted: &Rollup) -> Option<String> {
        let Totals { traces, errors, cost, tokens, labelled, good } = counted.totals;
        let pairs = [
            ("traces", traces, self.traces),
            ("failed traces", errors, self.errors),
            ("traces with feedback", labelled, self.labelled),
            ("traces with good feedback", good, self.good),
            ("latencies", counted.latencies, self.latencies),
        ];
        let differing = pairs.into_iter().find(|it| it.1 != it.2);
        match differing {
            Some((what, counted, stored)) => {
                Some(format!("{what}: {counted} in the metrics, {stored} stored"))
            }
            None if !is_same(cost, self.cost) => {
                Some(format!("cost in pico-dollars: {cost} in the metrics, {:.0} stored", self.cost))
            }
            None if !is_same(tokens, self.tokens) => {
                Some(format!("tokens: {tokens} in the metrics, {:.0} stored", self.tokens))
            }
            None => None,
        }
    }
}

/// Returns the trace rows that the metrics count, by day.
async fn stored(
    db: &DatabaseTransaction,
    (tenant, project): Owner,
    (from, end): (i64, i64),
) -> Result<BTreeMap<i64, StoredRollups>, DbErr> {
    let dialect = Dialect::of(db.get_database_backend());
    let day = Level::DAY.length();
    let sql = format!(
        "SELECT started_at - ((started_at % {day}) + {day}) % {day} AS day, COUNT(*), \
         COUNT(error), SUM(CAST(COALESCE(cost, 0) AS DOUBLE PRECISION)), COUNT(feedback), \
         SUM(CASE WHEN feedback = 1 THEN 1 ELSE 0 END), COUNT(latency_ms), \
         SUM(CAST(CASE WHEN tokens_measured THEN total_tokens ELSE 0 END AS DOUBLE PRECISION)) \
         FROM trace{} WHERE tenant_id = $1 AND project_id = $2 AND measured \
         AND {STARTED_DAY} BETWEEN $3 / {STARTED_DAY_MICROS} AND $4 / {STARTED_DAY_MICROS} \
         AND started_at >= $3 AND started_at < $4 GROUP BY day",
        dialect.index_hint(PROJECT_DAY_INDEX)
    );
    let values = [tenant.into(), project.into(), from.into(), end.into()];
    let statement = Statement::from_sql_and_values(dialect.backend(), sql, values);
    let mut days = BTreeMap::new();
    for row in db.query_all_raw(statement).await? {
        let stored = StoredRollups {
            traces: row.try_get_by_index(1)?,
            errors: row.try_get_by_index(2)?,
            cost: row.try_get_by_index(3)?,
            labelled: row.try_get_by_index(4)?,
            good: row.try_get_by_index(5)?,
            latencies: row.try_get_by_index(6)?,
            tokens: row.try_get_by_index(7)?,
        };
        days.insert(row.try_get_by_index(0)?, stored);
    }
    Ok(days)
}
