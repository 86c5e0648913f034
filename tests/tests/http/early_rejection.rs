//! Clients that send a large body completely before they read the response, and are rejected before the
//! server has read the body. They must receive the error and not a broken connection.

use std::time::Duration;

use tests::{
    TestApp,
    raw::{connect, ingest_head, read_text, status},
};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::server;

const MIB: usize = 1 << 20;

/// The transfer of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyTransfer {
    WithLength,
    Chunked,
    /// With `Expect: 100-continue`, but without waiting for the response.
    ExpectContinue,
}

/// Sends the head and then the whole body. Returns the response.
async fn send(socket: &mut TcpStream, head: &str, sent: BodyTransfer, length: usize) -> String {
    let framing = match sent {
        BodyTransfer::WithLength => format!("Content-Length: {length}\r\n\r\n"),
        BodyTransfer::Chunked => "Transfer-Encoding: chunked\r\n\r\n".to_owned(),
        BodyTransfer::ExpectContinue => format!("Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n"),
    };
    socket.write_all(format!("{head}{framing}").as_bytes()).await.unwrap();
    let piece = vec![b' '; MIB];
    for _ in 0..length / MIB {
        let written = match sent {
            BodyTransfer::Chunked => {
                socket.write_all(&[b"100000\r\n", piece.as_slice(), b"\r\n"].concat()).await
            }
            BodyTransfer::WithLength | BodyTransfer::ExpectContinue => socket.write_all(&piece).await,
        };
        written.unwrap_or_else(|it| panic!("connection closed while sending: {it}"));
    }
    if sent == BodyTransfer::Chunked {
        socket.write_all(b"0\r\n\r\n").await.unwrap();
    }
    let response = read_text(socket, Duration::from_millis(500)).await;
    // A handler that began to read has sent 100 Continue.
    response.strip_prefix("HTTP/1.1 100 Continue\r\n\r\n").map_or(response.clone(), str::to_owned)
}

/// Panics unless bodies of 5 and of 30 MiB get this response with every transfer.
async fn check(app: &TestApp, head: &str, expected: u16, code: &str) {
    for sent in [BodyTransfer::WithLength, BodyTransfer::Chunked, BodyTransfer::ExpectContinue] {
        for length in [5 * MIB, 30 * MIB] {
            let mut socket = connect(app).await;
            let response = send(&mut socket, head, sent, length).await;
            assert!(
                status(&response) == expected && response.contains(code),
                "{sent:?} {length}: {response}"
            );
            if sent == BodyTransfer::WithLength {
                // The server has read the whole body, so the connection can be reused.
                socket.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
                let next = read_text(&mut socket, Duration::from_millis(500)).await;
                assert_eq!(status(&next), 200, "{length}: {next}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_without_token_can_be_sent_completely() {
    let app = server(&[]).await;
    check(&app, "POST /v1/ingest HTTP/1.1\r\nHost: x\r\n", 401, "unauthorized").await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_without_permission_can_be_sent_completely() {
    let app = server(&[]).await;
    let head = ingest_head(&app).replace(" /v1/ingest ", " /v1/apikeys ");
    check(&app, &head, 403, "session_required").await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_to_unknown_route_can_be_sent_completely() {
    let app = server(&[]).await;
    check(&app, "POST /v1/nothing HTTP/1.1\r\nHost: x\r\n", 404, "not_found").await;
    check(&app, "DELETE /healthz HTTP/1.1\r\nHost: x\r\n", 405, "method_not_allowed").await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversized_request_can_be_sent_completely() {
    let app = server(&["--max-body-bytes", "1000"]).await;
    check(&app, &ingest_head(&app), 413, "payload_too_large").await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_without_memory_can_be_sent_completely() {
    let app = server(&["--request-memory-kib", "1"]).await;
    check(&app, &ingest_head(&app), 503, "overloaded").await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expect_continue_is_rejected_before_the_body() {
    let app = server(&[]).await;
    let mut socket = connect(&app).await;
    let request =
        "POST /v1/ingest HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\nExpect: 100-continue\r\n\r\n";
    socket.write_all(request.as_bytes()).await.unwrap();
    let response = read_text(&mut socket, Duration::from_secs(1)).await;
    assert!(status(&response) == 401 && !response.contains("100 Continue"), "{response}");
    let mut socket = connect(&app).await;
    let request = format!("{}Content-Length: 2\r\nExpect: 100-continue\r\n\r\n", ingest_head(&app));
    socket.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(status(&read_text(&mut socket, Duration::from_millis(300)).await), 100);
    socket.write_all(b"{}").await.unwrap();
    assert_eq!(status(&read_text(&mut socket, Duration::from_millis(500)).await), 201);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_request_can_be_sent_completely() {
    let app = server(&[]).await;
    for (head, expected) in
        [("GET / HTTP/1.1\r\nX: ", 431), ("", 431), ("GET / HTTP/1.1\r\n: x\r\n\r\n", 400)]
    {
        let mut socket = connect(&app).await;
        socket.write_all(head.as_bytes()).await.unwrap();
        let piece = vec![b'x'; MIB];
        for _ in 0..30 {
            socket
                .write_all(&piece)
                .await
                .unwrap_or_else(|it| panic!("{head:?}: connection closed while sending: {it}"));
        }
        let response = read_text(&mut socket, Duration::from_millis(500)).await;
        assert_eq!(status(&response), expected, "{head:?}: {response}");
    }
    app.stop().await;
}
