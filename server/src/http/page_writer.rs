//! Pages of JSON that are built item by item and bounded by the bytes that are sent.

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};

use super::{
    body_memory::BodyMemory,
    chunked_json::{ChunkedJson, ChunkedJsonBody, LargeTexts},
};
use crate::{
    error::Result,
    memory::{MEMORY_WAIT, Reservation},
};

/// Size in sent bytes at which a page ends early.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;
/// Number of serialized bytes after which the task yields to others.
const YIELD_BYTES: usize = 256 * 1024;

/// Builds the arrays of items of a page, within a JSON object.
pub struct PageWriter {
    json: ChunkedJson,
    memory: Reservation,
    /// Number of items in the current array.
    items: usize,
    /// Whether the first item of the array is written regardless of its size.
    needs_item: bool,
    /// Bytes serialized since the task last yielded.
    since_yield: usize,
    /// Bytes reserved for the output, apart from earlier reservations.
    counted: usize,
}

/// The result of adding an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushOutcome {
    /// The item is on the page.
    Written,
    /// The page is full without the item.
    Full,
}

impl PageWriter {
    /// Begins a page with `start`; `memory` stays reserved until the client has read the response.
    pub fn begin(memory: Reservation, start: &[u8]) -> Self {
        let mut json = ChunkedJson::default();
        json.push_json(start);
        Self { json, memory, items: 0, needs_item: true, since_yield: 0, counted: 0 }
    }

    /// Begins a page with an object that stays open for more members. `texts` bytes are already
    /// reserved for its texts.
    ///
    /// # Errors
    ///
    /// Fails when there is not enough memory.
    pub async fn begin_object(memory: Reservation, object: impl LargeTexts, texts: usize) -> Result<Self> {
        let mut page = Self::begin(memory, b"");
        page.push(object, texts).await?;
        page.json.reopen();
        Ok(page)
    }

    /// Returns the reservation, for reading the next items.
    pub fn memory(&mut self) -> &mut Reservation {
        &mut self.memory
    }

    /// Returns the number of items in the current array.
    pub fn items(&self) -> usize {
        self.items
    }

    /// Appends JSON that is not an item.
    pub fn push_json(&mut self, json: &[u8]) {
        self.json.push_json(json);
    }

    /// Begins another array. With `needs_item`, its first item is written regardless of its size.
    pub fn next_array(&mut self, json: &[u8], needs_item: bool) {
        self.json.push_json(json);
        (self.items, self.needs_item) = (0, needs_item);
    }

    /// Appends an item, unless it makes a page with other items too large. `texts` bytes are already
    /// reserved for the item's texts; the part that the page does not keep is released.
    ///
    /// # Errors
    ///
    /// Fails when there is no memory for the first item.
    pub async fn push(&mut self, item: impl LargeTexts, texts: usize) -> Result<PushOutcome> {
        let item = ChunkedJson::from_value(item).map_err(anyhow::Error::from)?;
        self.since_yield += item.len();
        if self.since_yield > YIELD_BYTES {
            // Serializing blocks the thread, so the task yields in between.
            self.since_yield = 0;
            tokio::task::yield_now().await;
        }
        let optional = self.items > 0 || !self.needs_item;
        if optional && self.json.len() + item.len() > MAX_PAGE_BYTES {
            self.memory.shrink(texts);
            return Ok(PushOutcome::Full);
        }
        // The buffer grows by doubling, and the item exists beside it for a moment.
        let needed = (self.json.memory() + 2 * item.memory()).saturating_sub(self.counted + texts);
        match self.memory.try_grow(needed) {
            Ok(()) => {}
            Err(_) if optional => {
                self.memory.shrink(texts);
                return Ok(PushOutcome::Full);
            }
            Err(_) => self.memory.grow(needed, MEMORY_WAIT).await?,
        }
        if self.items > 0 {
            self.json.push_json(b",");
        }
        self.json.append(item);
        self.items += 1;
        let (reserved, used) = (self.counted + texts + needed, self.json.memory());
        self.memory.shrink(reserved.saturating_sub(used));
        self.counted = reserved.min(used);
        Ok(PushOutcome::Written)
    }

    /// Ends the JSON with `end` and releases memory that the response does not need.
    pub fn finish(mut self, end: &[u8]) -> Response {
        self.json.push_json(end);
        self.memory.shrink_to(self.json.memory());
        let mut response = Body::new(ChunkedJsonBody(self.json)).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response.extensions_mut().insert(BodyMemory::new(self.memory));
        response
    }
}
