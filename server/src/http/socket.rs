//! The socket of a connection: it has a write timeout, and a lingering close for clients that are still
//! sending when the response is complete.
//!
//! Closing a socket with unread bytes resets the connection, and the reset can overtake the response.
//! Therefore the write side is closed first, and incoming bytes are discarded for a while.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep},
};
use tokio_util::sync::CancellationToken;

use super::head;

/// Maximum time for which incoming bytes are discarded after the write side is closed.
const LINGER_TIME: Duration = Duration::from_secs(2);
/// Maximum number of bytes discarded then.
const LINGER_BYTES: usize = 64 * 1024 * 1024;

/// The socket of a client.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    /// Maximum time that a write may wait for the client to read.
    patience: Duration,
    /// The end of that time, while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Set on shutdown, when closing does not linger.
    stopping: CancellationToken,
    lingering: Option<Lingering>,
    /// A response with a body that replaces one without.
    replacement: Option<Replacement>,
}

#[derive(Debug)]
struct Replacement {
    bytes: Vec<u8>,
    written: usize,
    /// Number of bytes that the writer passed.
    given: usize,
}

#[derive(Debug)]
struct Lingering {
    until: Pin<Box<Sleep>>,
    bytes_left: usize,
}

impl Socket {
    /// Wraps an accepted connection; `stopping` is cancelled on shutdown.
    pub fn new(stream: TcpStream, patience: Duration, stopping: CancellationToken) -> Self {
        Self { stream, patience, stalled: None, stopping, lingering: None, replacement: None }
    }

    /// Returns the result of a write, or a timeout error if it has waited for too long.
    fn hurry<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }

    /// Begins to replace `bytes` if they are a response of the HTTP library without a body.
    fn replaces(&mut self, bytes: &[u8]) -> bool {
        if self.replacement.is_none()
            && let Some(replacement) = head::replace_bare_response(bytes)
        {
            self.replacement = Some(Replacement { bytes: replacement, written: 0, given: bytes.len() });
        }
        self.replacement.is_some()
    }

    fn poll_replace(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        while let Some(replacement) = &mut self.replacement {
            let rest = &replacement.bytes[replacement.written..];
            if rest.is_empty() {
                let given = replacement.given;
                self.replacement = None;
                return Poll::Ready(Ok(given));
            }
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(written) => replacement.written += written,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(0))
    }

    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let lingering = self.lingering.get_or_insert_with(|| Lingering {
            until: Box::pin(tokio::time::sleep_until(Instant::now() + LINGER_TIME)),
            bytes_left: LINGER_BYTES,
        });
        let mut discarded = [0; 16 * 1024];
        while lingering.bytes_left > 0 && lingering.until.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut discarded);
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    lingering.bytes_left = lingering.bytes_left.saturating_sub(buffer.filled().len());
                }
                // The client has closed its side or disconnected.
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = match self.replaces(bytes) {
            true => self.poll_replace(context),
            false => Pin::new(&mut self.stream).poll_write(context, bytes),
        };
        self.hurry(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut filled = pieces.iter().filter(|it| !it.is_empty());
        let only = filled.next().filter(|_| filled.next().is_none());
        let written = match only {
            Some(only) if self.replaces(only) => self.poll_replace(context),
            _ => Pin::new(&mut self.stream).poll_write_vectored(context, pieces),
        };
        self.hurry(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        if !self.stopping.is_cancelled() {
            ready!(self.poll_linger(context));
        }
        Poll::Ready(Ok(()))
    }
}
