//! Places the text blocks of new traces in pages.

use std::collections::BTreeMap;

use entities::body;

use super::chunk::TraceChunk;
use crate::{
    ids::new_id,
    text_page::{self, MAX_PAGE_BYTES, MAX_PAGED_BLOCK_BYTES},
};

/// Gives the blocks of these chunks places in pages, in this order, and sets the references to them. Only chunks with a
/// single small block are placed, and only if a page has at least two of them.
pub(super) fn place(chunks: &mut [TraceChunk], order: &[usize]) {
    let (mut page, mut bytes): (Vec<usize>, usize) = (Vec::new(), 0);
    for index in order {
        let [block] = chunks[*index].bodies.as_slice() else { continue };
        let (tenant, length) = (block.tenant_id, block.data.len());
        if length > MAX_PAGED_BLOCK_BYTES {
            continue;
        }
        let is_full = bytes + length > MAX_PAGE_BYTES;
        if page.first().is_some_and(|it| is_full || chunks[*it].trace.tenant_id != tenant) {
            fill(chunks, &std::mem::take(&mut page));
            bytes = 0;
        }
        page.push(*index);
        bytes += length;
    }
    fill(chunks, &page);
}

fn fill(chunks: &mut [TraceChunk], page: &[usize]) {
    if let [only] = page {
        place_alone(&mut chunks[*only]);
        return;
    }
    let id = text_page::new_page_id();
    for (index, number) in page.iter().zip(0..) {
        chunks[*index].set_block(text_page::reference(id, number));
    }
}

/// Takes the block of a chunk out of its page, if it is in one.
pub(super) fn place_alone(chunk: &mut TraceChunk) {
    if chunk.bodies.first().is_some_and(|it| text_page::is_in_page(it.id)) {
        chunk.set_block(new_id());
    }
}

/// Returns the pages with the blocks of these chunks, and the blocks with a row of their own.
pub(super) fn rows<'a>(
    chunks: impl Iterator<Item = &'a TraceChunk>,
) -> (Vec<body::Model>, Vec<&'a body::Model>) {
    let mut alone = Vec::new();
    let mut pages: BTreeMap<_, Vec<&[u8]>> = BTreeMap::new();
    for block in chunks.flat_map(|it| &it.bodies) {
        if !text_page::is_in_page(block.id) {
            alone.push(block);
            continue;
        }
        let blocks = pages.entry((block.tenant_id, text_page::row_of(block.id))).or_default();
        let number = usize::from(text_page::block_number(block.id));
        // Traces that were not inserted leave empty blocks.
        blocks.resize(blocks.len().max(number + 1), &[]);
        blocks[number] = &block.data;
    }
    let pages = pages.into_iter().map(|((tenant_id, id), blocks)| body::Model {
        tenant_id,
        id,
        data: text_page::build(&blocks),
    });
    (pages.collect(), alone)
}
