//! Names: every address of a name is checked, and one forbidden address rejects the name.

use std::{net::IpAddr, sync::Arc, time::Duration};

use outbound::{
    AddressRejection, OutboundClient,
    resolver::{Lookup, Resolver, SystemResolver},
};

use tests::hang::must_end;

use crate::{
    Verdict::{self, Accepted, Private, Unresolvable},
    allowing, check_all, client,
};

const PUBLIC_V4: &str = "93.184.216.34";
const PUBLIC_V6: &str = "2606:4700:4700::1111";

/// The addresses of a name, with the expected result.
const NAME_CASES: &[(&[&str], Verdict)] = &[
    (&[], Unresolvable),
    (&[PUBLIC_V4], Accepted),
    (&[PUBLIC_V6], Accepted),
    (&[PUBLIC_V4, PUBLIC_V6], Accepted),
    (&[PUBLIC_V4, PUBLIC_V4, PUBLIC_V4], Accepted),
    (&["127.0.0.1"], Private),
    (&["::1"], Private),
    (&[PUBLIC_V4, "127.0.0.1"], Private),
    (&["127.0.0.1", PUBLIC_V4], Private),
    (&[PUBLIC_V6, "127.0.0.1"], Private),
    (&[PUBLIC_V4, "::1"], Private),
    (&[PUBLIC_V4, PUBLIC_V6, "fd00::1"], Private),
    (&[PUBLIC_V4, "::ffff:10.0.0.1"], Private),
    (&[PUBLIC_V4, "64:ff9b::a9fe:a9fe"], Private),
    (&[PUBLIC_V4, "2002:7f00:1::"], Private),
    (&[PUBLIC_V4, "0.0.0.0"], Private),
    (&[PUBLIC_V4, "::"], Private),
    (&[PUBLIC_V4, "169.254.169.254"], Private),
    (&[PUBLIC_V4, "224.0.0.1"], Private),
    (&[PUBLIC_V4, "255.255.255.255"], Private),
    (
        &[PUBLIC_V4, PUBLIC_V4, PUBLIC_V4, PUBLIC_V4, PUBLIC_V4, PUBLIC_V4, PUBLIC_V4, PUBLIC_V4, "10.0.0.1"],
        Private,
    ),
];

#[tokio::test]
async fn one_forbidden_address_rejects_the_name() {
    for (addresses, verdict) in NAME_CASES {
        let client = client("", &[("hook.example", addresses)]);
        check_all(&client, [("https://hook.example/".to_owned(), *verdict)]).await;
    }
}

#[tokio::test]
async fn allow_list_must_cover_every_address_of_a_name() {
    let cases: [(&str, &[&str], Verdict); 5] = [
        ("10.0.0.0/8", &["10.1.2.3"], Accepted),
        ("10.0.0.0/8", &["10.1.2.3", PUBLIC_V4], Accepted),
        ("10.0.0.0/8", &["10.1.2.3", "192.168.0.1"], Private),
        ("10.0.0.0/8,192.168.0.1", &["10.1.2.3", "192.168.0.1"], Accepted),
        ("10.0.0.0/8", &["::ffff:10.1.2.3"], Private),
    ];
    for (allow_list, addresses, verdict) in cases {
        let client = client(allow_list, &[("hook.example", addresses)]);
        check_all(&client, [("https://hook.example/".to_owned(), verdict)]).await;
    }
}

/// A name server that never answers.
struct SilentResolver;

impl Resolver for SilentResolver {
    fn resolve<'a>(&'a self, _: &'a str) -> Lookup<'a> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn silent_name_server_is_timed_out() {
    let client = OutboundClient::new(allowing(""), Arc::new(SilentResolver));
    let check = must_end("the look-up times out", client.check("https://hook.example/")).await;
    assert_eq!(check, Err(AddressRejection::Unresolvable));
}

#[tokio::test]
async fn system_resolver_resolves_localhost() {
    let found = SystemResolver::default().resolve("localhost").await.unwrap();
    assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
}

/// A look-up blocks a thread and cannot be cancelled.
#[tokio::test]
async fn slow_lookups_delay_only_their_own_queue() {
    let resolver = Arc::new(SystemResolver::with(|name| {
        if name.ends_with(".slow.example") {
            std::thread::sleep(Duration::from_secs(1));
        }
        Ok(vec![PUBLIC_V4.parse().unwrap()])
    }));
    for n in 0..200 {
        let resolver = Arc::clone(&resolver);
        tokio::spawn(async move { resolver.resolve(&format!("{n}.slow.example")).await });
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut quick = 0;
    for n in 0..100 {
        let name = format!("hook.owner-{n}.example");
        let response = tokio::time::timeout(Duration::from_millis(200), resolver.resolve(&name)).await;
        quick += usize::from(response.is_ok());
    }
    // One name in 32 shares its queue with the slow ones.
    assert!(quick >= 80, "{quick} of 100");
}
