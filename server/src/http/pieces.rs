//! JSON responses that are built item by item and bounded by the bytes that are sent.
//!
//! Large texts are not copied into the serialized JSON, where control characters take six times the
//! memory. They are kept unescaped and are escaped when the client reads.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use api::trace::{Event, RawObject, Span, Trace};
use axum::{
    body::{Body, Bytes, HttpBody},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use hyper::body::{Frame, SizeHint};
use serde::{Serialize, ser::Error as _};
use serde_json::value::RawValue;
use store::new_id;
use uuid::Uuid;

use super::held::BodyMemory;
use crate::{
    error::Result,
    memory::{MEMORY_WAIT, Reservation},
};

/// Size in sent bytes at which a page ends early.
pub const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// Size in bytes from which a text is escaped only when it is sent.
const LARGE_TEXT_BYTES: usize = 128 * 1024;
/// Size in bytes of a chunk of a large text before escaping.
const PIECE_BYTES: usize = 16 * 1024;
/// Bytes counted for the chunks of a large text in flight.
const LARGE_TEXT_IN_FLIGHT_BYTES: usize = 256 * 1024;

/// Number of serialized bytes after which the task yields to others.
const YIELD_BYTES: usize = 256 * 1024;

/// A part of a response.
enum Segment {
    /// Serialized JSON.
    Json(Vec<u8>),
    /// A text that is encoded as a JSON string when it is sent.
    Text(LargeText),
    /// JSON in stored form.
    Raw { json: Box<str>, sent: usize },
}

struct LargeText {
    text: String,
    sent: usize,
    /// Whether the opening and the closing quote are sent.
    opened: bool,
    closed: bool,
}

/// JSON in chunks that are produced when they are sent.
#[derive(Default)]
pub struct Pieces {
    segments: VecDeque<Segment>,
    /// Number of bytes still to be sent.
    left: usize,
}

/// A value with large texts that can be extracted.
pub trait LargeTexts: Serialize {
    /// Passes the texts to `taker`.
    fn texts(&mut self, taker: &mut TextTaker);
}

impl LargeTexts for Trace {
    fn texts(&mut self, taker: &mut TextTaker) {
        taker.text(&mut self.input);
        taker.text(&mut self.output);
        taker.json(&mut self.metadata);
    }
}

impl LargeTexts for Span {
    fn texts(&mut self, taker: &mut TextTaker) {
        taker.text(&mut self.input);
        taker.text(&mut self.output);
        taker.json(&mut self.metadata);
    }
}

impl LargeTexts for Event {
    fn texts(&mut self, taker: &mut TextTaker) {
        if self.message.len() >= LARGE_TEXT_BYTES {
            let mut message = Some(std::mem::take(&mut self.message));
            taker.text(&mut message);
            self.message = message.unwrap_or_default();
        }
        taker.json(&mut self.metadata);
    }
}

impl LargeTexts for api::search::SearchResult {
    fn texts(&mut self, taker: &mut TextTaker) {
        self.span.texts(taker);
    }
}

/// Extracts large texts from a value and leaves placeholders.
#[derive(Default)]
pub struct TextTaker {
    /// Random, so that no stored text contains a placeholder.
    mark: Option<Uuid>,
    /// The texts, at the indices that their placeholders have.
    taken: Vec<Option<Segment>>,
}

impl TextTaker {
    fn placeholder(&mut self) -> String {
        let mark = self.mark.get_or_insert_with(new_id);
        format!("{}-{}", mark.simple(), self.taken.len())
    }

    /// Extracts a text that serializes as a JSON string.
    pub fn text(&mut self, text: &mut Option<String>) {
        let Some(large) = text.as_mut().filter(|it| it.len() >= LARGE_TEXT_BYTES) else { return };
        let text = std::mem::replace(large, self.placeholder());
        self.taken.push(Some(Segment::Text(LargeText { text, sent: 0, opened: false, closed: false })));
    }

    /// Extracts JSON that serializes unchanged.
    pub fn json(&mut self, json: &mut Option<RawObject>) {
        let Some(large) = json.as_mut().filter(|it| it.get().len() >= LARGE_TEXT_BYTES) else { return };
        let placeholder = self.placeholder();
        let Ok(stand_in) = RawValue::from_string(format!("\"{placeholder}\"")) else { return };
        let raw = std::mem::replace(large, stand_in);
        self.taken.push(Some(Segment::Raw { json: raw.into(), sent: 0 }));
    }
}

impl Pieces {
    /// Serializes a value.
    ///
    /// # Errors
    ///
    /// Fails when the value can't be serialized.
    pub fn of(mut value: impl LargeTexts) -> serde_json::Result<Self> {
        let mut taker = TextTaker::default();
        value.texts(&mut taker);
        Self::with_texts(serde_json::to_vec(&value)?, taker)
    }

    /// Appends serialized JSON.
    pub fn json(&mut self, json: &[u8]) {
        self.left += json.len();
        match self.segments.back_mut() {
            Some(Segment::Json(last)) => last.extend_from_slice(json),
            _ => self.segments.push_back(Segment::Json(json.to_vec())),
        }
    }

    /// Like [`Self::of`], for an object that stays open for more members.
    ///
    /// # Errors
    ///
    /// Fails when the value can't be serialized.
    pub fn of_open_object(value: impl LargeTexts) -> serde_json::Result<Self> {
        let mut pieces = Self::of(value)?;
        pieces.reopen();
        Ok(pieces)
    }

    /// Returns serialized JSON with the texts of `taker` in the places of their placeholders.
    ///
    /// # Errors
    ///
    /// Fails when a placeholder is missing or occurs twice.
    pub fn with_texts(mut json: Vec<u8>, mut taker: TextTaker) -> serde_json::Result<Self> {
        let mut pieces = Self::default();
        if let Some(mark) = taker.mark {
            let start = format!("\"{}-", mark.simple());
            while let Some(at) = find(&json, start.as_bytes()) {
                let index: String = json[at + start.len()..]
                    .iter()
                    .take_while(|it| **it != b'"')
                    .map(|it| char::from(*it))
                    .collect();
                let taken = index.parse::<usize>().ok().and_then(|it| taker.taken.get_mut(it)?.take());
                let text = taken.ok_or_else(|| serde_json::Error::custom("unknown placeholder of a text"))?;
                // The closing quote follows the index.
                let rest = json.split_off(at + start.len() + index.len() + 1);
                json.truncate(at);
                pieces.push(Segment::Json(std::mem::replace(&mut json, rest)));
                pieces.push(text);
            }
        }
        if taker.taken.iter().any(Option::is_some) {
            return Err(serde_json::Error::custom("the placeholder of a text is missing"));
        }
        pieces.push(Segment::Json(json));
        Ok(pieces)
    }

    /// Appends another value's chunks.
    pub fn append(&mut self, other: Self) {
        for segment in other.segments {
            match segment {
                Segment::Json(json) if matches!(self.segments.back(), Some(Segment::Json(_))) => {
                    self.json(&json)
                }
                segment => self.push(segment),
            }
        }
    }

    /// Removes the closing brace.
    fn reopen(&mut self) {
        if let Some(Segment::Json(last)) = self.segments.back_mut()
            && last.pop().is_some()
        {
            self.left -= 1;
        }
    }

    /// Returns the number of bytes still to be sent.
    pub fn len(&self) -> usize {
        self.left
    }

    /// Returns the number of bytes of memory that the value takes.
    pub fn memory(&self) -> usize {
        let large = self.segments.iter().any(|it| !matches!(it, Segment::Json(_)));
        let segments = self.segments.iter().map(|it| match it {
            Segment::Json(json) => json.capacity(),
            Segment::Text(text) => text.text.capacity(),
            Segment::Raw { json, .. } => json.len(),
        });
        segments.sum::<usize>() + if large { LARGE_TEXT_IN_FLIGHT_BYTES } else { 0 }
    }

    /// Returns the next chunk; `None` at the end.
    pub fn next_piece(&mut self) -> Option<Bytes> {
        loop {
            let piece = match self.segments.front_mut()? {
                Segment::Json(json) => Bytes::from(std::mem::take(json)),
                Segment::Text(text) => text.next_piece(),
                Segment::Raw { json, sent } => {
                    let end = json.floor_char_boundary((*sent + PIECE_BYTES).min(json.len()));
                    let piece = Bytes::copy_from_slice(&json.as_bytes()[*sent..end]);
                    *sent = end;
                    piece
                }
            };
            if piece.is_empty() {
                self.segments.pop_front();
                continue;
            }
            self.left = self.left.saturating_sub(piece.len());
            return Some(piece);
        }
    }

    fn push(&mut self, segment: Segment) {
        self.left += match &segment {
            Segment::Json(json) => json.len(),
            Segment::Text(text) => escaped_length(&text.text) + 2,
            Segment::Raw { json, .. } => json.len(),
        };
        self.segments.push_back(segment);
    }
}

impl LargeText {
    fn next_piece(&mut self) -> Bytes {
        let mut piece = Vec::with_capacity(PIECE_BYTES + 2);
        if !std::mem::replace(&mut self.opened, true) {
            piece.push(b'"');
        }
        let end = self.text.floor_char_boundary((self.sent + PIECE_BYTES).min(self.text.len()));
        // Serializing a text never fails; its quotes are removed.
        let escaped = serde_json::to_vec(&self.text[self.sent..end]).unwrap_or_default();
        piece.extend_from_slice(escaped.get(1..escaped.len().saturating_sub(1)).unwrap_or_default());
        self.sent = end;
        if end == self.text.len() && !std::mem::replace(&mut self.closed, true) {
            piece.push(b'"');
        }
        piece.into()
    }
}

/// Returns the length of a text within a JSON string, as `serde_json` writes it.
fn escaped_length(text: &str) -> usize {
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | 0x08 | 0x09 | 0x0a | 0x0c | 0x0d => 2,
            0..0x20 => 6,
            _ => 1,
        })
        .sum()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|it| it == wanted)
}

