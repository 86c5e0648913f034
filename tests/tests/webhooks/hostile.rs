//! Receivers that cannot be reached, or misbehave: status 0 with the reason, and no effect on others.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tests::authority::Authority;

use crate::{
    receiver::{Receiver, Response},
    with_receivers,
};

const OK_STATUS_LINE: &str = "HTTP/1.1 200 OK\r\n";

fn bytes(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// Returns receivers by name, with the status that a test of their webhook reports, and a part of the reason.
async fn receivers(authority: &Authority) -> Vec<(&'static str, Receiver, u16, &'static str)> {
    let chunk = [format!("{:x}\r\n", 65_536).as_bytes(), &[b'x'; 65_536], b"\r\n"].concat();
    let with = |head: &str| bytes(&format!("{OK_STATUS_LINE}{head}\r\n\r\n"));
    let cases = [
        ("hangs before the head", Response::Hang(Vec::new()), 0, "in time (waiting for the response)"),
        ("hangs within the head", Response::Hang(bytes("HTTP/1.1 20")), 0, "in time"),
        (
            "hangs after the head",
            Response::Hang(with("content-length: 10")),
            0,
            "in time (reading the response)",
        ),
        (
            "hangs within the body",
            Response::Hang([with("content-length: 10"), bytes("12345")].concat()),
            0,
            "in time",
        ),
        (
            "sends a byte every second",
            Response::Endless(with("content-length: 9999"), bytes("x"), Duration::from_secs(1)),
            0,
            "in time",
        ),
        (
            "streams endlessly",
            Response::Endless(with("transfer-encoding: chunked"), chunk, Duration::ZERO),
            200,
            "",
        ),
        (
            "announces and sends 10 GB",
            Response::Endless(with("content-length: 10000000000"), vec![b'x'; 65_536], Duration::ZERO),
            200,
            "",
        ),
        (
            "sends headers endlessly",
            Response::Endless(
                bytes(OK_STATUS_LINE),
                bytes(&"x-header: value\r\n".repeat(500)),
                Duration::ZERO,
            ),
            0,
            "invalid response",
        ),
        ("closes without a response", Response::Close(Vec::new()), 0, "incomplete response"),
        (
            "closes within the head",
            Response::Close(bytes("HTTP/1.1 200 OK\r\nx: ")),
            0,
            "incomplete response",
        ),
        (
            "closes within the body",
            Response::Close([with("content-length: 10"), bytes("12345")].concat()),
            0,
            "incomplete response",
        ),
        ("is not HTTP", Response::Close(bytes("220 mail.example ESMTP\r\n")), 0, "invalid response"),
    ];
    let mut receivers = Vec::new();
    for (what, response, status, reason) in cases {
        let receiver =
            Receiver::start(authority, &["hook.example"], 2099, move |_, _| response.clone()).await;
        receivers.push((what, receiver, status, reason));
    }
    let fine = |_: &_, _| Response::Status(200);
    let another = Receiver::start(authority, &["other.example"], 2099, fine).await;
    receivers.push(("has a certificate of another name", another, 0, "TLS failed"));
    let expired = Receiver::start(authority, &["hook.example"], 2021, fine).await;
    receivers.push(("has an expired certificate", expired, 0, "TLS failed"));
    let unknown = Receiver::start(&Authority::new(), &["hook.example"], 2099, fine).await;
    receivers.push(("has a certificate of an unknown authority", unknown, 0, "TLS failed"));
    receivers
}

with_receivers! {
    async fn tests_of_hostile_receivers_report_status_and_reason(home: Installation) {
        let receivers = receivers(&home.authority).await;
        let tests = receivers.iter().map(|(what, receiver, status, reason)| async move {
            let id = home.webhook(receiver).await;
            let reply = home.key().post(&format!("/v1/webhooks/{id}/test"), &json!({})).await.ok();
            assert_eq!(reply["status"], *status, "{what}: {reply}");
            if *status == 0 {
                assert_eq!(reply["body"], "", "{what}");
                assert!(reply["error"].as_str().unwrap().contains(reason), "{what}: {reply}");
            } else {
                assert_eq!((reply["body"].as_str().unwrap().len(), &reply["error"]), (4_096, &json!(null)), "{what}");
            }
        });
        join_all(tests).await;
    }

    async fn unreachable_receivers_report_status_zero(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        let (url, id) = (receiver.url(), home.webhook(&receiver).await);
        let path = format!("/v1/webhooks/{id}/test");
        drop(receiver);
        // The listener is closed in the background.
        while std::net::TcpStream::connect(format!("127.0.0.1:{}", url.rsplit(':').next().unwrap().split('/').next().unwrap())).is_ok() {
            tokio::task::yield_now().await;
        }
        let refused = home.key().post(&path, &json!({})).await.ok();
        assert_eq!((&refused["status"], &refused["body"]), (&json!(0), &json!("")));
        assert!(refused["error"].as_str().unwrap().starts_with("connection failed"), "{refused}");
        home.app.resolver.set("hook.example", &[]);
        let unresolvable = home.key().post(&path, &json!({})).await.ok();
        assert_eq!(unresolvable["status"], 0);
        assert!(unresolvable["error"].as_str().unwrap().contains("does not resolve"), "{unresolvable}");
        // The address that was public is private now: the test is rejected, and a delivery fails.
        home.app.resolver.set("hook.example", &["10.0.0.1".parse().unwrap()]);
        let private = home.key().post(&path, &json!({})).await;
        private.is(422, "webhook.url.private_ip");
        assert_eq!(private.json()["error"], "webhook.url.private_ip");
        home.publish(0..1).await;
        home.app.drain().await;
        let attempt = home.deliveries(&id).await[0]["attempts"][0].clone();
        assert_eq!((&attempt["status"], &attempt["response_body"]), (&json!(0), &json!(null)));
        assert!(attempt["error"].as_str().unwrap().contains("not public"), "{attempt}");
    }

    async fn deliveries_to_hostile_receivers_are_logged_with_the_reason(home: Installation) {
        let receivers = receivers(&home.authority).await;
        let mut webhooks = Vec::new();
        for (what, receiver, status, reason) in &receivers {
            webhooks.push((what, home.webhook(receiver).await, *status, reason));
        }
        home.app.app.start_workers();
        home.publish(0..1).await;
        for (what, webhook, status, reason) in webhooks {
            let attempt = loop {
                let delivery = home.deliveries(&webhook).await[0].clone();
                if delivery["attempts"][0].is_object() {
                    break delivery["attempts"][0].clone();
                }
                home.wait(Duration::from_millis(100)).await;
            };
            assert_eq!(attempt["status"], status, "{what}: {attempt}");
            assert!(attempt["error"].as_str().unwrap_or_default().contains(reason), "{what}: {attempt}");
        }
    }
}
