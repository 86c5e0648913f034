//! Stores, lists, reads and removes traces.
//!
//! Statements are SQL where many rows are read by the position of their columns, or where an update returns
//! rows.

mod chunk;
mod delete;
mod detail;
mod export;
mod join;
mod join_statements;
mod list;
mod page_assignment;
mod quota;
mod rules;
mod sessions;
mod spans;
mod statements;
mod sum_up;
mod text;
mod write;

use api::trace_filter::TraceConditions;
use entities::{dialect::Dialect, trace};
use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select,
    Statement, Value,
};
use uuid::Uuid;

use crate::{
    bulk::{self, Bulk},
    db::Db,
    trace_filters::SessionScope,
    trace_ids,
    trace_index::search::{self, IndexSearch, Selection},
};

pub use chunk::{JoinedRecords, TraceChunk};
pub use delete::{Removal, child_tables, remove, started_before};
pub use detail::{by_external_id, events, events_within, exists, get, project_of};
pub use export::{events_of, events_of_spans, size_of_events, stray_events};
pub use join::{JoinOutcome, JoinRules, JoinedLogs, SplitRow, join_logs};
pub use list::{Changes, Page, TraceReader, changed_since, count, holds, narrow_page, page};
pub use quota::Allowance;
pub use rules::{StoredGroup, TraceRules};
pub use sessions::{SessionPage, SessionSums, sessions};
pub use spans::{Position, has_span, otel_ids, some_spans, span_kinds, spans, spans_of};
pub use sum_up::{LONG_TRACE_SPANS, sum_up_long};
pub use text::{Counted, PackedSpans, SpanTexts, TextBlocks, Texts, trace_texts};
pub use write::{ChunkOutcome, store};

pub use crate::trace_filters::{ListPosition, bit_of, class, classes, failure_of, position, tags_of};

/// Number of rows named in one statement, because databases limit the number of parameters.
const IDS_PER_STATEMENT: usize = 500;

/// Marks the traces with these keys as ready if their `ready_at` still has the given value. Returns the keys of the newly
/// marked traces.
///
/// # Errors
/// Fails when the database fails.
pub async fn mark_ready(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    keys: &[i64],
    ready_at: i64,
) -> Result<Vec<i64>, DbErr> {
    let backend = db.get_database_backend();
    let mut marked = Vec::with_capacity(keys.len());
    for block in keys.chunks(IDS_PER_STATEMENT) {
        let mut values: Vec<Value> = vec![tenant.into(), ready_at.into()];
        let places = bulk::add_placeholders(&mut values, block);
        let condition = format!("tenant_id = $1 AND key IN ({places}) AND ready_at = $2 AND NOT ready");
        let sql = match Dialect::of(backend) {
            Dialect::Sqlite => {
                format!("UPDATE trace NOT INDEXED SET ready = TRUE WHERE {condition} RETURNING key")
            }
            // In the order in which writers lock traces.
            Dialect::Postgres => format!(
                "UPDATE trace SET ready = TRUE WHERE tenant_id = $1 AND key IN (\
                 SELECT key FROM trace WHERE {condition} ORDER BY id FOR NO KEY UPDATE) RETURNING key"
            ),
        };
        for row in db.query_all_raw(Statement::from_sql_and_values(backend, sql, values)).await? {
            marked.push(row.try_get_by_index(0)?);
        }
    }
    Ok(marked)
}

/// Conditions on a trace that its row alone can decide.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadyCondition {
    /// The project of the trace.
    pub project_id: Uuid,
    /// The model of the trace.
    pub model: Option<String>,
    /// The name of the trace.
    pub name: Option<String>,
    /// Whether the trace has an error.
    pub error: Option<bool>,
    /// The beginning of the key of a tag.
    pub tag: Option<String>,
}

