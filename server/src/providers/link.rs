//! One HTTP/1.1 connection.
//!
//! It has no task of its own: it makes progress only while a response is awaited. Dropping the future
//! closes the socket and drops all buffers, so that a receiver that does not read, or never ends,
//! occupies nothing after the timeout of its request.

use std::{error::Error, pin::pin, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, Either, Fuse, select},
};
use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Request, StatusCode,
    body::{Body, Bytes, Incoming},
    client::conn::http1::{Builder, SendRequest},
    rt::{Read, Write},
};

use super::egress::SendError;

/// Maximum size of a response head in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Time to check for the end of a response that has exactly filled its limit.
const END_CHECK_TIMEOUT: Duration = Duration::from_millis(250);

/// A connection, idle or with one request in progress.
pub struct Link {
    sender: SendRequest<Full<Bytes>>,
    connection: Fuse<BoxFuture<'static, hyper::Result<()>>>,
}

/// A response.
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, possibly truncated.
    pub body: Bytes,
    /// Whether the body was truncated.
    pub truncated: bool,
}

/// Why there is no response.
pub struct Failure {
    /// The reason.
    pub error: SendError,
    /// The request, if certainly nothing of it was sent.
    pub unsent: Option<Request<Full<Bytes>>>,
}

impl Link {
    /// Opens HTTP on a stream.
    ///
    /// # Errors
    ///
    /// Fails when the connection can't be used.
    pub async fn over(io: impl Read + Write + Unpin + Send + 'static) -> Result<Self, SendError> {
        let (sender, connection) =
            Builder::new().max_buf_size(MAX_HEAD_BYTES).handshake(io).await.map_err(|it| broken(&it))?;
        Ok(Self { sender, connection: connection.boxed().fuse() })
    }

    /// Sends a request and reads the response, with at most `max` bytes of the body.
    ///
    /// # Errors
    ///
    /// Fails when the connection ends before the response, or the response is not HTTP.
    pub async fn exchange(&mut self, request: Request<Full<Bytes>>, max: usize) -> Result<Reply, Failure> {
        let exchange = pin!(async {
            let answer = self
                .sender
                .try_send_request(request)
                .await
                .map_err(|mut it| Failure { unsent: it.take_message(), error: broken(it.error()) })?;
            let (head, body) = answer.into_parts();
            let (body, truncated) = read(body, max).await.map_err(|error| Failure { error, unsent: None })?;
            Ok(Reply { status: head.status, headers: head.headers, body, truncated })
        });
        match select(exchange, &mut self.connection).await {
            Either::Left((outcome, _)) => outcome,
            // The connection has ended and delivered everything that it received.
            Either::Right((_, exchange)) => exchange.await,
        }
    }

    /// Whether another request can be sent: the last response was read to its end, and the peer has
    /// neither closed the connection nor sent anything since.
    pub fn is_idle(&mut self) -> bool {
        (&mut self.connection).now_or_never().is_none() && self.sender.is_ready()
    }
}

/// Reads a body up to `max` bytes; also returns whether there was more.
async fn read(mut body: Incoming, max: usize) -> Result<(Bytes, bool), SendError> {
    let mut read = Vec::new();
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
            Some(Err(error)) => return Err(broken(&error)),
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

fn broken(error: &hyper::Error) -> SendError {
    SendError::Broken(root_cause(error))
}

/// Returns the message of the innermost error; the outer ones only describe the layers.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(error), |&it| it.source()).last().map_or_else(String::new, ToString::to_string)
}
