//! Connections without a token: oversized, unfinished and incomplete request headers.

use std::time::{Duration, Instant};

use serde_json::Value;
use tests::{
    On,
    raw::{connect_to, read_text, send_request_to, status},
};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::{
    bystander::Bystander,
    installation::{Installation, MAX_RESIDENT_MIB, full_size},
};

/// Opens connections that each send this much of an unfinished header. The server may close them at any
/// time.
async fn unfinished_headers(url: &str, connections: usize, bytes: usize) -> Vec<TcpStream> {
    let mut open = Vec::with_capacity(connections);
    let filling = vec![b'x'; bytes];
    for _ in 0..connections {
        let mut socket = connect_to(url).await;
        let sent = async {
            socket.write_all(b"GET /v1/traces HTTP/1.1\r\nHost: x\r\nX-Filling: ").await?;
            socket.write_all(&filling).await
        };
        // A server that stops reading leaves the rest in the socket buffers.
        _ = tokio::time::timeout(Duration::from_millis(200), sent).await;
        open.push(socket);
    }
    open
}

/// Requests the other tenant's list on a new connection each time; returns the median and the longest
/// latency.
async fn measure_new_connections(installation: &Installation, requests: usize) -> (Duration, Duration) {
    let token = format!("Authorization: Bearer {}", installation.bystander);
    let mut latencies = Vec::with_capacity(requests);
    for _ in 0..requests {
        let began = Instant::now();
        let response = send_request_to(&installation.server.url, "GET /v1/traces", &[&token]).await;
        assert_eq!(response.status, 200, "{}", response.head);
        latencies.push(began.elapsed());
    }
    latencies.sort_unstable();
    (latencies[requests / 2], latencies[requests - 1])
}

async fn memory_of_unfinished_headers_is_bounded(database: On) {
    let installation = Installation::on(database).await;
    let bystander = Bystander::start(&installation, false).await;
    // The memory is measured after the other tenant's first requests, so that only the attack adds to it.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = installation.resident_mib();
    let connections = if full_size() { 2_000 } else { 300 };
    let open = unfinished_headers(&installation.server.url, connections, 390 * 1024).await;
    let (median, slowest) = measure_new_connections(&installation, 50).await;
    let peak = installation.peak_resident_mib();
    println!(
        "{database:?}: {connections} headers of 390 KiB: {before} -> {peak} MiB; \
         lists on new connections: median {median:?}, slowest {slowest:?}"
    );
    drop(open);
    // Below the size limit of a header, so that none is refused for its size.
    let open = unfinished_headers(&installation.server.url, connections * 4, 15 * 1024).await;
    let (median, slowest) = measure_new_connections(&installation, 50).await;
    let peak = installation.peak_resident_mib();
    let figures = bystander.stop().await;
    println!(
        "{database:?}: {} headers of 15 KiB: {before} -> {peak} MiB; \
         lists on new connections: median {median:?}, slowest {slowest:?}; bystander {figures}",
        connections * 4
    );
    drop(open);
    figures.assert_served();
    assert!(peak < MAX_RESIDENT_MIB && peak < before + 64, "{before} -> {peak} MiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_of_unfinished_headers_is_bounded_on_sqlite() {
    memory_of_unfinished_headers_is_bounded(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_of_unfinished_headers_is_bounded_on_postgres() {
    memory_of_unfinished_headers_is_bounded(On::Postgres).await;
}

/// Sends a request and panics unless the response is this error, with a complete body.
async fn check_rejection(url: &str, request: &str, expected: u16, code: &str) {
    let mut socket = connect_to(url).await;
    _ = socket.write_all(request.as_bytes()).await;
    let response = read_text(&mut socket, Duration::from_secs(2)).await;
    let what: String = request.chars().take(80).collect();
    assert_eq!(status(&response), expected, "{what:?}: {response}");
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap_or_else(|it| panic!("{what:?}: {it}: {response}"));
    assert_eq!(body["code"], code, "{what:?}: {body}");
    assert!(body["error"].as_str().is_some_and(|it| !it.is_empty()), "{body}");
    let id = format!("x-request-id: {}", body["request_id"].as_str().unwrap());
    assert!(head.to_ascii_lowercase().contains(&id), "{what:?}: {response}");
}

#[tokio::test]
async fn oversized_or_incomplete_head_gets_an_error_body() {
    let installation = Installation::on(On::Sqlite).await;
    let url = installation.server.url.as_str();
    let with = |filling: usize| {
        let head = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: ";
        // The four bytes end the header and the head.
        format!("{head}{}\r\n\r\n", "x".repeat(filling - head.len() - 4))
    };
    let mut socket = connect_to(url).await;
    socket.write_all(with(16 * 1024).as_bytes()).await.unwrap();
    assert_eq!(status(&read_text(&mut socket, Duration::from_secs(2)).await), 200);
    for larger in [16 * 1024 + 1, 17_000, 60_000, 390 * 1024, 2 << 20] {
        check_rejection(url, &with(larger), 431, "headers_too_large").await;
    }
    let many = format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{}\r\n", "X: y\r\n".repeat(110));
    check_rejection(url, &many, 431, "headers_too_large").await;
    check_rejection(url, &format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000)), 431, "headers_too_large")
        .await;
    for request in [
        "GET /healthz HTTP/1.1\r\n\r\n",
        "GET /v1/traces HTTP/1.1\r\n\r\n",
        "POST /v1/ingest HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: http://a\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a:port\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: user@a\r\n\r\n",
        "GET /healthz HTTP/1.1\r\n: x\r\n\r\n",
        "GET  HTTP/1.1\r\nHost: x\r\n\r\n",
        "GARBAGE\r\n\r\n",
    ] {
        check_rejection(url, request, 400, "invalid_request").await;
    }
    for request in [
        "GET /healthz HTTP/1.0\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: [::1]:4600\r\nConnection: close\r\n\r\n",
    ] {
        let mut socket = connect_to(url).await;
        socket.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(read_text(&mut socket, Duration::from_secs(2)).await.get(9..12), Some("200"), "{request}");
    }
}
