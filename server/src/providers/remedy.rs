//! Explains refused addresses to tenants: which setting allows the address, and the value to add. Pure
//! functions.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use url::Host;

use super::{
    address,
    guard::Refusal,
    target::{Target, is_localhost},
};

/// Describes why `url` was refused, for the person who configured it.
///
/// The value to add to `LOUPE_EGRESS_ALLOW_CIDRS` is given where it follows from the URL alone. What a
/// host name resolves to is never part of the message: it would show tenants the operator's DNS.
pub fn describe(refusal: Refusal, url: &str) -> String {
    let Ok(target) = Target::parse(url) else { return refusal.to_string() };
    let value = match entry(&target) {
        Some(entry) => format!("`{entry}`"),
        None => format!("the IP address of the host with the port, for example `10.20.0.7:{}`,", target.port),
    };
    match refusal {
        Refusal::NotHttps if target.plain => format!(
            "the address must be https; to allow http, the operator of this server can add {value} to \
             LOUPE_EGRESS_ALLOW_CIDRS and restart the server"
        ),
        Refusal::Private => format!(
            "the address is not public, or its name resolves to one that is not; to allow it, the operator of this \
             server can add {value} to LOUPE_EGRESS_ALLOW_CIDRS and restart the server (the server's own addresses \
             are never allowed)"
        ),
        other => other.to_string(),
    }
}

/// Returns the entry of `LOUPE_EGRESS_ALLOW_CIDRS` that `url` requires; none if it requires none, or if the
/// entry does not follow from the URL alone.
pub fn opening(url: &str) -> Option<SocketAddr> {
    let target = Target::parse(url).ok()?;
    entry(&target).filter(|it| target.plain || !address::is_public(it.ip()))
}

/// Returns the narrowest entry of the setting that allows a target, if the URL contains an address.
fn entry(target: &Target) -> Option<SocketAddr> {
    let ip = match &target.host {
        Host::Domain(name) if is_localhost(name) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Host::Domain(_) => return None,
        Host::Ipv4(ip) => IpAddr::V4(*ip),
        Host::Ipv6(ip) => IpAddr::V6(*ip),
    };
    Some(SocketAddr::new(ip, target.port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_address_names_the_value_to_add() {
        for (refusal, url, value) in [
            (Refusal::NotHttps, "http://localhost:11434/v1", "`127.0.0.1:11434`"),
            (Refusal::NotHttps, "http://127.0.0.1:11434/v1", "`127.0.0.1:11434`"),
            (Refusal::NotHttps, "http://[::1]:8080/v1", "`[::1]:8080`"),
            (Refusal::NotHttps, "http://10.0.0.7/v1", "`10.0.0.7:80`"),
            (Refusal::NotHttps, "http://ollama:11434/v1", "`10.20.0.7:11434`"),
            (Refusal::Private, "https://10.0.0.7/v1", "`10.0.0.7:443`"),
            (Refusal::Private, "https://models.internal:8443/v1", "`10.20.0.7:8443`"),
        ] {
            let text = describe(refusal, url);
            assert!(text.contains(value) && text.contains("LOUPE_EGRESS_ALLOW_CIDRS"), "{url}: {text}");
        }
    }

    #[test]
    fn refused_text_that_no_setting_opens_names_none() {
        for (refusal, url) in [
            (Refusal::NotHttps, "ftp://10.0.0.7/"),
            (Refusal::NotHttps, "nonsense"),
            (Refusal::NotHttps, "https://user:secret@10.0.0.7/"),
            (Refusal::Unresolvable, "https://nowhere.example/"),
        ] {
            let text = describe(refusal, url);
            assert!(!text.contains("LOUPE_EGRESS_ALLOW_CIDRS"), "{url}: {text}");
        }
    }
}
