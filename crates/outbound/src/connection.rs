//! One HTTP/1.1 connection.
//!
//! It has no task of its own: it makes progress only while a response is awaited. Dropping the future
//! closes the socket and drops all buffers, so that a receiver that does not read, or never ends,
//! occupies nothing after the timeout of its request.

use std::{pin::pin, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, Either, Fuse, select},
};
use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Request, StatusCode, Uri,
    body::{Body, Bytes, Incoming},
    client::conn::http1::{Builder, SendRequest},
    header::{HeaderValue, PROXY_AUTHORIZATION},
};
use hyper_util::rt::TokioIo;

use crate::{
    deadline::Deadline,
    error::{SendError, Stage, of_http},
    target::TargetUrl,
};
use tokio::io::{AsyncRead, AsyncWrite};

/// Maximum size of a response head in bytes. The HTTP library also limits the number of headers to 100.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Time to check for the end of a response that has exactly filled its limit.
const END_CHECK_TIMEOUT: Duration = Duration::from_millis(250);

/// A byte stream: a socket, TLS, or a tunnel through a proxy.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

/// A connection, idle or with one request in progress.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: Fuse<BoxFuture<'static, hyper::Result<()>>>,
    forward: Option<ForwardProxy>,
}

/// The peer is a proxy that forwards requests without TLS.
pub struct ForwardProxy {
    /// The credentials for the proxy.
    pub authorization: Option<HeaderValue>,
}

/// The parts of a response.
pub struct ResponseParts {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, possibly truncated.
    pub body: Bytes,
    /// Whether the body was truncated.
    pub is_truncated: bool,
}

/// Why an exchange failed.
pub struct ExchangeFailure {
    /// The reason.
    pub error: SendError,
    /// The request, if no part of it was sent, so that it can be sent again.
    pub unsent: Option<Request<Full<Bytes>>>,
}

impl Connection {
    /// Opens HTTP on a stream, to the target or to a forward proxy.
    ///
    /// # Errors
    ///
    /// Fails when the connection cannot be used.
    pub async fn over(stream: Box<dyn Stream>, forward: Option<ForwardProxy>) -> Result<Self, SendError> {
        let handshake = Builder::new().max_buf_size(MAX_HEAD_BYTES).handshake(TokioIo::new(stream)).await;
        let (sender, driver) = handshake.map_err(|it| of_http(&it))?;
        Ok(Self { sender, driver: driver.boxed().fuse(), forward })
    }

    /// Sends a request and reads the response, with at most `max_body` bytes of the body.
    ///
    /// # Errors
    ///
    /// Fails when the connection or the time ends before the response, or the response is not HTTP.
    pub async fn exchange(
        &mut self,
        target: &TargetUrl,
        mut request: Request<Full<Bytes>>,
        max_body: usize,
        deadline: Deadline,
    ) -> Result<ResponseParts, ExchangeFailure> {
        if let Some(proxy) = &self.forward {
            if let Ok(absolute) = Uri::try_from(&target.url[..url::Position::AfterQuery]) {
                *request.uri_mut() = absolute;
            }
            if let Some(authorization) = &proxy.authorization {
                request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
            }
        }
        let lost = |error| ExchangeFailure { error, unsent: None };
        let exchange = pin!(async {
            let mut unsent = None;
            let sent = self.sender.try_send_request(request).map(|sent| {
                sent.map_err(|mut it| {
                    unsent = it.take_message();
                    of_http(it.error())
                })
            });
            let response = match deadline.limit(Stage::Head, sent).await {
                Ok(response) => response,
                Err(error) => return Err(ExchangeFailure { error, unsent }),
            };
            let (head, body) = response.into_parts();
            let read = deadline.limit(Stage::Body, read(body, max_body)).await;
            let (body, is_truncated) = read.map_err(lost)?;
            Ok(ResponseParts { status: head.status, headers: head.headers, body, is_truncated })
        });
        match select(exchange, &mut self.driver).await {
            Either::Left((outcome, _)) => outcome,
            // The connection has ended and delivered everything that it received.
            Either::Right((_, exchange)) => exchange.await,
        }
    }

    /// Returns whether another request can be sent: the last response was read to its end, and the peer has
    /// neither closed the connection nor sent anything since.
    pub fn is_idle(&mut self) -> bool {
        (&mut self.driver).now_or_never().is_none() && self.sender.is_ready()
    }
}

/// Reads a body up to `max` bytes; also returns whether there was more.
async fn read(mut body: Incoming, max: usize) -> Result<(Bytes, bool), SendError> {
    // The announced size saves the copies of a growing buffer.
    let announced = body.size_hint().exact().and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
    let mut read = Vec::with_capacity(announced.min(max));
    while !body.is_end_stream() {
        let full = read.len() == max;
        let next = match full {
            false => body.frame().await,
            true => match tokio::time::timeout(END_CHECK_TIMEOUT, body.frame()).await {
                Ok(next) => next,
                Err(_) => return Ok((read.into(), true)),
            },
        };
        let frame = match next {
            Some(Ok(frame)) => frame,
            None => break,
            // The requested number of bytes is complete.
            Some(Err(_)) if full => return Ok((read.into(), true)),
            Some(Err(error)) => return Err(of_http(&error)),
        };
        // Trailers are ignored.
        let Ok(data) = frame.into_data() else { continue };
        let room = max - read.len();
        read.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return Ok((read.into(), true));
        }
    }
    Ok((read.into(), false))
}