/// Builds the arrays of items of a page, within a JSON object.
pub struct PageWriter {
    pieces: Pieces,
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
        let mut pieces = Pieces::default();
        pieces.json(start);
        Self { pieces, memory, items: 0, needs_item: true, since_yield: 0, counted: 0 }
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
        page.pieces.reopen();
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
    pub fn json(&mut self, json: &[u8]) {
        self.pieces.json(json);
    }

    /// Begins another array. With `needs_item`, its first item is written regardless of its size.
    pub fn next_array(&mut self, json: &[u8], needs_item: bool) {
        self.pieces.json(json);
        (self.items, self.needs_item) = (0, needs_item);
    }

    /// Appends an item, unless it makes a page with other items too large. `texts` bytes are already
    /// reserved for the item's texts; the part that the page does not keep is released.
    ///
    /// # Errors
    ///
    /// Fails when there is no memory for the first item.
    pub async fn push(&mut self, item: impl LargeTexts, texts: usize) -> Result<PushOutcome> {
        let item = Pieces::of(item).map_err(anyhow::Error::from)?;
        self.since_yield += item.len();
        if self.since_yield > YIELD_BYTES {
            // Serializing blocks the thread, so the task yields in between.
            self.since_yield = 0;
            tokio::task::yield_now().await;
        }
        let optional = self.items > 0 || !self.needs_item;
        if optional && self.pieces.len() + item.len() > PAGE_BYTES {
            self.memory.shrink(texts);
            return Ok(PushOutcome::Full);
        }
        // The buffer grows by doubling, and the item exists beside it for a moment.
        let needed = (self.pieces.memory() + 2 * item.memory()).saturating_sub(self.counted + texts);
        match self.memory.try_grow(needed) {
            Ok(()) => {}
            Err(_) if optional => {
                self.memory.shrink(texts);
                return Ok(PushOutcome::Full);
            }
            Err(_) => self.memory.grow(needed, MEMORY_WAIT).await?,
        }
        if self.items > 0 {
            self.pieces.json(b",");
        }
        self.pieces.append(item);
        self.items += 1;
        let (reserved, used) = (self.counted + texts + needed, self.pieces.memory());
        self.memory.shrink(reserved.saturating_sub(used));
        self.counted = reserved.min(used);
        Ok(PushOutcome::Written)
    }

