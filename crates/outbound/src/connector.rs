//! Connections: checks an address and connects to it in one step, so that nothing can change in
//! between.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio_rustls::TlsConnector;
use url::Host;

use crate::{
    address_owner::AddressOwner,
    connection::{Connection, ForwardProxy, Stream},
    deadline::Deadline,
    dial::dial,
    error::{SendError, Stage, of_tls},
    guard::Guard,
    proxy::{Proxies, tunnel},
    target::TargetUrl,
    tls::{self, TrustedRoots},
};

/// Connects to addresses that pass the guard. The only place in the server that opens connections.
pub struct Connector {
    guard: Guard,
    proxies: Proxies,
    tenant_tls: LazyTls,
    operator_tls: LazyTls,
}

impl Connector {
    /// Creates a connector with this guard and these proxies. The roots are trusted in addition to the platform's, for
    /// addresses of tenants only.
    pub fn new(guard: Guard, tenant_roots: TrustedRoots, proxies: Proxies) -> Self {
        Self {
            guard,
            proxies,
            tenant_tls: LazyTls::new(tenant_roots),
            operator_tls: LazyTls::new(TrustedRoots::default()),
        }
    }

    /// Returns the guard.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Connects to the target, with TLS for the requested host; a tenant's target is checked first.
    ///
    /// # Errors
    ///
    /// Fails when the target is rejected, or there is no connection before the deadline.
    pub async fn connect(
        &self,
        target: &TargetUrl,
        owner: AddressOwner,
        deadline: Deadline,
    ) -> Result<Connection, SendError> {
        let proxy = match owner {
            AddressOwner::Tenant => None,
            AddressOwner::Operator => self.proxies.of(target)?,
        };
        let tls = match owner {
            AddressOwner::Tenant => &self.tenant_tls,
            AddressOwner::Operator => &self.operator_tls,
        };
        let Some(proxy) = proxy else {
            let stream = self.open(target, owner, tls, deadline).await?;
            return deadline.limit(Stage::Head, Connection::over(stream, None)).await;
        };
        let stream = self.open(&proxy.target, owner, tls, deadline).await?;
        if target.is_plain {
            let forward = ForwardProxy { authorization: proxy.authorization };
            return deadline.limit(Stage::Head, Connection::over(stream, Some(forward))).await;
        }
        let authority = target.authority();
        let tunnel = tunnel(stream, &authority, proxy.authorization);
        let tunnel = deadline.limit(Stage::Connect, tunnel).await?;
        let secure = secure(tls.config()?, target, tunnel);
        let secure = deadline.limit(Stage::Tls, secure).await?;
        deadline.limit(Stage::Head, Connection::over(secure, None)).await
    }

    /// Opens a stream to a target without a proxy.
    async fn open(
        &self,
        target: &TargetUrl,
        owner: AddressOwner,
        tls: &LazyTls,
        deadline: Deadline,
    ) -> Result<Box<dyn Stream>, SendError> {
        let addresses = deadline.limit(Stage::Resolve, self.guard.addresses(target, owner)).await?;
        let socket = deadline.limit(Stage::Connect, dial(&addresses)).await?;
        if target.is_plain {
            return Ok(Box::new(socket));
        }
        deadline.limit(Stage::Tls, secure(tls.config()?, target, socket)).await
    }
}

/// Negotiates TLS for the target's host.
fn secure<'a>(
    config: Arc<ClientConfig>,
    target: &'a TargetUrl,
    stream: impl Stream,
) -> BoxFuture<'a, Result<Box<dyn Stream>, SendError>> {
    Box::pin(async move {
        let name = server_name(&target.host)?;
        let secure = TlsConnector::from(config).connect(name, stream).await.map_err(|it| of_tls(&it))?;
        Ok(Box::new(secure) as Box<dyn Stream>)
    })
}

/// Returns the name that the certificate must have.
fn server_name(host: &Host) -> Result<ServerName<'static>, SendError> {
    match host {
        Host::Domain(name) => {
            ServerName::try_from(name.clone()).map_err(|error| SendError::TlsFailed(error.to_string()))
        }
        Host::Ipv4(ip) => Ok(ServerName::IpAddress((*ip).into())),
        Host::Ipv6(ip) => Ok(ServerName::IpAddress((*ip).into())),
    }
}

/// A TLS configuration that is created when it is first needed: a server without outbound requests
/// needs no certificate authorities.
struct LazyTls {
    roots: TrustedRoots,
    config: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl LazyTls {
    fn new(roots: TrustedRoots) -> Self {
        Self { roots, config: OnceLock::new() }
    }

    fn config(&self) -> Result<Arc<ClientConfig>, SendError> {
        let config = self.config.get_or_init(|| {
            tls::config(&self.roots).map_err(|error| {
                tracing::error!(%error, "no certificate authorities for TLS: no outbound request is possible");
                error.to_string()
            })
        });
        config.clone().map_err(SendError::TlsFailed)
    }
}
