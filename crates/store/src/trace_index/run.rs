//! Runs: sorted, immutable entries in blocks, and the search for a term in them.

use std::{collections::HashMap, sync::Arc};

use super::{
    entry::{self, IndexEntry},
    terms::AnyOf,
};

/// Encoded size in bytes that a block should have.
const BLOCK_BYTES: usize = 3_900;
/// Maximum encoded size of a block in bytes. Two such blocks fit into a page of SQLite.
const MAX_BLOCK_BYTES: usize = 4_000;
/// Usual encoded size of an entry in bytes.
const ENTRY_BYTES: usize = 9;
/// Number of entries after which a block ends, so that decoding one costs little.
const MAX_BLOCK_ENTRIES: usize = 1_024;

/// Cuts sorted entries into blocks.
#[derive(Debug)]
pub struct BlockWriter {
    pending: Vec<IndexEntry>,
    /// Number of entries that fitted into the last block.
    fitting: usize,
    /// The finished blocks: their first entries and their encodings.
    finished: Vec<(IndexEntry, Vec<u8>)>,
}

impl Default for BlockWriter {
    fn default() -> Self {
        Self { pending: Vec::new(), fitting: BLOCK_BYTES / ENTRY_BYTES, finished: Vec::new() }
    }
}

impl BlockWriter {
    /// Adds an entry that follows all others. Repetitions of the last entry are ignored.
    pub fn push(&mut self, entry: IndexEntry) {
        if self.pending.last() == Some(&entry) {
            return;
        }
        self.pending.push(entry);
        if self.pending.len() > 2 * self.fitting {
            self.cut();
        }
    }

    /// Returns the number of finished blocks.
    pub fn finished(&self) -> usize {
        self.finished.len()
    }

    /// Removes and returns the finished blocks.
    pub fn take_finished(&mut self) -> Vec<(IndexEntry, Vec<u8>)> {
        std::mem::take(&mut self.finished)
    }

    /// Returns the remaining blocks.
    pub fn finish(mut self) -> Vec<(IndexEntry, Vec<u8>)> {
        while !self.pending.is_empty() {
            self.cut();
        }
        self.finished
    }

    /// Finishes one block with the first of the pending entries.
    fn cut(&mut self) {
        loop {
            let taken = self.fitting.min(self.pending.len());
            let data = entry::encode(&self.pending[..taken]);
            self.fitting = (taken * BLOCK_BYTES / data.len().max(1)).clamp(1, MAX_BLOCK_ENTRIES);
            if data.len() <= MAX_BLOCK_BYTES || taken == 1 {
                self.finished.push((self.pending[0], data));
                self.pending.drain(..taken);
                return;
            }
        }
    }
}

/// Cuts all of these sorted entries into blocks.
pub fn blocks(entries: &[IndexEntry]) -> Vec<(IndexEntry, Vec<u8>)> {
    let mut writer = BlockWriter::default();
    for entry in entries {
        writer.push(*entry);
    }
    writer.finish()
}

/// A run, with the first entry of each of its blocks.
#[derive(Clone, Debug)]
pub struct Run {
    /// Identifies the run within its tenant.
    pub id: i64,
    /// The first entry of each block.
    pub directory: Arc<Vec<IndexEntry>>,
}

/// A block that a search must read before it can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockId {
    /// The run.
    pub run: i64,
    /// The number of the block within the run.
    pub number: usize,
}

/// The reason why a search of a run cannot continue.
#[derive(Debug)]
pub struct Unread {
    /// The blocks that must be read.
    pub blocks: Vec<BlockId>,
    /// No trace between the beginning of the search and this position has all terms.
    pub reached: Position,
}

/// The blocks that a search has read.
pub type Blocks = HashMap<BlockId, Vec<IndexEntry>>;

/// Position of a trace in a list: start in microseconds, key.
pub type Position = (i64, i64);

impl Run {
    /// Returns the newest position of a trace with all of these terms that is not newer than `start` and not older than
    /// `oldest`.
    ///
    /// # Errors
    /// Fails with the blocks that must be read first, and where the search continues.
    pub fn find(
        &self,
        blocks: &Blocks,
        terms: &[AnyOf],
        mut start: Position,
        oldest: Position,
    ) -> Result<Option<Position>, Unread> {
        while start >= oldest {
            let mut found = start;
            for term in terms {
                match self.find_any(blocks, term, found) {
                    Ok(Some(at)) => found = at,
                    Ok(None) => return Ok(None),
                    // The other terms usually need blocks too, which are then read together.
                    Err(_) => {
                        return Err(Unread { blocks: self.missing(blocks, terms, found), reached: found });
                    }
                }
            }
            if found == start {
                return Ok(Some(found));
            }
            start = found;
        }
        Ok(None)
    }

    /// Returns the blocks that the terms need to continue at `start`.
    fn missing(&self, blocks: &Blocks, terms: &[AnyOf], start: Position) -> Vec<BlockId> {
        terms.iter().filter_map(|it| self.find_any(blocks, it, start).err()).flatten().collect()
    }

