//! What the text of a URL points at. Pure.
//!
//! Programs disagree about odd URLs, and an address that one program judges and another one
//! dials is how a guard is passed. So there is one reading, the WHATWG's; what is checked is what is
//! dialled; and a text that would need interpreting is refused, though a browser might take it.

use std::net::{IpAddr, Ipv4Addr};

use hyper::{Uri, header::HeaderValue};
use url::{Host, Position, Url};

use super::{address, guard::Refusal};

/// The longest text that is read, in bytes: reading names in other scripts is not free.
const LONGEST: usize = 8 * 1024;

/// The longest host name that DNS knows, in bytes.
const LONGEST_NAME: usize = 253;

/// The longest part of a host name between two dots, in bytes.
const LONGEST_LABEL: usize = 63;

/// A URL that can be asked, if its addresses allow it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The URL in its normal form.
    pub url: Url,
    /// Its path and query, as they go over the wire.
    pub path: Uri,
    /// An address, or a name in ASCII and lower case.
    pub host: Host,
    /// From 1 on; 443 or 80 if the URL names none.
    pub port: u16,
    /// Whether it is http instead of https.
    pub plain: bool,
}

impl Target {
    /// Reads the text of a URL.
    ///
    /// # Errors
    /// [`Refusal::Private`] for an address that is hidden in an odd notation and not public;
    /// [`Refusal::NotHttps`] for all else that is not a plain http or https URL.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if text.len() > LONGEST {
            return Err(Refusal::NotHttps);
        }
        let url = Url::parse(text).map_err(|_| Refusal::NotHttps)?;
        // The normal form is read again when it is used, and may be three times as long.
        if !matches!(url.scheme(), "http" | "https") || url.as_str().len() > LONGEST {
            return Err(Refusal::NotHttps);
        }
        let host = url.host().ok_or(Refusal::NotHttps)?.to_owned();
        let plain = url.scheme() == "http";
        match Self::plain_text(text, &url, &host) {
            Some((path, port)) => Ok(Self { url, path, host, port, plain }),
            None if !plain && hides_private(&host) => Err(Refusal::Private),
            None => Err(Refusal::NotHttps),
        }
    }

    /// The path with the query, and the port, if there is but one way to read the text.
    fn plain_text(text: &str, url: &Url, host: &Host) -> Option<(Uri, u16)> {
        if text.chars().any(|it| it.is_whitespace() || it.is_control() || it == '\\') {
            return None;
        }
        let (_, rest) = text.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        // A name and password, or letters in disguise.
        if authority.is_empty() || authority.contains(['@', '%']) {
            return None;
        }
        let usual = match host {
            Host::Domain(name) => is_plain_name(name),
            // Not octal, hexadecimal, one big number, or digits of another script.
            Host::Ipv4(_) => without_port(authority).parse::<Ipv4Addr>().is_ok(),
            Host::Ipv6(_) => true,
        };
        let port = url.port_or_known_default().filter(|it| *it != 0)?;
        let path = Uri::try_from(&url[Position::BeforePath..Position::AfterQuery]).ok()?;
        usual.then_some((path, port))
    }

    /// Scheme, host and port: what may share a connection.
    pub fn place(&self) -> &str {
        &self.url[..Position::BeforePath]
    }

    /// What the header `Host` says: the host, and the port if it is not the usual one.
    ///
    /// # Errors
    /// Never for a target that was read: a host is in ASCII.
    pub fn host_header(&self) -> Result<HeaderValue, Refusal> {
        let host = &self.url[Position::BeforeHost..Position::BeforePath];
        HeaderValue::from_str(host).map_err(|_| Refusal::NotHttps)
    }

    /// The address, if the host is one.
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

/// Whether it is this machine, or a literal address that is not public.
fn hides_private(host: &Host) -> bool {
    match host {
        Host::Domain(name) => is_localhost(name),
        _ => literal(host).is_some_and(|it| !address::is_public(it)),
    }
}

fn without_port(authority: &str) -> &str {
    authority.split_once(':').map_or(authority, |(host, _)| host)
}

/// Letters, digits, hyphens and underscores between dots, perhaps with the dot of the root.
fn is_plain_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= LONGEST_NAME
        && name.split('.').all(|label| {
            (1..=LONGEST_LABEL).contains(&label.len())
                && label.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_'))
        })
}

/// Whether it is `localhost` or a name under it, which mean this machine whatever DNS says
/// (RFC 6761).
pub fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}
