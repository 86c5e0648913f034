//! Names: every address of a name is checked, and one forbidden address rejects the name.

use std::{net::IpAddr, sync::Arc, time::Duration};

use outbound::{
    AddressRejection, OutboundClient,
    resolver::{Lookup, Resolver, SystemResolver},
};

use crate::{
    Verdict::{self, Fine, Private, Unresolvable},
    allowing, client, judge,
};

const PUBLIC: &str = "93.184.216.34";
const PUBLIC_V6: &str = "2606:4700:4700::1111";

/// The addresses of a name, with the expected result.
const CASES: &[(&[&str], Verdict)] = &[
    (&[], Unresolvable),
    (&[PUBLIC], Fine),
    (&[PUBLIC_V6], Fine),
    (&[PUBLIC, PUBLIC_V6], Fine),
    (&[PUBLIC, PUBLIC, PUBLIC], Fine),
    (&["127.0.0.1"], Private),
    (&["::1"], Private),
    (&[PUBLIC, "127.0.0.1"], Private),
    (&["127.0.0.1", PUBLIC], Private),
    (&[PUBLIC_V6, "127.0.0.1"], Private),
    (&[PUBLIC, "::1"], Private),
    (&[PUBLIC, PUBLIC_V6, "fd00::1"], Private),
    (&[PUBLIC, "::ffff:10.0.0.1"], Private),
    (&[PUBLIC, "64:ff9b::a9fe:a9fe"], Private),
    (&[PUBLIC, "2002:7f00:1::"], Private),
    (&[PUBLIC, "0.0.0.0"], Private),
    (&[PUBLIC, "::"], Private),
    (&[PUBLIC, "169.254.169.254"], Private),
    (&[PUBLIC, "224.0.0.1"], Private),
    (&[PUBLIC, "255.255.255.255"], Private),
    (&[PUBLIC, PUBLIC, PUBLIC, PUBLIC, PUBLIC, PUBLIC, PUBLIC, PUBLIC, "10.0.0.1"], Private),
];

#[tokio::test]
async fn one_bad_address_refuses_the_name() {
    for (addresses, verdict) in CASES {
        let client = client("", &[("hook.example", addresses)]);
        judge(&client, [("https://hook.example/".to_owned(), *verdict)]).await;
    }
}

#[tokio::test]
async fn allow_list_must_cover_every_address_of_a_name() {
    let cases: [(&str, &[&str], Verdict); 5] = [
        ("10.0.0.0/8", &["10.1.2.3"], Fine),
        ("10.0.0.0/8", &["10.1.2.3", PUBLIC], Fine),
        ("10.0.0.0/8", &["10.1.2.3", "192.168.0.1"], Private),
        ("10.0.0.0/8,192.168.0.1", &["10.1.2.3", "192.168.0.1"], Fine),
        ("10.0.0.0/8", &["::ffff:10.1.2.3"], Private),
    ];
    for (allow_list, addresses, verdict) in cases {
        let client = client(allow_list, &[("hook.example", addresses)]);
        judge(&client, [("https://hook.example/".to_owned(), verdict)]).await;
    }
}

/// A name server that never answers.
struct Silent;

impl Resolver for Silent {
    fn resolve<'a>(&'a self, _: &'a str) -> Lookup<'a> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn silent_name_server_is_timed_out() {
    let client = OutboundClient::new(allowing(""), Arc::new(Silent));
    let begun = tokio::time::Instant::now();
    assert_eq!(client.check("https://hook.example/").await, Err(AddressRejection::Unresolvable));
    assert!(begun.elapsed().as_secs() < 7, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn system_resolver_resolves_localhost() {
    let found = SystemResolver::default().resolve("localhost").await.unwrap();
    assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
}

/// A look-up blocks a thread and can't be cancelled.
#[tokio::test]
async fn slow_names_hold_up_only_their_own_lane() {
    let resolver = Arc::new(SystemResolver::with(|name| {
        if name.ends_with(".slow.example") {
            std::thread::sleep(Duration::from_secs(1));
        }
        Ok(vec![PUBLIC.parse().unwrap()])
    }));
    for n in 0..200 {
        let resolver = Arc::clone(&resolver);
        tokio::spawn(async move { resolver.resolve(&format!("{n}.slow.example")).await });
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut quick = 0;
    for n in 0..100 {
        let name = format!("hook.owner-{n}.example");
        let answer = tokio::time::timeout(Duration::from_millis(200), resolver.resolve(&name)).await;
        quick += usize::from(answer.is_ok());
    }
    // One name in 32 shares its queue with the slow ones.
    assert!(quick >= 80, "{quick} of 100");
}
