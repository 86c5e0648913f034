//! A provider that tests write as a router: it listens on a loopback address until it is dropped.

#![allow(clippy::unwrap_used, reason = "a test whose provider can't start fails")]

use std::{io, net::SocketAddr};

use axum::{Router, body::Body};
use tokio::{net::TcpListener, task::JoinHandle};

/// A running server.
pub struct LoopbackServer {
    /// The address of the server.
    pub address: SocketAddr,
    serving: JoinHandle<()>,
}

impl LoopbackServer {
    /// Starts a server on a free port.
    #[expect(clippy::disallowed_methods, reason = "the server runs beside the test")]
    pub async fn start(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, serving }
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for LoopbackServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Returns a response body that never ends.
pub fn endless_body() -> Body {
    let pieces = futures::stream::repeat_with(|| Ok::<_, io::Error>(vec![b' '; 64 * 1024]));
    Body::from_stream(pieces)
}
