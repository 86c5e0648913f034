//! Connections: judged and dialled in one go, so that nothing can change between the two.

use std::{
    error::Error,
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use hyper::{Uri, http::uri::Scheme};
use hyper_rustls::{DefaultServerNameResolver, HttpsConnector, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::CertificateDer};
use tokio::net::TcpStream;
use tower_service::Service;

use super::{
    egress::SendError,
    guard::{Guard, Refusal},
    target::Target,
    tls,
};

/// How long one address may take to answer before the next one is tried.
const DIAL: Duration = Duration::from_secs(4);

/// How long a connection may take to come up, all of its steps together. Whoever asked may have
/// given up, or been served on another connection; this one must not stay for ever.
const CONNECT: Duration = Duration::from_secs(20);

/// A connection that may be used.
type Connection = MaybeHttpsStream<TokioIo<TcpStream>>;

/// A future that a service returns.
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, SendError>> + Send>>;

/// Makes connections to addresses that passed the guard, and TLS with the name that was asked for.
#[derive(Clone)]
pub struct Connector {
    dialer: Dialer,
    /// Read when first needed: a server that never calls out needs no authorities.
    tls: Arc<OnceLock<Result<Arc<ClientConfig>, String>>>,
    roots: Arc<[CertificateDer<'static>]>,
}

impl Connector {
    /// Connections to what this guard lets through, to whom these roots and the platform's vouch for.
    pub fn new(guard: Arc<Guard>, roots: Vec<CertificateDer<'static>>) -> Self {
        Self { dialer: Dialer { guard }, tls: Arc::default(), roots: roots.into() }
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

    async fn connect(mut self, uri: Uri) -> Result<Connection, SendError> {
        // Whether http may be used at all is the guard's to say.
        if uri.scheme() == Some(&Scheme::HTTP) {
            return self.dialer.call(uri).await.map(MaybeHttpsStream::Http);
        }
        let tls = self.tls()?;
        let names = Arc::new(DefaultServerNameResolver::default());
        match HttpsConnector::new(self.dialer, tls, true, names).call(uri).await {
            Ok(connection) => Ok(connection),
            Err(error) => Err(match error.downcast::<SendError>() {
                Ok(dialling) => *dialling,
                Err(handshake) => SendError::Tls(root_cause(handshake.as_ref())),
            }),
        }
    }
}

impl Service<Uri> for Connector {
    type Response = Connection;
    type Error = SendError;
    type Future = Connecting<Connection>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let connecting = connector.connect(uri);
            tokio::time::timeout(CONNECT, connecting).await.unwrap_or(Err(SendError::Timeout))
        })
    }
}

/// Dials. The only place in the server that does so for a tenant.
#[derive(Clone)]
struct Dialer {
    guard: Arc<Guard>,
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<TcpStream>;
    type Error = SendError;
    type Future = Connecting<TokioIo<TcpStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let guard = Arc::clone(&self.guard);
        Box::pin(async move {
            let target = Target::parse(&uri.to_string())?;
            let addresses = guard.judge(&target).await?;
            let mut outcome = Err(SendError::Dns);
            for address in addresses {
                match tokio::time::timeout(DIAL, TcpStream::connect(address)).await {
                    Ok(Ok(socket)) => {
                        _ = socket.set_nodelay(true);
                        return Ok(TokioIo::new(socket));
                    }
                    Ok(Err(error)) => outcome = Err(SendError::Connect(error.to_string())),
                    Err(_) => outcome = Err(SendError::Connect("no answer".to_owned())),
                }
            }
            outcome
        })
    }
}

impl From<Refusal> for SendError {
    /// That a name does not resolve is final for who stores it, and passing for who uses it.
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unresolvable => Self::Dns,
            other => Self::Refused(other),
        }
    }
}

/// What the innermost error says; those around it say where it passed.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(error), |&it| it.source()).last().map_or_else(String::new, ToString::to_string)
}
