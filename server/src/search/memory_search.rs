//! Searches the nearest vectors in memory, for SQLite.
//!
//! The codes give bounds of each vector's similarity; the exact vectors are then read and compared, the
//! most promising first, until no other can be nearer.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap},
    sync::Arc,
};

use store::{
    Db, DbError, projects,
    vectors::{Arrival, Hit, NearestSpans, UnitVector, VectorFilter, arrivals, in_rows, read_numbers},
};
use tokio::{sync::Semaphore, task::spawn_blocking};
use uuid::Uuid;

use super::{
    coarse_codes::{CodedQuery, Cosine},
    vector_block::{VectorBlock, VectorEntry},
    vector_cache::{ProjectVectors, VECTORS_PER_READ, VectorCache},
};

/// Number of vectors compared exactly at first, in addition to the requested number.
const EXTRA_CANDIDATES: usize = 64;
/// Maximum number of vectors compared exactly at once.
const MAX_CANDIDATES_PER_READ: usize = 1_024;

/// Searches vectors for databases without vector search.
pub struct MemorySearch {
    index: VectorCache,
    /// Limits the concurrent searches that occupy a processor.
    scans: Arc<Semaphore>,
}

/// A candidate: the upper bound of its cosine, and its position.
#[derive(Clone, Copy)]
struct Candidate {
    at_most: f32,
    block: usize,
    place: usize,
}

/// The parameters of a search, shared by its tasks.
struct SearchParams {
    query: UnitVector,
    codes: CodedQuery,
    filter: VectorFilter,
    after: Option<Hit>,
    limit: usize,
}

impl MemorySearch {
    /// Creates a searcher with a maximum memory in bytes, which leaves processors to other work.
    pub fn new(bytes: usize, processors: usize) -> Self {
        Self { index: VectorCache::new(bytes), scans: Arc::new(Semaphore::new((processors / 2).max(1))) }
    }

    /// Returns the memory in use in bytes.
    pub fn bytes(&self) -> u64 {
        self.index.bytes()
    }

    /// Returns up to `limit` vectors nearest to `query`, after the position `after`.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn nearest(
        &self,
        db: &Db,
        tenant: Uuid,
        query: &UnitVector,
        filter: &VectorFilter,
        after: Option<Hit>,
        limit: usize,
    ) -> Result<NearestSpans, DbError> {
        let projects = match filter.project_id {
            Some(id) => vec![id],
            None => projects::ids(&db.read, tenant).await?,
        };
        let (query, filter) = (query.clone(), filter.clone());
        let codes = CodedQuery::of(query.numbers());
        let params = Arc::new(SearchParams { query, codes, filter, after, limit });
        let mut found = NearestSpans::default();
        let mut nearest = Nearest { params: &params, hits: BinaryHeap::new() };
        for project in projects {
            match self.index.snapshot(db, tenant, project).await? {
                ProjectVectors::Loaded(blocks) => {
                    let blocks = Arc::new(blocks);
                    let mut candidates = self.scan(&blocks, &params, &mut found).await?;
                    nearest.take(db, tenant, &blocks, &mut candidates).await?;
                }
                ProjectVectors::TooLarge => {
                    self.scan_stored(db, tenant, project, &mut nearest, &mut found).await?;
                }
            }
        }
        found.hits = nearest.hits.into_sorted_vec();
        Ok(found)
    }

    /// Returns all candidates, unordered.
    async fn scan(
        &self,
        blocks: &Arc<Vec<Arc<VectorBlock>>>,
        params: &Arc<SearchParams>,
        found: &mut NearestSpans,
    ) -> Result<Vec<Candidate>, DbError> {
        let blocks = Arc::clone(blocks);
        let (candidates, searched, others) = self
            .compute(params, move |params| {
                // Nearer vectors are on an earlier page.
                let nearest = params.after.map_or(f64::INFINITY, |it| 1.0 - it.distance);
                let (mut candidates, mut searched, mut others) = (Vec::new(), 0, 0);
                for (number, block) in blocks.iter().enumerate() {
                    others += block.scan(&params.codes, &params.filter, &mut |place, cosine| {
                        searched += 1;
                        let Cosine { at_least, at_most } = cosine;
                        if f64::from(at_least) <= nearest {
                            candidates.push(Candidate { at_most, block: number, place });
                        }
                    });
                }
                (candidates, searched, others)
            })
            .await?;
        found.searched += searched;
        found.not_searched += others;
        Ok(candidates)
    }

    /// Compares all vectors of a project while reading them.
    async fn scan_stored(
        &self,
        db: &Db,
        tenant: Uuid,
        project: Uuid,
        nearest: &mut Nearest<'_>,
        found: &mut NearestSpans,
    ) -> Result<(), DbError> {
        let mut next = Some(i64::MIN);
        while let Some(from) = next {
            let read = arrivals(db, tenant, project, from, VECTORS_PER_READ).await?;
            next = read.last().filter(|_| read.len() == VECTORS_PER_READ).map(|it| it.row + 1);
            let (hits, others) = self.compute(nearest.params, move |params| compare(params, &read)).await?;
            found.searched += i64::try_from(hits.len()).unwrap_or(i64::MAX);
            found.not_searched += others;
            hits.into_iter().for_each(|it| nearest.add(it));
        }
        Ok(())
    }

    /// Runs a computation on a blocking thread, with limited concurrency.
    async fn compute<T: Send + 'static>(
        &self,
        params: &Arc<SearchParams>,
        work: impl FnOnce(&SearchParams) -> T + Send + 'static,
    ) -> Result<T, DbError> {
        let permit = Arc::clone(&self.scans).acquire_owned().await.map_err(interrupted)?;
        let params = Arc::clone(params);
        let done = spawn_blocking(move || {
            // If the search is cancelled, the processor is still occupied.
            let _permit = permit;
            work(&params)
        });
        done.await.map_err(interrupted)
    }
}

