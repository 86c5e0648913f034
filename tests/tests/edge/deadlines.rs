//! Slow clients, and too many of them.
//!
//! `LOUPE_TEST_SLOW` is the number of connections of each kind. With 500, the server uses its default
//! deadlines, with fewer it gets shorter ones.

#![allow(clippy::print_stdout, reason = "a long run says what it saw")]

use std::time::{Duration, Instant};

use serde_json::json;
use tests::{
    TestApp,
    raw::{ask, connect, head, listen, status},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::{server, token};

/// Returns the time from opening the connection until the server ended it.
async fn ended(mut socket: TcpStream, drop_by_drop: &'static [u8], opened: Instant) -> Duration {
    let mut buffer = [0; 1_024];
    loop {
        match tokio::time::timeout(Duration::from_millis(500), socket.read(&mut buffer)).await {
            Ok(Ok(0) | Err(_)) => return opened.elapsed(),
            Ok(Ok(_)) => {}
            // Single bytes do not extend the deadline.
            Err(_) => _ = socket.write_all(drop_by_drop).await,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a long run is asked for from outside")]
fn slow_callers() -> Option<usize> {
    std::env::var("LOUPE_TEST_SLOW").ok().map(|it| it.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_heads_and_bodies_end_and_hold_nobody_up() {
    let (n, flags, most) = match slow_callers() {
        Some(n) => (n, &[][..], [Duration::from_secs(30), Duration::from_secs(60)]),
        None => {
            let flags = &["--header-timeout", "2", "--body-timeout", "2"][..];
            (50, flags, [Duration::from_secs(4), Duration::from_secs(16)])
        }
    };
    let app = server(flags).await;
    let (mut heads, mut bodies) = (JoinSet::new(), JoinSet::new());
    for _ in 0..n {
        let opened = Instant::now();
        let mut socket = connect(&app).await;
        socket.write_all(b"GET /v1/traces HTTP/1.1\r\nHost: x\r\nX-Slow: ").await.unwrap();
        heads.spawn(ended(socket, b"x", opened));
        let mut socket = connect(&app).await;
        socket
            .write_all(format!("{}Content-Length: 1000000\r\n\r\n{{", head(&app)).as_bytes())
            .await
            .unwrap();
        bodies.spawn(ended(socket, b" ", opened));
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
    assert!(slowest_head <= most[0] && slowest_body <= most[1], "{slowest_head:?} {slowest_body:?}");
    assert!(quick.len() > 30 && p99 < Duration::from_millis(200), "{} {p99:?}", quick.len());
    app.stop().await;
}

/// Stores texts for a page that exceeds all socket buffers.
async fn with_much_to_read(app: &TestApp) {
    for n in 0..16 {
        let item = json!({"id": format!("t{n}"), "input": "x".repeat(1_000_000)});
        app.full_key().post("/v1/ingest", &item).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_of_client_that_does_not_read_is_closed() {
    let app = server(&["--write-timeout", "1"]).await;
    with_much_to_read(&app).await;
    for path in ["/v1/traces?limit=200", "/v1/traces/stream"] {
        let mut socket = connect(&app).await;
        socket
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n{}\r\n\r\n", token(&app)).as_bytes())
            .await
            .unwrap();
        let mut start = [0; 12];
        socket.read_exact(&mut start).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        if path.ends_with("stream") {
            with_more_events(&app).await;
        }
        let before = connections(&app).await;
        let began = Instant::now();
        while connections(&app).await >= before {
            assert!(began.elapsed() < Duration::from_secs(5), "{path}: still open");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    app.stop().await;
}

async fn with_more_events(app: &TestApp) {
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
    with_much_to_read(&app).await;
    let whole = ask(&app, "GET /v1/traces?limit=200", &[&token(&app)]).await;
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
async fn beyond_the_limit_of_connections_the_newest_is_told_to_come_back() {
    let app = server(&["--max-connections", "4"]).await;
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(connect(&app).await);
    }
    while connections(&app).await < 4 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let refused = ask(&app, "GET /healthz", &[]).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, "1".to_owned()), "{}", refused.head);
    let body: serde_json::Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!(body["code"], "overloaded");
    // Existing connections are still served.
    let first = &mut open[0];
    first.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert_eq!(status(&listen(first, Duration::from_millis(300)).await), 200);
    // Connections beyond those that get an error response are closed, and consume nothing.
    let mut crowd = Vec::new();
    for _ in 0..300 {
        crowd.push(connect(&app).await);
    }
    drop(crowd);
    open.pop();
    let began = Instant::now();
    while ask(&app, "GET /healthz", &[]).await.status != 200 {
        assert!(began.elapsed() < Duration::from_secs(5), "no room again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    app.stop().await;
}

/// A burst before the server accepts any connection. A client that finds no room in the queue retries only
/// after a second.
#[tokio::test]
async fn burst_of_connections_is_accepted() {
    let listener = server::http::serve::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let mut crowd = JoinSet::new();
    for _ in 0..1_000 {
        crowd.spawn(TcpStream::connect(address));
    }
    let began = Instant::now();
    let mut inside = Vec::new();
    while let Some(connected) = crowd.join_next().await {
        inside.push(connected.unwrap().unwrap());
    }
    assert!(inside.len() == 1_000 && began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}
