//! Servers of the demo: sockets of the loopback address, answered in this process until the app stops.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use anyhow::Context;
use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    rt::{Read, Write},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::app::App;

/// A socket on a free port, which is open before the first request.
#[derive(Debug)]
pub(super) struct LoopbackSocket {
    listener: std::net::TcpListener,
    /// The address with the port.
    pub(super) address: SocketAddr,
}

impl LoopbackSocket {
    /// Opens a socket on a free port.
    pub(super) fn open() -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").context("can't listen on 127.0.0.1")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Answers requests with `respond` until the app stops, over TLS if there is an acceptor.
    pub(super) fn serve<F, R>(
        &self,
        app: &Arc<App>,
        tls: Option<TlsAcceptor>,
        respond: F,
    ) -> anyhow::Result<()>
    where
        F: Fn(Request<Incoming>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Response<Full<Bytes>>> + Send,
    {
        let listener = TcpListener::from_std(self.listener.try_clone()?)?;
        let (server, stopping) = (Arc::clone(app), app.stopping());
        app.spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = stopping.cancelled() => return,
                };
                let Ok((stream, _)) = accepted else { continue };
                let (stopping, tls, respond) = (stopping.clone(), tls.clone(), respond.clone());
                server.spawn(async move {
                    tokio::select! {
                        () = serve_stream(stream, tls, respond) => {}
                        () = stopping.cancelled() => {}
                    }
                });
            }
        });
        Ok(())
    }
}

/// Answers the requests of a connection. Errors end it: the client is this server, which opens another one.
async fn serve_stream<F, R>(stream: TcpStream, tls: Option<TlsAcceptor>, respond: F)
where
    F: Fn(Request<Incoming>) -> R + Send + Sync,
    R: Future<Output = Response<Full<Bytes>>> + Send,
{
    match tls {
        None => serve_connection(TokioIo::new(stream), respond).await,
        Some(acceptor) => {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve_connection(TokioIo::new(stream), respond).await;
            }
        }
    }
}

async fn serve_connection<F, R>(stream: impl Read + Write + Unpin, respond: F)
where
    F: Fn(Request<Incoming>) -> R,
    R: Future<Output = Response<Full<Bytes>>>,
{
    let service = service_fn(|request| {
        let response = respond(request);
        async move { Ok::<_, Infallible>(response.await) }
    });
    _ = http1::Builder::new().serve_connection(stream, service).await;
}
