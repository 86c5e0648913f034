//! The outbound HTTP guard: requests to addresses that tenants set. Checked when stored and when used,
//! bounded in time and size.

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
    own::OwnListeners,
    pool::Pool,
    resolve::Resolver,
    target::Target,
    tls,
};
use crate::config::EgressSettings;

/// Headers that belong to the connection and are set by the HTTP library.
const FRAMING_HEADERS: [HeaderName; 9] = [
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

/// Sends requests to addresses that tenants set. Cheap to clone.
#[derive(Clone)]
pub struct Egress {
    guard: Arc<Guard>,
    connector: Arc<Connector>,
    pool: Arc<Pool>,
}

/// A request. Redirects are not followed and proxies not used. It can't be formatted, because its
/// headers contain tenants' keys.
#[derive(Clone)]
pub struct Outbound {
    /// The method.
    pub method: Method,
    /// The URL, normally the result of [`Egress::check`].
    pub url: Url,
    /// The headers. Those that frame the message (`Host`, `Content-Length` and the like) are dropped:
    /// they follow from the URL and the body.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// Timeout of everything: resolution, connection, TLS, request, head and body of the response.
    pub timeout: Duration,
    /// Maximum number of bytes of the response body that are read.
    pub max_body: usize,
}

/// A response of any status.
#[derive(Clone, Debug)]
pub struct OutboundResponse {
    /// The status; redirects are returned like other responses.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as received (not decompressed), up to [`Outbound::max_body`] bytes.
    pub body: Bytes,
    /// Whether the body was truncated.
    pub truncated: bool,
    /// The duration of the request.
    pub took: Duration,
}

/// Why there is no response. The messages are suitable for the tenant who set the address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The guard rejected the address; never with [`Refusal::Unresolvable`].
    #[error("{0}")]
    Refused(Refusal),
    /// The name can't be resolved at the moment.
    #[error("the host name does not resolve in DNS")]
    Dns,
    /// No address accepted the connection.
    #[error("connection failed: {0}")]
    Connect(String),
    /// TLS failed: a wrong, expired or untrusted certificate, or no TLS.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// The timeout was exceeded.
    #[error("no complete response in time")]
    Timeout,
    /// The connection was closed early, or the response is not HTTP.
    #[error("invalid response: {0}")]
    Broken(String),
}

impl Egress {
    /// Creates the guard with these settings; it never connects to `own`, the addresses on which this
    /// process listens. [`Self::listens_on`] adds addresses that are known later.
    ///
    /// # Errors
    ///
    /// Fails when a setting is invalid.
    pub fn new(
        settings: &EgressSettings,
        own: Vec<SocketAddr>,
        resolver: Arc<dyn Resolver>,
    ) -> anyhow::Result<Self> {
        let guard = Guard { openings: settings.openings()?, own: OwnListeners::new(own), resolver };
        let roots = settings.egress_ca_file.as_deref().map_or(Ok(Vec::new()), tls::read_roots)?;
        let guard = Arc::new(guard);
        let connector = Arc::new(Connector::new(Arc::clone(&guard), roots));
        Ok(Self { guard, connector, pool: Arc::default() })
    }

    /// Adds an address on which this process listens, so that no tenant can reach it.
    pub fn listens_on(&self, address: SocketAddr) {
        self.guard.own.add(address);
    }

    /// Checks a URL that a tenant wants to store, as far as possible: it is resolved and checked again
    /// when it is used.
    ///
    /// # Errors
    ///
    /// Fails when it can't be used.
    pub async fn check(&self, url: &str) -> Result<Url, Refusal> {
        let target = Target::parse(url)?;
        self.guard.judge(&target).await?;
        Ok(target.url)
    }

    /// Sends a request and returns the response, whatever its status.
    ///
    /// # Errors
    ///
    /// Fails when the address is rejected, or there is no complete response in time.
    pub async fn send(&self, request: Outbound) -> Result<OutboundResponse, SendError> {
        let begun = Instant::now();
        let timeout = request.timeout;
        let Reply { status, headers, body, truncated } =
            tokio::time::timeout(timeout, self.exchange(request)).await.unwrap_or(Err(SendError::Timeout))?;
        Ok(OutboundResponse { status, headers, body, truncated, took: begun.elapsed() })
    }

    async fn exchange(&self, request: Outbound) -> Result<Reply, SendError> {
        let Outbound { method, url, headers, body, max_body, timeout: _ } = request;
        let target = Target::parse(url.as_str())?;
        let place = target.place();
        let mut message = Request::new(Full::new(body));
        *message.method_mut() = method;
        *message.uri_mut() = target.path.clone();
        *message.headers_mut() = headers;
        for name in &FRAMING_HEADERS {
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
                // The peer closed the idle connection before anything was sent on it.
                Err(Failure { unsent: Some(unsent), .. }) if kept => message = unsent,
                Err(failure) => return Err(failure.error),
            }
        }
    }
}

impl From<Refusal> for SendError {
    /// An unresolvable name is an error when it is stored, but temporary when it is used.
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unresolvable => Self::Dns,
            other => Self::Refused(other),
        }
    }
}
