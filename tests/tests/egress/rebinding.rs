//! DNS rebinding: names whose addresses change between two look-ups.

use std::{io, net::IpAddr, sync::Arc};

use outbound::{
    AddressRejection, OutboundClient, SendError,
    resolver::{Lookup, Resolver},
};

use crate::{allowing, post, receiver::Receiver};

/// Number of requests.
const SENDS: usize = 2_000;

/// A resolver that answers randomly: with the allowed address, with a forbidden one, or with several.
struct Fickle;

/// The allowed address, in place of a public one, which no test may connect to.
const OPEN: &str = "127.0.0.2";

/// Addresses of another listener on this machine.
const CLOSED: &[&str] =
    &["127.0.0.1", "127.0.0.3", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:127.0.0.2"];

impl Resolver for Fickle {
    fn resolve<'a>(&'a self, _: &'a str) -> Lookup<'a> {
        let mut answer = vec![OPEN; fastrand::usize(0..3)];
        for _ in 0..fastrand::usize(0..2) {
            answer.insert(fastrand::usize(0..=answer.len()), CLOSED[fastrand::usize(0..CLOSED.len())]);
        }
        let answer: Vec<IpAddr> = answer.iter().map(|it| it.parse().unwrap()).collect();
        Box::pin(async move { io::Result::Ok(answer) })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_leads_to_an_address_that_was_not_judged() {
    // The connection closes after each response, so that each request resolves the name again.
    let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let open = Receiver::at(&format!("{OPEN}:0"), closing(answer)).await.unwrap();
    let port = open.address.port();
    let mut canaries = Vec::new();
    for address in ["127.0.0.1", "127.0.0.3", "[::1]"] {
        canaries.extend(Receiver::at(&format!("{address}:{port}"), closing(answer)).await);
    }
    assert!(canaries.len() >= 2);
    let client = OutboundClient::new(allowing(&format!("{OPEN}:{port}")), Arc::new(Fickle));

    let url = format!("http://hook.example:{port}/");
    let (mut sent, mut refused) = (0, 0);
    for _ in 0..SENDS / 20 {
        let sends = (0..20).map(|_| {
            let (client, request) = (client.clone(), post(&url));
            tokio::spawn(async move { client.send(request).await })
        });
        for send in sends.collect::<Vec<_>>() {
            match send.await.unwrap() {
                Ok(_) => sent += 1,
                Err(SendError::AddressRejected(AddressRejection::NotHttps) | SendError::NameNotResolved) => {
                    refused += 1
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }
    assert!(sent > SENDS / 5 && refused > SENDS / 5, "{sent} were sent and {refused} refused");
    assert_eq!(open.connections(), sent);
    for canary in canaries {
        assert_eq!(canary.connections(), 0, "{}", canary.address);
    }
}

/// An address that passed the check when it was stored is checked again when it is used.
#[tokio::test]
async fn stored_address_is_checked_again_when_used() {
    let canary = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let resolver = Arc::new(crate::resolver(&[("hook.example", &["93.184.216.34"])]));
    let client = OutboundClient::new(allowing(""), Arc::clone(&resolver) as Arc<dyn Resolver>);
    let url = client.check(&format!("https://hook.example:{}/", canary.address.port())).await.unwrap();
    for address in CLOSED {
        resolver.set("hook.example", &[address.parse().unwrap()]);
        let outcome = client.send(post(url.as_str())).await;
        assert_eq!(outcome.unwrap_err(), SendError::AddressRejected(AddressRejection::Private), "{address}");
    }
    assert_eq!(canary.connections(), 0);
}

fn closing(
    answer: &'static str,
) -> impl Fn(tokio::net::TcpStream) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Send + 'static {
    move |mut socket| {
        Box::pin(async move {
            crate::receiver::request(&mut socket).await;
            _ = tokio::io::AsyncWriteExt::write_all(&mut socket, answer.as_bytes()).await;
        })
    }
}
