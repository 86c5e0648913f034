//! Searches the nearest vectors in memory, for SQLite.
//!
//! The codes give wide bounds of each vector's similarity, and narrow ones of the vectors that may be among the nearest.
//! The exact vectors are then read and compared, the most promising first, until no other can be nearer.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap},
    sync::Arc,
};

use api::search::DIMENSIONS;
use store::{
    Db, DbError, projects,
    vectors::{Arrival, Hit, NearestSpans, UnitVector, VectorFilter, arrivals, in_rows, read_numbers},
};
use tokio::{sync::Semaphore, task::spawn_blocking};
use uuid::Uuid;

use super::{
    coarse_codes::{CodedQuery, CosineBounds},
    vector_block::{VectorBlock, VectorEntry},
    vector_cache::{ProjectVectors, VECTORS_PER_READ, VectorCache},
};

/// Number of vectors whose narrow bounds are computed at first, per requested vector and at least.
const NARROWED_CANDIDATES: (usize, usize) = (16, 1_024);
/// Number of vectors compared exactly at first, in addition to the requested number.
const EXTRA_CANDIDATES: usize = 32;
/// Maximum number of vectors of a project compared exactly for the first page, per requested vector and at least. More of them
/// may be among the nearest if thousands are about equally near, for example all vectors if none is similar to the query.
const MAX_COMPARED_CANDIDATES: (usize, usize) = (64, 4_096);
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
    block: u32,
    place: u16,
    /// Whether the bound is the narrow one.
    is_narrow: bool,
}

impl Candidate {
    /// Returns the order of the most promising first.
    fn order(&self, other: &Self) -> Ordering {
        let position = |it: &Self| (it.block, it.place);
        other.at_most.total_cmp(&self.at_most).then_with(|| position(self).cmp(&position(other)))
    }

    fn entry<'a>(&self, blocks: &'a [Arc<VectorBlock>]) -> Option<&'a VectorEntry> {
        blocks.get(self.block as usize)?.row(usize::from(self.place))
    }

    /// Replaces the wide bound by the narrow one.
    fn narrow(&mut self, blocks: &[Arc<VectorBlock>], query: &CodedQuery) {
        if !self.is_narrow {
            let block = blocks.get(self.block as usize);
            let bounds = block.and_then(|it| it.narrow_bounds(query, usize::from(self.place)));
            self.at_most = bounds.map_or(self.at_most, |it| self.at_most.min(it.at_most));
            self.is_narrow = true;
        }
    }
}

