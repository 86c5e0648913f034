//! Text blocks: the compressed texts of the spans of a chunk.
//!
//! A block contains entries. It begins with their number and, for each entry, the lengths of its five
//! texts; the texts follow in the same order. Entries that lists show come first, and a reader of one
//! entry stops there.

use std::cell::RefCell;

use uuid::Uuid;

use crate::ids::new_id;

/// The texts of a span, or of a trace as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Input.
    pub input: Option<String>,
    /// Output.
    pub output: Option<String>,
    /// JSON object.
    pub metadata: Option<String>,
    /// Input of the whole trace, if the span contains it separately.
    pub trace_input: Option<String>,
    /// Output of the whole trace, if the span contains it separately.
    pub trace_output: Option<String>,
}

/// A text block to store.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The ID of the block.
    pub id: Uuid,
    /// The Zstandard frame.
    pub data: Vec<u8>,
}

/// A block reference: the ID of a block and the index of an entry.
pub type BlockReference = (Uuid, i32);

/// Size of text in bytes at which the next block begins: reading an entry decompresses at most this and
/// the entry itself.
const BODY_BYTES: usize = 64 * 1024;

/// Compression level. Higher levels save a tenth of the space for several times the work.
const COMPRESSION_LEVEL: i32 = 1;

/// Marks an absent text among the lengths.
const ABSENT_FIELD: u32 = u32::MAX;

/// Number of texts of an entry.
const FIELDS: usize = 5;

/// Bit of [`Entry::missing`]: the entry has no input.
pub const MISSING_INPUT: i16 = 1;
/// Bit of [`Entry::missing`]: the entry has no output.
pub const MISSING_OUTPUT: i16 = 2;

thread_local! {
    /// Compressor and decompressor have tables of several hundred KiB, which are expensive to set up
    /// for each block.
    static THREAD_COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static THREAD_DECOMPRESSOR: RefCell<zstd::zstd_safe::DCtx<'static>> = RefCell::new(zstd::zstd_safe::DCtx::create());
}

/// Packs the entries, in order, into blocks. Returns the blocks and the reference of each entry.
///
/// # Errors
///
/// Fails when the compressor runs out of memory.
pub fn pack<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
) -> std::io::Result<(Vec<Packed>, Vec<BlockReference>)> {
    let mut bodies = Vec::new();
    let mut references = Vec::new();
    let mut open: Vec<&Entry> = Vec::new();
    let mut size = 0;
    let mut id = new_id();
    for entry in entries {
        let length = entry.bytes();
        if size + length > BODY_BYTES && !open.is_empty() {
            bodies.push(Packed { id, data: compress(&open, size)? });
            open.clear();
            size = 0;
            id = new_id();
        }
        references.push((id, i32::try_from(open.len()).unwrap_or(i32::MAX)));
        open.push(entry);
        size += length;
    }
    if !open.is_empty() {
        bodies.push(Packed { id, data: compress(&open, size)? });
    }
    Ok((bodies, references))
}

/// Returns the entries of a block, or the first `count` of them.
///
/// # Errors
///
/// Fails when the data is not a valid block.
pub fn unpack(data: &[u8], count: usize) -> std::io::Result<Vec<Entry>> {
    THREAD_DECOMPRESSOR.with_borrow_mut(|context| {
        // The previous reader may have stopped within a frame.
        context.reset(zstd::zstd_safe::ResetDirective::SessionOnly).map_err(|_| damaged())?;
        read_entries(&mut zstd::stream::read::Decoder::with_context(data, context), count)
    })
}

/// Returns the decompressed size of a text block according to its frame, or a guess if the frame has none.
pub fn unpacked_bytes(data: &[u8]) -> usize {
    let said = zstd::zstd_safe::get_frame_content_size(data).ok().flatten();
    said.and_then(|it| usize::try_from(it).ok()).unwrap_or(8 * data.len())
}

fn damaged() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, "the text block is damaged")
}

