//! Stores vectors of spans.
//!
//! Statements are SQL, because vectors are written in bulk and their column has another type on each
//! database.

use std::collections::{BTreeSet, HashMap, HashSet};

use entities::{dialect::Dialect, span};
use pgvector::Bit;
use sea_orm::{DbErr, Value};
use sqlx::{PgConnection, SqliteConnection};
use uuid::Uuid;

use super::{StoredVector, UnitVector};
use crate::{
    bulk::{self, Bulk, bulk_rows},
    db::Db,
    ids::text_hash,
    row_text::label,
};

/// A row of `span_vector`, with its vector.
#[derive(Clone, Debug)]
pub struct VectorRow {
    tenant_id: Uuid,
    trace_id: Uuid,
    id: Uuid,
    project_id: Uuid,
    started_at: i64,
    kind_hash: i64,
    model_hash: Option<i64>,
    embedding_model: String,
    vector: StoredVector,
}

impl VectorRow {
    /// Returns the row for a span of a trace in `project`. `embedding_model` computed the vector; it is empty
    /// if the vector was sent with the span.
    pub fn of(span: &span::Model, project: Uuid, embedding_model: &str, vector: &UnitVector) -> Self {
        Self {
            tenant_id: span.tenant_id,
            trace_id: span.trace_id,
            id: span.id,
            project_id: project,
            started_at: span.started_at,
            kind_hash: text_hash(&span.kind),
            model_hash: span.model.as_deref().map(text_hash),
            embedding_model: label(embedding_model),
            vector: StoredVector::of(vector),
        }
    }

    /// Returns the value of PostgreSQL's column `coarse`.
    fn coarse(&self) -> Bit {
        self.vector.coarse()
    }
}

bulk_rows!(VectorRow, "span_vector", key "tenant_id, trace_id, id", {
    tenant_id: "uuid", trace_id: "uuid", id: "uuid", project_id: "uuid", started_at: "int8", kind_hash: "int8",
    model_hash: "int8", embedding_model: "text", vector: "halfvec",
}, made { coarse: "bit(1536)" });

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
) -> Result<Vec<span::Model>, DbErr> {
    let after = after.unwrap_or_default();
    let mut values: Vec<Value> = vec![tenant.into(), after.0.into(), after.1.into(), since.into()];
    let first = values.len() + 1;
    values.extend(traces.iter().map(|it| Value::from(*it)));
    let places: Vec<String> = (first..=values.len()).map(|it| format!("${it}")).collect();
    let sql = format!(
        "SELECT {} FROM span s WHERE s.tenant_id = $1 AND s.trace_key IN (SELECT t.key FROM trace t \
         WHERE t.tenant_id = $1 AND t.id IN ({})) \
         AND (s.trace_key, s.id) > (COALESCE((SELECT t.key FROM trace t WHERE t.tenant_id = $1 AND t.id = $2), -1), $3) \
         AND s.created_at >= $4 AND NOT EXISTS (SELECT 1 FROM span_vector v WHERE v.tenant_id = $1 AND v.trace_id = s.trace_id \
         AND v.id = s.id) ORDER BY s.trace_key, s.id LIMIT {limit}",
        span::Model::select("s"),
        places.join(",")
    );
    bulk::fetch(db.current(), sql, values).await
}

/// Stores the vectors of these spans by `embedding_model`. Returns the number of inserted vectors. Nothing is
/// inserted for spans that have a vector, were removed, or have been replaced by spans with another text.
///
/// # Errors
/// Fails when the database fails; nothing is stored then.
pub async fn insert(
    db: &Db,
    tenant: Uuid,
    embedding_model: &str,
    vectors: &[(span::Model, UnitVector)],
) -> sqlx::Result<usize> {
    // Writers lock traces in the same order.
    let traces: BTreeSet<Uuid> = vectors.iter().map(|it| it.0.trace_id).collect();
    let traces: Vec<Uuid> = traces.into_iter().collect();
    let rows_in = |projects: HashMap<Uuid, Uuid>, unchanged: HashSet<(Uuid, Uuid)>| {
        let mut rows: Vec<VectorRow> = vectors
            .iter()
            .filter(|(span, _)| unchanged.contains(&(span.trace_id, span.id)))
            .filter_map(|(span, vector)| {
                let project = projects.get(&span.trace_id)?;
                Some(VectorRow::of(span, *project, embedding_model, vector))
            })
            .collect();
        rows.sort_unstable_by_key(|it| (it.trace_id, it.id));
        rows
    };
    match db.dialect {
        Dialect::Sqlite => {
            let mut tx = db.begin_sqlite().await?;
            let projects = projects_sqlite(&mut tx, tenant, &traces).await?;
            let rows = rows_in(projects, unchanged_spans_sqlite(&mut tx, tenant, vectors).await?);
            let new = bulk::insert_new_sqlite(&mut tx, &rows.iter().collect::<Vec<_>>()).await?.len();
            tx.commit().await?;
            Ok(new)
        }
        Dialect::Postgres => {
            let mut tx = db.begin_postgres().await?;
            let projects = projects_postgres(&mut tx, tenant, &traces).await?;
            let rows = rows_in(projects, unchanged_spans_postgres(&mut tx, tenant, vectors).await?);
            let new = bulk::insert_new_postgres(&mut tx, &rows.iter().collect::<Vec<_>>()).await?.len();
            tx.commit().await?;
            Ok(new)
        }
    }
}

