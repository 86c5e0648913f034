//! Literal addresses: every address that is not global unicast is rejected, and its neighbours are accepted.

use crate::{Verdict, check_all, client};

/// Addresses that no tenant may reach.
const FORBIDDEN_ADDRESSES: &[&str] = &[
    // This network.
    "0.0.0.0",
    "0.0.0.1",
    "0.1.2.3",
    "0.255.255.255",
    // Private.
    "10.0.0.0",
    "10.0.0.1",
    "10.10.10.10",
    "10.255.255.255",
    "172.16.0.0",
    "172.16.0.1",
    "172.17.0.1",
    "172.31.255.255",
    "192.168.0.0",
    "192.168.0.1",
    "192.168.1.254",
    "192.168.255.255",
    // Shared address space of network providers (carrier-grade NAT).
    "100.64.0.0",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    // Loopback.
    "127.0.0.0",
    "127.0.0.1",
    "127.0.0.53",
    "127.1.1.1",
    "127.255.255.255",
    // Link-local, with the metadata services of clouds.
    "169.254.0.0",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "169.254.255.255",
    // Protocol assignments.
    "192.0.0.0",
    "192.0.0.1",
    "192.0.0.8",
    "192.0.0.9",
    "192.0.0.170",
    "192.0.0.192",
    "192.0.0.255",
    // Documentation.
    "192.0.2.0",
    "192.0.2.1",
    "192.0.2.255",
    "198.51.100.0",
    "198.51.100.1",
    "198.51.100.255",
    "203.0.113.0",
    "203.0.113.1",
    "203.0.113.255",
    // Sinks of reverse DNS, and relays of multicast and 6to4.
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.0",
    "192.88.99.1",
    "192.88.99.255",
    "192.175.48.1",
    // Benchmarks.
    "198.18.0.0",
    "198.18.0.1",
    "198.19.255.255",
    // The agent of the host in Azure.
    "168.63.129.16",
    // Multicast, reserved, broadcast.
    "224.0.0.0",
    "224.0.0.1",
    "224.0.0.251",
    "232.1.2.3",
    "239.255.255.250",
    "239.255.255.255",
    "240.0.0.0",
    "240.0.0.1",
    "250.1.2.3",
    "255.255.255.254",
    "255.255.255.255",
    // IPv6: unspecified and loopback.
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::2]",
    // IPv4-compatible.
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::10.0.0.1]",
    "[::169.254.169.254]",
    "[::8.8.8.8]",
    // IPv4-mapped.
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:10.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[::ffff:192.168.0.1]",
    "[::ffff:0.0.0.0]",
    "[::ffff:8.8.8.8]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    // IPv4-translated.
    "[::ffff:0:127.0.0.1]",
    "[::ffff:0:a9fe:a9fe]",
    "[::ffff:0:8.8.8.8]",
    // NAT64, well-known and local.
    "[64:ff9b::]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::10.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b::8.8.8.8]",
    "[64:ff9b:1::]",
    "[64:ff9b:1::127.0.0.1]",
    "[64:ff9b:1:ffff:ffff:ffff:ffff:ffff]",
    // Discard, dummy.
    "[100::]",
    "[100::1]",
    "[100:0:0:1::1]",
    // Protocol assignments: Teredo, benchmarks, ORCHID, anycast.
    "[2001::]",
    "[2001::1]",
    "[2001:0:7f00:1::1]",
    "[2001:0:53aa:64c:0:ffff:f5ff:fffe]",
    "[2001:1::1]",
    "[2001:2::1]",
    "[2001:3::1]",
    "[2001:4:112::1]",
    "[2001:10::1]",
    "[2001:20::1]",
    "[2001:30::1]",
    "[2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff]",
    // Documentation.
    "[2001:db8::]",
    "[2001:db8::1]",
    "[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]",
    "[3fff::]",
    "[3fff::1]",
    "[3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff]",
    // 6to4.
    "[2002::]",
    "[2002:7f00:1::1]",
    "[2002:a00:1::1]",
    "[2002:a9fe:a9fe::1]",
    "[2002:808:808::1]",
    "[2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
    // ISATAP under a public prefix.
    "[2606:4700::5efe:127.0.0.1]",
    "[2606:4700::200:5efe:10.0.0.1]",
    "[2a00:1450::5efe:a9fe:a9fe]",
    // Sinks.
    "[2620:4f:8000::1]",
    // Segment routing.
    "[5f00::]",
    "[5f00::1]",
    "[5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
    // Unique local, with metadata services of clouds.
    "[fc00::]",
    "[fc00::1]",
    "[fd00::1]",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "[fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
    // Link-local and site-local.
    "[fe80::]",
    "[fe80::1]",
    "[febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
    "[fec0::]",
    "[fec0::1]",
    "[feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
    // Multicast.
    "[ff00::]",
    "[ff01::1]",
    "[ff02::1]",
    "[ff05::2]",
    "[ff0e::1]",
    "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
    // Never assigned.
    "[1::1]",
    "[200::1]",
    "[400::1]",
    "[1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
    "[4000::]",
    "[8000::1]",
    "[e000::1]",
    "[fe00::1]",
];

/// Public addresses: the nearest neighbours of the rejected ranges, and some well-known addresses.
const PUBLIC_ADDRESSES: &[&str] = &[
    "1.0.0.0",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "168.63.129.17",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.1.255",
    "192.0.3.0",
    "192.31.195.255",
    "192.31.197.0",
    "192.52.192.255",
    "192.52.194.0",
    "192.88.98.255",
    "192.88.100.0",
    "192.167.255.255",
    "192.169.0.0",
    "192.175.47.255",
    "192.175.49.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "198.51.101.0",
    "203.0.112.255",
    "203.0.114.0",
    "223.255.255.255",
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "140.82.112.3",
    "[2000::]",
    "[2001:200::]",
    "[2001:db7:ffff:ffff:ffff:ffff:ffff:ffff]",
    "[2001:db9::]",
    "[2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
    "[2003::]",
    "[2620:4f:7fff:ffff:ffff:ffff:ffff:ffff]",
    "[2620:4f:8001::]",
    "[3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
    "[3fff:1000::]",
    "[3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
    "[2606:4700:4700::1111]",
    "[2001:4860:4860::8888]",
    "[2a00:1450:4001:82a::200e]",
    "[2606:4700:4700:0:0:0:0:1111]",
    // The mark of ISATAP has a meaning only at its position.
    "[2606:4700::5efe]",
    "[2606:4700:5efe::1]",
];

#[tokio::test]
async fn only_global_unicast_is_public() {
    assert!(
        FORBIDDEN_ADDRESSES.len() >= 120 && PUBLIC_ADDRESSES.len() >= 30,
        "{} and {}",
        FORBIDDEN_ADDRESSES.len(),
        PUBLIC_ADDRESSES.len()
    );
    let refused = FORBIDDEN_ADDRESSES.iter().map(|it| (format!("https://{it}/hook"), Verdict::Private));
    let accepted = PUBLIC_ADDRESSES.iter().map(|it| (format!("https://{it}/hook"), Verdict::Accepted));
    check_all(&client("", &[]), refused.chain(accepted)).await;
}

#[tokio::test]
async fn resolved_address_is_checked_like_a_literal_one() {
    for (list, verdict) in [(FORBIDDEN_ADDRESSES, Verdict::Private), (PUBLIC_ADDRESSES, Verdict::Accepted)] {
        for literal in list {
            let address = literal.trim_matches(['[', ']']);
            let client = client("", &[("hook.example", &[address])]);
            check_all(&client, [("https://hook.example/".to_owned(), verdict)]).await;
        }
    }
}