    fn find_any(
        &self,
        blocks: &Blocks,
        AnyOf(terms): &AnyOf,
        start: Position,
    ) -> Result<Option<Position>, Vec<BlockId>> {
        let (mut newest, mut missing) = (None, Vec::new());
        for term in terms {
            match self.find_term(blocks, *term, start) {
                Ok(found) => newest = newest.max(found),
                Err(block) => missing.push(block),
            }
        }
        if missing.is_empty() { Ok(newest) } else { Err(missing) }
    }

    fn find_term(
        &self,
        blocks: &Blocks,
        term: u64,
        (at, key): Position,
    ) -> Result<Option<Position>, BlockId> {
        let wanted = IndexEntry { term, at, key };
        let of_term = |entry: &IndexEntry| (entry.term == term).then(|| entry.position());
        // The block before the first one that begins behind `wanted` may contain it or what follows.
        let next = self.directory.partition_point(|it| *it < wanted);
        if let Some(found) = self.directory.get(next).filter(|it| **it == wanted) {
            return Ok(of_term(found));
        }
        if let Some(number) = next.checked_sub(1) {
            let id = BlockId { run: self.id, number };
            let block = blocks.get(&id).ok_or(id)?;
            let at = block.partition_point(|it| *it < wanted);
            if let Some(found) = block.get(at) {
                return Ok(of_term(found));
            }
        }
        Ok(self.directory.get(next).and_then(of_term))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches like a caller does, reading the blocks that are missing.
    fn find_all(run: &Run, stored: &[(IndexEntry, Vec<u8>)], terms: &[AnyOf]) -> Vec<Position> {
        let (mut blocks, mut found) = (Blocks::new(), Vec::new());
        let mut start = (i64::MAX, i64::MAX);
        loop {
            match run.find(&blocks, terms, start, (i64::MIN, i64::MIN)) {
                Ok(Some(at)) => {
                    found.push(at);
                    start = (at.0, at.1 - 1);
                }
                Ok(None) => return found,
                Err(unread) => {
                    assert!(!unread.blocks.is_empty() && unread.reached <= start);
                    start = unread.reached;
                    // A search holds few blocks, but always those of one step.
                    if blocks.len() + unread.blocks.len()
                        > 2 * terms.iter().map(|it| it.0.len()).sum::<usize>()
                    {
                        blocks.clear();
                    }
                    for id in unread.blocks {
                        blocks.insert(id, entry::decode(&stored[id.number].1).unwrap());
                    }
                }
            }
        }
    }

    fn run_of(entries: &mut Vec<IndexEntry>) -> (Run, Vec<(IndexEntry, Vec<u8>)>) {
        entries.sort_unstable();
        entries.dedup();
        let stored = blocks(entries);
        let directory = Arc::new(stored.iter().map(|it| it.0).collect());
        (Run { id: 1, directory }, stored)
    }

    #[test]
    fn search_finds_what_a_scan_finds() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut entries = Vec::new();
        for key in 0..20_000 {
            let at = random.i64(0..5_000);
            for term in 1..6_u64 {
                if random.u64(0..term * term) == 0 {
                    entries.push(IndexEntry { term: term << 40, at, key });
                }
            }
            entries.push(IndexEntry { term: random.u64(..), at, key });
        }
        let (run, stored) = run_of(&mut entries);
        assert!(stored.len() > 10, "{} blocks", stored.len());
        let one = |term: u64| AnyOf(vec![term << 40]);
        for terms in [
            vec![one(1)],
            vec![one(5)],
            vec![one(2), one(3)],
            vec![one(4), one(5), one(1)],
            vec![AnyOf(vec![3 << 40, 4 << 40, 99]), one(2)],
            vec![one(77)],
        ] {
            let has = |term: &AnyOf, at: Position| {
                term.0
                    .iter()
                    .any(|it| entries.binary_search(&IndexEntry { term: *it, at: at.0, key: at.1 }).is_ok())
            };
            let mut expected: Vec<Position> = entries.iter().map(IndexEntry::position).collect();
            expected.sort_unstable();
            expected.dedup();
            expected.reverse();
            expected.retain(|at| terms.iter().all(|it| has(it, *at)));
            assert_eq!(find_all(&run, &stored, &terms), expected, "{terms:?}");
        }
    }

    #[test]
    fn blocks_fit_into_half_a_page_and_keep_all_entries() {
        let mut random = fastrand::Rng::with_seed(1);
        // Hashes of unique values, then a long list.
        let mut entries: Vec<IndexEntry> =
            (0..5_000).map(|key| IndexEntry { term: random.u64(..), at: random.i64(..), key }).collect();
        entries.extend((0..50_000).map(|key| IndexEntry { term: 9, at: key * 20, key }));
        let (_, stored) = run_of(&mut entries);
        let read: Vec<IndexEntry> = stored.iter().flat_map(|it| entry::decode(&it.1).unwrap()).collect();
        assert_eq!(read, entries);
        let largest = stored.iter().map(|it| it.1.len()).max().unwrap();
        assert!(largest <= MAX_BLOCK_BYTES, "{largest} bytes");
    }
}
