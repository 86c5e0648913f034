//! Serialized JSON that is produced in chunks when it is sent.
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
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use serde::{Serialize, ser::Error as _};
use serde_json::value::RawValue;
use store::new_id;
use uuid::Uuid;

/// Minimum size in bytes of a text that is escaped only when it is sent.
const LARGE_TEXT_BYTES: usize = 128 * 1024;
/// Size in bytes of a chunk of a large text before escaping.
const CHUNK_BYTES: usize = 16 * 1024;
/// Bytes counted for the chunks of a large text in flight.
const LARGE_TEXT_IN_FLIGHT_BYTES: usize = 256 * 1024;

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
pub struct ChunkedJson {
    segments: VecDeque<Segment>,
    /// Number of bytes still to be sent.
    unsent_bytes: usize,
}

/// A value with large texts that can be extracted.
pub trait LargeTexts: Serialize {
    /// Passes the texts to `extractor`.
    fn extract_texts(&mut self, extractor: &mut TextExtractor);
}

impl LargeTexts for Trace {
    fn extract_texts(&mut self, extractor: &mut TextExtractor) {
        extractor.text(&mut self.input);
        extractor.text(&mut self.output);
        extractor.json(&mut self.metadata);
    }
}

impl LargeTexts for Span {
    fn extract_texts(&mut self, extractor: &mut TextExtractor) {
        extractor.text(&mut self.input);
        extractor.text(&mut self.output);
        extractor.json(&mut self.metadata);
    }
}

impl LargeTexts for Event {
    fn extract_texts(&mut self, extractor: &mut TextExtractor) {
        if self.message.len() >= LARGE_TEXT_BYTES {
            let mut message = Some(std::mem::take(&mut self.message));
            extractor.text(&mut message);
            self.message = message.unwrap_or_default();
        }
        extractor.json(&mut self.metadata);
    }
}

impl LargeTexts for api::search::SearchResult {
    fn extract_texts(&mut self, extractor: &mut TextExtractor) {
        self.span.extract_texts(extractor);
    }
}

impl LargeTexts for api::control::RemediationDiff {
    fn extract_texts(&mut self, extractor: &mut TextExtractor) {
        extractor.text(&mut self.original_output);
        extractor.text(&mut self.remediated_output);
    }
}

/// Extracts large texts from a value and leaves placeholders.
#[derive(Default)]
pub struct TextExtractor {
    /// Random, so that no stored text contains a placeholder.
    mark: Option<Uuid>,
    /// The texts, at the indices that their placeholders have.
    extracted: Vec<Option<Segment>>,
}

impl TextExtractor {
    fn placeholder(&mut self) -> String {
        let mark = self.mark.get_or_insert_with(new_id);
        format!("{}-{}", mark.simple(), self.extracted.len())
    }

    /// Extracts a text that serializes as a JSON string.
    pub fn text(&mut self, text: &mut Option<String>) {
        let Some(large) = text.as_mut().filter(|it| it.len() >= LARGE_TEXT_BYTES) else { return };
        let text = std::mem::replace(large, self.placeholder());
        self.extracted.push(Some(Segment::Text(LargeText { text, sent: 0, opened: false, closed: false })));
    }

    /// Extracts JSON that serializes unchanged.
    pub fn json(&mut self, json: &mut Option<RawObject>) {
        let Some(large) = json.as_mut().filter(|it| it.get().len() >= LARGE_TEXT_BYTES) else { return };
        let placeholder = self.placeholder();
        let Ok(stand_in) = RawValue::from_string(format!("\"{placeholder}\"")) else { return };
        let raw = std::mem::replace(large, stand_in);
        self.extracted.push(Some(Segment::Raw { json: raw.into(), sent: 0 }));
    }
}

impl ChunkedJson {
    /// Serializes a value.
    ///
    /// # Errors
    ///
    /// Fails when the value cannot be serialized.
    pub fn from_value(mut value: impl LargeTexts) -> serde_json::Result<Self> {
        let mut extractor = TextExtractor::default();
        value.extract_texts(&mut extractor);
        Self::with_texts(serde_json::to_vec(&value)?, extractor)
    }

    /// Appends serialized JSON.
    pub fn push_json(&mut self, json: &[u8]) {
        self.unsent_bytes += json.len();
        match self.segments.back_mut() {
            Some(Segment::Json(last)) => last.extend_from_slice(json),
            _ => self.segments.push_back(Segment::Json(json.to_vec())),
        }
    }

    /// Like [`Self::from_value`], for an object that stays open for more members.
    ///
    /// # Errors
    ///
    /// Fails when the value cannot be serialized.
    pub fn from_open_object(value: impl LargeTexts) -> serde_json::Result<Self> {
        let mut json = Self::from_value(value)?;
        json.reopen();
        Ok(json)
    }

