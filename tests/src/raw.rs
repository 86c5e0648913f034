//! HTTP at the level of bytes, for requests and responses that no client library sends or shows.

#![allow(clippy::unwrap_used, reason = "a test whose socket fails, fails")]

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::TestApp;

/// Opens a connection to the server.
pub async fn connect(app: &TestApp) -> TcpStream {
    connect_to(&app.url).await
}

/// Opens a connection to this address.
pub async fn connect_to(url: &str) -> TcpStream {
    TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap()
}

/// Returns the head of a `POST /v1/ingest` with a valid token and JSON, to which more headers can be added.
pub fn ingest_head(app: &TestApp) -> String {
    format!(
        "POST /v1/ingest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
        app.key_text()
    )
}

/// Sends bytes, closes the sending side if `close` is set, and reads until the server closes its side or a
/// second passes without a byte.
pub async fn exchange(app: &TestApp, bytes: &[u8], close: bool) -> String {
    let mut socket = connect(app).await;
    // The server may close the connection before it has read everything.
    _ = socket.write_all(bytes).await;
    if close {
        _ = socket.shutdown().await;
    }
    read_text(&mut socket, Duration::from_secs(1)).await
}

/// Reads until the server closes its side or `silence` passes without a byte.
pub async fn read_text(socket: &mut TcpStream, silence: Duration) -> String {
    String::from_utf8_lossy(&read_bytes(socket, silence).await).into_owned()
}

async fn read_bytes(socket: &mut TcpStream, silence: Duration) -> Vec<u8> {
    let (mut response, mut buffer) = (Vec::new(), [0; 4_096]);
    while let Ok(Ok(n @ 1..)) = tokio::time::timeout(silence, socket.read(&mut buffer)).await {
        response.extend_from_slice(&buffer[..n]);
    }
    response
}

/// Returns the status of a response; 0 if there is none.
pub fn status(response: &str) -> u16 {
    response.strip_prefix("HTTP/1.1 ").and_then(|it| it.get(..3)?.parse().ok()).unwrap_or(0)
}

/// A response as received, without decompression.
#[derive(Clone, Debug)]
pub struct RawResponse {
    /// The status code.
    pub status: u16,
    /// The status line and the headers, in lower case.
    pub head: String,
    /// The body, with its chunks joined.
    pub body: Vec<u8>,
}

impl RawResponse {
    /// Returns all values of a header, joined with commas; empty without the header.
    pub fn header(&self, name: &str) -> String {
        let values = self.head.lines().filter_map(|it| it.strip_prefix(name)?.strip_prefix(": "));
        values.collect::<Vec<_>>().join(", ")
    }
}

/// Sends a request such as `"GET /healthz"` with header lines, on a new connection.
pub async fn send_request(app: &TestApp, line: &str, headers: &[&str]) -> RawResponse {
    send_request_to(&app.url, line, headers).await
}

/// Sends a request like [`send_request`] to this address.
pub async fn send_request_to(url: &str, line: &str, headers: &[&str]) -> RawResponse {
    let mut socket = connect_to(url).await;
    let headers = headers.iter().map(|it| format!("{it}\r\n")).collect::<String>();
    let request = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let bytes = read_bytes(&mut socket, Duration::from_secs(5)).await;
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let response = RawResponse {
        status: status(&head),
        head: head.to_ascii_lowercase(),
        body: bytes.get(end + 4..).unwrap_or_default().to_vec(),
    };
    match response.header("transfer-encoding") == "chunked" {
        true => RawResponse { body: joined(&response.body), ..response },
        false => response,
    }
}

/// Joins the chunks of a body.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(line) = chunks.windows(2).position(|it| it == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&chunks[..line]).unwrap(), 16).unwrap();
        body.extend_from_slice(&chunks[line + 2..line + 2 + size]);
        chunks = &chunks[line + 2 + size + 2..];
    }
    body
}