impl ReadyCondition {
    /// Returns the condition, and adds its values to the others.
    fn condition(&self, values: &mut Vec<Value>) -> String {
        let mut placeholder = |value: Value| {
            values.push(value);
            values.len()
        };
        let mut sql = format!("(t.project_id = ${}", placeholder(self.project_id.into()));
        if let Some(model) = &self.model {
            sql += &format!(" AND t.model = ${}", placeholder(model.as_str().into()));
        }
        if let Some(name) = &self.name {
            sql += &format!(" AND t.name = ${}", placeholder(name.as_str().into()));
        }
        if let Some(tag) = &self.tag {
            sql += &format!(" AND t.tags LIKE ${} ESCAPE '!'", placeholder(tag_pattern(tag).into()));
        }
        if let Some(error) = self.error {
            sql += if error { " AND t.error IS NOT NULL" } else { " AND t.error IS NULL" };
        }
        sql + ")"
    }
}

/// Returns the `LIKE` pattern of tags in JSON with a key that begins with `key`. Other texts may match too.
fn tag_pattern(key: &str) -> String {
    let json = serde_json::Value::from(key).to_string();
    let mut pattern = "%".to_owned();
    for letter in json.strip_suffix('"').unwrap_or(&json).chars() {
        if matches!(letter, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(letter);
    }
    pattern + "%"
}

/// Returns the current rows of those traces with the given keys that become ready at `ready_at` and meet one of the
/// conditions; without conditions, of all that become ready then.
///
/// # Errors
/// Fails when the database fails.
pub async fn becoming_ready(
    db: &Db,
    tenant: Uuid,
    keys: &[i64],
    ready_at: i64,
    wanted: &[ReadyCondition],
) -> Result<Vec<trace::Model>, DbErr> {
    let mut rows = Vec::new();
    for block in keys.chunks(IDS_PER_STATEMENT) {
        let mut values: Vec<Value> = vec![tenant.into(), ready_at.into()];
        let mut wanted: Vec<String> = wanted.iter().map(|it| it.condition(&mut values)).collect();
        if wanted.is_empty() {
            wanted.push("TRUE".to_owned());
        }
        let places = bulk::add_placeholders(&mut values, block);
        let sql = format!(
            "SELECT {} FROM trace t{} WHERE t.tenant_id = $1 AND t.key IN ({places}) AND t.ready_at = $2 \
             AND NOT t.ready AND ({})",
            trace::Model::select("t"),
            db.dialect.primary_key_hint(),
            wanted.join(" OR ")
        );
        rows.append(&mut bulk::fetch(db.current(), sql, values).await?);
    }
    Ok(rows)
}

/// Returns the traces with these keys. Unknown keys are ignored.
///
/// # Errors
/// Fails when the database fails.
pub async fn some_by_key(db: &Db, tenant: Uuid, keys: &[i64]) -> Result<Vec<trace::Model>, DbErr> {
    let mut rows = Vec::with_capacity(keys.len());
    for block in keys.chunks(IDS_PER_STATEMENT) {
        let mut values: Vec<Value> = vec![tenant.into()];
        let places = bulk::add_placeholders(&mut values, block);
        let sql = format!(
            "SELECT {} FROM trace t{} WHERE t.tenant_id = $1 AND t.key IN ({places})",
            trace::Model::select("t"),
            db.dialect.primary_key_hint()
        );
        rows.append(&mut bulk::fetch(db.current(), sql, values).await?);
    }
    Ok(rows)
}

/// Returns the keys of the traces with these IDs. Unknown IDs are ignored.
///
/// # Errors
/// Fails when the database fails.
pub async fn keys_of(db: &impl ConnectionTrait, tenant: Uuid, ids: &[Uuid]) -> Result<Vec<i64>, DbErr> {
    let mut keys = Vec::with_capacity(ids.len());
    for block in ids.chunks(IDS_PER_STATEMENT) {
        let query = trace::Entity::find().select_only().column(trace::Column::Key).filter(trace_ids::are(
            db,
            tenant,
            block.iter().copied(),
        ));
        keys.append(&mut query.into_tuple().all(db).await?);
    }
    Ok(keys)
}

/// Selects a trace by its ID.
pub fn by_id(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Select<trace::Entity> {
    trace::Entity::find().filter(trace_ids::are(db, tenant, [id]))
}

/// Returns a trace, locked until the transaction ends, so that it is not removed meanwhile.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(txn: &DatabaseTransaction, tenant: Uuid, id: Uuid) -> Result<Option<trace::Model>, DbErr> {
    by_id(txn, tenant, id).lock_exclusive().one(txn).await
}

/// Locks the traces with these IDs until the transaction ends, in the order in which writers lock them. Unknown
/// IDs are ignored.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock_in_order(txn: &DatabaseTransaction, tenant: Uuid, ids: &[Uuid]) -> Result<(), DbErr> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    for block in ids.chunks(IDS_PER_STATEMENT) {
        let query = trace::Entity::find()
            .select_only()
            .column(trace::Column::Id)
            .filter(trace_ids::are(txn, tenant, block.iter().copied()))
            .order_by_asc(trace::Column::Id)
            .lock_exclusive();
        query.into_tuple::<Uuid>().all(txn).await?;
    }
    Ok(())
}

