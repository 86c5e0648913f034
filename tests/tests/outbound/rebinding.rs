//! DNS rebinding: names whose addresses change between two look-ups.

use std::{io, net::IpAddr, sync::Arc};

use outbound::{
    AddressRejection, OutboundClient, SendError,
    resolver::{Lookup, Resolver},
};

use crate::{allowing, post, receiver::Receiver};

/// Number of requests.
const REQUEST_COUNT: usize = 2_000;

/// A resolver that answers randomly: with the allowed address, with a forbidden one, or with several.
struct RandomResolver;

/// The allowed address, in place of a public one, which no test may connect to.
const ALLOWED_ADDRESS: &str = "127.0.0.2";

/// Addresses of another listener on this machine.
const FORBIDDEN_ADDRESSES: &[&str] =
    &["127.0.0.1", "127.0.0.3", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:127.0.0.2"];

impl Resolver for RandomResolver {
    fn resolve<'a>(&'a self, _: &'a str) -> Lookup<'a> {
        let mut response = vec![ALLOWED_ADDRESS; fastrand::usize(0..3)];
        for _ in 0..fastrand::usize(0..2) {
            response.insert(
                fastrand::usize(0..=response.len()),
                FORBIDDEN_ADDRESSES[fastrand::usize(0..FORBIDDEN_ADDRESSES.len())],
            );
        }
        let response: Vec<IpAddr> = response.iter().map(|it| it.parse().unwrap()).collect();
        Box::pin(async move { io::Result::Ok(response) })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rebound_name_never_reaches_forbidden_address() {
    // The connection closes after each response, so that each request resolves the name again.
    let response = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let open = Receiver::at(&format!("{ALLOWED_ADDRESS}:0"), closing(response)).await.unwrap();
    let port = open.address.port();
    let mut canaries = Vec::new();
    for address in ["127.0.0.1", "127.0.0.3", "[::1]"] {
        canaries.extend(Receiver::at(&format!("{address}:{port}"), closing(response)).await);
    }
    assert!(canaries.len() >= 2);
    let client =
        OutboundClient::new(allowing(&format!("{ALLOWED_ADDRESS}:{port}")), Arc::new(RandomResolver));

    let url = format!("http://hook.example:{port}/");
    let (mut sent, mut refused) = (0, 0);
    for _ in 0..REQUEST_COUNT / 20 {
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
    assert!(
        sent > REQUEST_COUNT / 5 && refused > REQUEST_COUNT / 5,
        "{sent} sent and {refused} rejected: too few of one kind"
    );
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
    for address in FORBIDDEN_ADDRESSES {
        resolver.set("hook.example", &[address.parse().unwrap()]);
        let outcome = client.send(post(url.as_str())).await;
        assert_eq!(outcome.unwrap_err(), SendError::AddressRejected(AddressRejection::Private), "{address}");
    }
    assert_eq!(canary.connections(), 0);
}

fn closing(
    response: &'static str,
) -> impl Fn(tokio::net::TcpStream) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Send + 'static {
    move |mut socket| {
        Box::pin(async move {
            crate::receiver::request(&mut socket).await;
            _ = tokio::io::AsyncWriteExt::write_all(&mut socket, response.as_bytes()).await;
        })
    }
}
