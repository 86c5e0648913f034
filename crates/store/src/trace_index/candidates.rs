//! Searches all runs of a tenant for traces with some terms, newest first.

use sea_orm::{ConnectionTrait, DbErr};
use uuid::Uuid;

use super::{
    run::{Blocks, Position, Run},
    stored::{self, RunRow},
    terms::AnyOf,
};
use crate::db::Db;

/// Number of blocks that one step of a search reads, unless one run needs more; a block takes about 11 KB.
const MAX_STEP_BLOCKS: usize = 512;

/// The traces that the runs list for some terms, newest first. The row of a trace decides whether it has them.
pub struct Candidates<'a, C> {
    db: &'a Db,
    connection: &'a C,
    tenant: Uuid,
    terms: &'a [AnyOf],
    runs: Vec<RunSearch>,
    blocks: Blocks,
}

struct RunSearch {
    row: RunRow,
    /// The run; none until the search needs its directory.
    run: Option<Run>,
    next: Next,
}

/// The next candidate of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Not newer than this position.
    NotAfter(Position),
    /// At this position.
    At(Position),
    /// There is none.
    Ended,
}

impl Next {
    fn position(self) -> Option<Position> {
        match self {
            Self::NotAfter(at) | Self::At(at) => Some(at),
            Self::Ended => None,
        }
    }
}

impl<'a, C: ConnectionTrait> Candidates<'a, C> {
    /// Begins a search before the position `before`, from the newest trace without one. Reads with `connection`.
    ///
    /// # Errors
    /// Fails when the database fails.
    pub async fn open(
        db: &'a Db,
        connection: &'a C,
        tenant: Uuid,
        terms: &'a [AnyOf],
        before: Option<Position>,
    ) -> Result<Self, DbErr> {
        let start = before.map_or((i64::MAX, i64::MAX), preceding);
        let runs = stored::ready_runs(connection, tenant).await?;
        let runs = runs.into_iter().filter(|it| it.oldest_at <= start.0);
        let runs = runs.map(|row| {
            let next = Next::NotAfter(start.min((row.newest_at, i64::MAX)));
            RunSearch { row, run: None, next }
        });
        Ok(Self { db, connection, tenant, terms, runs: runs.collect(), blocks: Blocks::new() })
    }

    /// Returns the next candidates, at most `count`, of those that are newer than `oldest` or at it. Fewer are returned
    /// only at the end. `oldest` must not be older than in an earlier call.
    ///
    /// # Errors
    /// Fails when the database fails or the index is damaged.
    pub async fn next(&mut self, count: usize, oldest: Position) -> Result<Vec<Position>, DbErr> {
        let mut found = Vec::with_capacity(count);
        while found.len() < count {
            let newest = self.runs.iter().filter_map(|it| it.next.position()).max();
            let Some(newest) = newest.filter(|it| *it >= oldest) else { break };
            if self.runs.iter().any(|it| it.next == Next::NotAfter(newest)) {
                self.search(newest, oldest).await?;
                continue;
            }
            found.push(newest);
            // Several runs have the same candidate after a change of its trace.
            for run in self.runs.iter_mut().filter(|it| it.next == Next::At(newest)) {
                run.next = Next::NotAfter(preceding(newest));
            }
        }
        Ok(found)
    }

    /// Finds the next candidates of runs that may have one at `newest`, and of others that are probably needed too.
    async fn search(&mut self, newest: Position, oldest: Position) -> Result<(), DbErr> {
        let alternatives: usize = self.terms.iter().map(|it| it.0.len()).sum();
        let max_runs = (MAX_STEP_BLOCKS / alternatives.max(1)).max(1);
        // A run that cannot have a candidate newer than the best known one need not be searched yet. Without a known one,
        // runs are searched that overlap in time with the newest.
        let known = self.runs.iter().filter_map(|it| match it.next {
            Next::At(at) => Some(at),
            _ => None,
        });
        let newest_run = self.runs.iter().filter(|it| it.next.position() == Some(newest));
        let overlapping = newest_run.map(|it| (it.row.oldest_at, i64::MIN)).max();
        let bound = known.max().or(overlapping).unwrap_or(newest);
        let mut places: Vec<usize> = (0..self.runs.len())
            .filter(|it| matches!(self.runs[*it].next, Next::NotAfter(at) if at >= bound))
            .collect();
        places.sort_unstable_by_key(|it| std::cmp::Reverse(self.runs[*it].next.position()));
        places.truncate(max_runs);
        self.open_runs(&places).await?;
        while !places.is_empty() {
            let mut missing = Vec::new();
            let (runs, blocks, terms) = (&mut self.runs, &self.blocks, self.terms);
            places.retain(|place| {
                let RunSearch { run, next, .. } = &mut runs[*place];
                let (Some(run), Next::NotAfter(start)) = (run, *next) else { return false };
                match run.find(blocks, terms, start, oldest) {
                    Ok(found) => {
                        *next = found.map_or(Next::Ended, Next::At);
                        false
                    }
                    Err(mut unread) => {
                        *next = Next::NotAfter(unread.reached);
                        missing.append(&mut unread.blocks);
                        true
                    }
                }
            });
            // A step needs a block for each alternative at once. With less space than for two steps, the blocks of one step
            // could displace each other for ever.
            if self.blocks.len() + missing.len() > 2 * MAX_STEP_BLOCKS.max(alternatives) {
                self.blocks.clear();
            }
            stored::read_blocks(self.connection, self.tenant, &missing, &mut self.blocks).await?;
        }
        Ok(())
    }

    async fn open_runs(&mut self, places: &[usize]) -> Result<(), DbErr> {
        let closed = places.iter().filter(|it| self.runs[**it].run.is_none());
        let ids: Vec<i64> = closed.map(|it| self.runs[*it].row.id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mut directories = stored::directories(self.db, self.connection, self.tenant, &ids).await?;
        for place in places {
            let search = &mut self.runs[*place];
            if search.run.is_none() {
                let id = search.row.id;
                let missing = || DbErr::Custom(format!("run {id} of the trace index is missing"));
                let directory = directories.remove(&id).ok_or_else(missing)?;
                search.run = Some(Run { id, directory });
            }
        }
        Ok(())
    }
}

/// Returns the next older position.
fn preceding((at, key): Position) -> Position {
    (at, key.saturating_sub(1))
}
