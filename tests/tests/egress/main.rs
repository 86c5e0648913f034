//! The way out to addresses that tenants set: what it refuses, and what hostile receivers can't do.
//!
//! Nothing here leaves the machine. Receivers listen on the loopback addresses, which a test
//! opens as an operator would; what must not be reached is watched by a [`receiver::Receiver`]
//! that counts who comes.

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

/// What is to become of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It may be used.
    Fine,
    /// [`Refusal::NotHttps`].
    NotHttps,
    /// [`Refusal::Private`].
    Private,
    /// [`Refusal::Unresolvable`].
    Unresolvable,
}

/// A way out with these openings, for names with these addresses.
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

/// Checks each URL and holds the answer against its verdict. All that fail are told at once.
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

/// A POST of a few bytes, with two seconds and 4,096 bytes for the answer.
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

/// Sends [`post`] over http to a receiver that is opened for it.
async fn send(receiver: &receiver::Receiver) -> Result<OutboundResponse, SendError> {
    let egress = egress(&receiver.address.to_string(), &[]);
    egress.send(post(&format!("http://{}/hook", receiver.address))).await
}
