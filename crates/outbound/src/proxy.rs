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
    address::is_loopback_host,
    connection::MAX_HEAD_BYTES,
    error::{SendError, of_http},
    target::TargetUrl,
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

    /// Returns the proxy for this target; none for a service on this machine, which a proxy cannot reach.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    #![allow(clippy::disallowed_methods, reason = "the proxy runs beside the test")]

    use std::{net::SocketAddr, sync::Arc, time::Duration};

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        task::JoinHandle,
    };

    use super::*;
    use crate::{
        AddressOwner, AllowList, OutboundClient, OutboundRequest, OutboundResponse, OutboundSettings,
        resolver::SystemResolver,
    };

    /// Starts a proxy that sends this response to the first request and then closes the connection.
    /// The task returns the head of the request.
    async fn start(response: &'static str) -> (SocketAddr, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                assert!(socket.read_buf(&mut head).await.unwrap() > 0);
            }
            socket.write_all(response.as_bytes()).await.unwrap();
            String::from_utf8(head).unwrap()
        });
        (address, serving)
    }

    async fn send(proxy: SocketAddr, url: &str, set_by: AddressOwner) -> Result<OutboundResponse, SendError> {
        let proxies = Proxies(Matcher::builder().all(format!("http://user:secret@{proxy}")).build());
        let allow_list = AllowList::parse("127.0.0.1:1").unwrap();
        let settings = OutboundSettings { allow_list, ..OutboundSettings::default() };
        let client = OutboundClient::with_proxies(settings, Arc::new(SystemResolver::default()), proxies);
        let request = OutboundRequest {
            method: Method::GET,
            url: url.parse().unwrap(),
            set_by,
            headers: hyper::HeaderMap::new(),
            body: Bytes::new(),
            timeout: Duration::from_secs(5),
            max_body: 100,
        };
        client.send(request).await
    }

    #[tokio::test]
    async fn proxy_forwards_plain_request_in_absolute_form() {
        let (proxy, serving) = start("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        let url = "http://models.internal:8080/v1?a=b";
        let response = send(proxy, url, AddressOwner::Operator).await.unwrap();
        assert_eq!(&response.body[..], b"ok");
        let head = serving.await.unwrap();
        assert!(head.starts_with("GET http://models.internal:8080/v1?a=b HTTP/1.1\r\n"), "{head}");
        for line in ["host: models.internal:8080", "proxy-authorization: Basic dXNlcjpzZWNyZXQ="] {
            assert!(head.lines().any(|it| it == line), "{line}: {head}");
        }
    }

    #[tokio::test]
    async fn proxy_is_asked_for_tunnel_to_https_address() {
        let url = "https://models.internal/v1";
        let (proxy, serving) = start("HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n").await;
        let failure = send(proxy, url, AddressOwner::Operator).await.unwrap_err();
        assert_eq!(failure, SendError::ConnectionFailed("the proxy returned status 407".to_owned()));
        let head = serving.await.unwrap();
        assert!(head.starts_with("CONNECT models.internal:443 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("proxy-authorization: Basic dXNlcjpzZWNyZXQ="), "{head}");

        // Behind the tunnel is a server without TLS.
        let (proxy, _serving) = start("HTTP/1.1 200 OK\r\n\r\nSSH-2.0-OpenSSH_9.9\r\n").await;
        let failure = send(proxy, url, AddressOwner::Operator).await.unwrap_err();
        assert!(matches!(failure, SendError::TlsFailed(_)), "{failure:?}");
    }

    #[tokio::test]
    async fn proxy_is_not_used_for_tenants_and_this_machine() {
        let (proxy, serving) = start("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        for set_by in [AddressOwner::Tenant, AddressOwner::Operator] {
            let failure = send(proxy, "http://127.0.0.1:1/", set_by).await.unwrap_err();
            assert!(matches!(failure, SendError::ConnectionRefused(_)), "{failure:?}");
        }
        let failure = send(proxy, "https://10.0.0.7/", AddressOwner::Tenant).await.unwrap_err();
        assert!(matches!(failure, SendError::AddressRejected(_)), "{failure:?}");
        assert!(!serving.is_finished());
    }
}