/// Returns the projects of the traces with these IDs. The transaction writes, so no trace is removed before it
/// ends.
async fn projects_sqlite(
    connection: &mut SqliteConnection,
    tenant: Uuid,
    traces: &[Uuid],
) -> sqlx::Result<HashMap<Uuid, Uuid>> {
    let mut projects = HashMap::with_capacity(traces.len());
    for trace in traces {
        let project: Option<Uuid> =
            sqlx::query_scalar("SELECT project_id FROM trace WHERE tenant_id = ? AND id = ?")
                .bind(tenant)
                .bind(trace)
                .fetch_optional(&mut *connection)
                .await?;
        projects.extend(project.map(|it| (*trace, it)));
    }
    Ok(projects)
}

/// Returns projects like [`projects_sqlite`], and locks the traces, so that they are not removed before the
/// vectors are stored.
async fn projects_postgres(
    connection: &mut PgConnection,
    tenant: Uuid,
    traces: &[Uuid],
) -> sqlx::Result<HashMap<Uuid, Uuid>> {
    let rows: Vec<(Uuid, Uuid)> = sqlx::query_as(
        "SELECT id, project_id FROM trace WHERE tenant_id = $1 AND id = ANY($2) ORDER BY id FOR SHARE",
    )
    .bind(tenant)
    .bind(traces)
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().collect())
}

/// Returns the spans that have not been replaced or removed since they were read.
async fn unchanged_spans_sqlite(
    connection: &mut SqliteConnection,
    tenant: Uuid,
    vectors: &[(span::Model, UnitVector)],
) -> sqlx::Result<HashSet<(Uuid, Uuid)>> {
    let mut unchanged = HashSet::with_capacity(vectors.len());
    for (span, _) in vectors {
        let found: Option<i64> = sqlx::query_scalar(
            "SELECT 1 FROM span WHERE tenant_id = ? AND trace_key = ? AND id = ? AND created_at = ?",
        )
        .bind(tenant)
        .bind(span.trace_key)
        .bind(span.id)
        .bind(span.created_at)
        .fetch_optional(&mut *connection)
        .await?;
        unchanged.extend(found.map(|_| (span.trace_id, span.id)));
    }
    Ok(unchanged)
}

/// Returns spans like [`unchanged_spans_sqlite`]. Spans change only while their trace is locked.
async fn unchanged_spans_postgres(
    connection: &mut PgConnection,
    tenant: Uuid,
    vectors: &[(span::Model, UnitVector)],
) -> sqlx::Result<HashSet<(Uuid, Uuid)>> {
    let (traces, spans): (Vec<i64>, Vec<Uuid>) = vectors.iter().map(|it| (it.0.trace_key, it.0.id)).unzip();
    let times: Vec<i64> = vectors.iter().map(|it| it.0.created_at).collect();
    let rows: Vec<(Uuid, Uuid)> = sqlx::query_as(
        "SELECT s.trace_id, s.id FROM UNNEST($2::bigint[], $3::uuid[], $4::bigint[]) AS r (trace_key, id, created_at) \
         JOIN span s ON s.tenant_id = $1 AND s.trace_key = r.trace_key AND s.id = r.id AND s.created_at = r.created_at",
    )
    .bind(tenant)
    .bind(traces)
    .bind(spans)
    .bind(times)
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().collect())
}
