//! One connection that speaks HTTP/1.1.
//!
//! It has no task of its own: it moves only while somebody waits for an answer on it. Whoever
//! stops waiting drops it, and with it the socket and all that was queued, so that a receiver
//! which does not read, or never ends, holds nothing beyond the time of its request.

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

/// The largest head of an answer, in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// How long to look for the end of an answer that has just filled all the room there is for it.
const LAST_LOOK: Duration = Duration::from_millis(250);

/// A connection, idle or with one request on it.
pub struct Link {
    sender: SendRequest<Full<Bytes>>,
    connection: Fuse<BoxFuture<'static, hyper::Result<()>>>,
}

/// What came back.
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, or the beginning of it.
    pub body: Bytes,
    /// Whether there was more of it.
    pub truncated: bool,
}

/// Why nothing came back.
pub struct Failure {
    /// The reason.
    pub error: SendError,
    /// The request, if certainly nothing of it was sent.
    pub unsent: Option<Request<Full<Bytes>>>,
}

impl Link {
    /// HTTP over a stream.
    ///
    /// # Errors
    /// When the connection can't be used.
    pub async fn over(io: impl Read + Write + Unpin + Send + 'static) -> Result<Self, SendError> {
        let (sender, connection) =
            Builder::new().max_buf_size(MAX_HEAD).handshake(io).await.map_err(|it| broken(&it))?;
        Ok(Self { sender, connection: connection.boxed().fuse() })
    }

    /// Sends a request and reads the answer, of its body `max` bytes.
    ///
    /// # Errors
    /// When the connection ends before the answer, or what comes is no HTTP.
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
            // It has ended, and has handed over whatever there was.
            Either::Right((_, exchange)) => exchange.await,
        }
    }

    /// Whether another request can be sent: the last answer was read to its end, and since then
    /// the other side has neither closed nor said anything.
    pub fn is_idle(&mut self) -> bool {
        (&mut self.connection).now_or_never().is_none() && self.sender.is_ready()
    }
}

/// Reads a body up to `max` bytes; also answers whether there was more.
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
            Some(Err(error)) => return Err(broken(&error)),
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

fn broken(error: &hyper::Error) -> SendError {
    SendError::Broken(root_cause(error))
}

/// What the innermost error says; those around it say where it passed.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(error), |&it| it.source()).last().map_or_else(String::new, ToString::to_string)
}