fn read_entries(reader: &mut impl std::io::Read, count: usize) -> std::io::Result<Vec<Entry>> {
    let mut number = [0; 4];
    reader.read_exact(&mut number)?;
    let total = u32::from_le_bytes(number) as usize;
    // An entry of five empty texts still has 20 bytes of lengths.
    let mut lengths = vec![0; total.checked_mul(FIELDS * 4).filter(|it| *it < 1 << 26).ok_or_else(damaged)?];
    reader.read_exact(&mut lengths)?;
    let mut lengths = lengths.chunks_exact(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]]));
    let mut entries = Vec::with_capacity(total.min(count));
    for _ in 0..total.min(count) {
        let mut texts: [Option<String>; FIELDS] = Default::default();
        for text in &mut texts {
            let length = lengths.next().ok_or_else(damaged)?;
            if length != ABSENT_FIELD {
                let mut bytes = vec![0; length as usize];
                reader.read_exact(&mut bytes)?;
                *text = Some(String::from_utf8(bytes).map_err(|_| damaged())?);
            }
        }
        let [input, output, metadata, trace_input, trace_output] = texts;
        entries.push(Entry { input, output, metadata, trace_input, trace_output });
    }
    Ok(entries)
}

fn compress(entries: &[&Entry], size: usize) -> std::io::Result<Vec<u8>> {
    let mut raw = Vec::with_capacity(4 + entries.len() * FIELDS * 4 + size);
    raw.extend(u32::try_from(entries.len()).unwrap_or(u32::MAX).to_le_bytes());
    for entry in entries {
        for field in entry.fields() {
            // A request is far smaller than 4 GiB, so no length equals the mark.
            let length = field.map_or(ABSENT_FIELD, |it| u32::try_from(it.len()).unwrap_or(ABSENT_FIELD - 1));
            raw.extend(length.to_le_bytes());
        }
    }
    for entry in entries {
        for field in entry.fields().into_iter().flatten() {
            raw.extend(field.as_bytes());
        }
    }
    THREAD_COMPRESSOR.with_borrow_mut(|slot| {
        let compressor = match slot {
            Some(compressor) => compressor,
            None => slot.insert(zstd::bulk::Compressor::new(COMPRESSION_LEVEL)?),
        };
        compressor.compress(&raw)
    })
}

impl Entry {
    fn fields(&self) -> [Option<&str>; FIELDS] {
        [
            self.input.as_deref(),
            self.output.as_deref(),
            self.metadata.as_deref(),
            self.trace_input.as_deref(),
            self.trace_output.as_deref(),
        ]
    }

    /// Returns the size of all texts in bytes.
    pub fn bytes(&self) -> usize {
        self.fields().into_iter().flatten().map(str::len).sum()
    }

    /// Returns the bit set of the missing texts; `None` when it has both.
    pub fn missing(&self) -> Option<i16> {
        let no_input = self.input.is_none() && self.trace_input.is_none();
        let no_output = self.output.is_none() && self.trace_output.is_none();
        let bit = |bit: i16, is_set: bool| if is_set { bit } else { 0 };
        Some(bit(MISSING_INPUT, no_input) | bit(MISSING_OUTPUT, no_output)).filter(|it| *it != 0)
    }

    /// Takes the input, for a trace that this entry represents.
    pub fn take_input(&mut self) -> Option<String> {
        self.trace_input.take().or_else(|| self.input.take())
    }

    /// Takes the output, for a trace that this entry represents.
    pub fn take_output(&mut self) -> Option<String> {
        self.trace_output.take().or_else(|| self.output.take())
    }

    /// Returns whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.fields().iter().all(Option::is_none)
    }
}

/// Returns whether an entry with this `missing` set has a text.
pub fn has_text(missing: Option<i16>, text: i16) -> bool {
    missing.unwrap_or(0) & text == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(input: &str) -> Entry {
        Entry { input: Some(input.into()), metadata: Some("{}".into()), ..Default::default() }
    }

    #[test]
    fn text_block_entries_round_trip() {
        let entries = [entry("наўпрост 🙏"), Entry::default(), entry("")];
        let (bodies, references) = pack(&entries).unwrap();
        assert_eq!(bodies.len(), 1);
        assert_eq!(references.iter().map(|it| it.1).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(unpack(&bodies[0].data, usize::MAX).unwrap(), entries);
        assert_eq!(unpack(&bodies[0].data, 1).unwrap(), entries[..1]);
    }

    #[test]
    fn large_text_begins_a_new_block() {
        let entries: Vec<Entry> = (0..5).map(|i| entry(&i.to_string().repeat(40_000))).collect();
        let (bodies, references) = pack(&entries).unwrap();
        assert_eq!(bodies.len(), 5);
        assert!(references.iter().all(|it| it.1 == 0));
    }

    #[test]
    fn damaged_text_block_is_an_error() {
        let (bodies, _) = pack(&[entry("text")]).unwrap();
        for cut in 0..bodies[0].data.len() {
            assert!(unpack(&bodies[0].data[..cut], 9).is_err());
        }
    }
}
