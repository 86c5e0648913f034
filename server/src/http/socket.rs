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

use super::request_head;

/// Maximum time for which incoming bytes are discarded after the write side is closed.
const LINGER_TIME: Duration = Duration::from_secs(2);
/// Maximum number of bytes discarded then.
const LINGER_BYTES: usize = 64 * 1024 * 1024;

/// The socket of a client.
#[derive(Debug)]
pub struct ClientSocket {
    stream: TcpStream,
    /// Maximum time that a write may wait for the client to read.
    write_timeout: Duration,
    /// The end of that time, while a write waits.
    stall_timer: Option<Pin<Box<Sleep>>>,
    /// Set on shutdown, when closing does not linger.
    stopping: CancellationToken,
    lingering: Option<LingeringClose>,
    /// A response with a body that replaces one without.
    replacement: Option<ReplacementResponse>,
}

#[derive(Debug)]
struct ReplacementResponse {
    bytes: Vec<u8>,
    written: usize,
    /// Number of bytes of the original response, which this one replaces.
    replaced_bytes: usize,
}

#[derive(Debug)]
struct LingeringClose {
    until: Pin<Box<Sleep>>,
    bytes_left: usize,
}

impl ClientSocket {
    /// Wraps an accepted connection; `stopping` is cancelled on shutdown.
    pub fn new(stream: TcpStream, write_timeout: Duration, stopping: CancellationToken) -> Self {
        Self { stream, write_timeout, stall_timer: None, stopping, lingering: None, replacement: None }
    }

    /// Returns the result of a write, or a timeout error if it has waited for too long.
    fn with_write_timeout<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stall_timer = None;
            return written;
        }
        let write_timeout = self.write_timeout;
        let stall_timer = self.stall_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(write_timeout)));
        ready!(stall_timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }

    /// Begins to replace `bytes` if they are a response of the HTTP library without a body.
    fn begin_replacement(&mut self, bytes: &[u8]) -> bool {
        if self.replacement.is_none()
            && let Some(replacement) = request_head::replace_bare_response(bytes)
        {
            self.replacement =
                Some(ReplacementResponse { bytes: replacement, written: 0, replaced_bytes: bytes.len() });
        }
        self.replacement.is_some()
    }

    fn poll_replace(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        while let Some(replacement) = &mut self.replacement {
            let rest = &replacement.bytes[replacement.written..];
            if rest.is_empty() {
                let replaced_bytes = replacement.replaced_bytes;
                self.replacement = None;
                return Poll::Ready(Ok(replaced_bytes));
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
        let lingering = self.lingering.get_or_insert_with(|| LingeringClose {
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

impl AsyncRead for ClientSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = match self.begin_replacement(bytes) {
            true => self.poll_replace(context),
            false => Pin::new(&mut self.stream).poll_write(context, bytes),
        };
        self.with_write_timeout(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut filled = pieces.iter().filter(|it| !it.is_empty());
        let only = filled.next().filter(|_| filled.next().is_none());
        let written = match only {
            Some(only) if self.begin_replacement(only) => self.poll_replace(context),
            _ => Pin::new(&mut self.stream).poll_write_vectored(context, pieces),
        };
        self.with_write_timeout(written, context)
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
