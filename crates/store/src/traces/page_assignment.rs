//! Assigns the text blocks of new traces to pages.

use std::collections::BTreeMap;

use entities::body;

use super::chunk::TraceChunk;
use crate::{
    ids::new_id,
    text_page::{self, MAX_PAGE_BYTES, MAX_PAGED_BLOCK_BYTES},
};

/// Assigns the blocks of the selected chunks to pages, in this order, and sets the IDs of the blocks. Only chunks with a
/// single small block are assigned, and a page has at least two blocks.
pub(super) fn assign_pages(chunks: &mut [TraceChunk], selected: &[usize]) {
    let (mut of_page, mut bytes): (Vec<usize>, usize) = (Vec::new(), 0);
    for index in selected {
        let [block] = chunks[*index].bodies.as_slice() else { continue };
        let (tenant, length) = (block.tenant_id, block.data.len());
        if length > MAX_PAGED_BLOCK_BYTES {
            continue;
        }
        let is_full = bytes + length > MAX_PAGE_BYTES;
        if of_page.first().is_some_and(|it| is_full || chunks[*it].trace.tenant_id != tenant) {
            assign_page(chunks, &std::mem::take(&mut of_page));
            bytes = 0;
        }
        of_page.push(*index);
        bytes += length;
    }
    assign_page(chunks, &of_page);
}

/// Assigns the blocks of the selected chunks to one page.
fn assign_page(chunks: &mut [TraceChunk], selected: &[usize]) {
    match selected {
        [] => {}
        [only] => give_own_row(&mut chunks[*only]),
        _ => {
            let page = text_page::new_page_id();
            for (index, number) in selected.iter().zip(0..) {
                chunks[*index].set_block_id(text_page::block_id(page, number));
            }
        }
    }
}

/// Gives the block of a chunk a row of its own, if it was assigned to a page.
pub(super) fn give_own_row(chunk: &mut TraceChunk) {
    if let [block] = chunk.bodies.as_slice()
        && text_page::is_in_page(block.id)
    {
        chunk.set_block_id(new_id());
    }
}

/// Returns the pages with the blocks of these chunks, and the blocks with a row of their own.
pub(super) fn rows<'a>(
    chunks: impl Iterator<Item = &'a TraceChunk>,
) -> (Vec<body::Model>, Vec<&'a body::Model>) {
    let mut own_rows = Vec::new();
    let mut pages: BTreeMap<_, Vec<&[u8]>> = BTreeMap::new();
    for block in chunks.flat_map(|it| &it.bodies) {
        if !text_page::is_in_page(block.id) {
            own_rows.push(block);
            continue;
        }
        let blocks = pages.entry((block.tenant_id, text_page::row_of(block.id))).or_default();
        let number = usize::from(text_page::number_in_page(block.id));
        // The blocks of traces that were not inserted stay empty.
        blocks.resize(blocks.len().max(number + 1), &[]);
        blocks[number] = &block.data;
    }
    let pages = pages.into_iter().map(|((tenant_id, id), blocks)| body::Model {
        tenant_id,
        id,
        data: text_page::build(&blocks),
    });
    (pages.collect(), own_rows)
}
