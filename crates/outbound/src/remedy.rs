//! Explains rejected addresses to tenants: which setting allows the address, and the value to add. Pure
//! functions.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use url::Host;

use crate::{
    address::{self, is_localhost},
    error::AddressRejection,
    target::TargetUrl,
};

/// Describes why `url` was rejected, for the person who configured it.
///
/// The value to add to `LOUPE_EGRESS_ALLOW_CIDRS` is given where it follows from the URL alone. What a
/// host name resolves to is never part of the message: it would show tenants the operator's DNS.
pub fn describe(rejection: AddressRejection, url: &str) -> String {
    let Ok(target) = TargetUrl::parse(url) else { return rejection.to_string() };
    let value = match entry(&target) {
        Some(entry) => format!("`{entry}`"),
        None => format!("the IP address of the host with the port, for example `10.20.0.7:{}`,", target.port),
    };
    match rejection {
        AddressRejection::NotHttps if target.is_plain => format!(
            "the address must be https; to allow http, the operator of this server can add {value} to \
             LOUPE_EGRESS_ALLOW_CIDRS and restart the server"
        ),
        AddressRejection::Private => format!(
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
    let target = TargetUrl::parse(url).ok()?;
    entry(&target).filter(|it| target.is_plain || !address::is_public(it.ip()))
}

/// Returns the narrowest entry of the setting that allows a target, if the URL contains an address.
fn entry(target: &TargetUrl) -> Option<SocketAddr> {
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
    fn rejected_address_names_the_value_to_add() {
        for (rejection, url, value) in [
            (AddressRejection::NotHttps, "http://localhost:11434/v1", "`127.0.0.1:11434`"),
            (AddressRejection::NotHttps, "http://127.0.0.1:11434/v1", "`127.0.0.1:11434`"),
            (AddressRejection::NotHttps, "http://[::1]:8080/v1", "`[::1]:8080`"),
            (AddressRejection::NotHttps, "http://10.0.0.7/v1", "`10.0.0.7:80`"),
            (AddressRejection::NotHttps, "http://ollama:11434/v1", "`10.20.0.7:11434`"),
            (AddressRejection::Private, "https://10.0.0.7/v1", "`10.0.0.7:443`"),
            (AddressRejection::Private, "https://models.internal:8443/v1", "`10.20.0.7:8443`"),
        ] {
            let text = describe(rejection, url);
            assert!(text.contains(value) && text.contains("LOUPE_EGRESS_ALLOW_CIDRS"), "{url}: {text}");
        }
    }

    #[test]
    fn rejection_that_no_setting_changes_names_no_setting() {
        for (rejection, url) in [
            (AddressRejection::NotHttps, "ftp://10.0.0.7/"),
            (AddressRejection::NotHttps, "nonsense"),
            (AddressRejection::NotHttps, "https://user:secret@10.0.0.7/"),
            (AddressRejection::Unresolvable, "https://nowhere.example/"),
        ] {
            let text = describe(rejection, url);
            assert!(!text.contains("LOUPE_EGRESS_ALLOW_CIDRS"), "{url}: {text}");
        }
    }
}