/// Returns the IDs that belong to a trace, and locks these traces against removal until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock_some(txn: &DatabaseTransaction, tenant: Uuid, ids: &[Uuid]) -> Result<Vec<Uuid>, DbErr> {
    Ok(lock_created(txn, tenant, ids).await?.into_iter().map(|it| it.0).collect())
}

/// Locks traces like [`lock_some`]. Returns them with the time at which they were stored: a trace that was removed and
/// stored again has another one.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock_created(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    ids: &[Uuid],
) -> Result<Vec<(Uuid, i64)>, DbErr> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    let mut there = Vec::with_capacity(ids.len());
    for block in ids.chunks(IDS_PER_STATEMENT) {
        let query = trace::Entity::find()
            .select_only()
            .columns([trace::Column::Id, trace::Column::CreatedAt])
            .filter(trace_ids::are(txn, tenant, block.iter().copied()))
            // In the order in which writers lock them.
            .order_by_asc(trace::Column::Id)
            .lock_shared();
        there.extend(query.into_tuple::<(Uuid, i64)>().all(txn).await?);
    }
    Ok(there)
}

/// Returns the traces with these IDs. Unknown IDs are ignored.
///
/// # Errors
/// Fails when the database fails.
pub async fn some(db: &impl ConnectionTrait, tenant: Uuid, ids: &[Uuid]) -> Result<Vec<trace::Model>, DbErr> {
    let mut rows = Vec::with_capacity(ids.len());
    for block in ids.chunks(IDS_PER_STATEMENT) {
        let query = trace::Entity::find().filter(trace_ids::are(db, tenant, block.iter().copied()));
        rows.append(&mut query.all(db).await?);
    }
    Ok(rows)
}

/// Returns the tenant's newest `limit` traces, each with the number of its spans.
///
/// # Errors
/// Fails when the database fails or the trace index is damaged.
pub async fn newest(db: &Db, tenant: Uuid, limit: usize) -> Result<Vec<(Uuid, i32)>, DbErr> {
    let filter = TraceConditions::default();
    let search =
        IndexSearch { tenant, filter: &filter, sessions: SessionScope::AllTraces, after: None, limit };
    let selection = Selection {
        columns: "t.started_at, t.key, t.id, t.span_count".to_owned(),
        condition: "",
        decode: |row| Ok((search::read_position(row)?, (row.try_get_by_index(2)?, row.try_get_by_index(3)?))),
        position: |it| it.0,
    };
    let rows = search::rows(db, &db.read, &search, &selection).await?;
    Ok(rows.into_iter().map(|it| it.1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_pattern_matches_tags_with_key() {
        assert_eq!(tag_pattern("env"), "%\"env%");
        assert_eq!(tag_pattern("a_b%!\""), "%\"a!_b!%!!\\\"%");
    }
}
