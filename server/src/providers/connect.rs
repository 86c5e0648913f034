//! Connections: judged and dialled in one go, so that nothing can change between the two.

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

/// How long one address may take to answer before the next one is tried.
const DIAL: Duration = Duration::from_secs(4);

/// Makes connections to addresses that passed the guard. The only place in the server that
/// dials for a tenant.
pub struct Connector {
    guard: Arc<Guard>,
    roots: Vec<CertificateDer<'static>>,
    /// Made when first needed: a server that never calls out needs no authorities.
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Connector {
    /// Connections to what this guard lets through and for what these roots, or the platform's,
    /// vouch.
    pub fn new(guard: Arc<Guard>, roots: Vec<CertificateDer<'static>>) -> Self {
        Self { guard, roots, tls: OnceLock::new() }
    }

    /// Judges the target and connects to it, with TLS for the host that was asked for.
    ///
    /// # Errors
    /// When it is refused, or there is no connection.
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
                tracing::error!(%error, "no authorities for TLS: nothing outside can be reached");
                error.to_string()
            })
        });
        made.clone().map_err(SendError::Tls)
    }
}

/// The first address that takes the connection.
async fn dial(addresses: &[SocketAddr]) -> Result<TcpStream, SendError> {
    let mut why = String::new();
    for address in addresses {
        match tokio::time::timeout(DIAL, TcpStream::connect(address)).await {
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

/// What the certificate must be for.
fn server_name(host: &Host) -> Result<ServerName<'static>, SendError> {
    match host {
        Host::Domain(name) => {
            ServerName::try_from(name.clone()).map_err(|error| SendError::Tls(error.to_string()))
        }
        Host::Ipv4(ip) => Ok(ServerName::IpAddress((*ip).into())),
        Host::Ipv6(ip) => Ok(ServerName::IpAddress((*ip).into())),
    }
}
