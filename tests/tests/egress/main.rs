//! The outbound HTTP guard: the addresses that it rejects, and the limits that hostile receivers can't break.
//!
//! No request leaves the machine. Receivers listen on loopback addresses, which a test exempts like an
//! operator would. A [`receiver::Receiver`] at an address that must not be reached counts its connections.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "receivers run beside the test")]

mod addresses;
mod bodies;
mod heads;
mod names;
mod notations;
mod openings;
mod rebinding;
mod receiver;
mod secure;
mod urls;

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::http::{HeaderMap, Method};
use server::{
    config::EgressSettings,
    providers::{Egress, Outbound, OutboundResponse, Refusal, SendError, resolve::FakeResolver},
};

/// The expected result for a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The URL is accepted.
    Fine,
    /// [`Refusal::NotHttps`].
    NotHttps,
    /// [`Refusal::Private`].
    Private,
    /// [`Refusal::Unresolvable`].
    Unresolvable,
}

/// Creates an outbound client with this allow list and these names.
fn egress(openings: &str, names: &[(&str, &[&str])]) -> Egress {
    let settings = EgressSettings { egress_allow_cidrs: Some(openings.to_owned()), egress_ca_file: None };
    Egress::new(&settings, Vec::new(), Arc::new(resolver(names))).unwrap()
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
async fn judge(egress: &Egress, cases: impl IntoIterator<Item = (String, Verdict)>) {
    let mut wrong = Vec::new();
    for (url, expected) in cases {
        let verdict = match egress.check(&url).await {
            Ok(_) => Verdict::Fine,
            Err(Refusal::NotHttps) => Verdict::NotHttps,
            Err(Refusal::Private) => Verdict::Private,
            Err(Refusal::Unresolvable) => Verdict::Unresolvable,
        };
        if verdict != expected {
            wrong.push(format!("{url:?} is {verdict:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong verdicts:\n  {}", wrong.len(), wrong.join("\n  "));
}

/// Builds a POST of a few bytes, with a limit of two seconds and 4,096 bytes for the response.
fn post(url: &str) -> Outbound {
    Outbound {
        method: Method::POST,
        url: url.parse().unwrap(),
        headers: HeaderMap::new(),
        body: r#"{"event":"ping"}"#.into(),
        timeout: Duration::from_secs(2),
        max_body: 4_096,
    }
}

/// Sends [`post`] over HTTP to a receiver on the allow list.
async fn send(receiver: &receiver::Receiver) -> Result<OutboundResponse, SendError> {
    let egress = egress(&receiver.address.to_string(), &[]);
    egress.send(post(&format!("http://{}/hook", receiver.address))).await
}
