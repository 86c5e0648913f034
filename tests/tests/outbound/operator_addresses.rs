//! Addresses that the operator set: any address is allowed, and all other checks are those of tenants'
//! addresses.

use std::{io, sync::Arc};

use outbound::{
    AddressOwner, AddressRejection, OutboundClient, OutboundRequest, SendError, Stage,
    resolver::{Lookup, Resolver},
};

use crate::{allowing, client, post, receiver::Receiver};

/// Builds [`post`] for an address that the operator set.
fn operator_post(url: &str) -> OutboundRequest {
    OutboundRequest { set_by: AddressOwner::Operator, ..post(url) }
}

#[tokio::test]
async fn operator_address_may_be_private_and_plain() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let client = client("", &[]);
    for url in
        [format!("http://{}/", receiver.address), format!("http://localhost:{}/", receiver.address.port())]
    {
        let response = client.send(operator_post(&url)).await.unwrap();
        assert_eq!(response.complete().unwrap(), &"ok");
        let outcome = client.send(post(&url)).await;
        assert_eq!(outcome.unwrap_err(), SendError::AddressRejected(AddressRejection::NotHttps), "{url}");
    }
}

/// An idle connection that was opened without a check must not serve a request that requires one.
#[tokio::test]
async fn idle_connection_of_the_operator_is_not_used_for_a_tenant() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    // Plain http is allowed somewhere, so that the address is checked and not only the scheme.
    let client = client("127.0.0.9:1", &[]);
    let url = format!("http://{}/", receiver.address);
    for _ in 0..3 {
        client.send(operator_post(&url)).await.unwrap();
    }
    assert_eq!(receiver.connections(), 1);
    assert!(client.send(post(&url)).await.is_err());
    assert_eq!((receiver.connections(), receiver.heads().len()), (1, 3));
}

#[tokio::test]
async fn redirect_of_operator_address_is_returned_not_followed() {
    let canary = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let receiver = Receiver::answering(format!(
        "HTTP/1.1 307 Go\r\nlocation: http://{}/\r\ncontent-length: 0\r\n\r\n",
        canary.address
    ))
    .await;
    let response =
        client("", &[]).send(operator_post(&format!("http://{}/", receiver.address))).await.unwrap();
    assert_eq!((response.status.as_u16(), canary.connections()), (307, 0));
}

#[tokio::test]
async fn truncated_response_is_not_complete() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc").await;
    let request = operator_post(&format!("http://{}/", receiver.address));
    let response = client("", &[]).send(OutboundRequest { max_body: 2, ..request }).await.unwrap();
    assert_eq!((&response.body[..], response.complete()), (&b"ab"[..], Err(SendError::ResponseTooLarge(2))));
}

/// A resolver of tenants' names that never answers.
struct SilentResolver;

impl Resolver for SilentResolver {
    fn resolve<'a>(&'a self, _: &'a str) -> Lookup<'a> {
        Box::pin(async {
            std::future::pending::<()>().await;
            io::Result::Ok(Vec::new())
        })
    }
}

#[tokio::test]
async fn slow_names_of_tenants_do_not_delay_the_operator() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let client = OutboundClient::new(allowing(""), Arc::new(SilentResolver));
    let outcome = client.send(post("https://hook.example/")).await;
    assert_eq!(outcome.unwrap_err(), SendError::TimedOut(Stage::Resolve));
    let url = format!("http://localhost:{}/", receiver.address.port());
    client.send(operator_post(&url)).await.unwrap();
}
