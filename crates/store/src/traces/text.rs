//! Reads the texts of traces and spans from text blocks.

use std::collections::{HashMap, HashSet};

use entities::{span, trace};
use sea_orm::DbErr;
use uuid::Uuid;

use crate::{
    db::Db,
    error::Result,
    memory::{MemoryAccount, Uncounted},
    text_block::{Entry, unpack, unpacked_bytes},
    text_rows::{self, MAX_SMALL_ROW_BYTES},
};

/// Decompressed size up to which a block is not counted individually. A larger block holds a single text.
pub const SMALL_BLOCK_BYTES: usize = MAX_SMALL_ROW_BYTES;

/// Texts of a trace.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// The input of the trace.
    pub input: Option<String>,
    /// The output of the trace.
    pub output: Option<String>,
    /// The metadata, a JSON object.
    pub metadata: Option<String>,
}

/// Texts of a span.
pub type SpanTexts = Entry;

impl Texts {
    /// Returns the size of all texts.
    pub fn bytes(&self) -> usize {
        [&self.input, &self.output, &self.metadata].into_iter().flatten().map(String::len).sum()
    }
}

/// Returns the texts of a trace, for work that does not count towards the tenant's share of memory.
///
/// # Errors
/// Fails when the database fails or a text block is damaged.
pub async fn trace_texts(db: &Db, tenant: Uuid, row: &trace::Model) -> Result<Texts> {
    let blocks = TextBlocks::of_traces(db, tenant, std::slice::from_ref(row)).await?;
    let counted = blocks.of_trace(db, row, &mut Uncounted).await?;
    Ok(counted.texts)
}

/// The compressed text blocks of some rows. Small blocks are read at once. A large block, which holds a
/// single text of up to many megabytes, is read and decompressed only for its row.
pub struct TextBlocks {
    tenant: Uuid,
    small: HashMap<Uuid, Vec<u8>>,
    /// Compressed sizes of the large blocks.
    large: HashMap<Uuid, usize>,
    /// Decompressed small blocks with the texts of several spans.
    open: HashMap<Uuid, Vec<Entry>>,
}

/// Texts with the number of bytes reserved for them.
#[derive(Debug, Default)]
pub struct Counted<T> {
    /// The texts.
    pub texts: T,
    /// Number of bytes by which the reservation grew. Small texts are not counted individually.
    pub reserved: usize,
}

impl TextBlocks {
    /// Reads the small text blocks of these traces.
    ///
    /// # Errors
    /// Fails when the database fails.
    pub async fn of_traces(db: &Db, tenant: Uuid, rows: &[trace::Model]) -> Result<Self, DbErr> {
        let ids = rows.iter().flat_map(|it| places(it).into_iter().filter_map(|it| it.0));
        Self::load(db, tenant, ids).await
    }

    /// Reads the blocks with these IDs that are small.
    ///
    /// # Errors
    /// Fails when the database fails.
    pub async fn load(db: &Db, tenant: Uuid, ids: impl Iterator<Item = Uuid>) -> Result<Self, DbErr> {
        let found = text_rows::read(db, tenant, ids, MAX_SMALL_ROW_BYTES).await?;
        let (large, small): (HashMap<_, _>, HashMap<_, _>) =
            found.into_iter().partition(|it| it.1.is_empty());
        let large = match large.is_empty() {
            true => HashMap::new(),
            false => text_rows::row_sizes(db, tenant, large.into_keys()).await?,
        };
        Ok(Self { tenant, small, large, open: HashMap::new() })
    }

    /// Returns the texts of a trace.
    ///
    /// # Errors
    /// Fails with `overloaded` when there is no memory for large texts; internal when the database fails or the
    /// text block is damaged.
    pub async fn of_trace(
        &self,
        db: &Db,
        row: &trace::Model,
        memory: &mut impl MemoryAccount,
    ) -> Result<Counted<Texts>> {
        let places = places(row);
        // Usually all references lead to one text block, which is then decompressed once, up to the last
        // entry.
        let mut open: HashMap<Uuid, Vec<Entry>> = HashMap::with_capacity(1);
        let mut reserved = 0;
        for id in places.iter().filter_map(|it| it.0) {
            if open.contains_key(&id) {
                continue;
            }
            let last = places.iter().filter(|it| it.0 == Some(id)).map(|it| it.1).max().unwrap_or(0);
            let (entries, grown) = match self.small.get(&id) {
                Some(data) => unpack_counted(data, last + 1, memory).await?,
                None => self.unpack_large(db, id, last + 1, memory).await?,
            };
            reserved += grown;
            open.insert(id, entries);
        }
        let mut texts = Texts::default();
        let [own, input, output] = places;
        if let Some(entry) = entry_at(&mut open, own) {
            texts = Texts {
                input: entry.take_input(),
                output: entry.take_output(),
                metadata: entry.metadata.take(),
            };
        }
        if input.0.is_some() {
            texts.input = entry_at(&mut open, input).and_then(Entry::take_input);
        }
        if output.0.is_some() {
            texts.output = entry_at(&mut open, output).and_then(Entry::take_output);
        }
        Ok(Counted { texts, reserved })
    }

