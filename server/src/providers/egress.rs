//! Requests to addresses that tenants set: checked when stored, guarded when used, bounded in
//! time and size whatever the other side does.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    HeaderMap, Method, Request, StatusCode,
    body::Bytes,
    header::{self, HeaderName},
};
use tokio::time::Instant;
use url::Url;

use super::{
    connect::Connector,
    guard::{Guard, Refusal},
    link::{Failure, Reply},
    own::Own,
    pool::Pool,
    resolve::Resolver,
    target::Target,
    tls,
};
use crate::config::EgressSettings;

/// What belongs to the connection, not to the request, and is set by whoever frames the message.
const FRAMING: [HeaderName; 9] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::EXPECT,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::PROXY_AUTHORIZATION,
];

/// The way out to addresses that tenants set. Cheap to clone.
#[derive(Clone)]
pub struct Egress {
    guard: Arc<Guard>,
    connector: Arc<Connector>,
    pool: Arc<Pool>,
}

/// A request. Redirects are not followed and proxies not used. It does not print: its headers hold
/// tenants' keys.
#[derive(Clone)]
pub struct Outbound {
    /// The method.
    pub method: Method,
    /// Where to; normally what [`Egress::check`] answered.
    pub url: Url,
    /// Its headers. Those that frame the message (`Host`, `Content-Length` and the like) are left
    /// out: they follow from the URL and the body.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// For everything: name, connection, TLS, request, head and body of the answer.
    pub timeout: Duration,
    /// Bytes of the answer's body that are read, at most.
    pub max_body: usize,
}

/// An answer, of whatever status.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status; redirects are answers like others.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, as it came (nothing is unpacked), up to [`Outbound::max_body`] bytes of it.
    pub body: Bytes,
    /// Whether there was more of it.
    pub truncated: bool,
    /// From the request to the end of what was read.
    pub took: Duration,
}

/// Why there is no answer. The texts are fit for whoever set the address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The guard refused the address. It never says [`Refusal::Unresolvable`] here.
    #[error("{0}")]
    Refused(Refusal),
    /// The name does not resolve now.
    #[error("the host name does not resolve in DNS")]
    Dns,
    /// No address took the connection.
    #[error("no connection: {0}")]
    Connect(String),
    /// No secure connection: a wrong, expired or unknown certificate, or no TLS at all.
    #[error("no secure connection: {0}")]
    Tls(String),
    /// It took longer than it may.
    #[error("no complete answer in time")]
    Timeout,
    /// The connection ended early, or what came is no HTTP.
    #[error("no usable answer: {0}")]
    Broken(String),
}

impl Egress {
    /// The way out with these settings, but never to `own`, the addresses that this process
    /// listens on. [`Self::listens_on`] adds those that are known only later.
    ///
    /// # Errors
    /// When a setting can't be used.
    pub fn new(
        settings: &EgressSettings,
        own: Vec<SocketAddr>,
        resolver: Arc<dyn Resolver>,
    ) -> anyhow::Result<Self> {
        let guard = Guard { openings: settings.openings()?, own: Own::new(own), resolver };
        let roots = settings.egress_ca_file.as_deref().map_or(Ok(Vec::new()), tls::read_roots)?;
        let guard = Arc::new(guard);
        let connector = Arc::new(Connector::new(Arc::clone(&guard), roots));
        Ok(Self { guard, connector, pool: Arc::default() })
    }

    /// This process listens there too: from now on no tenant reaches it.
    pub fn listens_on(&self, address: SocketAddr) {
        self.guard.own.add(address);
    }

    /// Checks a URL that a tenant wants stored, as far as that can be known now: whatever it
    /// resolves to when it is used is judged again.
    ///
    /// # Errors
    /// When it can't be used.
    pub async fn check(&self, url: &str) -> Result<Url, Refusal> {
        let target = Target::parse(url)?;
        self.guard.judge(&target).await?;
        Ok(target.url)
    }

    /// Sends a request and waits for the answer, whatever its status.
    ///
    /// # Errors
    /// When the address is refused, or there is no complete answer in time.
    pub async fn send(&self, request: Outbound) -> Result<Answer, SendError> {
        let begun = Instant::now();
        let timeout = request.timeout;
        let Reply { status, headers, body, truncated } =
            tokio::time::timeout(timeout, self.exchange(request)).await.unwrap_or(Err(SendError::Timeout))?;
        Ok(Answer { status, headers, body, truncated, took: begun.elapsed() })
    }

    async fn exchange(&self, request: Outbound) -> Result<Reply, SendError> {
        let Outbound { method, url, headers, body, max_body, timeout: _ } = request;
        let target = Target::parse(url.as_str())?;
        let place = target.place();
        let mut message = Request::new(Full::new(body));
        *message.method_mut() = method;
        *message.uri_mut() = target.path.clone();
        *message.headers_mut() = headers;
        for name in &FRAMING {
            message.headers_mut().remove(name);
        }
        message.headers_mut().insert(header::HOST, target.host_header()?);
        loop {
            let (mut link, kept) = match self.pool.take(place) {
                Some(link) => (link, true),
                None => (self.connector.connect(&target).await?, false),
            };
            match link.exchange(message, max_body).await {
                Ok(reply) => {
                    self.pool.put(place, link);
                    return Ok(reply);
                }
                // The other side has closed what was kept, before anything was sent on it.
                Err(Failure { unsent: Some(unsent), .. }) if kept => message = unsent,
                Err(failure) => return Err(failure.error),
            }
        }
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
