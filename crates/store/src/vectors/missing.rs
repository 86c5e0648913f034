//! Reads the spans that have no vector, with their texts.
//!
//! Statements are SQL, because spans are read in bulk, with only the columns that embedding needs.

use std::collections::{HashMap, HashSet};

use entities::{span, span_block, span_vector};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryResult, QuerySelect, Statement, Value,
};
use uuid::Uuid;

use crate::{
    bulk::{self, Bulk},
    db::Db,
    span_block::{BLOCKS_PER_STATEMENT, unpack as unpack_spans},
    text_block::{Entry, unpack},
    text_rows::{self, MAX_SMALL_ROW_BYTES, ROWS_PER_STATEMENT},
    trace_ids,
};

/// A span without a vector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanToEmbed {
    /// The key of the span's trace.
    pub trace_key: i64,
    /// The span's trace.
    pub trace_id: Uuid,
    /// The span.
    pub id: Uuid,
    /// The trace's project.
    pub project_id: Uuid,
    /// The name of the span.
    pub name: String,
    /// The span type.
    pub kind: String,
    /// The span's model.
    pub model: Option<String>,
    /// Start of the span, in microseconds.
    pub started_at: i64,
    /// The error of the span.
    pub error: Option<String>,
    /// The text block with the span's texts.
    pub body_id: Option<Uuid>,
    /// The index of the span's entry in the text block.
    pub body_index: i32,
}

impl SpanToEmbed {
    fn of(span: span::Model, project_id: Uuid) -> Self {
        let span::Model { trace_key, trace_id, id, name, kind, model, started_at, error, .. } = span;
        let span::Model { body_id, body_index, .. } = span;
        Self {
            trace_key,
            trace_id,
            id,
            project_id,
            name,
            kind,
            model,
            started_at,
            error,
            body_id,
            body_index,
        }
    }
}

/// Returns up to `limit` spans of these traces that were stored at or after `since` (microseconds) and have
/// no vector, in the order of the trace's key and the span's ID, beginning after the span `after`, or at the first one if its
/// trace was removed.
///
/// # Errors
/// Fails when the database fails.
pub async fn missing(
    db: &Db,
    tenant: Uuid,
    traces: &[Uuid],
    since: i64,
    after: Option<(Uuid, Uuid)>,
    limit: u64,
) -> Result<Vec<SpanToEmbed>, DbErr> {
    let after = after.unwrap_or_default();
    let mut found = missing_in_span_blocks(db, tenant, traces, since, after, limit).await?;
    found.append(&mut missing_in_rows(db, tenant, traces, since, after, limit).await?);
    found.sort_unstable_by_key(position);
    // Spans may move from a block into rows between the two statements.
    found.dedup_by_key(|it| position(it));
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(found)
}

/// Returns spans like [`missing`], those in span blocks, in no order.
async fn missing_in_span_blocks(
    db: &Db,
    tenant: Uuid,
    traces: &[Uuid],
    since: i64,
    after: (Uuid, Uuid),
    limit: u64,
) -> Result<Vec<SpanToEmbed>, DbErr> {
    let ids = trace_ids::relation(db.dialect);
    let mut found = Vec::new();
    let mut last_key = None;
    loop {
        let mut values: Vec<Value> = vec![tenant.into(), after.0.into(), last_key.into()];
        let places = bulk::add_placeholders(&mut values, traces);
        let sql = format!(
            "SELECT {}, (SELECT t.project_id FROM trace t WHERE t.tenant_id = $1 AND t.key = s.trace_key) \
             FROM span_block s WHERE s.tenant_id = $1 AND s.trace_key IN (SELECT t.key FROM {ids} t \
             WHERE t.tenant_id = $1 AND t.id IN ({places})) AND s.trace_key >= COALESCE(CAST($3 AS BIGINT) + 1, \
             (SELECT t.key FROM {ids} t WHERE t.tenant_id = $1 AND t.id = $2), -1) \
             ORDER BY s.trace_key LIMIT {BLOCKS_PER_STATEMENT}",
            span_block::Model::select("s")
        );
        let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
        let rows = db.current().query_all_raw(statement).await?;
        let mut spans = Vec::new();
        for row in &rows {
            let block: span_block::Model = bulk::decode(row)?;
            let project = project_of::<span_block::Model>(row)?;
            last_key = Some(block.trace_key);
            let is_missing =
                |it: &span::Model| it.created_at >= since && (it.trace_id != after.0 || it.id > after.1);
            let missing = unpack_spans(&block)?.into_iter().filter(is_missing);
            spans.extend(missing.map(|it| SpanToEmbed::of(it, project)));
        }
        let with_vector = with_vector(db, tenant, &spans).await?;
        found.extend(spans.into_iter().filter(|it| !with_vector.contains(&position(it))));
        if rows.len() < BLOCKS_PER_STATEMENT || found.len() as u64 >= limit {
            return Ok(found);
        }
    }
}

/// Returns the positions of the spans of the same traces that have a vector.
async fn with_vector(db: &Db, tenant: Uuid, spans: &[SpanToEmbed]) -> Result<HashSet<(i64, Uuid)>, DbErr> {
    let mut keys: Vec<i64> = spans.iter().map(|it| it.trace_key).collect();
    keys.dedup();
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    let query = span_vector::Entity::find()
        .select_only()
        .columns([span_vector::Column::TraceKey, span_vector::Column::Id])
        .filter(span_vector::Column::TenantId.eq(tenant))
        .filter(span_vector::Column::TraceKey.is_in(keys));
    Ok(query.into_tuple().all(db.current()).await?.into_iter().collect())
}

