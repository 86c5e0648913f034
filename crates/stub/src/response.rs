//! Responses of the stub server.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

/// A response.
#[derive(Clone, Debug)]
pub struct StubResponse {
    /// The status and the header lines; `None` if only `body` is sent.
    head: Option<(u16, Vec<String>)>,
    body: Vec<u8>,
    /// Whether the length of the body is announced.
    has_length: bool,
    /// Number of bytes of the body that are announced and never sent.
    missing_bytes: usize,
    /// Whether the connection stays open until the client leaves.
    is_held_open: bool,
}

impl StubResponse {
    /// Creates a response with status 200 and JSON.
    pub fn json(body: Value) -> Self {
        Self::status(200, body)
    }

    /// Creates a response with any status and JSON.
    pub fn status(status: u16, body: Value) -> Self {
        Self::text("application/json", &body.to_string()).with_status(status).header("X-Request-Id: req-1")
    }

    /// Creates an error response in the form of Loupe's server.
    pub fn error(status: u16, code: &str) -> Self {
        Self::status(status, json!({ "error": format!("it is {code}"), "code": code, "request_id": "req-1" }))
    }

    /// Creates a response with status 200 and text of a media type.
    pub fn text(media_type: &str, body: &str) -> Self {
        let headers = vec!["Connection: close".to_owned(), format!("Content-Type: {media_type}")];
        Self {
            head: Some((200, headers)),
            body: body.into(),
            has_length: true,
            missing_bytes: 0,
            is_held_open: false,
        }
    }

    /// Creates a stream of server-sent events, whose end is the end of the connection.
    pub fn events(events: &[String]) -> Self {
        Self { has_length: false, ..Self::text("text/event-stream", &events.concat()) }
    }

    /// Creates a response of any bytes, which need not be HTTP.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { head: None, body: bytes.into(), has_length: false, missing_bytes: 0, is_held_open: false }
    }

    /// Creates a response that never comes.
    pub fn silence() -> Self {
        Self::raw(Vec::new()).held_open()
    }

    /// Changes the status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.head.get_or_insert_default().0 = status;
        self
    }

    /// Adds a header line.
    #[must_use]
    pub fn header(mut self, line: &str) -> Self {
        self.head.get_or_insert_default().1.push(line.to_owned());
        self
    }

    /// Ends the connection this many bytes before the end of the body.
    #[must_use]
    pub fn cut_by(mut self, bytes: usize) -> Self {
        self.missing_bytes = bytes;
        self
    }

    /// Keeps the connection open until the client leaves.
    #[must_use]
    pub fn held_open(mut self) -> Self {
        self.is_held_open = true;
        self
    }

    pub(crate) fn send(self, stream: &mut TcpStream) -> io::Result<()> {
        if let Some((status, headers)) = self.head {
            let length = self.has_length.then(|| format!("Content-Length: {}", self.body.len()));
            let lines = [format!("HTTP/1.1 {status} X")].into_iter().chain(headers).chain(length);
            write!(stream, "{}\r\n\r\n", lines.collect::<Vec<_>>().join("\r\n"))?;
        }
        stream.write_all(&self.body[..self.body.len() - self.missing_bytes])?;
        stream.flush()?;
        if self.is_held_open {
            _ = stream.read(&mut [0])?;
        }
        Ok(())
    }
}

/// A response that a test changes while the server runs.
#[derive(Clone, Debug)]
pub struct ResponseSwitch(Arc<Mutex<StubResponse>>);

impl ResponseSwitch {
    /// Creates a switch with its first response.
    pub fn new(response: StubResponse) -> Self {
        Self(Arc::new(Mutex::new(response)))
    }

    /// Returns the current response.
    pub fn current(&self) -> StubResponse {
        self.0.lock().unwrap().clone()
    }

    /// Changes the response.
    pub fn set(&self, response: StubResponse) {
        *self.0.lock().unwrap() = response;
    }
}
