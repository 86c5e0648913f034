//! Response heads: redirects, slow responses, floods and garbage.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};
use outbound::{OutboundRequest, SendError, Stage};
use tests::hang::must_end;
use tokio::{io::AsyncReadExt, net::TcpStream};

use crate::{
    client, post,
    receiver::{Receiver, request},
    send,
};

#[tokio::test]
async fn redirect_is_returned_not_followed() {
    let canary = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    for status in [301, 302, 303, 307, 308] {
        for location in [format!("http://{}/", canary.address), format!("//{}/", canary.address)] {
            let receiver = Receiver::answering(format!(
                "HTTP/1.1 {status} Go\r\nlocation: {location}\r\ncontent-length: 2\r\n\r\nno"
            ))
            .await;
            // The address that the redirect names is exempted too, so the guard is not the reason why it gets no
            // request.
            let client = client(&format!("{},{}", receiver.address, canary.address), &[]);
            let response = client.send(post(&format!("http://{}/", receiver.address))).await.unwrap();
            assert_eq!((response.status.as_u16(), &response.body[..]), (status, &b"no"[..]));
        }
    }
    assert_eq!(canary.connections(), 0);
}

#[tokio::test]
async fn framing_headers_of_caller_are_ignored() {
    let receiver = Receiver::answering("HTTP/1.1 204 No\r\nx-answer: 1\r\n\r\n").await;
    let client = client(&receiver.address.to_string(), &[]);
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (header::HOST, "inside.example"),
        (header::CONTENT_LENGTH, "3"),
        (header::TRANSFER_ENCODING, "chunked"),
        (header::CONNECTION, "upgrade"),
        (header::UPGRADE, "websocket"),
        (header::EXPECT, "100-continue"),
        (header::CONTENT_TYPE, "application/json"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let url = format!("http://{}/hook?a=b", receiver.address);
    let response = client.send(OutboundRequest { headers, ..post(&url) }).await.unwrap();
    assert_eq!(
        (response.status.as_u16(), response.headers.get("x-answer")),
        (204, Some(&HeaderValue::from_static("1")))
    );
    let mut lines: Vec<String> = receiver.heads()[0].lines().map(str::to_owned).collect();
    assert_eq!(lines.remove(0), "POST /hook?a=b HTTP/1.1");
    lines.retain(|it| !it.is_empty());
    lines.sort();
    let host = format!("host: {}", receiver.address);
    let user_agent = format!("user-agent: loupe-server/{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(lines, ["content-length: 16", "content-type: application/json", &host, &user_agent]);
}

#[tokio::test]
async fn idle_connection_is_reused() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let client = client(&receiver.address.to_string(), &[]);
    for _ in 0..20 {
        client.send(post(&format!("http://{}/", receiver.address))).await.unwrap();
    }
    assert_eq!(receiver.connections(), 1);
}

/// A second response to one request must not become the response of the next request.
#[tokio::test]
async fn unsolicited_response_closes_the_connection() {
    let receiver = Receiver::answering(
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nminetHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nother",
    )
    .await;
    let client = client(&receiver.address.to_string(), &[]);
    for _ in 0..20 {
        let response = client.send(post(&format!("http://{}/", receiver.address))).await.unwrap();
        assert_eq!(&response.body[..], b"mine");
    }
}

#[tokio::test]
async fn slow_response_is_timed_out() {
    let second = Duration::from_secs(1);
    let slow = [
        ("silent", Stage::Head, Receiver::endless("", "", second).await),
        (
            "a head in single bytes",
            Stage::Head,
            Receiver::endless("HTTP/1.1 200 OK\r\nx: ", "a", second / 10).await,
        ),
        (
            "endless 100 Continue",
            Stage::Head,
            Receiver::endless("", "HTTP/1.1 100 Continue\r\n\r\n", second / 10).await,
        ),
        (
            "a flood of 103",
            Stage::Head,
            Receiver::endless("", "HTTP/1.1 103 Hints\r\nlink: a\r\n\r\n", Duration::ZERO).await,
        ),
        (
            "a body in single bytes",
            Stage::Body,
            Receiver::endless("HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n", "a", second / 10).await,
        ),
        (
            "a chunk in single bytes",
            Stage::Body,
            Receiver::endless(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n270f\r\n",
                "a",
                second / 10,
            )
            .await,
        ),
        (
            "a body without an end",
            Stage::Body,
            Receiver::endless("HTTP/1.1 200 OK\r\n\r\n", "", second).await,
        ),
    ];
    let sends = slow.map(|(what, stage, receiver)| {
        tokio::spawn(async move {
            let outcome = must_end(what, send(&receiver)).await;
            assert_eq!(outcome.unwrap_err(), SendError::TimedOut(stage), "{what}");
            receiver.wait_until_closed().await;
        })
    });
    for send in sends {
        send.await.unwrap();
    }
}

#[tokio::test]
async fn receiver_that_does_not_read_is_timed_out() {
    const BODY_BYTES: usize = 32 * 1024 * 1024;
    let receiver = Receiver::new(|mut socket: TcpStream| async move {
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        let (mut all, mut buffer) = (0, vec![0; 65_536]);
        while let Ok(read @ 1..) = socket.read(&mut buffer).await {
            all += read;
        }
        assert!(all < BODY_BYTES, "the client sent the whole body");
    })
    .await;
    let client = client(&receiver.address.to_string(), &[]);
    let body = vec![b'a'; BODY_BYTES].into();
    let request = OutboundRequest { body, ..post(&format!("http://{}/", receiver.address)) };
    let outcome = must_end("the request times out", client.send(request)).await;
    assert_eq!(outcome.unwrap_err(), SendError::TimedOut(Stage::Head));
    receiver.wait_until_closed().await;
}

#[tokio::test]
async fn response_that_is_not_http_is_an_error() {
    let flood = format!("HTTP/1.1 200 OK\r\n{}\r\n\r\n", "x: y\r\n".repeat(100_000));
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "a".repeat(1_000_000));
    let reason = format!("HTTP/1.1 200 {}\r\n\r\n", "a".repeat(1_000_000));
    // The name of the case, whether the response is incomplete rather than invalid, and its bytes.
    let cases: &[(&str, bool, &str)] = &[
        ("nothing", true, ""),
        ("half a head", true, "HTTP/1.1 200 OK\r\nx: y\r\n"),
        ("another protocol", false, "SSH-2.0-OpenSSH_9.9\r\n"),
        ("a greeting", false, "220 mail.example ESMTP\r\n"),
        ("no status", false, "HTTP/1.1\r\n\r\n"),
        ("a large status", false, "HTTP/1.1 99999 OK\r\n\r\n"),
        ("a later version", false, "HTTP/2.0 200 OK\r\n\r\n"),
        ("bytes", false, "\u{0}\u{1}\u{2}\u{3}\r\n\r\n"),
        ("a header without a name", false, "HTTP/1.1 200 OK\r\n: x\r\n\r\n"),
        ("NUL in a header", false, "HTTP/1.1 200 OK\r\nx: a\u{0}b\r\n\r\n"),
        ("two lengths", false, "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"),
        ("a negative length", false, "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nab"),
        (
            "a length beyond 64 bits",
            false,
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\nab",
        ),
        ("a body cut short", true, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab"),
        ("no chunk", false, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nab\r\n"),
        (
            "a huge chunk",
            false,
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\nab\r\n",
        ),
        ("a chunk cut short", true, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\nab"),
        ("a flood of headers", false, &flood),
        ("a header of a megabyte", false, &long),
        ("a reason of a megabyte", false, &reason),
    ];
    for (what, is_incomplete, bytes) in cases {
        let receiver = Receiver::closing(*bytes).await;
        let outcome = send(&receiver).await;
        match outcome {
            Err(SendError::ConnectionClosed(_)) if *is_incomplete => {}
            Err(SendError::InvalidResponse(_)) if !*is_incomplete => {}
            other => panic!("{what}: {other:?}"),
        }
        receiver.wait_until_closed().await;
    }
}

#[tokio::test]
async fn reset_and_closed_port_are_distinguished() {
    let receiver = Receiver::new(|mut socket: TcpStream| async move {
        request(&mut socket).await;
        socket.set_zero_linger().unwrap();
    })
    .await;
    let outcome = send(&receiver).await;
    assert!(matches!(outcome, Err(SendError::ConnectionClosed(_))), "{outcome:?}");

    let address = receiver.address;
    drop(receiver);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let outcome = client(&address.to_string(), &[]).send(post(&format!("http://{address}/"))).await;
    assert!(matches!(outcome, Err(SendError::ConnectionRefused(_))), "{outcome:?}");
}

#[tokio::test]
async fn unresolvable_name_is_temporary_when_sending() {
    let outcome = client("", &[]).send(post("https://nowhere.example/")).await;
    assert_eq!(outcome.unwrap_err(), SendError::NameNotResolved);
}

#[tokio::test]
async fn switching_protocols_response_closes_the_connection() {
    let receiver = Receiver::endless(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        "data",
        Duration::from_millis(10),
    )
    .await;
    let response = send(&receiver).await.unwrap();
    assert_eq!((response.status.as_u16(), response.body.len()), (101, 0));
    receiver.wait_until_closed().await;
}
