//! Checks targets: a name is resolved once, and every address is checked.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use url::Host;

use super::{
    address,
    own::OwnListeners,
    resolve::Resolver,
    target::{Target, is_localhost},
};
use crate::config::openings::Openings;

/// Maximum time of a name resolution.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Why an address set by a tenant is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another scheme, or a text that is not plainly one URL.
    #[error(
        "the address must be a complete https:// URL with a plain host name or IP address, without user name and password"
    )]
    NotHttps,
    /// An address that is not public and not on the allow list, or this server's own.
    #[error(
        "the address is not public, or its name resolves to one that is not; the operator of this server can allow addresses other than the server's own with LOUPE_EGRESS_ALLOW_CIDRS"
    )]
    Private,
    /// The name has no address, or could not be resolved in time.
    #[error("the host name does not resolve in DNS")]
    Unresolvable,
}

/// The guard's configuration.
pub struct Guard {
    /// The operator's allow list.
    pub openings: Openings,
    /// Addresses that are rejected even if they are on the allow list.
    pub own: OwnListeners,
    /// Resolves names.
    pub resolver: Arc<dyn Resolver>,
}

impl Guard {
    /// Returns the addresses to connect to for this target: all addresses of its name. If one of them
    /// is not allowed, all are rejected, because a name that mixes them is an attack or a mistake.
    ///
    /// # Errors
    ///
    /// Fails when the target is rejected.
    pub async fn judge(&self, target: &Target) -> Result<Vec<SocketAddr>, Refusal> {
        // No address is allowed without TLS, so the name need not be resolved.
        if target.plain && !self.openings.any_plain() {
            return Err(Refusal::NotHttps);
        }
        let addresses = match (&target.host, target.literal()) {
            (Host::Domain(name), _) if is_localhost(name) => vec![Ipv4Addr::LOCALHOST.into()],
            (Host::Domain(name), _) => self.resolve(name).await?,
            (_, literal) => literal.into_iter().collect(),
        };
        for &ip in &addresses {
            self.judge_one(ip, target.port, target.plain)?;
        }
        Ok(addresses.into_iter().map(|it| SocketAddr::new(it, target.port)).collect())
    }

    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, Refusal> {
        match tokio::time::timeout(LOOKUP_TIMEOUT, self.resolver.resolve(name)).await {
            Ok(Ok(found)) if !found.is_empty() => Ok(found),
            _ => Err(Refusal::Unresolvable),
        }
    }

    fn judge_one(&self, ip: IpAddr, port: u16, plain: bool) -> Result<(), Refusal> {
        if plain && !self.openings.opens_plain(ip, port) {
            return Err(Refusal::NotHttps);
        }
        let open = match address::behind_nat64(ip) {
            // A NAT64 gateway is allowed for the addresses behind it, which are checked as if connected
            // to directly.
            Some(inner) => self.openings.opens(ip, port) && self.is_open(inner.into(), port),
            None => self.is_open(ip, port),
        };
        if open { Ok(()) } else { Err(Refusal::Private) }
    }

    fn is_open(&self, ip: IpAddr, port: u16) -> bool {
        (address::is_public(ip) || self.openings.opens(ip, port)) && !self.own.is(ip, port)
    }
}