    /// Removes and returns the texts of a span; none if its text block is missing.
    ///
    /// # Errors
    /// Like [`Self::of_trace`].
    pub async fn of_span(
        &mut self,
        db: &Db,
        row: &span::Model,
        memory: &mut impl MemoryAccount,
    ) -> Result<Counted<SpanTexts>> {
        let Some(id) = row.body_id else { return Ok(Counted::default()) };
        let index = usize::try_from(row.body_index).unwrap_or(usize::MAX);
        let take = |entries: &mut Vec<Entry>| entries.get_mut(index).map(std::mem::take).unwrap_or_default();
        if let Some(entries) = self.open.get_mut(&id) {
            return Ok(Counted { texts: take(entries), reserved: 0 });
        }
        let (mut entries, mut reserved) = match self.small.remove(&id) {
            Some(data) => unpack_counted(&data, usize::MAX, memory).await?,
            None => self.unpack_large(db, id, usize::MAX, memory).await?,
        };
        let texts = take(&mut entries);
        // A block of many short texts exceeds the size with its lengths, but later spans need it as well.
        if entries.len() > 1 {
            memory.release(std::mem::take(&mut reserved));
        }
        if reserved == 0 {
            self.open.insert(id, entries);
        }
        Ok(Counted { texts, reserved })
    }

    async fn unpack_large(
        &self,
        db: &Db,
        id: Uuid,
        count: usize,
        memory: &mut impl MemoryAccount,
    ) -> Result<(Vec<Entry>, usize)> {
        let Some(size) = self.large.get(&id).copied() else { return Ok((Vec::new(), 0)) };
        // The driver holds a second copy of the bytes during the read.
        memory.reserve(2 * size).await?;
        let read = text_rows::read(db, self.tenant, [id], usize::MAX).await;
        let unpacked = match read.map(|mut it| it.remove(&id)) {
            Ok(Some(data)) => unpack_counted(&data, count, memory).await,
            Ok(None) => Ok((Vec::new(), 0)),
            Err(error) => Err(error.into()),
        };
        memory.release(2 * size);
        unpacked
    }
}

/// Returns the block references of a trace: of its own texts, and of its input and output if they are stored
/// elsewhere.
fn places(row: &trace::Model) -> [(Option<Uuid>, usize); 3] {
    let place = |id, index: Option<i32>| (id, index.and_then(|it| usize::try_from(it).ok()).unwrap_or(0));
    [
        place(row.body_id, Some(row.body_index)),
        place(row.input_body_id, row.input_body_index),
        place(row.output_body_id, row.output_body_index),
    ]
}

fn entry_at(open: &mut HashMap<Uuid, Vec<Entry>>, (id, index): (Option<Uuid>, usize)) -> Option<&mut Entry> {
    open.get_mut(&id?)?.get_mut(index)
}

/// Decompresses the first `count` entries of a text block, and reserves memory for large ones.
async fn unpack_counted(
    data: &[u8],
    count: usize,
    memory: &mut impl MemoryAccount,
) -> Result<(Vec<Entry>, usize)> {
    let size = unpacked_bytes(data);
    let reserved = if size > SMALL_BLOCK_BYTES { size } else { 0 };
    memory.reserve(reserved).await?;
    match unpack(data, count) {
        Ok(entries) => Ok((entries, reserved)),
        Err(error) => {
            memory.release(reserved);
            Err(damaged(error).into())
        }
    }
}

/// The compressed text blocks of a page of spans. A block is decompressed when the first of its spans is
/// read, because a few compressed bytes can become many megabytes.
pub struct PackedSpans {
    packed: HashMap<Uuid, Vec<u8>>,
    open: HashMap<Uuid, Vec<Entry>>,
}

impl PackedSpans {
    /// Reads the text blocks of these spans.
    ///
    /// # Errors
    /// Fails when the database fails.
    pub async fn of(db: &Db, tenant: Uuid, rows: &[span::Model]) -> Result<Self, DbErr> {
        let packed = text_rows::read(db, tenant, rows.iter().filter_map(|it| it.body_id), usize::MAX).await?;
        Ok(Self { packed, open: HashMap::new() })
    }

    /// Reads the text blocks of these spans in their order, up to about `most` bytes in total, and always the
    /// block of the span `asked`. The other spans then have no texts.
    ///
    /// # Errors
    /// Fails when the database fails.
    pub async fn some_of(
        db: &Db,
        tenant: Uuid,
        rows: &[span::Model],
        asked: Option<Uuid>,
        most: usize,
    ) -> Result<Self, DbErr> {
        let sizes = text_rows::row_sizes(db, tenant, rows.iter().filter_map(|it| it.body_id)).await?;
        let (mut bytes, mut wanted) = (0, HashSet::new());
        for row in rows {
            let Some(id) = row.body_id.filter(|_| bytes < most || asked == Some(row.id)) else { continue };
            if wanted.insert(id) {
                bytes += sizes.get(&id).copied().unwrap_or_default();
            }
        }
        Ok(Self { packed: text_rows::read(db, tenant, wanted, usize::MAX).await?, open: HashMap::new() })
    }

    /// Removes and returns the texts of one of the spans; empty if its text block is missing.
    ///
    /// # Errors
    /// Fails when the text block is damaged.
    pub fn take(&mut self, row: &span::Model) -> Result<SpanTexts, DbErr> {
        let Some(id) = row.body_id else { return Ok(SpanTexts::default()) };
        if let Some(data) = self.packed.remove(&id) {
            self.open.insert(id, unpack(&data, usize::MAX).map_err(damaged)?);
        }
        let index = usize::try_from(row.body_index).unwrap_or(usize::MAX);
        let entry = self.open.get_mut(&id).and_then(|it| it.get_mut(index));
        Ok(entry.map(std::mem::take).unwrap_or_default())
    }
}

fn damaged(error: std::io::Error) -> DbErr {
    DbErr::Custom(format!("a text block can't be read: {error}"))
}
