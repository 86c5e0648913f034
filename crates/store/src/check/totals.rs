//! Compares totals of traces with their spans.
//!
//! Statements are SQL, because sea-orm has no conditional sums.

use std::collections::{BTreeMap, HashMap};

use entities::{dialect::Dialect, span, span_block};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, QueryResult, Statement};
use serde::Deserialize;
use uuid::Uuid;

use super::{Findings, is_same};
use crate::{
    bulk::{self, Bulk},
    db::Db,
    quotas::month,
    span_block::{BLOCKS_PER_STATEMENT, unpack},
};

/// Number of traces compared at once.
const TRACES_PER_PAGE: usize = 500;

/// Columns of spans and of traces that count tokens. The first two add up to the total.
const TOKEN_COLUMNS: [&str; 5] =
    ["prompt_tokens", "completion_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens"];

/// The totals in a trace's row.
struct TraceTotals {
    key: i64,
    id: Uuid,
    spans: i64,
    /// In the order of [`TOKEN_COLUMNS`].
    tokens: Vec<Option<i64>>,
    total: i64,
    cost: Option<i64>,
    /// The cost that the client sent for the whole trace.
    given_cost: Option<i64>,
    created_at: i64,
}

/// The part of a trace's `given` column that the check needs.
#[derive(Deserialize)]
struct GivenCost {
    #[serde(default)]
    cost: Option<i64>,
}

/// The sums over a trace's spans.
#[derive(Default)]
struct SpanSums {
    spans: i64,
    tokens: Vec<Option<f64>>,
    cost: Option<f64>,
}

impl SpanSums {
    fn of(spans: &[span::Model]) -> Self {
        // In floating point, because the sum may exceed 64 bits.
        #[expect(
            clippy::cast_precision_loss,
            reason = "compared with a number of 64 bits, within a tolerance"
        )]
        let sum = |values: &mut dyn Iterator<Item = i64>| {
            values.filter(|it| *it >= 0).map(|it| it as f64).reduce(|sum, it| sum + it)
        };
        let tokens = |of: fn(&span::Model) -> Option<i64>| {
            sum(&mut spans.iter().filter(|it| it.counted).filter_map(of))
        };
        Self {
            spans: i64::try_from(spans.len()).unwrap_or(i64::MAX),
            // In the order of `TOKEN_COLUMNS`.
            tokens: vec![
                tokens(|it| it.prompt_tokens),
                tokens(|it| it.completion_tokens),
                tokens(|it| it.cached_input_tokens),
                tokens(|it| it.cache_write_tokens),
                tokens(|it| it.reasoning_tokens),
            ],
            cost: sum(&mut spans.iter().filter(|it| it.cost_counted).filter_map(|it| it.cost)),
        }
    }
}