    /// Returns serialized JSON with the texts of `extractor` in the places of their placeholders.
    ///
    /// # Errors
    ///
    /// Fails when a placeholder is missing or occurs twice.
    pub fn with_texts(mut json: Vec<u8>, mut extractor: TextExtractor) -> serde_json::Result<Self> {
        let mut chunked = Self::default();
        if let Some(mark) = extractor.mark {
            let start = format!("\"{}-", mark.simple());
            while let Some(at) = find(&json, start.as_bytes()) {
                let index: String = json[at + start.len()..]
                    .iter()
                    .take_while(|it| **it != b'"')
                    .map(|it| char::from(*it))
                    .collect();
                let extracted =
                    index.parse::<usize>().ok().and_then(|it| extractor.extracted.get_mut(it)?.take());
                let text =
                    extracted.ok_or_else(|| serde_json::Error::custom("unknown placeholder of a text"))?;
                // The closing quote follows the index.
                let rest = json.split_off(at + start.len() + index.len() + 1);
                json.truncate(at);
                chunked.push(Segment::Json(std::mem::replace(&mut json, rest)));
                chunked.push(text);
            }
        }
        if extractor.extracted.iter().any(Option::is_some) {
            return Err(serde_json::Error::custom("the placeholder of a text is missing"));
        }
        chunked.push(Segment::Json(json));
        Ok(chunked)
    }

    /// Appends another value's chunks.
    pub fn append(&mut self, other: Self) {
        for segment in other.segments {
            match segment {
                Segment::Json(json) if matches!(self.segments.back(), Some(Segment::Json(_))) => {
                    self.push_json(&json)
                }
                segment => self.push(segment),
            }
        }
    }

    /// Removes the closing brace, so that members can be appended.
    pub fn reopen(&mut self) {
        if let Some(Segment::Json(last)) = self.segments.back_mut()
            && last.pop().is_some()
        {
            self.unsent_bytes -= 1;
        }
    }

    /// Returns the number of bytes still to be sent.
    pub fn len(&self) -> usize {
        self.unsent_bytes
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
    pub fn next_chunk(&mut self) -> Option<Bytes> {
        loop {
            let chunk = match self.segments.front_mut()? {
                Segment::Json(json) => Bytes::from(std::mem::take(json)),
                Segment::Text(text) => text.next_chunk(),
                Segment::Raw { json, sent } => {
                    let end = json.floor_char_boundary((*sent + CHUNK_BYTES).min(json.len()));
                    let chunk = Bytes::copy_from_slice(&json.as_bytes()[*sent..end]);
                    *sent = end;
                    chunk
                }
            };
            if chunk.is_empty() {
                self.segments.pop_front();
                continue;
            }
            self.unsent_bytes = self.unsent_bytes.saturating_sub(chunk.len());
            return Some(chunk);
        }
    }

    fn push(&mut self, segment: Segment) {
        self.unsent_bytes += match &segment {
            Segment::Json(json) => json.len(),
            Segment::Text(text) => escaped_length(&text.text) + 2,
            Segment::Raw { json, .. } => json.len(),
        };
        self.segments.push_back(segment);
    }
}

impl LargeText {
    fn next_chunk(&mut self) -> Bytes {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES + 2);
        if !std::mem::replace(&mut self.opened, true) {
            chunk.push(b'"');
        }
        let end = self.text.floor_char_boundary((self.sent + CHUNK_BYTES).min(self.text.len()));
        // Serializing a text never fails; its quotes are removed.
        let escaped = serde_json::to_vec(&self.text[self.sent..end]).unwrap_or_default();
        chunk.extend_from_slice(escaped.get(1..escaped.len().saturating_sub(1)).unwrap_or_default());
        self.sent = end;
        if end == self.text.len() && !std::mem::replace(&mut self.closed, true) {
            chunk.push(b'"');
        }
        chunk.into()
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

/// A response body that sends [`ChunkedJson`].
pub struct ChunkedJsonBody(pub ChunkedJson);

impl HttpBody for ChunkedJsonBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next_chunk().map(|it| Ok(Frame::data(it))))
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
        fn extract_texts(&mut self, extractor: &mut TextExtractor) {
            // Not in the order of serialization.
            extractor.json(&mut self.metadata);
            extractor.text(&mut self.input);
        }
    }

    /// A value that does not serialize one of its texts.
    #[derive(Serialize)]
    struct Incomplete {
        #[serde(skip)]
        skipped: Option<String>,
    }

    impl LargeTexts for Incomplete {
        fn extract_texts(&mut self, extractor: &mut TextExtractor) {
            extractor.text(&mut self.skipped);
        }
    }

    #[test]
    fn text_without_placeholder_is_an_error() {
        let large = "x".repeat(LARGE_TEXT_BYTES);
        assert!(ChunkedJson::from_value(Incomplete { skipped: Some(large) }).is_err());
        assert!(ChunkedJson::from_value(Incomplete { skipped: Some("small".to_owned()) }).is_ok());
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
            let mut json = ChunkedJson::from_value(item()).unwrap();
            let length = json.len();
            let mut sent = Vec::new();
            while let Some(chunk) = json.next_chunk() {
                assert!(chunk.len() <= 6 * CHUNK_BYTES + 2);
                sent.extend_from_slice(&chunk);
            }
            assert_eq!((json.len(), sent.len()), (0, length));
            assert_eq!(sent, serde_json::to_vec(&item()).unwrap());
        }
    }
}