/// The parameters of a search, shared by its tasks.
struct SearchParams {
    /// The numbers of the query vector, all of them.
    query: Vec<f32>,
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
        let filter = filter.clone();
        let codes = CodedQuery::of(query.numbers());
        let mut query = query.numbers().to_vec();
        query.resize(DIMENSIONS, 0.0);
        let params = Arc::new(SearchParams { query, codes, filter, after, limit });
        let mut found = NearestSpans::default();
        let mut nearest = Nearest { params: &params, hits: BinaryHeap::new(), known: HashMap::new() };
        for project in projects {
            match self.index.snapshot(db, tenant, project).await? {
                ProjectVectors::Loaded(blocks) => {
                    let blocks = Arc::new(blocks);
                    let (best, others) = self.scan(&blocks, &params, &mut found).await?;
                    let rest = nearest.take(db, tenant, &blocks, best).await?;
                    let promising = self.narrow(&blocks, &nearest, rest, others).await?;
                    nearest.take_all(db, tenant, &blocks, &promising).await?;
                }
                ProjectVectors::TooLarge => {
                    self.scan_stored(db, tenant, project, &mut nearest, &mut found).await?;
                }
            }
        }
        found.hits = nearest.hits.into_sorted_vec();
        Ok(found)
    }

    /// Returns the most promising candidates with their narrow bounds, ordered, and the others, unordered.
    async fn scan(
        &self,
        blocks: &Arc<Vec<Arc<VectorBlock>>>,
        params: &Arc<SearchParams>,
        found: &mut NearestSpans,
    ) -> Result<(Vec<Candidate>, Vec<Candidate>), DbError> {
        let blocks = Arc::clone(blocks);
        let (best, rest, searched, others) = self
            .compute(params, move |params| {
                // Nearer vectors are on an earlier page.
                let nearest = params.after.map_or(f64::INFINITY, |it| 1.0 - it.distance);
                let (mut candidates, mut searched, mut others) = (Vec::new(), 0, 0);
                for (number, block) in (0..).zip(blocks.iter()) {
                    others += block.scan(&params.codes, &params.filter, &mut |place, bounds| {
                        searched += 1;
                        let CosineBounds { at_least, at_most } = bounds;
                        if f64::from(at_least) <= nearest {
                            // A block has at most 1,024 vectors.
                            let place = u16::try_from(place).unwrap_or(u16::MAX);
                            candidates.push(Candidate { at_most, block: number, place, is_narrow: false });
                        }
                    });
                }
                let narrowed = (NARROWED_CANDIDATES.0 * params.limit).max(NARROWED_CANDIDATES.1);
                let narrowed = narrowed.min(candidates.len());
                if narrowed < candidates.len() {
                    candidates.select_nth_unstable_by(narrowed, Candidate::order);
                }
                let rest = candidates.split_off(narrowed);
                candidates.iter_mut().for_each(|it| it.narrow(&blocks, &params.codes));
                candidates.sort_unstable_by(Candidate::order);
                (candidates, rest, searched, others)
            })
            .await?;
        found.searched += searched;
        found.not_searched += others;
        Ok((best, rest))
    }

    /// Returns the candidates that may still be among the nearest, ordered by their narrow bounds.
    async fn narrow(
        &self,
        blocks: &Arc<Vec<Arc<VectorBlock>>>,
        nearest: &Nearest<'_>,
        best: Vec<Candidate>,
        others: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, DbError> {
        let may_take = |it: &Candidate| nearest.may_take(it.at_most);
        let mut promising: Vec<Candidate> = best.into_iter().chain(others).filter(may_take).collect();
        if promising.iter().any(|it| !it.is_narrow) {
            let blocks = Arc::clone(blocks);
            let narrowed = self.compute(nearest.params, move |params| {
                promising.iter_mut().for_each(|it| it.narrow(&blocks, &params.codes));
                promising
            });
            promising = narrowed.await?;
            promising.retain(may_take);
        }
        promising.sort_unstable_by(Candidate::order);
        Ok(promising)
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
            let distance = distance(&params.query, &it.vector);
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
    /// The distances of vectors by their digests. Of equal vectors only one is read: many spans may have the same text.
    known: HashMap<u64, f64>,
}

impl Nearest<'_> {
    /// Compares the most promising candidates until there are as many hits as requested. Returns the others.
    async fn take(
        &mut self,
        db: &Db,
        tenant: Uuid,
        blocks: &[Arc<VectorBlock>],
        mut candidates: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, DbError> {
        let size = self.params.limit + EXTRA_CANDIDATES;
        while self.hits.len() < self.params.limit && !candidates.is_empty() {
            let rest = candidates.split_off(size.min(candidates.len()));
            self.compare(db, tenant, blocks, &candidates).await?;
            candidates = rest;
        }
        Ok(candidates)
    }

    /// Compares the candidates, the most promising first, as long as one may be among the nearest, but for the first page
    /// not more than a maximum. A later page must contain all vectors that the first one did not.
    async fn take_all(
        &mut self,
        db: &Db,
        tenant: Uuid,
        blocks: &[Arc<VectorBlock>],
        mut candidates: &[Candidate],
    ) -> Result<(), DbError> {
        if self.params.after.is_none() {
            let most = (MAX_COMPARED_CANDIDATES.0 * self.params.limit).max(MAX_COMPARED_CANDIDATES.1);
            candidates = &candidates[..most.min(candidates.len())];
        }
        let mut size = self.params.limit + EXTRA_CANDIDATES;
        while !candidates.is_empty() {
            let (batch, rest) = candidates.split_at(size.min(candidates.len()));
            candidates = rest;
            let promising = batch.iter().take_while(|it| self.may_take(it.at_most)).count();
            self.compare(db, tenant, blocks, &batch[..promising]).await?;
            if promising < batch.len() {
                break;
            }
            size = (2 * size).min(MAX_CANDIDATES_PER_READ);
        }
        Ok(())
    }

    /// Reads these vectors, unless equal ones were read, and adds them.
    async fn compare(
        &mut self,
        db: &Db,
        tenant: Uuid,
        blocks: &[Arc<VectorBlock>],
        candidates: &[Candidate],
    ) -> Result<(), DbError> {
        let mut unread: HashMap<(Uuid, Uuid), u64> = HashMap::new();
        let mut rows = Vec::new();
        for it in candidates.iter().filter_map(|it| it.entry(blocks)) {
            if let Some(distance) = self.known.get(&it.embedding_digest) {
                self.add(Hit { distance: *distance, trace_id: it.trace_id, id: it.id });
            } else {
                unread.insert((it.trace_id, it.id), it.embedding_digest);
                rows.push(it.row);
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        for (trace_id, id, vector) in in_rows(db, tenant, &rows).await? {
            if let Some(digest) = unread.get(&(trace_id, id)) {
                let distance = distance(&self.params.query, &vector);
                self.known.insert(*digest, distance);
                self.add(Hit { distance, trace_id, id });
            }
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

/// Returns the cosine distance of a vector of length 1 and a stored one, 0 to 2.
fn distance(query: &[f32], stored: &[u8]) -> f64 {
    // Eight sums each, so that the compiler generates instructions for several numbers.
    let (mut products, mut squares) = ([0.0_f64; 8], [0.0_f64; 8]);
    let mut numbers = read_numbers(stored);
    numbers.resize(numbers.len().next_multiple_of(8), 0.0);
    for (numbers, query) in numbers.as_chunks::<8>().0.iter().zip(query.as_chunks::<8>().0) {
        for i in 0..8 {
            let number = f64::from(numbers[i]);
            products[i] += number * f64::from(query[i]);
            squares[i] += number * number;
        }
    }
    (1.0 - products.iter().sum::<f64>() / squares.iter().sum::<f64>().sqrt()).clamp(0.0, 2.0)
}

/// Returns the error for a search that panicked or was cancelled on shutdown.
fn interrupted(error: impl std::fmt::Display) -> DbError {
    DbError::Custom(format!("a search was interrupted: {error}"))
}
