//! Nearest-neighbor search on PostgreSQL.
//!
//! Few vectors are compared exactly, all of them. Of more vectors, candidates are selected by their bits
//! ([`crate::vectors::coarse`]), which are stored contiguously, and only the candidates are compared
//! exactly. If there are too many bits to scan, the graph of an HNSW index selects the candidates, and
//! vectors that it does not contain yet are scanned. The graph covers all tenants, so the index scan
//! continues until enough rows pass the filters. All vectors are compared exactly if the index returns too
//! few, and for pages after the first, which must begin exactly after the previous page.
//!
//! Statements are SQL, because sea-orm has no operators and settings of pgvector.

use sea_orm::DbErr;
use sqlx::{PgExecutor, PgPool, Postgres, QueryBuilder, Row};
use uuid::Uuid;

use super::{
    StoredVector, UnitVector,
    filter::{Hit, NearestSpans, VectorFilter},
};
use crate::db::Db;

/// Maximum number of vectors that are counted: counting more takes longer than finding the nearest.
const MAX_COUNTED_VECTORS: i64 = 200_000;
/// Number of vectors up to which all are compared, which is faster than selecting candidates.
const MAX_VECTORS_COMPARED: i64 = 1_000;
/// Settings of the graph scan: it returns portions in approximate order, until it has visited this many
/// vectors.
const GRAPH_SCAN_SETTINGS: &str =
    "SET LOCAL hnsw.iterative_scan = relaxed_order; SET LOCAL hnsw.max_scan_tuples = 40000";
/// Candidates per requested vector, and the minimum number of candidates. For 500 vectors that differ only by
/// noise, 400 candidates miss 1.7 % of the 20 nearest, and 800 miss none.
const CANDIDATES_PER_RESULT: (usize, usize) = (12, 600);
/// Maximum of `hnsw.ef_search`.
const MAX_EF_SEARCH: i64 = 1_000;
/// Materializes the candidates, so that vectors are read only for the comparison.
const CANDIDATES_CLAUSE: &str = "WITH candidate AS MATERIALIZED (";
/// Breaks ties between equal codes in the order of a page.
const TIE_BREAKER: &str = ", trace_id, id";

/// Returns up to `limit` vectors nearest to `question`, beginning after `after`. Uses the graph if more than
/// `few` vectors pass the filter.
///
/// # Errors
/// Fails when the database fails.
pub async fn nearest(
    db: &Db,
    tenant: Uuid,
    question: &UnitVector,
    filter: &VectorFilter,
    after: Option<Hit>,
    limit: usize,
    scan_limit: u32,
) -> Result<NearestSpans, DbErr> {
    let search = Search {
        tenant,
        question: StoredVector::of(question),
        filter,
        after,
        limit,
        scan_limit: i64::from(scan_limit),
    };
    search.run(db.read.get_postgres_connection_pool()).await.map_err(failed)
}

struct Search<'a> {
    tenant: Uuid,
    question: StoredVector,
    filter: &'a VectorFilter,
    after: Option<Hit>,
    limit: usize,
    scan_limit: i64,
}

