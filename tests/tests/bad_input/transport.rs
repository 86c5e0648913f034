//! Transport of a body: content types, encodings, sizes, speed, and interrupted bodies.

use std::{io::Write, time::Duration};

use api::Plan;
use flate2::{Compression, write::GzEncoder};
use reqwest::Method;
use serde_json::json;
use tests::{
    Caller, On, Reply, TestApp,
    hang::{must_end, wait_until},
    on_both_databases,
    raw::{connect, exchange, ingest_head, read_text, status},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{check_health, count};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

/// Posts an item with these headers.
async fn post(key: &Caller, headers: &[(&str, &str)], body: Vec<u8>) -> Reply {
    let mut request = key.request(Method::POST, "/v1/ingest").body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    key.send(request).await
}

/// Posts a body with an encoding.
async fn packed(key: &Caller, encoding: &str, body: Vec<u8>) -> Reply {
    post(key, &[("content-type", "application/json"), ("content-encoding", encoding)], body).await
}

on_both_databases! {
    async fn unsupported_content_type_is_rejected(app: TestApp) {
        let key = app.full_key();
        let body = || b"{}".to_vec();
        for good in ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "application/json;", " application/json ", "Application/Json ; x=y"] {
            assert_eq!(post(&key, &[("content-type", good)], body()).await.status, 201, "{good}");
        }
        let bad = [
            "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/x-protobuf", "application/octet-stream",
            "application/xml", "text/json", "json", "application/jsonx", "application/json+x", "application/vnd.api+json", "application/*", "*/*",
            "application/json, text/plain", "\"application/json\"", "application / json", "text/plain; x=application/json",
        ];
        for bad in bad {
            post(&key, &[("content-type", bad)], body()).await.is(415, "unsupported_media_type");
        }
        post(&key, &[], body()).await.is(415, "unsupported_media_type");
        for path in ["/v1/otlp/traces", "/v1/otlp/v1/traces", "/v1/traces", "/v1/metrics", "/v1/logs"] {
            for bad in ["", "text/plain", "application/protobuf", "application/grpc", "application/x-protobufx"] {
                let reply = key.post_bytes(path, bad, Vec::new()).await;
                assert_eq!((reply.status, reply.code().as_deref()), (415, Some("unsupported_media_type")), "{path} {bad}");
            }
        }
        check_health(app).await;
    }

    async fn unsupported_content_encoding_is_rejected(app: TestApp) {
        let key = app.full_key();
        let item = br#"{"name":"packed"}"#;
        for (encoding, body) in [
            ("gzip", gzip(item)), ("GZIP", gzip(item)), ("x-gzip", gzip(item)), (" gzip ", gzip(item)), ("zstd", zstd(item)), ("identity", item.to_vec()),
            // Several gzip members or Zstandard frames form one text, as both formats define.
            ("gzip", [gzip(&item[..5]), gzip(&item[5..])].concat()), ("zstd", [zstd(&item[..5]), zstd(&item[5..])].concat()),
        ] {
            assert_eq!(packed(&key, encoding, body).await.status, 201, "{encoding}");
        }
        for encoding in ["br", "deflate", "compress", "gzip, gzip", "gzip,zstd", "identity, gzip", "gzip;q=1", "utf-8", "none", "zip", "*", "\u{e9}"] {
            packed(&key, encoding, gzip(item)).await.is(415, "unsupported_media_type");
        }
        let twice = [("content-type", "application/json"), ("content-encoding", "gzip"), ("content-encoding", "gzip")];
        post(&key, &twice, gzip(&gzip(item))).await.is(415, "unsupported_media_type");
        // Bodies that do not match their declared encoding.
        for (encoding, body) in [
            ("gzip", item.to_vec()), ("zstd", item.to_vec()), ("gzip", zstd(item)), ("zstd", gzip(item)), ("gzip", vec![0; 100]), ("zstd", vec![0xff; 100]),
            ("gzip", vec![0x1f]), ("gzip", vec![0x1f, 0x8b]), ("zstd", vec![0x28, 0xb5]), ("zstd", vec![0x28, 0xb5, 0x2f, 0xfd]),
        ] {
            packed(&key, encoding, body).await.is(400, "invalid_body");
        }
        packed(&key, "gzip", gzip(&gzip(item))).await.is(400, "invalid_json");
        packed(&key, "identity", gzip(item)).await.is(400, "invalid_json");
        for encoding in ["gzip", "zstd"] {
            let reply = packed(&key, encoding, Vec::new()).await;
            assert!(reply.status == 400 && reply.code().is_some(), "{encoding}: {}", reply.text());
        }
        check_health(app).await;
    }

    async fn damaged_compressed_body_never_fails_internally(app: TestApp) {
        let key = app.full_key();
        let item = br#"{"name":"packed","metadata":{"k":[1,2,3]},"spans":[{"name":"s"}]}"#;
        let mut stored = 0;
        for (encoding, whole) in [("gzip", gzip(item)), ("zstd", zstd(item))] {
            for length in 1..whole.len() {
                packed(&key, encoding, whole[..length].to_vec()).await.is(400, "invalid_body");
            }
            for bit in 0..whole.len() * 8 {
                let mut body = whole.clone();
                body[bit / 8] ^= 1 << (bit % 8);
                let reply = packed(&key, encoding, body).await;
                assert!(matches!(reply.status, 201 | 400 | 413 | 422), "{encoding} bit {bit}: {} {}", reply.status, reply.text());
                stored += usize::from(reply.status == 201);
            }
        }
        assert_eq!(count(&key).await, stored);
        check_health(app).await;
    }

    /// A gibibyte of spaces, compressed to a megabyte or two.
    async fn decompression_bomb_is_rejected(app: TestApp) {
        let key = app.full_key();
        let block = vec![b' '; 1 << 20];
        let stream = gzip(&vec![b' '; 64 << 20]);
        let mut frames = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
        for _ in 0..1_024 {
            frames.write_all(&block).unwrap();
        }
        let zstd_bomb = frames.finish().unwrap();
        let members = gzip(&block).repeat(1_024);
        assert!(members.len() < 2 << 20);
        for (encoding, body) in [("gzip", stream), ("zstd", zstd_bomb), ("gzip", members)] {
            packed(&key, encoding, body).await.is(413, "payload_too_large");
        }
        // Very many empty members.
        packed(&key, "gzip", gzip(b"").repeat(10_000)).await.is(400, "invalid_json");
        check_health(app).await;
    }

    async fn body_over_the_limit_is_413(app: TestApp) {
        let key = app.full_key();
        let limit = app.app.config.max_body_bytes;
        let spaces = |n: usize| [b"{}".to_vec(), vec![b' '; n - 2]].concat();
        assert_eq!(post(&key, &[("content-type", "application/json")], spaces(limit)).await.status, 201);
        packed(&key, "gzip", gzip(&spaces(limit + 1))).await.is(413, "payload_too_large");
        assert_eq!(packed(&key, "gzip", gzip(&spaces(limit))).await.status, 201);
        // A declared length above the limit is rejected before the body is sent.
        for length in ["33554433", "9223372036854775807"] {
            let response = exchange(app, format!("{}Content-Length: {length}\r\n\r\n{{}}", ingest_head(app)).as_bytes(), false).await;
            assert!(status(&response) == 413 && response.contains("payload_too_large"), "{length}: {response}");
        }
        // A body without a declared length that exceeds the limit.
        let mut socket = connect(app).await;
        _ = socket.write_all(format!("{}Transfer-Encoding: chunked\r\n\r\n", ingest_head(app)).as_bytes()).await;
        let chunk = [b"100000\r\n".to_vec(), vec![b' '; 1 << 20], b"\r\n".to_vec()].concat();
        for _ in 0..40 {
            if socket.write_all(&chunk).await.is_err() {
                break;
            }
        }
        let response = read_text(&mut socket, Duration::from_secs(2)).await;
        // A client that keeps sending may find the connection closed before it reads the response.
        assert!(matches!(status(&response), 413 | 0), "{response}");
        check_health(app).await;
    }

    async fn interrupted_body_is_not_stored(app: TestApp) {
        let whole = format!("{}Content-Length: 17\r\n\r\n{{\"name\":\"cut off\"}}", ingest_head(app));
        let body_at = whole.len() - 18;
        for length in (0..body_at + 17).step_by(7).chain(body_at..body_at + 17) {
            let mut socket = connect(app).await;
            socket.write_all(&whole.as_bytes()[..length]).await.unwrap();
            drop(socket);
        }
        for length in body_at..body_at + 16 {
            // The client closes its sending side: the server may respond, but not with a success.
            let response = exchange(app, &whole.as_bytes()[..length], true).await;
            assert!(matches!(status(&response), 0 | 400), "{response}");
        }
        let chunks = ["5\r\n{\"nam", "5\r\n{\"nam\r\n", "5\r\n{\"nam\r\n0\r\n", "ffffffffffffffff\r\n{}", "zz\r\n{}\r\n0\r\n\r\n", "-1\r\n{}\r\n0\r\n\r\n"];
        for chunk in chunks {
            let response = exchange(app, format!("{}Transfer-Encoding: chunked\r\n\r\n{chunk}", ingest_head(app)).as_bytes(), true).await;
            assert!(matches!(status(&response), 0 | 400 | 413), "{chunk:?}: {response}");
        }
        assert_eq!(count(&app.full_key()).await, 0);
        let good = "2\r\n{\"\r\n4;x=y\r\nname\r\n5\r\n\":\"\"}\r\n0\r\nTrailer: x\r\n\r\n";
        let response = exchange(app, format!("{}Transfer-Encoding: chunked\r\n\r\n{good}", ingest_head(app)).as_bytes(), false).await;
        assert_eq!(status(&response), 201, "{response}");
        check_health(app).await;
    }

    async fn malformed_http_request_is_rejected(app: TestApp) {
        let line = "GET /v1/traces HTTP/1.1\r\n";
        let garbage: Vec<Vec<u8>> = [
            "", "\r\n\r\n", "hello\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nHost\r\n\r\n",
            "G\0T / HTTP/1.1\r\n\r\n", "GET /\0 HTTP/1.1\r\n\r\n", "GET http:// HTTP/1.1\r\nHost: x\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "GET / HTTP/1.1\r\n: x\r\n\r\n", "GET / HTTP/1.1\r\nA B: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n  folded\r\n\r\n",
        ]
        .into_iter()
        .map(|it| it.as_bytes().to_vec())
        .chain([
            format!("{line}X: {}\r\n\r\n", "x".repeat(1 << 20)).into_bytes(),
            format!("{line}{}\r\n", "X: y\r\n".repeat(10_000)).into_bytes(),
            format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000)).into_bytes(),
            format!("{}Content-Length: -1\r\n\r\n{{}}", ingest_head(app)).into_bytes(),
            format!("{}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}", ingest_head(app)).into_bytes(),
            format!("{}Content-Length: 18446744073709551615\r\n\r\n{{}}", ingest_head(app)).into_bytes(),
            format!("{}Content-Length: 0x2\r\n\r\n{{}}", ingest_head(app)).into_bytes(),
            format!("{}Transfer-Encoding: gzip\r\n\r\n{{}}", ingest_head(app)).into_bytes(),
            vec![0xff; 1_000], vec![0; 1_000],
        ])
        .collect();
        for bytes in &garbage {
            let response = exchange(app, bytes, true).await;
            let begins = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
            assert!(status(&response) < 500, "{begins:?}: {response}");
            assert_ne!(status(&response), 201, "{begins:?}: {response}");
        }
        // A request with two lengths, or with a length and chunks, could hide another request: the server
        // accepts at most one.
        let both = format!("{}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n", ingest_head(app));
        let response = exchange(app, both.as_bytes(), true).await;
        assert!(matches!(status(&response), 0 | 400), "{response}");
        assert_eq!(count(&app.full_key()).await, 0);
        check_health(app).await;
    }

    async fn unusual_header_values_are_ignored_or_rejected(app: TestApp) {
        let key = app.full_key();
        for name in ["x-request-id", "x-project-name", "accept", "accept-encoding", "user-agent", "cookie", "range", "if-none-match", "expect-ct", "origin", "x-forwarded-for", "traceparent", "last-event-id"] {
            for value in [&b""[..], b" ", b"\xff\xfe", b"caf\xc3\xa9", &[b'x'; 5_000], b"'; DROP TABLE trace; --", b"\"", b"*/*;q=nan", b"bytes=0-18446744073709551615"] {
                let value = reqwest::header::HeaderValue::from_bytes(value).unwrap();
                for method in [Method::GET, Method::POST] {
                    let path = if method == Method::GET { "/v1/traces?limit=1" } else { "/v1/ingest" };
                    let mut request = key.request(method.clone(), path).header(name, value.clone());
                    if method == Method::POST {
                        request = request.header("content-type", "application/json").body("{}");
                    }
                    let reply = key.send(request).await;
                    // The project header must be a valid name; other headers are ignored.
                    let refused = name == "x-project-name" && method == Method::POST;
                    assert!(reply.status < 300 || refused && reply.status == 422, "{name} {value:?}: {} {}", reply.status, reply.text());
                }
            }
        }
        check_health(app).await;
    }
}

