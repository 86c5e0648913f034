//! Opens a TCP connection to one of several addresses.

use std::{io, net::SocketAddr, time::Duration};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::{net::TcpStream, time::timeout};

use crate::error::{SendError, of_connect};

/// Maximum time to connect to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// Time after which the next address is tried beside those that do not answer (RFC 8305): a machine
/// without a route to IPv6 must not wait for it.
const HEAD_START: Duration = Duration::from_millis(250);

/// Maximum number of addresses of a name that are tried, so that a name with thousands of addresses
/// does not cause as many connections.
const MAX_DIALED_ADDRESSES: usize = 8;

/// Connects to the first address that accepts the connection.
///
/// # Errors
///
/// Fails with the reason of the last attempt when none does.
pub async fn dial(addresses: &[SocketAddr]) -> Result<TcpStream, SendError> {
    let mut attempts = FuturesUnordered::new();
    let mut failure = SendError::NameNotResolved;
    for address in addresses.iter().take(MAX_DIALED_ADDRESSES) {
        attempts.push(attempt(*address));
        match timeout(HEAD_START, attempts.next()).await {
            Ok(Some(Ok(socket))) => return Ok(socket),
            Ok(Some(Err(error))) => failure = of_connect(&error),
            Ok(None) | Err(_) => {}
        }
    }
    while let Some(outcome) = attempts.next().await {
        match outcome {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = of_connect(&error),
        }
    }
    Err(failure)
}

async fn attempt(address: SocketAddr) -> io::Result<TcpStream> {
    let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
    let socket = connected.map_err(|_| io::Error::other("no answer"))??;
    _ = socket.set_nodelay(true);
    Ok(socket)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn next_address_is_dialed_after_a_refused_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let closed: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let socket = dial(&[closed, closed, open]).await.unwrap();
        assert_eq!(socket.peer_addr().unwrap(), open);
        assert!(matches!(dial(&[closed]).await, Err(SendError::ConnectionRefused(_))));
        let many = [[closed; MAX_DIALED_ADDRESSES].as_slice(), &[open]].concat();
        assert!(matches!(dial(&many).await, Err(SendError::ConnectionRefused(_))));
    }
}