    /// Ends the JSON with `end` and releases memory that the response does not need.
    pub fn finish(mut self, end: &[u8]) -> Response {
        self.pieces.json(end);
        self.memory.shrink_to(self.pieces.memory());
        let mut response = Body::new(PiecesBody(self.pieces)).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response.extensions_mut().insert(BodyMemory::new(self.memory));
        response
    }
}

struct PiecesBody(Pieces);

impl HttpBody for PiecesBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next_piece().map(|it| Ok(Frame::data(it))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.0.len()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct TestItem {
        before: u8,
        input: Option<String>,
        metadata: Option<RawObject>,
        after: &'static str,
    }

    impl LargeTexts for TestItem {
        fn texts(&mut self, taker: &mut TextTaker) {
            // Not in the order of serialisation.
            taker.json(&mut self.metadata);
            taker.text(&mut self.input);
        }
    }

    /// A value that does not serialise one of its texts.
    #[derive(Serialize)]
    struct Incomplete {
        #[serde(skip)]
        skipped: Option<String>,
    }

    impl LargeTexts for Incomplete {
        fn texts(&mut self, taker: &mut TextTaker) {
            taker.text(&mut self.skipped);
        }
    }

    #[test]
    fn text_without_placeholder_is_an_error() {
        let large = "x".repeat(LARGE_TEXT_BYTES);
        assert!(Pieces::of(Incomplete { skipped: Some(large) }).is_err());
        assert!(Pieces::of(Incomplete { skipped: Some("small".to_owned()) }).is_ok());
    }

    #[test]
    fn large_texts_are_escaped_like_serde() {
        let large: String = "a\"\\\n\u{1}\u{8}\u{c}\u{7f}ä🙏\r\t/".repeat(20_000);
        let object = format!("{{\"k\":\"{}\"}}", "v".repeat(200_000));
        for (input, metadata) in [(None, None), (Some("small"), Some("{}")), (Some(&*large), Some(&*object))]
        {
            let raw = |it: &str| RawValue::from_string(it.to_owned()).unwrap();
            let item = || TestItem {
                before: 1,
                input: input.map(str::to_owned),
                metadata: metadata.map(raw),
                after: "end",
            };
            let mut pieces = Pieces::of(item()).unwrap();
            let length = pieces.len();
            let mut sent = Vec::new();
            while let Some(piece) = pieces.next_piece() {
                assert!(piece.len() <= 6 * PIECE_BYTES + 2);
                sent.extend_from_slice(&piece);
            }
            assert_eq!((pieces.len(), sent.len()), (0, length));
            assert_eq!(sent, serde_json::to_vec(&item()).unwrap());
        }
    }
}
