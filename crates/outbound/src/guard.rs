//! Checks targets: a name is resolved once, and every address of a tenant's target is checked.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use url::Host;

use crate::{
    address::{self, is_localhost},
    address_owner::AddressOwner,
    allow_list::AllowList,
    error::AddressRejection,
    own_listeners::OwnListeners,
    resolver::Resolver,
    target::TargetUrl,
};

/// Maximum time of a name resolution.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The guard's configuration.
pub struct Guard {
    /// The operator's allow list.
    pub allow_list: AllowList,
    /// Addresses that are rejected even if they are on the allow list.
    pub own_listeners: OwnListeners,
    /// Resolves names in tenants' addresses.
    pub tenant_resolver: Arc<dyn Resolver>,
    /// Resolves names in the operator's addresses. It is a separate resolver, so that slow names of tenants do not
    /// delay sign-ins.
    pub operator_resolver: Arc<dyn Resolver>,
}

impl Guard {
    /// Returns the addresses to connect to for this target: all addresses of its name.
    ///
    /// # Errors
    ///
    /// Fails when the name cannot be resolved, or a tenant's target is rejected.
    pub async fn addresses(
        &self,
        target: &TargetUrl,
        owner: AddressOwner,
    ) -> Result<Vec<SocketAddr>, AddressRejection> {
        match owner {
            AddressOwner::Tenant => self.checked_addresses(target).await,
            AddressOwner::Operator => {
                let addresses = match &target.host {
                    Host::Domain(name) => resolve(&*self.operator_resolver, name).await?,
                    _ => target.literal().into_iter().collect(),
                };
                Ok(addresses.into_iter().map(|it| SocketAddr::new(it, target.port)).collect())
            }
        }
    }

    /// Returns the addresses of a tenant's target. If one of them is not allowed, all are rejected,
    /// because a name that mixes them is an attack or a mistake.
    ///
    /// # Errors
    ///
    /// Fails when the target is rejected.
    pub async fn checked_addresses(&self, target: &TargetUrl) -> Result<Vec<SocketAddr>, AddressRejection> {
        // No address is allowed without TLS, so the name need not be resolved.
        if target.is_plain && !self.allow_list.allows_any_plain() {
            return Err(AddressRejection::NotHttps);
        }
        let addresses = match (&target.host, target.literal()) {
            (Host::Domain(name), _) if is_localhost(name) => vec![Ipv4Addr::LOCALHOST.into()],
            (Host::Domain(name), _) => resolve(&*self.tenant_resolver, name).await?,
            (_, literal) => literal.into_iter().collect(),
        };
        for &ip in &addresses {
            self.check_address(ip, target.port, target.is_plain)?;
        }
        Ok(addresses.into_iter().map(|it| SocketAddr::new(it, target.port)).collect())
    }

    fn check_address(&self, ip: IpAddr, port: u16, plain: bool) -> Result<(), AddressRejection> {
        if plain && !self.allow_list.allows_plain(ip, port) {
            return Err(AddressRejection::NotHttps);
        }
        let is_allowed = match address::behind_nat64(ip) {
            // A NAT64 gateway is allowed for the addresses behind it, which are checked as if connected
            // to directly.
            Some(inner) => self.allow_list.allows(ip, port) && self.is_allowed(inner.into(), port),
            None => self.is_allowed(ip, port),
        };
        if is_allowed { Ok(()) } else { Err(AddressRejection::Private) }
    }

    fn is_allowed(&self, ip: IpAddr, port: u16) -> bool {
        (address::is_public(ip) || self.allow_list.allows(ip, port)) && !self.own_listeners.contains(ip, port)
    }
}

async fn resolve(resolver: &dyn Resolver, name: &str) -> Result<Vec<IpAddr>, AddressRejection> {
    match tokio::time::timeout(LOOKUP_TIMEOUT, resolver.resolve(name)).await {
        Ok(Ok(found)) if !found.is_empty() => Ok(found),
        _ => Err(AddressRejection::Unresolvable),
    }
}