/// Returns spans like [`missing`], those in rows of `span`.
async fn missing_in_rows(
    db: &Db,
    tenant: Uuid,
    traces: &[Uuid],
    since: i64,
    after: (Uuid, Uuid),
    limit: u64,
) -> Result<Vec<SpanToEmbed>, DbErr> {
    let mut values: Vec<Value> = vec![tenant.into(), after.0.into(), after.1.into(), since.into()];
    let places = bulk::add_placeholders(&mut values, traces);
    let ids = trace_ids::relation(db.dialect);
    let sql = format!(
        "SELECT {}, (SELECT t.project_id FROM trace t WHERE t.tenant_id = $1 AND t.key = s.trace_key) \
         FROM span s WHERE s.tenant_id = $1 AND s.trace_key IN (SELECT t.key FROM {ids} t \
         WHERE t.tenant_id = $1 AND t.id IN ({places})) \
         AND (s.trace_key, s.id) > (COALESCE((SELECT t.key FROM {ids} t WHERE t.tenant_id = $1 AND t.id = $2), -1), $3) \
         AND s.created_at >= $4 AND NOT EXISTS (SELECT 1 FROM span_vector v WHERE v.tenant_id = $1 AND v.trace_key = s.trace_key \
         AND v.id = s.id) ORDER BY s.trace_key, s.id LIMIT {limit}",
        span::Model::select("s")
    );
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    let rows = db.current().query_all_raw(statement).await?;
    let (spans, projects) = (rows.iter().map(bulk::decode), rows.iter().map(project_of::<span::Model>));
    spans.zip(projects).map(|(span, project)| Ok(SpanToEmbed::of(span?, project?))).collect()
}

/// Returns the project of a trace, which follows the columns of `T` in a row.
fn project_of<T: Bulk>(row: &QueryResult) -> Result<Uuid, DbErr> {
    Ok(row.try_get_by_index::<Option<Uuid>>(T::COLUMN_NAMES.len())?.unwrap_or_default())
}

fn position(span: &SpanToEmbed) -> (i64, Uuid) {
    (span.trace_key, span.id)
}

/// A compressed text block, with the spans whose texts it contains.
#[derive(Debug)]
pub struct SpansOfBlock {
    /// The spans with their positions in the list from which they were taken.
    pub spans: Vec<(usize, SpanToEmbed)>,
    /// Empty if the spans have no texts.
    data: Vec<u8>,
}

impl SpansOfBlock {
    /// Calls `found` with each span, its position and its texts. Decompresses the block once.
    ///
    /// # Errors
    /// Fails when the text block is damaged.
    pub fn unpack(self, mut found: impl FnMut(usize, SpanToEmbed, &Entry)) -> Result<(), DbErr> {
        let index = |span: &SpanToEmbed| usize::try_from(span.body_index).unwrap_or(usize::MAX);
        let count = self.spans.iter().map(|it| index(&it.1).saturating_add(1)).max().unwrap_or(0);
        let entries = match self.data.is_empty() {
            true => Vec::new(),
            false => unpack(&self.data, count)
                .map_err(|it| DbErr::Custom(format!("a text block can't be read: {it}")))?,
        };
        let none = Entry::default();
        for (position, span) in self.spans {
            let entry = entries.get(index(&span)).unwrap_or(&none);
            found(position, span, entry);
        }
        Ok(())
    }
}

/// The text blocks of some spans. Small blocks are read together; a large one, which may have many megabytes,
/// is read alone.
#[derive(Debug)]
pub struct BlocksToEmbed {
    tenant: Uuid,
    waiting: Vec<(Uuid, Vec<(usize, SpanToEmbed)>)>,
    large: Vec<(Uuid, Vec<(usize, SpanToEmbed)>)>,
}

impl BlocksToEmbed {
    /// Groups the spans by their text blocks. Spans without a text block have no texts.
    pub fn of(tenant: Uuid, spans: Vec<SpanToEmbed>) -> Self {
        let mut groups: HashMap<Uuid, usize> = HashMap::new();
        let mut waiting: Vec<(Uuid, Vec<(usize, SpanToEmbed)>)> = Vec::new();
        for (position, span) in spans.into_iter().enumerate() {
            let id = span.body_id.unwrap_or_default();
            let group = *groups.entry(id).or_insert_with(|| {
                waiting.push((id, Vec::new()));
                waiting.len() - 1
            });
            waiting[group].1.push((position, span));
        }
        Self { tenant, waiting, large: Vec::new() }
    }

    /// Reads the next blocks; none when all were read.
    ///
    /// # Errors
    /// Fails when the database fails.
    pub async fn next(&mut self, db: &Db) -> Result<Vec<SpansOfBlock>, DbErr> {
        loop {
            if !self.waiting.is_empty() {
                let rest = self.waiting.split_off(self.waiting.len().min(ROWS_PER_STATEMENT));
                let groups = std::mem::replace(&mut self.waiting, rest);
                let ids: Vec<Uuid> = groups.iter().map(|it| it.0).collect();
                let mut found = text_rows::read(db, self.tenant, ids, MAX_SMALL_ROW_BYTES).await?;
                let mut small = Vec::with_capacity(groups.len());
                for (id, spans) in groups {
                    match found.remove(&id) {
                        Some(data) if data.is_empty() => self.large.push((id, spans)),
                        data => small.push(SpansOfBlock { spans, data: data.unwrap_or_default() }),
                    }
                }
                if !small.is_empty() {
                    return Ok(small);
                }
            } else if let Some((id, spans)) = self.large.pop() {
                let data = text_rows::read(db, self.tenant, [id], usize::MAX).await?.remove(&id);
                return Ok(vec![SpansOfBlock { spans, data: data.unwrap_or_default() }]);
            } else {
                return Ok(Vec::new());
            }
        }
    }
}
