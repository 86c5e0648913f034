//! Reasons why there is no response.

use std::{error::Error, fmt, io};

/// Why a request has no response. The messages are suitable for the tenant who set the address; they
/// contain no URL, because a URL may contain a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The guard rejected the address; never with [`AddressRejection::Unresolvable`].
    #[error("{0}")]
    AddressRejected(AddressRejection),
    /// The name cannot be resolved at the moment.
    #[error("the host name does not resolve in DNS")]
    NameNotResolved,
    /// The machine exists, and no program listens on the port.
    #[error("connection failed: {0}")]
    ConnectionRefused(String),
    /// No address could be reached, for a reason other than a refused connection.
    #[error("connection failed: {0}")]
    ConnectionFailed(String),
    /// The certificate has another name, is expired, or its authority is not trusted.
    #[error("TLS failed: {0}")]
    InvalidCertificate(String),
    /// TLS failed for another reason; for example, the peer does not support it.
    #[error("TLS failed: {0}")]
    TlsFailed(String),
    /// The peer closed or reset the connection before the response was complete.
    #[error("incomplete response: {0}")]
    ConnectionClosed(String),
    /// The response is not HTTP, or its head is too large.
    #[error("invalid response: {0}")]
    InvalidResponse(String),
    /// The timeout of the request was exceeded.
    #[error("no complete response in time ({0})")]
    TimedOut(Stage),
    /// The body has more bytes than the request allows: see [`OutboundResponse::complete`].
    ///
    /// [`OutboundResponse::complete`]: crate::OutboundResponse::complete
    #[error("its response is larger than {0} bytes")]
    ResponseTooLarge(usize),
}

impl SendError {
    /// Returns whether an immediate retry may succeed: the connection failed, and another machine of the receiver may
    /// accept the next one.
    pub fn may_succeed_at_once(&self) -> bool {
        matches!(
            self,
            Self::ConnectionRefused(_)
                | Self::ConnectionFailed(_)
                | Self::ConnectionClosed(_)
                | Self::InvalidResponse(_)
        )
    }
}

/// The step of a request that was in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The name was being resolved.
    Resolve,
    /// No address had accepted the connection.
    Connect,
    /// TLS was being negotiated.
    Tls,
    /// The request was being sent, or the head of the response was awaited.
    Head,
    /// The head of the response had arrived, and its body had not ended.
    Body,
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Resolve => "resolving the host name",
            Self::Connect => "connecting",
            Self::Tls => "negotiating TLS",
            Self::Head => "waiting for the response",
            Self::Body => "reading the response",
        })
    }
}

/// The reason why an address that a tenant set is rejected. Each variant names the error code of the webhook
/// endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressRejection {
    /// A scheme other than https, or a text that is not unambiguously one URL: `webhook.url.not_https`.
    #[error(
        "the address must be a complete https:// URL with a plain host name or IP address, without user name and password"
    )]
    NotHttps,
    /// An address that is not public and not on the allow list, or this server's own:
    /// `webhook.url.private_ip`.
    #[error(
        "the address is not public, or its name resolves to one that is not; the operator of this server can allow addresses other than the server's own with LOUPE_EGRESS_ALLOW_CIDRS"
    )]
    Private,
    /// The name has no address, or could not be resolved in time: `webhook.url.unresolvable`.
    #[error("the host name does not resolve in DNS")]
    Unresolvable,
}

impl From<AddressRejection> for SendError {
    /// An unresolvable name is an error when it is stored, but temporary when it is used.
    fn from(rejection: AddressRejection) -> Self {
        match rejection {
            AddressRejection::Unresolvable => Self::NameNotResolved,
            other => Self::AddressRejected(other),
        }
    }
}

/// Returns why no address accepted a connection.
pub fn of_connect(error: &io::Error) -> SendError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => SendError::ConnectionRefused(error.to_string()),
        _ => SendError::ConnectionFailed(error.to_string()),
    }
}

/// Returns why TLS failed.
pub fn of_tls(error: &io::Error) -> SendError {
    let why = root_cause(error);
    // An I/O error is not in its own chain of sources.
    match error.get_ref().and_then(|it| it.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(_)) => SendError::InvalidCertificate(why),
        _ => SendError::TlsFailed(why),
    }
}

/// Returns why HTTP failed on a connection.
pub fn of_http(error: &hyper::Error) -> SendError {
    let was_closed = |it: &io::Error| {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
        matches!(it.kind(), ConnectionReset | ConnectionAborted | BrokenPipe | NotConnected | UnexpectedEof)
    };
    let is_closed = error.is_incomplete_message()
        || error.is_closed()
        || error.is_canceled()
        || find::<io::Error>(error).is_some_and(was_closed);
    let why = root_cause(error);
    if is_closed { SendError::ConnectionClosed(why) } else { SendError::InvalidResponse(why) }
}

/// Returns the message of the innermost error; the outer ones only describe the layers.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map_or_else(String::new, ToString::to_string)
}

fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    chain(error).find_map(|it| it.downcast_ref())
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&it| it.source())
}