/// Compares all traces of a tenant, except those that a job of these `kinds` is about to change. Returns how
/// many traces were stored in each month (year * 100 + month).
pub(super) async fn of_tenant(
    db: &Db,
    tenant: Uuid,
    kinds: [&'static str; 2],
    findings: &mut Findings,
) -> Result<BTreeMap<i32, i64>, DbErr> {
    let mut months = BTreeMap::new();
    let mut last = i64::MIN;
    loop {
        let snapshot = db.snapshot().await?;
        let page = traces(&snapshot, tenant, last).await?;
        let Some(end) = page.last().map(|it| it.key) else { return Ok(months) };
        let mut sums: HashMap<i64, Result<SpanSums, DbErr>> =
            sums_of_blocks(&snapshot, tenant, (last, end)).await?;
        for (key, of_rows) in sums_of_rows(&snapshot, tenant, (last, end)).await? {
            let has_block = sums.contains_key(&key);
            let both = || DbErr::Custom("the trace has both a span block and rows of span".to_owned());
            sums.insert(key, if has_block { Err(both()) } else { Ok(of_rows) });
        }
        findings.compared("totals", page.len() as u64);
        for trace in &page {
            *months.entry(month(trace.created_at)).or_default() += 1;
            let problem = match sums.get(&trace.key) {
                Some(Ok(sums)) => compare(trace, sums),
                Some(Err(error)) => Some(error.to_string()),
                None => compare(trace, &SpanSums::default()),
            };
            let Some(problem) = problem else { continue };
            if !has_pending_job(&snapshot, tenant, trace.id, kinds).await? {
                findings.add("totals", Some(tenant), format!("trace {}", trace.id), problem);
            }
        }
        snapshot.commit().await?;
        if page.len() < TRACES_PER_PAGE {
            return Ok(months);
        }
        last = end;
    }
}

/// Describes the first difference, if any.
fn compare(trace: &TraceTotals, sums: &SpanSums) -> Option<String> {
    let difference = |what: &str, row: String, spans: String| {
        Some(format!("{what}: {row} in the trace, {spans} in its spans"))
    };
    let shown = |it: Option<i64>| it.map_or("none".to_owned(), |it| it.to_string());
    let summed = |it: Option<f64>| it.map_or("none".to_owned(), |it| format!("{it:.0}"));
    let fits = |row: Option<i64>, sum: Option<f64>| match (row, sum) {
        (Some(row), Some(sum)) => is_same(row.into(), sum) || row == i64::MAX,
        (row, sum) => row.is_none() && sum.is_none(),
    };
    if trace.spans != sums.spans {
        return difference("spans", trace.spans.to_string(), sums.spans.to_string());
    }
    for (at, what) in TOKEN_COLUMNS.iter().enumerate() {
        let (row, sum) = (trace.tokens.get(at).copied().flatten(), sums.tokens.get(at).copied().flatten());
        if !fits(row, sum) {
            return difference(what, shown(row), summed(sum));
        }
    }
    let total = trace.tokens.iter().take(2).flatten().fold(0_i64, |sum, it| sum.saturating_add(*it));
    if trace.total != total {
        return difference("tokens", trace.total.to_string(), total.to_string());
    }
    #[expect(clippy::cast_precision_loss, reason = "compared with a sum that has the same precision")]
    let cost = sums.cost.or(trace.given_cost.map(|it| it as f64));
    if !fits(trace.cost, cost) {
        return difference("cost in pico-dollars", shown(trace.cost), summed(cost));
    }
    None
}

async fn traces(db: &DatabaseTransaction, tenant: Uuid, last: i64) -> Result<Vec<TraceTotals>, DbErr> {
    let sql = format!(
        "SELECT id, CAST(span_count AS BIGINT), total_tokens, cost, given, created_at, key, {} \
         FROM trace{} WHERE tenant_id = $1 AND key > $2 ORDER BY key LIMIT {TRACES_PER_PAGE}",
        TOKEN_COLUMNS.join(", "),
        Dialect::of(db.get_database_backend()).primary_key_hint()
    );
    let values = [tenant.into(), last.into()];
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    let read = |row: &QueryResult| {
        let given: Option<String> = row.try_get_by_index(4)?;
        let given: Option<GivenCost> = given.and_then(|it| serde_json::from_str(&it).ok());
        Ok(TraceTotals {
            id: row.try_get_by_index(0)?,
            spans: row.try_get_by_index(1)?,
            total: row.try_get_by_index(2)?,
            cost: row.try_get_by_index(3)?,
            given_cost: given.and_then(|it| it.cost),
            created_at: row.try_get_by_index(5)?,
            key: row.try_get_by_index(6)?,
            tokens: tokens(row, 7)?,
        })
    };
    db.query_all_raw(statement).await?.iter().map(read).collect()
}

/// Sums up the spans in span blocks of the traces after the first key, up to the second one. The sums of a damaged block are
/// an error.
async fn sums_of_blocks(
    db: &DatabaseTransaction,
    tenant: Uuid,
    (mut after, end): (i64, i64),
) -> Result<HashMap<i64, Result<SpanSums, DbErr>>, DbErr> {
    let mut sums = HashMap::new();
    loop {
        let sql = format!(
            "SELECT {} FROM span_block s WHERE s.tenant_id = $1 AND s.trace_key > $2 AND s.trace_key <= $3 \
             ORDER BY s.trace_key LIMIT {BLOCKS_PER_STATEMENT}",
            span_block::Model::select("s")
        );
        let blocks: Vec<span_block::Model> =
            bulk::fetch(db, sql, vec![tenant.into(), after.into(), end.into()]).await?;
        for block in &blocks {
            sums.insert(block.trace_key, unpack(block).map(|it| SpanSums::of(&it)));
        }
        match blocks.last() {
            Some(last) if blocks.len() == BLOCKS_PER_STATEMENT => after = last.trace_key,
            _ => return Ok(sums),
        }
    }
}

/// Sums up the spans in rows of `span` of the traces after the first key, up to the second one.
async fn sums_of_rows(
    db: &DatabaseTransaction,
    tenant: Uuid,
    (after, end): (i64, i64),
) -> Result<Vec<(i64, SpanSums)>, DbErr> {
    // In floating point, because the sum may exceed 64 bits.
    let sum = |column: &str, counts: &str| {
        format!("SUM(CASE WHEN {counts} AND {column} >= 0 THEN CAST({column} AS DOUBLE PRECISION) END)")
    };
    let sql = format!(
        "SELECT trace_key, COUNT(*), {}, {} FROM span \
         WHERE tenant_id = $1 AND trace_key > $2 AND trace_key <= $3 GROUP BY trace_key",
        sum("cost", "cost_counted"),
        TOKEN_COLUMNS.map(|it| sum(it, "counted")).join(", "),
    );
    let values = [tenant.into(), after.into(), end.into()];
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    let mut sums = Vec::new();
    for row in db.query_all_raw(statement).await? {
        let of_trace = SpanSums {
            spans: row.try_get_by_index(1)?,
            cost: row.try_get_by_index(2)?,
            tokens: tokens(&row, 3)?,
        };
        sums.push((row.try_get_by_index(0)?, of_trace));
    }
    Ok(sums)
}

/// Reads the token counts of a row, from a column on.
fn tokens<T: sea_orm::TryGetable>(row: &QueryResult, from: usize) -> Result<Vec<Option<T>>, DbErr> {
    (from..from + TOKEN_COLUMNS.len()).map(|it| row.try_get_by_index(it)).collect()
}

/// Returns whether a job is about to update the trace's row or to remove the trace.
async fn has_pending_job(
    db: &DatabaseTransaction,
    tenant: Uuid,
    trace: Uuid,
    kinds: [&'static str; 2],
) -> Result<bool, DbErr> {
    let dialect = Dialect::of(db.get_database_backend());
    let sql = format!(
        "SELECT 1 FROM job WHERE tenant_id = $1 AND kind IN ($2, $3) AND status <> 'dead' AND {} > 0 LIMIT 1",
        dialect.position("payload", "$4")
    );
    let values = [tenant.into(), kinds[0].into(), kinds[1].into(), trace.to_string().into()];
    let statement = Statement::from_sql_and_values(dialect.backend(), sql, values);
    Ok(db.query_one_raw(statement).await?.is_some())
}
