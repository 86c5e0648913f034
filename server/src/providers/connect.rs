//! Connections: checks an address and connects to it in one step, so that nothing can change in
//! between.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig,
    pki_types::{CertificateDer, ServerName},
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Host;

use super::{
    egress::SendError,
    guard::Guard,
    link::{Link, root_cause},
    target::Target,
    tls,
};

/// Maximum time to connect to one address before the next one is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// Connects to addresses that pass the guard. The only place in the server that connects for a tenant.
pub struct Connector {
    guard: Arc<Guard>,
    roots: Vec<CertificateDer<'static>>,
    /// Created when first needed: a server without outbound requests needs no certificate authorities.
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Connector {
    /// Creates a connector with this guard, which trusts these roots and the platform's.
    pub fn new(guard: Arc<Guard>, roots: Vec<CertificateDer<'static>>) -> Self {
        Self { guard, roots, tls: OnceLock::new() }
    }

    /// Checks the target and connects to it, with TLS for the requested host.
    ///
    /// # Errors
    ///
    /// Fails when the target is rejected, or there is no connection.
    pub async fn connect(&self, target: &Target) -> Result<Link, SendError> {
        let addresses = self.guard.judge(target).await?;
        let socket = dial(&addresses).await?;
        if target.plain {
            return Link::over(TokioIo::new(socket)).await;
        }
        let tls = TlsConnector::from(self.tls()?);
        let name = server_name(&target.host)?;
        let secure = tls.connect(name, socket).await.map_err(|it| SendError::Tls(root_cause(&it)))?;
        Link::over(TokioIo::new(secure)).await
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, SendError> {
        let made = self.tls.get_or_init(|| {
            tls::config(&self.roots).map_err(|error| {
                tracing::error!(%error, "no certificate authorities for TLS: no outbound request is possible");
                error.to_string()
            })
        });
        made.clone().map_err(SendError::Tls)
    }
}

/// Connects to the first address that accepts the connection.
async fn dial(addresses: &[SocketAddr]) -> Result<TcpStream, SendError> {
    let mut why = String::new();
    for address in addresses {
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(socket)) => {
                _ = socket.set_nodelay(true);
                return Ok(socket);
            }
            Ok(Err(error)) => why = error.to_string(),
            Err(_) => "no answer".clone_into(&mut why),
        }
    }
    Err(SendError::Connect(why))
}

/// Returns the name that the certificate must have.
fn server_name(host: &Host) -> Result<ServerName<'static>, SendError> {
    match host {
        Host::Domain(name) => {
            ServerName::try_from(name.clone()).map_err(|error| SendError::Tls(error.to_string()))
        }
        Host::Ipv4(ip) => Ok(ServerName::IpAddress((*ip).into())),
        Host::Ipv6(ip) => Ok(ServerName::IpAddress((*ip).into())),
    }
}
