//! Response bodies are read exactly up to the limit, whatever the receiver sends.

use std::time::Duration;

use tokio::time::Instant;

use crate::{receiver::Receiver, send};

/// The cap of [`crate::post`].
const CAP: usize = 4_096;

#[tokio::test]
async fn response_body_limit_is_exact() {
    for length in [0, 1, CAP - 1, CAP, CAP + 1, 2 * CAP, 1_000_000] {
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
            let answer = send(&receiver).await.unwrap();
            assert_eq!(answer.body, text[..length.min(CAP)], "{length} by {how}");
            assert_eq!(answer.is_truncated, length > CAP, "{length} by {how}");
            receiver.is_left_alone().await;
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
            "chunks for ever",
            Receiver::endless("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", chunk, Duration::ZERO)
                .await,
        ),
        (
            "bytes for ever",
            Receiver::endless("HTTP/1.1 200 OK\r\n\r\n", "a".repeat(65_536), Duration::ZERO).await,
        ),
    ];
    for (what, receiver) in endless {
        let begun = Instant::now();
        let answer = send(&receiver).await.unwrap();
        assert_eq!((answer.body.len(), answer.is_truncated), (CAP, true), "{what}");
        assert!(
            begun.elapsed() < Duration::from_secs(2) && answer.elapsed <= begun.elapsed(),
            "{what}: {:?}",
            begun.elapsed()
        );
        receiver.is_left_alone().await;
    }
}

#[tokio::test]
async fn full_response_body_ends_quickly() {
    let full = Box::leak(format!("HTTP/1.1 200 OK\r\n\r\n{}", "a".repeat(CAP)).into_boxed_str());
    let receiver = Receiver::endless(full, "", Duration::from_secs(1)).await;
    let begun = Instant::now();
    let answer = send(&receiver).await.unwrap();
    // The length of the rest is unknown.
    assert_eq!((answer.body.len(), answer.is_truncated), (CAP, true));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn response_body_is_not_decompressed() {
    let receiver =
        Receiver::closing("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc").await;
    let answer = send(&receiver).await.unwrap();
    assert_eq!(&answer.body[..], b"abc");
}
