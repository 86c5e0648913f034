//! The operator's HTTP proxies (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`).
//!
//! They are used for addresses that the operator set. Tenants' addresses are never sent to a proxy,
//! which would connect to an address of its own choice.

use std::pin::pin;

use futures::{
    FutureExt,
    future::{Either, select},
};
use http_body_util::Empty;
use hyper::{
    Method, Request, Uri,
    body::Bytes,
    client::conn::http1::Builder,
    header::{HOST, HeaderValue, PROXY_AUTHORIZATION},
    upgrade::Upgraded,
};
use hyper_util::{
    client::proxy::matcher::{Intercept, Matcher},
    rt::TokioIo,
};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    SendError, address::is_loopback_host, connection::MAX_HEAD_BYTES, error::of_http, target::TargetUrl,
};

/// The proxies of the environment, read once.
pub struct Proxies(Matcher);

/// The proxy of a target.
pub struct Proxy {
    /// The address of the proxy.
    pub target: TargetUrl,
    /// The credentials in the address.
    pub authorization: Option<HeaderValue>,
}

impl Proxies {
    /// Reads the environment.
    pub fn from_env() -> Self {
        Self(Matcher::from_env())
    }

    /// Returns the proxy for this target; none for a service on this machine, which a proxy can't reach.
    ///
    /// # Errors
    ///
    /// Fails when the address of the proxy is not an HTTP URL.
    pub fn of(&self, target: &TargetUrl) -> Result<Option<Proxy>, SendError> {
        if is_loopback_host(&target.host) {
            return Ok(None);
        }
        let Ok(uri) = Uri::try_from(target.url.as_str()) else { return Ok(None) };
        self.0.intercept(&uri).map(|it| proxy(&it)).transpose()
    }
}

fn proxy(found: &Intercept) -> Result<Proxy, SendError> {
    let unusable = |_| SendError::ConnectionFailed("the address of the proxy is not an HTTP URL".to_owned());
    let target = TargetUrl::parse(&found.uri().to_string()).map_err(unusable)?;
    Ok(Proxy { target, authorization: found.basic_auth().cloned() })
}

/// Asks a proxy for a tunnel to `authority` (host and port).
///
/// # Errors
///
/// Fails when the proxy rejects the request, or does not speak HTTP.
pub async fn tunnel(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    authority: &str,
    authorization: Option<HeaderValue>,
) -> Result<TokioIo<Upgraded>, SendError> {
    let invalid = |it: hyper::http::Error| SendError::ConnectionFailed(it.to_string());
    let mut request = Request::builder()
        .method(Method::CONNECT)
        .uri(authority)
        .header(HOST, authority)
        .body(Empty::<Bytes>::new())
        .map_err(invalid)?;
    if let Some(authorization) = authorization {
        request.headers_mut().insert(PROXY_AUTHORIZATION, authorization);
    }
    let handshake = Builder::new().max_buf_size(MAX_HEAD_BYTES).handshake(TokioIo::new(io)).await;
    let (mut sender, connection) = handshake.map_err(|it| of_http(&it))?;
    let exchange = pin!(async {
        let response = sender.send_request(request).await.map_err(|it| of_http(&it))?;
        if !response.status().is_success() {
            let why = format!("the proxy returned status {}", response.status().as_u16());
            return Err(SendError::ConnectionFailed(why));
        }
        hyper::upgrade::on(response).await.map_err(|it| of_http(&it))
    });
    let upgraded = match select(exchange, pin!(connection.with_upgrades().fuse())).await {
        Either::Left((outcome, _)) => outcome,
        // The connection has handed over its socket, or has ended.
        Either::Right((_, exchange)) => exchange.await,
    };
    upgraded.map(TokioIo::new)
}
