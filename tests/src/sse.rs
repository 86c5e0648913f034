//! A reader of server-sent events.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test whose stream can't be read fails")]

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::Value;

use crate::caller::Caller;

/// A server-sent event.
#[derive(Clone, Debug)]
pub struct Event {
    /// The ID after which a stream can resume.
    pub id: String,
    /// The event type.
    pub name: String,
    /// The data, as JSON.
    pub data: Value,
}

/// An open event stream.
#[derive(Debug)]
pub struct EventStream {
    response: Response,
    text: String,
    /// Number of comment lines received.
    pub comments: usize,
}

impl EventStream {
    /// Opens the stream at `path`, after the event `last` if there is one.
    pub async fn open(caller: &Caller, path: &str, last: Option<&str>) -> Self {
        let mut request = caller.request(Method::GET, path);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new(), comments: 0 }
    }

    /// Returns the next event; `None` when the server ended the stream. Panics after 20 seconds.
    pub async fn next(&mut self) -> Option<Event> {
        let Some(event) = self.within(Duration::from_secs(20)).await else { panic!("no event came") };
        event
    }

    /// Returns the next event if one arrives within this time; the inner `None` is the end of the stream.
    pub async fn within(&mut self, time: Duration) -> Option<Option<Event>> {
        tokio::time::timeout(time, self.read()).await.ok()
    }

    async fn read(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                self.comments += block.lines().filter(|it| it.starts_with(':')).count();
                if let Some(event) = parse(&block) {
                    return Some(event);
                }
            }
            let chunk = self.response.chunk().await.ok()??;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

/// Parses the lines up to an empty one; `None` without data.
fn parse(block: &str) -> Option<Event> {
    let field = |name: &str| {
        let mut lines = block.lines();
        lines.find_map(|it| it.strip_prefix(name)?.strip_prefix(':').map(|it| it.trim_start().to_owned()))
    };
    let data = serde_json::from_str(&field("data")?).unwrap();
    Some(Event { id: field("id").unwrap_or_default(), name: field("event").unwrap_or_default(), data })
}
