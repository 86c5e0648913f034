//! A reader of server-sent events.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test whose stream can't be read fails")]

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::Value;

use crate::caller::Caller;

/// One event.
#[derive(Clone, Debug)]
pub struct Event {
    /// To resume behind it.
    pub id: String,
    /// Its kind.
    pub name: String,
    /// What it carries.
    pub data: Value,
}

/// A stream that is being read.
#[derive(Debug)]
pub struct EventStream {
    response: Response,
    text: String,
    /// Comment lines seen so far.
    pub comments: usize,
}

impl EventStream {
    /// Opens the stream at `path`, behind the event `last` if there is one.
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

    /// The next event; none when the server ended the stream. Fails after 20 seconds.
    pub async fn next(&mut self) -> Option<Event> {
        let Some(event) = self.within(Duration::from_secs(20)).await else { panic!("no event came") };
        event
    }

    /// The next event if one comes within this time; the inner none is the end of the stream.
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

/// A block of lines up to an empty one; none when it has no data.
fn parse(block: &str) -> Option<Event> {
    let field = |name: &str| {
        let mut lines = block.lines();
        lines.find_map(|it| it.strip_prefix(name)?.strip_prefix(':').map(|it| it.trim_start().to_owned()))
    };
    let data = serde_json::from_str(&field("data")?).unwrap();
    Some(Event { id: field("id").unwrap_or_default(), name: field("event").unwrap_or_default(), data })
}