/// Returns the distances of matching vectors, and how many vectors of other embedding models were
/// skipped.
fn compare(params: &SearchParams, read: &[Arrival]) -> (Vec<Hit>, i64) {
    let filter = &params.filter;
    let (mut hits, mut others) = (Vec::new(), 0);
    for it in read.iter().filter(|it| filter.accepts(it.started_at, it.kind_hash, it.model_hash)) {
        if filter.embedding_hash.is_some_and(|hash| hash != it.embedding_hash) {
            others += 1;
        } else {
            let distance = distance(params.query.numbers(), &it.vector);
            hits.push(Hit { distance, trace_id: it.trace_id, id: it.id });
        }
    }
    (hits, others)
}

/// The nearest vectors so far.
struct Nearest<'a> {
    params: &'a Arc<SearchParams>,
    /// The farthest one is on top.
    hits: BinaryHeap<Hit>,
}

impl Nearest<'_> {
    /// Compares the candidates, the most promising first, as long as one may be among the nearest.
    async fn take(
        &mut self,
        db: &Db,
        tenant: Uuid,
        blocks: &[Arc<VectorBlock>],
        candidates: &mut [Candidate],
    ) -> Result<(), DbError> {
        // Of equal vectors only one is read: many spans may have the same text.
        let mut known: HashMap<u64, f64> = HashMap::new();
        let mut size = self.params.limit + EXTRA_CANDIDATES;
        let mut rest = candidates;
        while !rest.is_empty() {
            size = size.min(rest.len());
            let (batch, others) = best(rest, size, blocks);
            rest = others;
            let promising = batch.iter().take_while(|it| self.may_take(it.at_most)).count();
            let entries = |it: &Candidate| blocks[it.block].row(it.place);
            let entries: Vec<&VectorEntry> = batch[..promising].iter().filter_map(entries).collect();
            let mut unread: HashMap<(Uuid, Uuid), u64> = HashMap::new();
            let mut rows = Vec::new();
            for it in &entries {
                if let Some(distance) = known.get(&it.embedding_digest) {
                    self.add(Hit { distance: *distance, trace_id: it.trace_id, id: it.id });
                } else {
                    unread.insert((it.trace_id, it.id), it.embedding_digest);
                    rows.push(it.row);
                }
            }
            for (trace_id, id, vector) in in_rows(db, tenant, &rows).await? {
                if let Some(same) = unread.get(&(trace_id, id)) {
                    let distance = distance(self.params.query.numbers(), &vector);
                    known.insert(*same, distance);
                    self.add(Hit { distance, trace_id, id });
                }
            }
            if promising < size {
                break;
            }
            size = (2 * size).min(MAX_CANDIDATES_PER_READ);
        }
        Ok(())
    }

    /// Whether a vector with this upper bound of its cosine can be among the nearest.
    fn may_take(&self, at_most: f32) -> bool {
        let farthest = self.hits.peek().filter(|_| self.hits.len() >= self.params.limit);
        farthest.is_none_or(|it| 1.0 - f64::from(at_most) <= it.distance)
    }

    /// Adds a vector, if it is after the previous page.
    fn add(&mut self, hit: Hit) {
        if self.params.after.is_some_and(|it| hit <= it) {
            return;
        }
        self.hits.push(hit);
        if self.hits.len() > self.params.limit {
            self.hits.pop();
        }
    }
}

/// Splits the candidates into the `size` most promising, ordered, and the others, unordered.
fn best<'a>(
    candidates: &'a mut [Candidate],
    size: usize,
    blocks: &[Arc<VectorBlock>],
) -> (&'a mut [Candidate], &'a mut [Candidate]) {
    let span = |it: &Candidate| blocks[it.block].row(it.place).map(|it| (it.trace_id, it.id));
    let order = |a: &Candidate, b: &Candidate| -> Ordering {
        b.at_most.total_cmp(&a.at_most).then_with(|| span(a).cmp(&span(b)))
    };
    if size < candidates.len() {
        candidates.select_nth_unstable_by(size, order);
    }
    let (best, others) = candidates.split_at_mut(size);
    best.sort_unstable_by(order);
    (best, others)
}

/// Returns the cosine distance of a vector of length 1 and a stored one, 0 to 2.
fn distance(query: &[f32], stored: &[u8]) -> f64 {
    let numbers = read_numbers(stored);
    let (mut product, mut square) = (0.0_f64, 0.0_f64);
    for (i, number) in numbers.iter().enumerate() {
        product += f64::from(*number) * f64::from(query.get(i).copied().unwrap_or(0.0));
        square += f64::from(*number) * f64::from(*number);
    }
    (1.0 - product / square.sqrt()).clamp(0.0, 2.0)
}

/// Returns the error for a search that panicked or was cancelled on shutdown.
fn interrupted(error: impl std::fmt::Display) -> DbError {
    DbError::Custom(format!("a search was interrupted: {error}"))
}
