//! Discards the rest of request bodies that the handler has not read to the end.
//!
//! Many clients send the whole body before they read the response. If the rest stayed unread after a
//! rejection, the connection would have to be closed while the client is sending, and some clients
//! would never see the error. So the rest is read and discarded, up to a limit, and the connection can
//! be reused.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Bytes, HttpBody},
    http::{Request, header},
};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming, SizeHint};

use crate::app::App;

/// Maximum number of bytes discarded of one body.
const MAX_DISCARDED_BYTES: usize = 64 * 1024 * 1024;
/// Maximum time for discarding the rest of a body.
const MAX_DISCARD_TIME: Duration = Duration::from_secs(10);

/// A request body. If it is dropped before its end, the rest is discarded in the background.
pub struct DrainingBody {
    /// `None` when there is nothing left to read.
    body: Option<Incoming>,
    /// Whether the client waits for `100 Continue`, which the first read sends.
    expects_continue: bool,
    app: Arc<App>,
}

impl DrainingBody {
    /// Wraps the body of a request.
    pub fn wrap(app: &Arc<App>, request: Request<Incoming>) -> Request<Self> {
        let expects_continue = request.headers().contains_key(header::EXPECT);
        request.map(|body| Self { body: Some(body), expects_continue, app: Arc::clone(app) })
    }
}

impl HttpBody for DrainingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.expects_continue = false;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(context);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for DrainingBody {
    fn drop(&mut self) {
        if self.expects_continue || self.is_end_stream() || self.app.is_stopping() {
            return;
        }
        let Some(rest) = self.body.take() else { return };
        let stopping = self.app.stopping();
        self.app.spawn(async move {
            tokio::select! {
                _ = tokio::time::timeout(MAX_DISCARD_TIME, discard(rest)) => {}
                () = stopping.cancelled() => {}
            }
        });
    }
}

async fn discard(mut body: Incoming) {
    let mut bytes = 0;
    while let Some(Ok(frame)) = body.frame().await {
        bytes += frame.data_ref().map_or(0, Bytes::len);
        if bytes > MAX_DISCARDED_BYTES {
            return;
        }
    }
}