impl Search<'_> {
    async fn run(&self, pool: &PgPool) -> sqlx::Result<NearestSpans> {
        let (searched, not_searched) = self.count(pool).await?;
        let mut hits = if self.after.is_some() {
            Vec::new()
        } else if searched + not_searched > self.scan_limit {
            self.scan_graph(pool).await?
        } else if searched > MAX_VECTORS_COMPARED {
            self.fetch_hits(self.by_bits(), pool).await?
        } else {
            Vec::new()
        };
        if hits.len() < self.limit {
            hits = self.fetch_hits(self.all(), pool).await?;
        }
        let searched = searched.min(MAX_COUNTED_VECTORS);
        Ok(NearestSpans { hits, searched, not_searched: not_searched.min(MAX_COUNTED_VECTORS - searched) })
    }

    async fn fetch_hits<'e>(
        &self,
        mut query: QueryBuilder<Postgres>,
        executor: impl PgExecutor<'e>,
    ) -> sqlx::Result<Vec<Hit>> {
        query.build().persistent(false).fetch_all(executor).await?.iter().map(hit).collect()
    }

    /// Returns the number of vectors that pass the filter: of the selected embedding model, and of others.
    async fn count(&self, pool: &PgPool) -> sqlx::Result<(i64, i64)> {
        let mut query = QueryBuilder::new("SELECT compared, COUNT(*) FROM (SELECT ");
        match &self.filter.embedding_model {
            Some(model) => query.push("embedding_model = ").push_bind(model.clone()),
            None => query.push("true"),
        };
        query.push(" AS compared FROM span_vector WHERE ");
        self.conditions(&mut query, false);
        query
            .push(" LIMIT ")
            .push_bind(MAX_COUNTED_VECTORS.max(self.scan_limit + 1))
            .push(") c GROUP BY compared");
        let mut counts = (0, 0);
        for row in query.build().persistent(false).fetch_all(pool).await? {
            let count: i64 = row.try_get(1)?;
            if row.try_get(0)? { counts.0 = count } else { counts.1 = count }
        }
        Ok(counts)
    }

    /// Builds the query that compares all vectors that pass the filter.
    fn all(&self) -> QueryBuilder<Postgres> {
        let mut query = QueryBuilder::new("WITH ");
        self.compare(&mut query, "span_vector WHERE ");
        self.conditions(&mut query, true);
        self.finish(&mut query);
        query
    }

    /// Builds the query that selects candidates by their bits among the vectors that pass the filter, and
    /// compares them exactly.
    fn by_bits(&self) -> QueryBuilder<Postgres> {
        let mut query = QueryBuilder::new(CANDIDATES_CLAUSE);
        self.candidates(&mut query, None);
        query.push("), ");
        self.compare(&mut query, "candidate");
        self.finish(&mut query);
        query
    }

    /// Compares the candidates from the graph, and candidates among the vectors that the graph does not
    /// contain.
    async fn scan_graph(&self, pool: &PgPool) -> sqlx::Result<Vec<Hit>> {
        let mut query = QueryBuilder::new(CANDIDATES_CLAUSE);
        self.candidates(&mut query, Some(true));
        query.push(" UNION ALL ");
        self.candidates(&mut query, Some(false));
        query.push("), ");
        self.compare(&mut query, "candidate");
        self.finish(&mut query);
        let mut transaction = pool.begin().await?;
        let settings = format!(
            "{GRAPH_SCAN_SETTINGS}; SET LOCAL hnsw.ef_search = {}",
            self.candidate_limit().min(MAX_EF_SEARCH)
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(settings)).execute(&mut *transaction).await?;
        let hits = self.fetch_hits(query, &mut *transaction).await?;
        transaction.commit().await?;
        Ok(hits)
    }

    /// Returns the number of candidates to select.
    fn candidate_limit(&self) -> i64 {
        i64::try_from((CANDIDATES_PER_RESULT.0 * self.limit).max(CANDIDATES_PER_RESULT.1)).unwrap_or(i64::MAX)
    }

    /// Adds the subquery that selects candidates among the vectors that pass the filter: among all, or only
    /// those in the graph (`true`) or not in it (`false`).
    fn candidates(&self, query: &mut QueryBuilder<Postgres>, indexed: Option<bool>) {
        query.push("(SELECT trace_id, id, vector FROM span_vector WHERE ");
        self.conditions(query, true);
        query.push(match indexed {
            None => "",
            Some(true) => " AND indexed",
            Some(false) => " AND NOT indexed",
        });
        query.push(" ORDER BY coarse <~> ").push_bind(self.question.coarse());
        // The index scan can order only by bits.
        query.push(if indexed == Some(true) { "" } else { TIE_BREAKER });
        query.push(" LIMIT ").push_bind(self.candidate_limit()).push(")");
    }

    /// Adds the distances of the vectors, materialized so that they are computed before the exact order is
    /// applied.
    fn compare(&self, query: &mut QueryBuilder<Postgres>, source: &str) {
        query.push("near AS MATERIALIZED (SELECT trace_id, id, vector <=> ");
        query.push_bind(self.question.clone()).push(" AS distance FROM ").push(source);
    }

    fn conditions(&self, query: &mut QueryBuilder<Postgres>, with_embedding_model: bool) {
        query.push("tenant_id = ").push_bind(self.tenant);
        if let Some(it) = self.filter.project_id {
            query.push(" AND project_id = ").push_bind(it);
        }
        for (condition, bound) in [
            ("started_at >= ", self.filter.from),
            ("started_at <= ", self.filter.to),
            ("kind_hash = ", self.filter.kind_hash),
            ("model_hash = ", self.filter.model_hash),
        ] {
            if let Some(it) = bound {
                query.push(" AND ").push(condition).push_bind(it);
            }
        }
        if let Some(it) = self.filter.embedding_model.as_ref().filter(|_| with_embedding_model) {
            query.push(" AND embedding_model = ").push_bind(it.clone());
        }
    }

    /// Adds the exact order and the position after the previous page.
    fn finish(&self, query: &mut QueryBuilder<Postgres>) {
        query.push(") SELECT distance, trace_id, id FROM near");
        if let Some(Hit { distance, trace_id, id }) = self.after {
            query.push(" WHERE (distance, trace_id, id) > (").push_bind(distance).push(", ");
            query.push_bind(trace_id).push(", ").push_bind(id).push(")");
        }
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        query.push(" ORDER BY distance, trace_id, id LIMIT ").push_bind(limit);
    }
}

fn hit(row: &sqlx::postgres::PgRow) -> sqlx::Result<Hit> {
    Ok(Hit { distance: row.try_get(0)?, trace_id: row.try_get(1)?, id: row.try_get(2)? })
}

fn failed(error: sqlx::Error) -> DbErr {
    DbErr::Query(sea_orm::RuntimeErr::SqlxError(error.into()))
}
