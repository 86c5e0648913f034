//! Response bodies are read exactly up to the limit, whatever the receiver sends.

use std::time::Duration;

use tests::hang::must_end;

use crate::{receiver::Receiver, send};

/// The cap of [`crate::post`].
const MAX_BODY_BYTES: usize = 4_096;

#[tokio::test]
async fn response_body_limit_is_exact() {
    for length in
        [0, 1, MAX_BODY_BYTES - 1, MAX_BODY_BYTES, MAX_BODY_BYTES + 1, 2 * MAX_BODY_BYTES, 1_000_000]
    {
        let text = (0..length).map(|it| b'a' + (it % 26) as u8).collect::<Vec<u8>>();
        let chunked: Vec<u8> = text
            .chunks(1_000)
            .flat_map(|it| [format!("{:x}\r\n", it.len()).as_bytes(), it, b"\r\n"].concat())
            .chain(*b"0\r\n\r\n")
            .collect();
        let answers = [
            (
                "a length",
                [format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").as_bytes(), &text].concat(),
            ),
            ("chunks", [&b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"[..], &chunked].concat()),
            ("the end", [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &text].concat()),
        ];
        for (how, bytes) in answers {
            let receiver = Receiver::closing(bytes).await;
            let response = send(&receiver).await.unwrap();
            assert_eq!(response.body, text[..length.min(MAX_BODY_BYTES)], "{length} by {how}");
            assert_eq!(response.is_truncated, length > MAX_BODY_BYTES, "{length} by {how}");
            receiver.wait_until_closed().await;
        }
    }
}

#[tokio::test]
async fn endless_response_body_is_truncated_at_the_limit() {
    let chunk = format!("3e8\r\n{}\r\n", "a".repeat(1_000));
    let endless = [
        (
            "ten gigabytes",
            Receiver::endless(
                "HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n",
                "a".repeat(65_536),
                Duration::ZERO,
            )
            .await,
        ),
        (
            "endless chunks",
            Receiver::endless("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", chunk, Duration::ZERO)
                .await,
        ),
        (
            "endless bytes",
            Receiver::endless("HTTP/1.1 200 OK\r\n\r\n", "a".repeat(65_536), Duration::ZERO).await,
        ),
    ];
    for (what, receiver) in endless {
        let response = must_end(what, send(&receiver)).await.unwrap();
        assert_eq!((response.body.len(), response.is_truncated), (MAX_BODY_BYTES, true), "{what}");
        receiver.wait_until_closed().await;
    }
}

#[tokio::test]
async fn truncated_response_does_not_wait_for_the_rest() {
    let full = Box::leak(format!("HTTP/1.1 200 OK\r\n\r\n{}", "a".repeat(MAX_BODY_BYTES)).into_boxed_str());
    let receiver = Receiver::endless(full, "", Duration::from_secs(1)).await;
    let response = must_end("the response is truncated", send(&receiver)).await.unwrap();
    // The length of the rest is unknown. A client that waited for it would time out with an error.
    assert_eq!((response.body.len(), response.is_truncated), (MAX_BODY_BYTES, true));
}

#[tokio::test]
async fn response_body_is_not_decompressed() {
    let receiver =
        Receiver::closing("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc").await;
    let response = send(&receiver).await.unwrap();
    assert_eq!(&response.body[..], b"abc");
}
