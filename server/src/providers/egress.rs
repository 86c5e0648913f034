//! Requests to addresses that tenants set: checked when stored, guarded when used, bounded in
//! time and size whatever the other side does.

use std::{error::Error, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Method, Request, StatusCode,
    body::{Body, Bytes, Incoming},
    header,
};
use hyper_util::{
    client::legacy::{self, Client},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::Instant;
use url::Url;

use super::{
    connect::{Connector, root_cause},
    guard::{Guard, Refusal},
    own::Own,
    resolve::Resolver,
    target::Target,
    tls,
};
use crate::config::EgressSettings;

/// How long a connection is kept for the next request to the same place.
const IDLE: Duration = Duration::from_secs(15);

/// Connections kept for each place.
const IDLE_CONNECTIONS: usize = 4;

/// The largest head of an answer, in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// How long to look for the end of an answer that has just filled all the room there is for it.
const LAST_LOOK: Duration = Duration::from_millis(250);

/// What belongs to the connection, not to the request, and is set by whoever frames the message.
const FRAMING: [header::HeaderName; 9] = [
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
    client: Client<Connector, Full<Bytes>>,
}

/// A request. Redirects are not followed and proxies not used.
#[derive(Clone, Debug)]
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
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .http1_max_buf_size(MAX_HEAD)
            .build(Connector::new(Arc::clone(&guard), roots));
        Ok(Self { guard, client })
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
        let Outbound { method, url, mut headers, body, timeout, max_body } = request;
        let target = Target::parse(url.as_str())?;
        for name in &FRAMING {
            headers.remove(name);
        }
        let mut message = Request::new(Full::new(body));
        *message.method_mut() = method;
        *message.uri_mut() = target.uri;
        *message.headers_mut() = headers;
        let exchange = async {
            let answer = self.client.request(message).await.map_err(|it| why(&it))?;
            let (head, body) = answer.into_parts();
            let (body, truncated) = read(body, max_body).await?;
            let took = begun.elapsed();
            Ok(Answer { status: head.status, headers: head.headers, body, truncated, took })
        };
        tokio::time::timeout(timeout, exchange).await.unwrap_or(Err(SendError::Timeout))
    }
}

/// Reads a body up to `max` bytes; also answers whether there was more. What is left is never
/// read: its connection is closed.
async fn read(mut body: Incoming, max: usize) -> Result<(Bytes, bool), SendError> {
    let mut read = Vec::new();
    while !body.is_end_stream() {
        let full = read.len() == max;
        let next = match full {
            false => body.frame().await,
            true => match tokio::time::timeout(LAST_LOOK, body.frame()).await {
                Ok(next) => next,
                Err(_) => return Ok((read.into(), true)),
            },
        };
        let frame = match next {
            Some(Ok(frame)) => frame,
            None => break,
            // All that was wanted is there.
            Some(Err(_)) if full => return Ok((read.into(), true)),
            Some(Err(error)) => return Err(SendError::Broken(root_cause(&error))),
        };
        // Trailers say nothing to anybody here.
        let Ok(data) = frame.into_data() else { continue };
        let room = max - read.len();
        read.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return Ok((read.into(), true));
        }
    }
    Ok((read.into(), false))
}

/// The reason in an error of the client: the connector's own, if it comes from there.
fn why(error: &legacy::Error) -> SendError {
    let mut causes = std::iter::successors(error.source(), |&it| it.source());
    match causes.find_map(|it| it.downcast_ref::<SendError>()) {
        Some(connecting) => connecting.clone(),
        None => SendError::Broken(root_cause(error)),
    }
}