/// A body that does not arrive in time.
async fn slow_body_times_out_on(database: On) {
    let app =
        TestApp::with(database, Plan::Enterprise, &["--body-timeout", "1", "--header-timeout", "1"]).await;
    let mut slow = connect(&app).await;
    slow.write_all(format!("{}Content-Length: 100\r\n\r\n{{\"name\":", ingest_head(&app)).as_bytes())
        .await
        .unwrap();
    // Other requests are served meanwhile, and single bytes do not extend the deadline.
    app.full_key().post("/v1/ingest", &json!({"name": "quick"})).await.ok();
    let mut response = String::new();
    wait_until("the body times out", async || {
        _ = slow.write_all(b" ").await;
        response = read_text(&mut slow, Duration::from_millis(200)).await;
        !response.is_empty()
    })
    .await;
    assert!(
        status(&response) == 400 && response.contains("invalid_body") && response.contains("request_id"),
        "{response}"
    );
    // Without a complete head, the connection is closed.
    let mut head_only = connect(&app).await;
    head_only.write_all(b"GET /v1/traces HTTP/1.1\r\nHost: x\r\n").await.unwrap();
    let mut response = Vec::new();
    must_end("an incomplete head times out", head_only.read_to_end(&mut response)).await.unwrap();
    let response = String::from_utf8_lossy(&response);
    assert!(status(&response) < 500, "{response}");
    assert_eq!(count(&app.full_key()).await, 1);
    check_health(&app).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_body_times_out_on_sqlite() {
    slow_body_times_out_on(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_body_times_out_on_postgres() {
    slow_body_times_out_on(On::Postgres).await;
}
