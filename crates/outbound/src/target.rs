//! Parses the target of a URL. Pure.
//!
//! Programs parse unusual URLs differently, and an address that one program checks and another connects
//! to differently bypasses a guard. So there is one parser, the WHATWG's; the checked target is the one
//! that is connected to; and a text that requires interpretation is rejected, although browsers may
//! accept it.

use std::net::{IpAddr, Ipv4Addr};

use hyper::{Uri, header::HeaderValue};
use url::{Host, Position, Url};

use crate::{
    address::{self, is_localhost},
    error::AddressRejection,
};

/// Maximum length of a URL in bytes: parsing names in other scripts is expensive.
const MAX_URL_BYTES: usize = 8 * 1024;

/// Maximum length of a host name in DNS, in bytes.
const MAX_HOST_BYTES: usize = 253;

/// Maximum length of a label of a host name, in bytes.
const MAX_LABEL_BYTES: usize = 63;

/// A well-formed URL, whose addresses are not checked yet.
#[derive(Clone, Debug)]
pub struct TargetUrl {
    /// The URL in normal form.
    pub url: Url,
    /// Path and query as sent.
    pub path: Uri,
    /// An address, or a name in ASCII and lower case.
    pub host: Host,
    /// The port, from 1 on; 443 or 80 if the URL contains none.
    pub port: u16,
    /// Whether the scheme is http instead of https.
    pub is_plain: bool,
}

impl TargetUrl {
    /// Parses a URL.
    ///
    /// # Errors
    ///
    /// Fails with [`AddressRejection::Private`] for a private address in an unusual notation, and with
    /// [`AddressRejection::NotHttps`] for everything else that is not a plain http or https URL.
    pub fn parse(text: &str) -> Result<Self, AddressRejection> {
        if text.len() > MAX_URL_BYTES {
            return Err(AddressRejection::NotHttps);
        }
        let url = Url::parse(text).map_err(|_| AddressRejection::NotHttps)?;
        // The normal form is parsed again when it is used, and may be three times as long.
        if !matches!(url.scheme(), "http" | "https") || url.as_str().len() > MAX_URL_BYTES {
            return Err(AddressRejection::NotHttps);
        }
        let host = url.host().ok_or(AddressRejection::NotHttps)?.to_owned();
        let is_plain = url.scheme() == "http";
        match Self::plain_text(text, &url, &host) {
            Some((path, port)) => Ok(Self { url, path, host, port, is_plain }),
            None if !is_plain && hides_private(&host) => Err(AddressRejection::Private),
            None => Err(AddressRejection::NotHttps),
        }
    }

    /// Returns the path with the query, and the port, if the text is unambiguous.
    fn plain_text(text: &str, url: &Url, host: &Host) -> Option<(Uri, u16)> {
        if text.chars().any(|it| it.is_whitespace() || it.is_control() || it == '\\') {
            return None;
        }
        let (_, rest) = text.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        // A user name and password, or percent-encoded letters.
        if authority.is_empty() || authority.contains(['@', '%']) {
            return None;
        }
        let usual = match host {
            Host::Domain(name) => is_plain_name(name),
            // Not octal, hexadecimal, a single number, or digits of another script.
            Host::Ipv4(_) => without_port(authority).parse::<Ipv4Addr>().is_ok(),
            Host::Ipv6(_) => true,
        };
        let port = url.port_or_known_default().filter(|it| *it != 0)?;
        let path = Uri::try_from(&url[Position::BeforePath..Position::AfterQuery]).ok()?;
        usual.then_some((path, port))
    }

    /// Returns the origin: scheme, host and port.
    pub fn origin(&self) -> &str {
        &self.url[..Position::BeforePath]
    }

    /// Returns host and port, which a tunnel through a proxy leads to.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns the `Host` header: the host, and the port if it is not the default.
    ///
    /// # Errors
    ///
    /// Never fails for a parsed target, whose host is ASCII.
    pub fn host_header(&self) -> Result<HeaderValue, AddressRejection> {
        let host = &self.url[Position::BeforeHost..Position::BeforePath];
        HeaderValue::from_str(host).map_err(|_| AddressRejection::NotHttps)
    }

    /// Returns the address, if the host is one.
    pub fn literal(&self) -> Option<IpAddr> {
        literal(&self.host)
    }
}

fn literal<S>(host: &Host<S>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(ip) => Some((*ip).into()),
        Host::Ipv6(ip) => Some((*ip).into()),
    }
}

/// Whether the target is this machine, or a literal address that is not public.
fn hides_private(host: &Host) -> bool {
    match host {
        Host::Domain(name) => is_localhost(name),
        _ => literal(host).is_some_and(|it| !address::is_public(it)),
    }
}

fn without_port(authority: &str) -> &str {
    authority.split_once(':').map_or(authority, |(host, _)| host)
}

/// Whether the name consists of letters, digits, hyphens and underscores between dots, with an optional
/// trailing dot.
fn is_plain_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= MAX_HOST_BYTES
        && name.split('.').all(|label| {
            (1..=MAX_LABEL_BYTES).contains(&label.len())
                && label.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_'))
        })
}
