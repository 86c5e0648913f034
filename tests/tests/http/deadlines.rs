//! Slow clients, and more clients than the server allows.
//!
//! `LOUPE_TEST_SLOW` is the number of connections of each kind. With 500, the server uses its default
//! deadlines, with fewer it gets shorter ones.

#![allow(clippy::print_stdout, reason = "a long run prints its results")]

use std::time::{Duration, Instant};

use serde_json::json;
use tests::{
    TestApp,
    hang::{must_end, wait_until},
    raw::{connect, ingest_head, read_text, send_request, status},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::{server, token};

/// Sends single bytes, which must not extend the deadline, until the server closes the connection. Returns the
/// time since it was opened, for the printed report.
async fn time_until_closed(mut socket: TcpStream, byte: &'static [u8], opened: Instant) -> Duration {
    let mut buffer = [0; 1_024];
    must_end("the server closes a slow connection", async {
        loop {
            match tokio::time::timeout(Duration::from_millis(500), socket.read(&mut buffer)).await {
                Ok(Ok(0) | Err(_)) => return opened.elapsed(),
                Ok(Ok(_)) => {}
                Err(_) => _ = socket.write_all(byte).await,
            }
        }
    })
    .await
}

#[expect(clippy::disallowed_methods, reason = "an environment variable selects a long run")]
fn slow_connection_count() -> Option<usize> {
    std::env::var("LOUPE_TEST_SLOW").ok().map(|it| it.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_heads_and_bodies_are_closed_without_delaying_others() {
    let (n, flags) = match slow_connection_count() {
        Some(n) => (n, &[][..]),
        None => (50, &["--header-timeout", "2", "--body-timeout", "2"][..]),
    };
    let app = server(flags).await;
    let (mut heads, mut bodies) = (JoinSet::new(), JoinSet::new());
    for _ in 0..n {
        let opened = Instant::now();
        let mut socket = connect(&app).await;
        socket.write_all(b"GET /v1/traces HTTP/1.1\r\nHost: x\r\nX-Slow: ").await.unwrap();
        heads.spawn(time_until_closed(socket, b"x", opened));
        let mut socket = connect(&app).await;
        socket
            .write_all(format!("{}Content-Length: 1000000\r\n\r\n{{", ingest_head(&app)).as_bytes())
            .await
            .unwrap();
        bodies.spawn(time_until_closed(socket, b" ", opened));
    }
    let mut quick = Vec::new();
    let key = app.full_key();
    let (mut slowest_head, mut slowest_body) = (Duration::ZERO, Duration::ZERO);
    for (slow, slowest) in [(&mut heads, &mut slowest_head), (&mut bodies, &mut slowest_body)] {
        while !slow.is_empty() {
            let began = Instant::now();
            match quick.len() % 2 {
                0 => key.post("/v1/ingest", &json!({"name": "quick"})).await.ok(),
                _ => key.get("/v1/traces?limit=5").await.ok(),
            };
            quick.push(began.elapsed());
            tokio::time::sleep(Duration::from_millis(20)).await;
            while let Some(took) = slow.try_join_next() {
                *slowest = took.unwrap().max(*slowest);
            }
        }
    }
    quick.sort_unstable();
    let p99 = quick[quick.len() * 99 / 100];
    println!(
        "{n} slow heads ended within {slowest_head:?}, {n} slow bodies within {slowest_body:?}; {} others, p99 {p99:?}",
        quick.len()
    );
    app.stop().await;
}

/// Stores texts for a page that exceeds all socket buffers.
async fn store_large_texts(app: &TestApp) {
    for n in 0..16 {
        let item = json!({"id": format!("t{n}"), "input": "x".repeat(1_000_000)});
        app.full_key().post("/v1/ingest", &item).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_of_client_that_does_not_read_is_closed() {
    let app = server(&["--write-timeout", "1"]).await;
    store_large_texts(&app).await;
    for path in ["/v1/traces?limit=200", "/v1/traces/stream"] {
        let without_this_one = connections(&app).await;
        let mut socket = connect(&app).await;
        socket
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n{}\r\n\r\n", token(&app)).as_bytes())
            .await
            .unwrap();
        let mut start = [0; 12];
        socket.read_exact(&mut start).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        if path.ends_with("stream") {
            send_events_continuously(&app).await;
        }
        // The server may have closed the connection while the events were sent.
        wait_until(&format!("{path} is closed"), async || connections(&app).await <= without_this_one).await;
    }
    app.stop().await;
}

async fn send_events_continuously(app: &TestApp) {
    for n in 0..16 {
        app.full_key()
            .post("/v1/ingest", &json!({"id": format!("e{n}"), "input": "y".repeat(1_000_000)}))
            .await
            .ok();
    }
}

async fn connections(app: &TestApp) -> i64 {
    app.app.telemetry.http.connections.get()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_reader_receives_whole_response() {
    let app = server(&["--write-timeout", "1"]).await;
    store_large_texts(&app).await;
    let whole = send_request(&app, "GET /v1/traces?limit=200", &[&token(&app)]).await;
    let mut socket = connect(&app).await;
    socket
        .write_all(
            format!(
                "GET /v1/traces?limit=200 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}\r\n\r\n",
                token(&app)
            )
            .as_bytes(),
        )
        .await
        .unwrap();
    let (mut read, mut buffer) = (0, vec![0; 1 << 20]);
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        match socket.read(&mut buffer).await.unwrap() {
            0 => break,
            n => read += n,
        }
    }
    assert!(read >= whole.body.len(), "{read} of {}", whole.body.len());
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_beyond_the_limit_gets_503_with_retry_after() {
    let app = server(&["--max-connections", "4"]).await;
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(connect(&app).await);
    }
    while connections(&app).await < 4 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let refused = send_request(&app, "GET /healthz", &[]).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, "1".to_owned()), "{}", refused.head);
    let body: serde_json::Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!(body["code"], "overloaded");
    // Existing connections are still served.
    let first = &mut open[0];
    first.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert_eq!(status(&read_text(first, Duration::from_millis(300)).await), 200);
    // Connections beyond those that get an error response are closed, and consume nothing.
    let mut crowd = Vec::new();
    for _ in 0..300 {
        crowd.push(connect(&app).await);
    }
    drop(crowd);
    open.pop();
    wait_until("a new connection is served", async || {
        send_request(&app, "GET /healthz", &[]).await.status == 200
    })
    .await;
    app.stop().await;
}

/// A burst before the server accepts any connection. Because it accepts none, a client that finds no room in the
/// accept queue never connects.
#[tokio::test]
async fn burst_of_connections_is_accepted() {
    let listener = server::http::serve::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let mut crowd = JoinSet::new();
    for _ in 0..1_000 {
        crowd.spawn(TcpStream::connect(address));
    }
    let connections = must_end("the accept queue has room for the burst", crowd.join_all()).await;
    assert!(connections.iter().all(Result::is_ok));
}
