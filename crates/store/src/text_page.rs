//! Text pages: rows of `body` with the text blocks of several traces.
//!
//! A block of a short trace takes less than half a page of the database, so that a row for each would leave a fifth of
//! the table unused. A text page begins with the number of its blocks and the length of each, as 16-bit little-endian
//! integers; the blocks follow in the same order. An empty block was removed, or never stored.
//!
//! The ID of a block in a page is the ID of the row, a UUID of version 8 (RFC 9562, section 5.8), with the number of the
//! block in its last 16 bits. The ID of every other block is the ID of a row that contains this block and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::ids::new_id;

/// Size in bytes up to which blocks are collected in a page. A reader of one block reads the whole page.
pub const MAX_PAGE_BYTES: usize = 32 * 1024;
/// Maximum size in bytes of a block that is stored in a page.
pub const MAX_PAGED_BLOCK_BYTES: usize = 16 * 1024;

const BLOCK_NUMBER_BITS: u128 = 0xffff;
const UUID_VERSION_BITS: u128 = 0xf << 76;
const PAGE_UUID_VERSION: u128 = 0x8 << 76;
/// Size in bytes of an integer of the page's head.
const HEAD_INTEGER_BYTES: usize = 2;

/// Returns the ID of a new page, ordered by time.
pub fn new_page_id() -> Uuid {
    Uuid::from_u128(new_id().as_u128() & !UUID_VERSION_BITS & !BLOCK_NUMBER_BITS | PAGE_UUID_VERSION)
}

/// Returns the ID of a block of a page.
pub fn block_id(page: Uuid, number: u16) -> Uuid {
    Uuid::from_u128(page.as_u128() | u128::from(number))
}

/// Returns whether a block is in a page. Of the ID of a row: whether the row is a page.
pub fn is_in_page(block_id: Uuid) -> bool {
    block_id.as_u128() & UUID_VERSION_BITS == PAGE_UUID_VERSION
}

/// Returns the ID of the row that contains a block.
pub fn row_of(block_id: Uuid) -> Uuid {
    match is_in_page(block_id) {
        true => Uuid::from_u128(block_id.as_u128() & !BLOCK_NUMBER_BITS),
        false => block_id,
    }
}

/// Returns the number of a block in its page.
pub fn number_in_page(block_id: Uuid) -> u16 {
    let [.., high, low] = block_id.into_bytes();
    u16::from_be_bytes([high, low])
}

/// Returns a page with these blocks, each of at most [`MAX_PAGED_BLOCK_BYTES`].
pub fn build(blocks: &[&[u8]]) -> Vec<u8> {
    debug_assert!(blocks.iter().all(|it| it.len() <= MAX_PAGED_BLOCK_BYTES));
    let integer = |it: usize| u16::try_from(it).unwrap_or(u16::MAX).to_le_bytes();
    let head_bytes = HEAD_INTEGER_BYTES * (1 + blocks.len());
    let mut page = Vec::with_capacity(head_bytes + blocks.iter().map(|it| it.len()).sum::<usize>());
    page.extend(integer(blocks.len()));
    page.extend(blocks.iter().flat_map(|it| integer(it.len())));
    for block in blocks {
        page.extend_from_slice(block);
    }
    page
}

/// Returns the blocks of a page; `None` if it is damaged.
pub fn blocks(page: &[u8]) -> Option<Vec<&[u8]>> {
    let (count, rest) = page.split_first_chunk::<HEAD_INTEGER_BYTES>()?;
    let lengths_bytes = usize::from(u16::from_le_bytes(*count)) * HEAD_INTEGER_BYTES;
    let (lengths, mut rest) = rest.split_at_checked(lengths_bytes)?;
    let mut blocks = Vec::with_capacity(lengths.len() / HEAD_INTEGER_BYTES);
    for length in lengths.as_chunks::<HEAD_INTEGER_BYTES>().0 {
        let (block, others) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        blocks.push(block);
        rest = others;
    }
    rest.is_empty().then_some(blocks)
}

/// Returns the IDs of the rows that contain nothing but one of these blocks, and the numbers of the others in each page.
pub fn rows_of(blocks: impl IntoIterator<Item = Uuid>) -> (Vec<Uuid>, BTreeMap<Uuid, BTreeSet<usize>>) {
    let (mut own_rows, mut pages) = (Vec::new(), BTreeMap::<Uuid, BTreeSet<usize>>::new());
    for id in blocks {
        match is_in_page(id) {
            true => _ = pages.entry(row_of(id)).or_default().insert(usize::from(number_in_page(id))),
            false => own_rows.push(id),
        }
    }
    (own_rows, pages)
}

/// Returns a page without some of its blocks; `None` if no block is left or if the page is damaged.
pub fn without(page: &[u8], removed: &BTreeSet<usize>) -> Option<Vec<u8>> {
    let mut blocks = blocks(page)?;
    for (number, block) in blocks.iter_mut().enumerate() {
        if removed.contains(&number) {
            *block = &[];
        }
    }
    blocks.iter().any(|it| !it.is_empty()).then(|| build(&blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_ids_lead_to_their_page() {
        let page = new_page_id();
        assert_eq!((row_of(page), number_in_page(page), is_in_page(page)), (page, 0, true));
        let last = block_id(page, u16::MAX);
        assert_eq!((row_of(last), number_in_page(last), is_in_page(last)), (page, u16::MAX, true));
        assert_eq!(last.get_variant(), uuid::Variant::RFC4122);
        let own_row = new_id();
        assert_eq!((row_of(own_row), is_in_page(own_row)), (own_row, false));
        let pages: Vec<Uuid> = (0..1_000).map(|_| new_page_id()).collect();
        assert!(pages.is_sorted_by(|page, next| page < next));
    }

    #[test]
    fn page_returns_its_blocks() {
        let built = build(&[b"first", b"", b"third"]);
        assert_eq!(blocks(&built).unwrap(), [b"first".as_slice(), b"", b"third"]);
        assert_eq!(blocks(&build(&[])).unwrap(), Vec::<&[u8]>::new());
        for cut in 0..built.len() {
            assert_eq!(blocks(&built[..cut]), None);
        }
        assert_eq!(blocks(&[built.as_slice(), b"x"].concat()), None);
    }

    #[test]
    fn block_is_removed_from_its_page() {
        let built = build(&[b"first", b"second"]);
        assert_eq!(without(&built, &BTreeSet::from([0])), Some(build(&[b"", b"second"])));
        assert_eq!(without(&built, &BTreeSet::new()), Some(built.clone()));
        assert_eq!(without(&built, &BTreeSet::from([0, 1])), None);
        assert_eq!(without(b"x", &BTreeSet::from([0])), None);
    }
}
