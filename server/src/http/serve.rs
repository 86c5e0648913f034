//! The accept loop: deadlines, no delayed segments, graceful stop.

use std::{sync::Arc, time::Duration};

use axum::http::Request;
use hyper::{
    body::Incoming,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::net::TcpListener;

use crate::app::App;

/// How long requests in flight may take once the server is told to stop.
const GRACE: Duration = Duration::from_secs(8);

/// Serves until `stop` resolves, then finishes what is in flight.
pub async fn serve(app: &Arc<App>, listener: TcpListener, stop: impl Future<Output = ()>) {
    match listener.local_addr() {
        Ok(address) => app.egress.listens_on(address),
        Err(error) => tracing::warn!(%error, "the address of the listener is not known"),
    }
    let router = super::router(app);
    let mut server = hyper::server::conn::http1::Builder::new();
    // Without a timer hyper waits for ever for the rest of a request's head.
    server.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(app.config.header_timeout));
    let graceful = GracefulShutdown::new();
    tokio::pin!(stop);
    loop {
        let (socket, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, or cut off before it was accepted: others may still come.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        // Head and body leave in one segment or two; neither waits for the caller's delayed acknowledgement.
        _ = socket.set_nodelay(true);
        let (inner, caller) = (TowerToHyperService::new(router.clone()), Arc::clone(app));
        let service = service_fn(move |mut request: Request<Incoming>| {
            let address = caller.config.trusted_proxies.caller(peer.ip(), request.headers());
            request.extensions_mut().insert(address);
            inner.call(request)
        });
        let connection = graceful.watch(server.serve_connection(TokioIo::new(socket), service));
        app.spawn(async move {
            // A caller that goes away in the middle is no event.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
    drop(listener);
    // Streams end by themselves once the app stops; they must not hold the others up.
    let stopping = app.stopping();
    tokio::select! {
        () = graceful.shutdown() => {}
        () = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            stopping.cancel();
            tokio::time::sleep(GRACE).await;
        } => tracing::warn!("some requests did not end in time"),
    }
}
