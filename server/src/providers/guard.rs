//! The verdict on a target: resolved once, every address judged.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use url::Host;

use super::{
    address,
    own::Own,
    resolve::Resolver,
    target::{Target, is_localhost},
};
use crate::config::openings::Openings;

/// How long a look-up may take.
const LOOKUP: Duration = Duration::from_secs(5);

/// Why an address that a tenant set is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another scheme, or a text that is not plainly one URL.
    #[error(
        "the address must be a complete https:// URL with a plain host name or IP address, without user name and password"
    )]
    NotHttps,
    /// An address that is not public and that the operator did not open, or this server's own.
    #[error(
        "the address is not public, or its name leads to one that is not; whoever operates this server can open addresses other than the server's own with LOUPE_EGRESS_ALLOW_CIDRS"
    )]
    Private,
    /// The name has no address, or nobody could tell in time.
    #[error("the host name does not resolve in DNS")]
    Unresolvable,
}

/// What decides.
pub struct Guard {
    /// What the operator opened.
    pub openings: Openings,
    /// What is closed even then.
    pub own: Own,
    /// Who knows addresses.
    pub resolver: Arc<dyn Resolver>,
}

impl Guard {
    /// The addresses that may be dialled for this target: all that its name has. One that may not
    /// be dialled refuses them all, because a name that mixes them is an attack or a mistake.
    ///
    /// # Errors
    /// When the target is refused.
    pub async fn judge(&self, target: &Target) -> Result<Vec<SocketAddr>, Refusal> {
        // Nothing is open without TLS: no reason to ask.
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
        match tokio::time::timeout(LOOKUP, self.resolver.resolve(name)).await {
            Ok(Ok(found)) if !found.is_empty() => Ok(found),
            _ => Err(Refusal::Unresolvable),
        }
    }

    fn judge_one(&self, ip: IpAddr, port: u16, plain: bool) -> Result<(), Refusal> {
        if plain && !self.openings.opens_plain(ip, port) {
            return Err(Refusal::NotHttps);
        }
        let open = match address::behind_nat64(ip) {
            // A gateway is opened for what is behind it, and that is judged as if it were asked
            // directly.
            Some(inner) => self.openings.opens(ip, port) && self.is_open(inner.into(), port),
            None => self.is_open(ip, port),
        };
        if open { Ok(()) } else { Err(Refusal::Private) }
    }

    fn is_open(&self, ip: IpAddr, port: u16) -> bool {
        (address::is_public(ip) || self.openings.opens(ip, port)) && !self.own.is(ip, port)
    }
}
