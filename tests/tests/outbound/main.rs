//! The outbound HTTP guard: the addresses that it rejects, and the limits that hostile receivers cannot break.
//!
//! No request leaves the machine. Receivers listen on loopback addresses, which a test exempts like an
//! operator would. A [`receiver::Receiver`] at an address that must not be reached counts its connections.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "receivers run beside the test")]

mod addresses;
mod allow_list;
mod names;
mod notations;
mod operator_addresses;
mod rebinding;
mod receiver;
mod response_bodies;
mod response_heads;
mod tls;
mod urls;

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::http::{HeaderMap, Method};
use outbound::{
    AddressOwner, AddressRejection, AllowList, OutboundClient, OutboundRequest, OutboundResponse,
    OutboundSettings, SendError, resolver::FakeResolver,
};

/// The expected result for a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The URL is accepted.
    Accepted,
    /// [`AddressRejection::NotHttps`].
    NotHttps,
    /// [`AddressRejection::Private`].
    Private,
    /// [`AddressRejection::Unresolvable`].
    Unresolvable,
}

/// Creates an outbound client with this allow list and these names.
fn client(allow_list: &str, names: &[(&str, &[&str])]) -> OutboundClient {
    OutboundClient::new(allowing(allow_list), Arc::new(resolver(names)))
}

/// Returns settings with this allow list.
fn allowing(allow_list: &str) -> OutboundSettings {
    OutboundSettings { allow_list: AllowList::parse(allow_list).unwrap(), ..OutboundSettings::default() }
}

fn resolver(names: &[(&str, &[&str])]) -> FakeResolver {
    let resolver = FakeResolver::default();
    for (name, addresses) in names {
        let addresses: Vec<IpAddr> = addresses.iter().map(|it| it.parse().unwrap()).collect();
        resolver.set(name, &addresses);
    }
    resolver
}

/// Checks each URL against its expected result. Reports all failures at once.
async fn check_all(client: &OutboundClient, cases: impl IntoIterator<Item = (String, Verdict)>) {
    let mut wrong = Vec::new();
    for (url, expected) in cases {
        let verdict = match client.check(&url).await {
            Ok(_) => Verdict::Accepted,
            Err(AddressRejection::NotHttps) => Verdict::NotHttps,
            Err(AddressRejection::Private) => Verdict::Private,
            Err(AddressRejection::Unresolvable) => Verdict::Unresolvable,
        };
        if verdict != expected {
            wrong.push(format!("{url:?} is {verdict:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong verdicts:\n  {}", wrong.len(), wrong.join("\n  "));
}

/// Builds a POST of a few bytes, with a limit of two seconds and 4,096 bytes for the response.
fn post(url: &str) -> OutboundRequest {
    OutboundRequest {
        method: Method::POST,
        url: url.parse().unwrap(),
        set_by: AddressOwner::Tenant,
        headers: HeaderMap::new(),
        body: r#"{"event":"ping"}"#.into(),
        timeout: Duration::from_secs(2),
        max_body: 4_096,
    }
}

/// Sends [`post`] over HTTP to a receiver on the allow list.
async fn send(receiver: &receiver::Receiver) -> Result<OutboundResponse, SendError> {
    let client = client(&receiver.address.to_string(), &[]);
    client.send(post(&format!("http://{}/hook", receiver.address))).await
}
