//! The live stream of traces: server-sent events.

use std::time::Duration;

use serde_json::Value;

use super::{Error, cause::sentence};

/// Marker type of the stream's call; opened by [`super::Client::stream`].
#[derive(Debug)]
pub enum Traces {}

/// Interval at which the server sends a comment when it has no event to send.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// A stream is broken after this silence: two heartbeats are missing, with a margin for a slow network.
const MAX_SILENCE: Duration = Duration::from_secs(2 * HEARTBEAT_INTERVAL.as_secs() + 2);

/// Maximum size of an event in bytes.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// An event of the live stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// A trace was stored or changed. Events may be repeated.
    Trace {
        /// The position at which a new stream can resume.
        id: Option<String>,
        /// The trace as in list responses.
        trace: Value,
    },
    /// The client read events too slowly. The server ends the stream after this event; a stream opened with
    /// the cursor continues without losing a trace.
    Lagged {
        /// The cursor to resume from.
        cursor: Option<String>,
    },
    /// The connection is alive.
    Alive,
}

/// An open stream.
pub struct TraceStream {
    response: reqwest::Response,
    parser: Parser,
    /// How long the server may send nothing.
    pub(super) max_silence: Duration,
}

impl TraceStream {
    pub(super) fn new(response: reqwest::Response) -> Self {
        Self { response, parser: Parser::default(), max_silence: MAX_SILENCE }
    }

    /// Returns the next event; `None` when the server ended the stream. An error ends it too.
    /// Cancel-safe: dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Result<StreamEvent, Error>> {
        loop {
            if let Some(event) = self.parser.next() {
                return Some(event);
            }
            let lost =
                |why: String, url: &url::Url| Error::Unreachable { url: url.to_string(), why, sent: true };
            match tokio::time::timeout(self.max_silence, self.response.chunk()).await {
                Ok(Ok(Some(bytes))) => self.parser.push(&bytes),
                Ok(Ok(None)) => return None,
                Ok(Err(error)) => return Some(Err(lost(sentence(&error), self.response.url()))),
                Err(_) => {
                    let why = format!("the live stream sent nothing for {:?}", self.max_silence);
                    return Some(Err(lost(why, self.response.url())));
                }
            }
        }
    }
}

/// Parses server-sent events (<https://html.spec.whatwg.org/multipage/server-sent-events.html>), as far
/// as this stream uses them.
#[derive(Default)]
struct Parser {
    buffer: Vec<u8>,
    /// Number of parsed bytes at the start of the buffer.
    used: usize,
    event: String,
    data: String,
    id: Option<String>,
}

impl Parser {
    fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.used);
        self.used = 0;
        self.buffer.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Option<Result<StreamEvent, Error>> {
        while let Some(length) = self.buffer[self.used..].iter().position(|byte| *byte == b'\n') {
            let raw = &self.buffer[self.used..self.used + length];
            let line = String::from_utf8_lossy(raw.strip_suffix(b"\r").unwrap_or(raw)).into_owned();
            self.used += length + 1;
            if let Some(event) = self.line(&line) {
                return Some(event);
            }
        }
        if self.buffer.len() - self.used > MAX_EVENT_BYTES {
            self.buffer.clear();
            self.used = 0;
            return Some(Err(Error::NotAStream));
        }
        None
    }

    fn line(&mut self, line: &str) -> Option<Result<StreamEvent, Error>> {
        if line.is_empty() {
            return self.dispatch();
        }
        if line.starts_with(':') {
            return Some(Ok(StreamEvent::Alive));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event),
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "id" => self.id = Some(value.to_owned()),
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Result<StreamEvent, Error>> {
        let (event, data) = (std::mem::take(&mut self.event), std::mem::take(&mut self.data));
        if event == "lagged" {
            let sent = serde_json::from_str::<Value>(&data).ok();
            let cursor = sent.and_then(|it| it.get("cursor")?.as_str().map(str::to_owned));
            return Some(Ok(StreamEvent::Lagged { cursor: cursor.or_else(|| self.id.clone()) }));
        }
        if data.is_empty() || !matches!(event.as_str(), "trace" | "" | "message") {
            return None;
        }
        let trace = serde_json::from_str(&data).map_err(|source| Error::Unreadable { source });
        Some(trace.map(|trace| StreamEvent::Trace { id: self.id.clone(), trace }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn events(chunks: &[&str]) -> Vec<StreamEvent> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for chunk in chunks {
            parser.push(chunk.as_bytes());
            while let Some(event) = parser.next() {
                events.push(event.unwrap());
            }
        }
        events
    }

    #[test]
    fn stream_events_are_parsed_across_chunk_boundaries() {
        let text = ": hello\n\nid: 7\r\nevent: trace\r\ndata: {\"id\":\r\ndata: \"ä\"}\r\n\r\nevent: other\ndata: 1\n\n";
        let expected = [
            StreamEvent::Alive,
            StreamEvent::Trace { id: Some("7".to_owned()), trace: json!({ "id": "ä" }) },
        ];
        assert_eq!(events(&[text]), expected);
        let mut parser = Parser::default();
        let mut bytewise = Vec::new();
        for byte in text.bytes() {
            parser.push(&[byte]);
            while let Some(event) = parser.next() {
                bytewise.push(event.unwrap());
            }
        }
        assert_eq!(bytewise, expected);
    }

    #[test]
    fn lagged_event_contains_resume_cursor() {
        let lagged = |cursor: &str| StreamEvent::Lagged { cursor: Some(cursor.to_owned()) };
        assert_eq!(events(&["id: 8\nevent: lagged\ndata: {\"cursor\":\"7\"}\n\n"]), [lagged("7")]);
        assert_eq!(events(&["id: 8\nevent: lagged\ndata: {}\n\n"]), [lagged("8")]);
    }

    #[test]
    fn stream_event_that_is_not_json_is_an_error() {
        let mut parser = Parser::default();
        parser.push(b"data: nonsense\n\n");
        assert!(matches!(parser.next(), Some(Err(Error::Unreadable { .. }))));
    }
}
