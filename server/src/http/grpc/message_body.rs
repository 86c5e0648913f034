//! The message of a request as the body of an HTTP request.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::body::{Bytes, HttpBody};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};

/// Number of bytes before a message.
pub const PREFIX_LEN: usize = 5;

/// Error: the body of a call is not one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// The call has no message, or the connection ended.
    #[error("the call ended before its message was complete")]
    Incomplete,
    /// The beginning of the message did not arrive in time.
    #[error("the message did not arrive in time")]
    Late,
    /// The first byte is neither 0 nor 1.
    #[error("the message does not begin with a valid prefix")]
    InvalidPrefix,
    /// The prefix declares compression, and `grpc-encoding` does not name one.
    #[error("the message is declared as compressed, but grpc-encoding names no compression")]
    UnnamedCompression,
    /// Bytes follow the message.
    #[error("the call has more than one message")]
    Excess,
}

/// The body of a call, without the prefix of its message.
pub struct MessageBody {
    incoming: Incoming,
    /// Bytes that arrived together with the prefix.
    received: Bytes,
    /// Number of bytes of the message that have not been read.
    left: usize,
    /// Whether the message is compressed.
    pub is_compressed: bool,
}

impl MessageBody {
    /// Reads the prefix.
    pub async fn begin(mut incoming: Incoming) -> Result<Self, FramingError> {
        let mut received = Bytes::new();
        while received.len() < PREFIX_LEN {
            let frame = incoming.frame().await.and_then(Result::ok).ok_or(FramingError::Incomplete)?;
            let Ok(data) = frame.into_data() else { continue };
            received = match received.is_empty() {
                true => data,
                false => [received, data].concat().into(),
            };
        }
        let prefix = received.split_to(PREFIX_LEN);
        let &[flag @ (0 | 1), a, b, c, d] = prefix.as_ref() else { return Err(FramingError::InvalidPrefix) };
        let left = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        Ok(Self { incoming, received, left, is_compressed: flag == 1 })
    }

    /// Returns the number of bytes of the message that have not been read.
    pub fn remaining_bytes(&self) -> usize {
        self.left
    }

    /// Counts bytes of the message.
    fn take(&mut self, data: Bytes) -> Result<Frame<Bytes>, FramingError> {
        self.left = self.left.checked_sub(data.len()).ok_or(FramingError::Excess)?;
        Ok(Frame::data(data))
    }
}

impl HttpBody for MessageBody {
    type Data = Bytes;
    type Error = FramingError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, FramingError>>> {
        if !self.received.is_empty() {
            let data = std::mem::take(&mut self.received);
            return Poll::Ready(Some(self.take(data)));
        }
        // Waits for the end of the body, because a second message must be an error and not be ignored.
        loop {
            let frame = match ready!(Pin::new(&mut self.incoming).poll_frame(context)) {
                None if self.left == 0 => return Poll::Ready(None),
                None | Some(Err(_)) => return Poll::Ready(Some(Err(FramingError::Incomplete))),
                Some(Ok(frame)) => frame,
            };
            match frame.into_data() {
                Ok(data) if !data.is_empty() => return Poll::Ready(Some(self.take(data))),
                // Trailers of the client.
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0 && self.received.is_empty() && self.incoming.is_end_stream()
    }
}
