//! HTTP spoken byte by byte, for what no client library sends.

use std::time::Duration;

use tests::TestApp;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A connection to the server.
pub async fn connect(app: &TestApp) -> TcpStream {
    TcpStream::connect(app.url.strip_prefix("http://").unwrap()).await.unwrap()
}

/// The head of a `POST /v1/ingest` with a good token and JSON, up to where more headers may follow.
pub fn head(app: &TestApp) -> String {
    format!(
        "POST /v1/ingest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
        app.key_text()
    )
}

/// Sends bytes, closes this side if told to, and reads what comes until the server closes its
/// side or a second passes in silence.
pub async fn say(app: &TestApp, bytes: &[u8], close: bool) -> String {
    let mut socket = connect(app).await;
    // A server that has heard enough may close before it has read all.
    _ = socket.write_all(bytes).await;
    if close {
        _ = socket.shutdown().await;
    }
    listen(&mut socket, Duration::from_secs(1)).await
}

/// Reads until the server closes its side or `silence` passes without a byte.
pub async fn listen(socket: &mut TcpStream, silence: Duration) -> String {
    let (mut answer, mut buffer) = (Vec::new(), [0; 4_096]);
    while let Ok(Ok(n @ 1..)) = tokio::time::timeout(silence, socket.read(&mut buffer)).await {
        answer.extend_from_slice(&buffer[..n]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status of an answer; 0 if there is none.
pub fn status(answer: &str) -> u16 {
    answer.strip_prefix("HTTP/1.1 ").and_then(|it| it.get(..3)?.parse().ok()).unwrap_or(0)
}
