//! Client addresses, by which unauthenticated requests are rate limited.
//!
//! Any client can write a header. It is trusted only as far as trusted proxies have written it: from
//! its right end up to the first address that is not a trusted proxy.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::{HeaderMap, HeaderName, header};

use crate::config::proxies::TrustedProxies;

/// The common list of the addresses that a request came through; each proxy appends its peer.
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of a request's client, an extension of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl ClientAddress {
    /// Returns the key of the rate limit bucket: an IPv4 address itself, or the first 64 bits of an
    /// IPv6 address, because one client controls all addresses with that prefix.
    pub fn bucket_key(self) -> IpAddr {
        match self.0 {
            IpAddr::V4(_) => self.0,
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (!0 << 64)).into(),
        }
    }
}

impl TrustedProxies {
    /// Returns the address of the client that sent a request through `peer` with these headers.
    pub fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> ClientAddress {
        let peer = peer.to_canonical();
        if !self.trusts(peer) {
            return ClientAddress(peer);
        }
        let address = match headers.contains_key(X_FORWARDED_FOR) {
            true => self.first_untrusted(peer, entries(headers, &X_FORWARDED_FOR).map(parse_address)),
            false => self.first_untrusted(peer, entries(headers, &header::FORWARDED).map(forwarded_for)),
        };
        ClientAddress(address)
    }

    /// Returns the first address that is not trusted, else the last valid one.
    fn first_untrusted(&self, peer: IpAddr, addresses: impl Iterator<Item = Option<IpAddr>>) -> IpAddr {
        let mut last = peer;
        for address in addresses.map_while(|it| it) {
            last = address;
            if !self.trusts(address) {
                break;
            }
        }
        last
    }
}

/// Returns the entries of a list header, the last one first. Commas within quotes also separate: an
/// unclosed quote of a client must not swallow an entry that a proxy appended.
fn entries<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let entries =
        headers.get_all(name).into_iter().rev().flat_map(|it| it.as_bytes().rsplit(|it| *it == b','));
    // An entry that is not text is treated as an invalid address.
    entries.map(|it| std::str::from_utf8(it).unwrap_or_default())
}

/// Parses an address with an optional port and, for IPv6, brackets.
fn parse_address(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim();
    let bare = entry.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(entry);
    let address = match bare.parse::<IpAddr>() {
        Ok(address) => address,
        Err(_) => entry.parse::<SocketAddr>().ok()?.ip(),
    };
    Some(address.to_canonical())
}

/// Returns the `for` of an element of `Forwarded` (RFC 7239, section 5.2).
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let node = element.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then_some(value)
    })?;
    let node = node.trim();
    parse_address(node.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the client address as seen by a server that trusts 10.0.0.0/8, fd00::/8 and 192.0.2.1.
    #[track_caller]
    fn check(peer: &str, lines: &[(&str, &str)], caller: &str) {
        let proxies: TrustedProxies = "10.0.0.0/8, fd00::/8,192.0.2.1,".parse().unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.as_bytes().try_into().unwrap(),
            );
        }
        let found = proxies.client_address(peer.parse().unwrap(), &headers);
        assert_eq!(found, ClientAddress(caller.parse().unwrap()), "{peer} {lines:?}");
    }

    const XFF: &str = "x-forwarded-for";

    #[test]
    fn forwarded_header_of_untrusted_peer_is_ignored() {
        check("198.51.100.7", &[(XFF, "203.0.113.9")], "198.51.100.7");
        check("198.51.100.7", &[("forwarded", "for=203.0.113.9")], "198.51.100.7");
        check("10.1.2.3", &[], "10.1.2.3");
        check("10.1.2.3", &[(XFF, "203.0.113.9")], "203.0.113.9");
        check("::ffff:10.1.2.3", &[(XFF, "203.0.113.9")], "203.0.113.9");
        check("fd00::1", &[(XFF, "2001:db8::9")], "2001:db8::9");
    }

    #[test]
    fn forwarded_entry_written_by_client_is_ignored() {
        check("10.1.2.3", &[(XFF, "1.1.1.1, 203.0.113.9")], "203.0.113.9");
        check("10.1.2.3", &[(XFF, "1.1.1.1, 203.0.113.9, 10.9.9.9, 192.0.2.1")], "203.0.113.9");
        check("10.1.2.3", &[(XFF, "1.1.1.1"), (XFF, "203.0.113.9")], "203.0.113.9");
        check("10.1.2.3", &[(XFF, "203.0.113.9"), ("forwarded", "for=1.1.1.1")], "203.0.113.9");
        check("10.1.2.3", &[("forwarded", "for=\"1.1.1.1, for=203.0.113.9")], "203.0.113.9");
    }

    #[test]
    fn invalid_forwarded_entry_ends_the_search() {
        for garbage in
            ["", " ", "unknown", "_hidden", "1.2.3", "1.2.3.4.5", "::1%eth0", "localhost", "\u{e9}"]
        {
            check("10.1.2.3", &[(XFF, garbage)], "10.1.2.3");
            check("10.1.2.3", &[(XFF, &format!("1.1.1.1,{garbage},10.9.9.9"))], "10.9.9.9");
            check("10.1.2.3", &[("forwarded", &format!("for={garbage}, for=10.9.9.9"))], "10.9.9.9");
        }
        check("10.1.2.3", &[(XFF, "10.8.8.8, 10.9.9.9")], "10.8.8.8");
    }

    #[test]
    fn forwarded_addresses_are_parsed_in_every_notation() {
        for (entry, address) in [
            ("203.0.113.9", "203.0.113.9"),
            (" 203.0.113.9:8080 ", "203.0.113.9"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
            ("2001:db8::9", "2001:db8::9"),
            ("[2001:db8::9]", "2001:db8::9"),
            ("[2001:db8::9]:443", "2001:db8::9"),
        ] {
            check("10.1.2.3", &[(XFF, entry)], address);
            check(
                "10.1.2.3",
                &[("Forwarded", &format!("proto=https; For=\"{}\";by=x", entry.trim()))],
                address,
            );
        }
    }

    #[test]
    fn ipv6_prefix_shares_a_rate_limit_bucket() {
        let key = |it: &str| ClientAddress(it.parse().unwrap()).bucket_key().to_string();
        assert_eq!(key("203.0.113.9"), "203.0.113.9");
        assert_eq!(key("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(key("2001:db8:1:2::"), "2001:db8:1:2::");
    }

    #[test]
    fn invalid_proxy_list_is_rejected() {
        assert_eq!("".parse::<TrustedProxies>().unwrap(), TrustedProxies::default());
        for wrong in ["10.0.0.0/33", "proxy.internal", "10.0.0.0/8;::1", "10.0.0", "1.2.3.4:80"] {
            assert!(wrong.parse::<TrustedProxies>().is_err(), "{wrong}");
        }
    }
}
