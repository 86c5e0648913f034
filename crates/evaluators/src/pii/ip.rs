//! IP addresses. Only public addresses identify a person; version numbers look the same.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{
    Hit, Kind,
    words::{Label, NearbyLabels},
};

/// Returns whether an IPv4 address may identify a person.
pub(super) fn is_v4(octets: &[u8; 4], around: NearbyLabels) -> bool {
    let ip = Ipv4Addr::from(*octets);
    let [a, b, c, d] = *octets;
    let shared = a == 100 && (64..128).contains(&b);
    let benchmark = a == 198 && (b == 18 || b == 19);
    let protocols = [a, b, c] == [192, 0, 0];
    // Public resolvers occur in many texts.
    let resolver = matches!(
        octets,
        [8, 8, 8, 8]
            | [8, 8, 4, 4]
            | [1, 1, 1, 1]
            | [1, 0, 0, 1]
            | [9, 9, 9, 9]
            | [208, 67, 222, 222]
            | [208, 67, 220, 220]
    );
    if ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_broadcast()
        || a == 0
        || a >= 240
        || shared
        || benchmark
        || protocols
        || resolver
    {
        return false;
    }
    if around.other() {
        return false;
    }
    // Versions and section numbers consist of small numbers; all four parts of an address are rarely small.
    let small = [a, b, c, d].iter().filter(|it| **it < 32).count();
    small < 3 || around.has_label(Label::Ip)
}

/// Returns whether RFC 5737 reserves the address for documentation.
pub(super) fn is_documentation(octets: &[u8; 4]) -> bool {
    Ipv4Addr::from(*octets).is_documentation()
}

/// Returns whether a colon and, before it, nothing or a group of an IPv6 address precede this position. A word with a colon, as
/// in `ip:2a00::1`, is no group.
fn follows_group(bytes: &[u8], start: usize) -> bool {
    let Some((b':', before)) = bytes[..start].split_last() else { return false };
    let word = before.iter().rev().take_while(|it| it.is_ascii_alphanumeric());
    word.clone().count() <= 4 && word.clone().all(u8::is_ascii_hexdigit)
}

/// Finds IPv6 addresses.
pub(super) fn find_v6(text: &str, hits: &mut Vec<Hit>) {
    let bytes = text.as_bytes();
    let part = |it: &u8| it.is_ascii_hexdigit() || *it == b':' || *it == b'.';
    let mut free = 0;
    for at in memchr::memchr_iter(b':', bytes) {
        if at < free {
            continue;
        }
        // An address has at most 45 characters, and at most 4 before its first colon.
        let start = (at.saturating_sub(4).max(free)..at)
            .find(|it| bytes[*it..at].iter().all(u8::is_ascii_hexdigit))
            .unwrap_or(at);
        let end = at + bytes[at..].iter().take(48).take_while(|it| part(it)).count();
        if end - at < 4
            || start > 0 && (bytes[start - 1].is_ascii_alphanumeric() || follows_group(bytes, start))
        {
            free = at + 1;
            continue;
        }
        let trimmed = start + text.get(start..end).unwrap_or_default().trim_end_matches([':', '.']).len();
        free = end;
        let Some(ip) = text.get(start..trimmed).and_then(|it| it.parse::<Ipv6Addr>().ok()) else { continue };
        if bytes.get(end).is_some_and(u8::is_ascii_alphanumeric) {
            continue;
        }
        let segments = ip.segments();
        // Global unicast addresses.
        if segments[0] & 0xE000 == 0x2000 {
            let reserved = segments[0] == 0x2001 && segments[1] == 0x0DB8 || segments[0] == 0x3FFF;
            hits.push(Hit { kind: Kind::IpAddress, what: "IPv6", start, end: trimmed, reserved });
        }
    }
}
