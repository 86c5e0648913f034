//! The client: requests, responses and settings.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    HeaderMap, Method, Request, StatusCode,
    body::Bytes,
    header::{self, HeaderName, HeaderValue},
};
use tokio::time::Instant;
use url::Url;

use crate::{
    address_owner::AddressOwner,
    allow_list::AllowList,
    connection::{ExchangeFailure, ResponseParts},
    connector::Connector,
    deadline::Deadline,
    error::{AddressRejection, SendError},
    guard::Guard,
    own_listeners::OwnListeners,
    pool::Pool,
    proxy::Proxies,
    resolver::{Resolver, SystemResolver},
    target::TargetUrl,
    tls::TrustedRoots,
};

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

/// The `User-Agent` header of requests that set none.
const USER_AGENT: &str = concat!("loupe-server/", env!("CARGO_PKG_VERSION"));

/// Maximum number of idle connections to an origin that a tenant set.
const MAX_IDLE_PER_TENANT_ORIGIN: usize = 4;

/// Maximum number of idle connections to an origin that the operator set, which serves many tenants.
const MAX_IDLE_PER_OPERATOR_ORIGIN: usize = 32;

/// Settings of the client.
#[derive(Clone, Default)]
pub struct OutboundSettings {
    /// Addresses that tenants may use although they are not public.
    pub allow_list: AllowList,
    /// Certificate authorities to trust for tenants' addresses, in addition to the platform's.
    pub tenant_roots: TrustedRoots,
    /// Addresses on which this process listens; tenants never reach them, even if they are on the allow
    /// list. [`OutboundClient::listens_on`] adds addresses that are known later.
    pub own_listeners: Vec<SocketAddr>,
}

/// Sends requests. Cheap to clone.
#[derive(Clone)]
pub struct OutboundClient {
    connector: Arc<Connector>,
    /// Idle connections to tenants' addresses.
    tenant_pool: Arc<Pool>,
    /// Idle connections to the operator's addresses, which no tenant may reuse.
    operator_pool: Arc<Pool>,
}

/// A request. It cannot be formatted, because its headers contain keys.
#[derive(Clone)]
pub struct OutboundRequest {
    /// The method.
    pub method: Method,
    /// The URL, normally the result of [`OutboundClient::check`].
    pub url: Url,
    /// The party that set the URL.
    pub set_by: AddressOwner,
    /// The headers. Those that frame the message (`Host`, `Content-Length` and the like) are dropped:
    /// they follow from the URL and the body. `User-Agent` is added if it is absent.
    pub headers: HeaderMap,
    /// The body, sent as it is.
    pub body: Bytes,
    /// Timeout of everything: resolution, connection, TLS, request, head and body of the response.
    pub timeout: Duration,
    /// Maximum number of bytes of the response body that are read. The rest is not read, and the
    /// connection is closed.
    pub max_body: usize,
}

/// A response of any status; redirects are returned like other responses.
#[derive(Clone, Debug)]
pub struct OutboundResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as received (not decompressed), up to [`OutboundRequest::max_body`] bytes.
    pub body: Bytes,
    /// Whether the body had more bytes.
    pub is_truncated: bool,
    /// The duration of the request.
    pub elapsed: Duration,
}

impl OutboundResponse {
    /// Returns the body if it was read completely.
    ///
    /// # Errors
    ///
    /// Fails with [`SendError::ResponseTooLarge`] when it was truncated.
    pub fn complete(&self) -> Result<&Bytes, SendError> {
        if self.is_truncated { Err(SendError::ResponseTooLarge(self.body.len())) } else { Ok(&self.body) }
    }
}

impl OutboundClient {
    /// Creates a client that resolves the names in tenants' addresses with `resolver`, and the names in
    /// the operator's addresses with the system's resolver.
    pub fn new(settings: OutboundSettings, resolver: Arc<dyn Resolver>) -> Self {
        Self::with_proxies(settings, resolver, Proxies::from_env())
    }

    /// Creates a client with these proxies for the operator's addresses.
    pub(crate) fn with_proxies(
        settings: OutboundSettings,
        resolver: Arc<dyn Resolver>,
        proxies: Proxies,
    ) -> Self {
        let OutboundSettings { allow_list, tenant_roots, own_listeners } = settings;
        let guard = Guard {
            allow_list,
            own_listeners: OwnListeners::new(own_listeners),
            tenant_resolver: resolver,
            operator_resolver: Arc::new(SystemResolver::default()),
        };
        Self {
            connector: Arc::new(Connector::new(guard, tenant_roots, proxies)),
            tenant_pool: Arc::new(Pool::new(MAX_IDLE_PER_TENANT_ORIGIN)),
            operator_pool: Arc::new(Pool::new(MAX_IDLE_PER_OPERATOR_ORIGIN)),
        }
    }

    /// Adds an address on which this process listens, so that no tenant can reach it.
    pub fn listens_on(&self, address: SocketAddr) {
        self.connector.guard().own_listeners.add(address);
        self.tenant_pool.clear();
    }

    /// Checks a URL before it is stored for a tenant, with the check of [`Self::send`]; the name may
    /// resolve to another address later, so each request checks again.
    ///
    /// # Errors
    ///
    /// Fails when the URL cannot be used.
    pub async fn check(&self, url: &str) -> Result<Url, AddressRejection> {
        let target = TargetUrl::parse(url)?;
        self.connector.guard().checked_addresses(&target).await?;
        Ok(target.url)
    }

    /// Sends a request and returns the response, whatever its status. Dropping the future closes the
    /// connection.
    ///
    /// # Errors
    ///
    /// Fails when the address is rejected, or there is no complete response in time.
    pub async fn send(&self, request: OutboundRequest) -> Result<OutboundResponse, SendError> {
        let started = Instant::now();
        let ResponseParts { status, headers, body, is_truncated } = self.exchange(request).await?;
        Ok(OutboundResponse { status, headers, body, is_truncated, elapsed: started.elapsed() })
    }

    async fn exchange(&self, request: OutboundRequest) -> Result<ResponseParts, SendError> {
        let deadline = Deadline::after(request.timeout);
        let target = TargetUrl::parse(request.url.as_str())?;
        let (owner, max_body) = (request.set_by, request.max_body);
        let mut message = message(request, &target)?;
        let pool = match owner {
            AddressOwner::Tenant => &self.tenant_pool,
            AddressOwner::Operator => &self.operator_pool,
        };
        loop {
            let (mut connection, is_reused) = match pool.take(target.origin()) {
                Some(connection) => (connection, true),
                None => (self.connector.connect(&target, owner, deadline).await?, false),
            };
            match connection.exchange(&target, message, max_body, deadline).await {
                Ok(response) => {
                    pool.put(target.origin(), connection);
                    return Ok(response);
                }
                // The peer closed the idle connection before anything was sent on it.
                Err(ExchangeFailure { unsent: Some(unsent), .. }) if is_reused => message = unsent,
                Err(failure) => return Err(failure.error),
            }
        }
    }
}

/// Returns the message of a request.
fn message(request: OutboundRequest, target: &TargetUrl) -> Result<Request<Full<Bytes>>, SendError> {
    let mut message = Request::new(Full::new(request.body));
    *message.method_mut() = request.method;
    *message.uri_mut() = target.path.clone();
    let headers = message.headers_mut();
    *headers = request.headers;
    for name in &FRAMING_HEADERS {
        headers.remove(name);
    }
    headers.insert(header::HOST, target.host_header()?);
    headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
    Ok(message)
}
