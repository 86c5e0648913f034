//! Determines which IP addresses are public. Pure.
//!
//! An address must be globally routable unicast; the check is not a list of forbidden addresses. Every
//! address that no rule allows is rejected, so that a range with a future special use is rejected too.
//! The ranges are those of IANA's registries of special-purpose addresses (IPv4 and IPv6) and of
//! multicast, as of 2026. Ranges that IANA lists as globally reachable are rejected too: they are
//! anycast services of the network (relays, sinks of reverse DNS), not web servers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Host;

/// Special ranges within 1.0.0.0 to 223.255.255.255, each with its prefix length.
const SPECIAL_V4: &[(Ipv4Addr, u32)] = &[
    // Private use.
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Carrier-grade NAT.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    // Loopback.
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, including metadata services of clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // Protocol assignments.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    // Documentation.
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Sinks of reverse DNS (AS112), relays of multicast (AMT) and of 6to4.
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 175, 48, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    // Benchmarks of network devices.
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    // Not registered: on every machine in Azure this reaches the host's agent.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

/// Special ranges within 2000::/3, the only part of IPv6 with global unicast.
const SPECIAL_V6: &[(Ipv6Addr, u32)] = &[
    // Protocol assignments: Teredo, ORCHID, benchmarks, anycast.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    // Documentation.
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
    // 6to4, which contains an IPv4 address.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    // Sinks of reverse DNS (AS112).
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48),
];

/// Whether an address is globally routable unicast.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    // From 224 on: multicast, reserved, broadcast.
    let unicast = (1..=223).contains(&ip.octets()[0]);
    unicast && !SPECIAL_V4.iter().any(|&(net, length)| (ip.to_bits() ^ net.to_bits()) >> (32 - length) == 0)
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    // All other addresses are loopback, local, multicast, embedded IPv4, or not yet assigned.
    let unicast = ip.segments()[0] >> 13 == 0b001;
    unicast
        && !is_isatap(ip)
        && !SPECIAL_V6.iter().any(|&(net, length)| (ip.to_bits() ^ net.to_bits()) >> (128 - length) == 0)
}

/// Whether the interface identifier is that of ISATAP, which tunnels to the IPv4 address in the last 32
/// bits under any prefix (RFC 5214).
fn is_isatap(ip: Ipv6Addr) -> bool {
    let [.., a, b, _, _] = ip.segments();
    b == 0x5efe && (a == 0 || a == 0x0200)
}

/// Returns the IPv4 address to which a NAT64 gateway translates this one (64:ff9b::/96, RFC 6052).
pub fn behind_nat64(ip: IpAddr) -> Option<Ipv4Addr> {
    const WELL_KNOWN: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);
    let IpAddr::V6(ip) = ip else { return None };
    let [.., a, b, c, d] = ip.octets();
    ((ip.to_bits() ^ WELL_KNOWN.to_bits()) >> 32 == 0).then_some(Ipv4Addr::new(a, b, c, d))
}

/// Whether a name is `localhost` or a subdomain of it, which always mean this machine (RFC 6761).
pub fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether a host is this machine: `localhost`, or a loopback address.
pub fn is_loopback_host(host: &Host) -> bool {
    match host {
        Host::Domain(name) => is_localhost(name),
        Host::Ipv4(ip) => ip.is_loopback(),
        Host::Ipv6(ip) => ip.is_loopback(),
    }
}
