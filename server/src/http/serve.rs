//! The accept loops of HTTP and of OTLP over gRPC: deadlines, connection limit, TCP_NODELAY, graceful shutdown.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, http::Request};
use futures::FutureExt;
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::sync::CancellationToken;

use super::{
    draining_body::DrainingBody,
    grpc,
    request_head::MAX_HEAD_BYTES,
    route::Route,
    socket::ClientSocket,
    unauthenticated_connections::{
        ConnectionSlot, MAX_UNAUTHENTICATED_CONNECTIONS, UnauthenticatedConnections,
    },
};
use crate::{app::App, telemetry::process::max_open_files};

/// Maximum time for requests in progress after the stop signal.
const GRACE_PERIOD: Duration = Duration::from_secs(5);
/// Time after which streams are ended on shutdown; they never end by themselves.
const STREAM_GRACE_PERIOD: Duration = Duration::from_millis(500);

/// Maximum number of connections to the separate address of the metrics.
const MAX_METRICS_CONNECTIONS: usize = 32;
/// Maximum number of rejected connections that get a response at the same time.
const MAX_REJECTED_CONNECTIONS: usize = 64;
/// Maximum time that a rejected connection may take to send its request.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(2);
/// The limit of all connections divided by this number is the limit of connections over gRPC.
const GRPC_CONNECTIONS_DIVISOR: usize = 4;
/// Maximum number of calls of a gRPC connection that run at the same time; the client delays further ones.
const MAX_CALLS_PER_CONNECTION: u32 = 8;
/// Size in bytes of a connection's buffer.
const CONNECTION_BUFFER_BYTES: usize = 64 * 1024;
/// Time after which a quiet gRPC connection is probed.
const PING_INTERVAL: Duration = Duration::from_secs(60);
/// Time in which a client must respond to a probe.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Number of files reserved for the database, the log and the rest of the process.
const RESERVED_FILES: usize = 256;

/// Length of the system's accept queue; the system may allow fewer. If a burst exceeds it, some clients
/// wait for a second and others are reset.
const ACCEPT_QUEUE_LENGTH: u32 = 4_096;

/// Binds an address with a long accept queue.
///
/// # Errors
///
/// Fails when the address is in use or does not belong to this machine.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A restart need not wait for connections of the previous process in TIME_WAIT.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(ACCEPT_QUEUE_LENGTH)
}

/// The addresses that a process serves.
pub struct Listeners {
    /// The API.
    pub http: TcpListener,
    /// OTLP over gRPC, if it is served.
    pub otlp_grpc: Option<TcpListener>,
}

/// Serves until `stop` resolves, then finishes requests in progress.
pub async fn serve(
    app: &Arc<App>,
    routes: &'static [Route],
    listeners: Listeners,
    stop: impl Future<Output = ()>,
) {
    let stop = stop.shared();
    let router = super::router(app, routes);
    let max_connections = connection_limit(app);
    // Clients keep idle connections of gRPC open. A limit of their own leaves the other connections to HTTP.
    let max_grpc_connections = match &listeners.otlp_grpc {
        Some(_) => (max_connections / GRPC_CONNECTIONS_DIVISOR).max(1),
        None => 0,
    };
    let otlp_grpc = async {
        let Some(listener) = listeners.otlp_grpc else { return };
        let permits = Semaphore::new(max_grpc_connections);
        accept_connections(app, listener, Protocol::otlp_grpc(), router.clone(), permits, stop.clone()).await;
    };
    let permits = Semaphore::new(max_connections.saturating_sub(max_grpc_connections).max(1));
    let http =
        accept_connections(app, listeners.http, Protocol::http(app), router.clone(), permits, stop.clone());
    tokio::join!(http, otlp_grpc);
}

/// Serves only the metrics, until the app stops.
pub async fn serve_metrics(app: Arc<App>, routes: &'static [Route], listener: TcpListener) {
    let stop = app.stopping().cancelled_owned();
    let (protocol, router) = (Protocol::http(&app), super::metrics_router(&app, routes));
    let permits = Semaphore::new(MAX_METRICS_CONNECTIONS);
    accept_connections(&app, listener, protocol, router, permits, stop).await;
}

/// The protocol of a listener's connections.
#[derive(Clone)]
enum Protocol {
    /// HTTP/1.1.
    Http(http1::Builder),
    /// OTLP over gRPC, which is HTTP/2 without TLS.
    OtlpGrpc(http2::Builder<TokioExecutor>),
}

impl Protocol {
    fn http(app: &App) -> Self {
        let mut server = http1::Builder::new();
        // Bounds the unread response bytes that a connection buffers uncounted.
        server.max_buf_size(CONNECTION_BUFFER_BYTES);
        // Without a timer, hyper waits forever for the rest of a request's head.
        server.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(app.config.header_timeout));
        server.max_header_size(MAX_HEAD_BYTES);
        Self::Http(server)
    }

    fn otlp_grpc() -> Self {
        let mut server = http2::Builder::new(TokioExecutor::new());
        server.max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX));
        server.max_concurrent_streams(MAX_CALLS_PER_CONNECTION);
        // Bounds the unread request bytes that a connection buffers uncounted, over all its calls.
        let window = u32::try_from(CONNECTION_BUFFER_BYTES).unwrap_or(u32::MAX);
        server.initial_connection_window_size(window).initial_stream_window_size(window);
        server.max_send_buf_size(CONNECTION_BUFFER_BYTES);
        // Ends connections whose client has disappeared.
        server.timer(TokioTimer::new()).keep_alive_interval(PING_INTERVAL).keep_alive_timeout(PING_TIMEOUT);
        Self::OtlpGrpc(server)
    }

    /// Returns the protocol for connections that get one response.
    fn rejecting(&self) -> Self {
        let mut rejecting = self.clone();
        if let Self::Http(server) = &mut rejecting {
            server.keep_alive(false).header_read_timeout(REJECTION_TIMEOUT);
        }
        rejecting
    }

    /// Maximum number of connections without a valid token.
    fn max_unauthenticated_connections(&self) -> usize {
        match self {
            Self::Http(_) => MAX_UNAUTHENTICATED_CONNECTIONS,
            // Each may send the heads of several calls at once.
            Self::OtlpGrpc(_) => MAX_UNAUTHENTICATED_CONNECTIONS / 4,
        }
    }
}

async fn accept_connections(
    app: &Arc<App>,
    listener: TcpListener,
    protocol: Protocol,
    router: Router,
    connection_permits: Semaphore,
    stop: impl Future<Output = ()>,
) {
    match listener.local_addr() {
        Ok(address) => app.outbound.listens_on(address),
        Err(error) => tracing::warn!(%error, "the address of the listener is not known"),
    }
    let connection_permits = Arc::new(connection_permits);
    let rejecting_protocol = protocol.rejecting();
    let overload_router = super::overload_router(app);
    let rejection_permits = Arc::new(Semaphore::new(MAX_REJECTED_CONNECTIONS));
    let unauthenticated = UnauthenticatedConnections::new(protocol.max_unauthenticated_connections());
    let connections = OpenConnections {
        app: Arc::clone(app),
        graceful: GracefulShutdown::new(),
        no_more_requests: CancellationToken::new(),
        grace_period_over: CancellationToken::new(),
    };
    tokio::pin!(stop);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, or the client disconnected before it was accepted; later
                    // accepts may succeed.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        if let Ok(permit) = Arc::clone(&connection_permits).try_acquire_owned() {
            let slot = tokio::select! {
                slot = unauthenticated.admit(peer.ip()) => slot,
                () = &mut stop => break,
            };
            connections.serve_connection(&protocol, router.clone(), (stream, peer), permit, Some(slot));
            continue;
        }
        app.telemetry.http.rejected_connections.inc();
        // Beyond this number, connections are closed without a response.
        if let Ok(permit) = Arc::clone(&rejection_permits).try_acquire_owned() {
            connections.serve_connection(
                &rejecting_protocol,
                overload_router.clone(),
                (stream, peer),
                permit,
                None,
            );
        }
    }
    drop(listener);
    connections.finish().await;
}

/// The connections of a listener.
struct OpenConnections {
    app: Arc<App>,
    graceful: GracefulShutdown,
    /// No more requests are accepted.
    no_more_requests: CancellationToken,
    /// The grace period is over.
    grace_period_over: CancellationToken,
}

impl OpenConnections {
    /// Serves a connection in the background. One without a slot is rejected.
    fn serve_connection(
        &self,
        protocol: &Protocol,
        router: Router,
        (stream, peer): (TcpStream, SocketAddr),
        permit: OwnedSemaphorePermit,
        slot: Option<ConnectionSlot>,
    ) {
        // Head and body are sent in one segment or two; neither waits for the client's delayed
        // acknowledgement.
        _ = stream.set_nodelay(true);
        let write_timeout = Duration::from_secs(self.app.config.write_timeout);
        let socket = TokioIo::new(ClientSocket::new(stream, write_timeout, self.no_more_requests.clone()));
        let (app, request_slot) = (Arc::clone(&self.app), slot.clone());
        let with_extensions = move |mut request: Request<Incoming>| {
            let address = app.config.trusted_proxies.client_address(peer.ip(), request.headers());
            request.extensions_mut().insert(address);
            if let Some(request_slot) = &request_slot {
                request.extensions_mut().insert(request_slot.clone());
            }
            request
        };
        let app = Arc::clone(&self.app);
        match protocol {
            Protocol::Http(server) => {
                let inner = TowerToHyperService::new(router);
                let service = service_fn(move |it| inner.call(DrainingBody::wrap(&app, with_extensions(it))));
                let connection = self.graceful.watch(server.serve_connection(socket, service));
                self.run(connection, permit, slot);
            }
            Protocol::OtlpGrpc(server) => {
                let service = service_fn(move |it| {
                    let (app, router, call) = (Arc::clone(&app), router.clone(), with_extensions(it));
                    async move { Ok::<_, Infallible>(grpc::serve_call(&app, router, call).await) }
                });
                let connection = self.graceful.watch(server.serve_connection(socket, service));
                match slot {
                    Some(_) => self.run(connection, permit, slot),
                    // HTTP/2 does not end a connection after its first response.
                    None => self.run(
                        async { tokio::time::timeout(REJECTION_TIMEOUT, connection).await.unwrap_or(Ok(())) },
                        permit,
                        slot,
                    ),
                }
            }
        }
    }

    /// Runs a connection in the background until it ends or is ended.
    fn run(
        &self,
        connection: impl Future<Output = hyper::Result<()>> + Send + 'static,
        permit: OwnedSemaphorePermit,
        slot: Option<ConnectionSlot>,
    ) {
        let grace_period_over = self.grace_period_over.clone();
        let (open, rejected) = {
            let http = &self.app.telemetry.http;
            (http.connections.clone(), http.rejected_connections.clone())
        };
        let displaced = async move {
            match &slot {
                Some(slot) => slot.wait_until_displaced().await,
                None => std::future::pending().await,
            }
        };
        self.app.spawn(async move {
            open.inc();
            tokio::select! {
                ended = connection => if let Err(error) = ended {
                    // A client that disconnects early is not worth a warning.
                    tracing::debug!(%error, "a connection ended early");
                },
                () = grace_period_over.cancelled() => {}
                () = displaced => {
                    rejected.inc();
                }
            }
            open.dec();
            drop(permit);
        });
    }

    /// Lets requests in progress finish, within limits.
    async fn finish(self) {
        self.no_more_requests.cancel();
        let stopping = self.app.stopping();
        tokio::select! {
            () = self.graceful.shutdown() => {}
            () = async {
                tokio::time::sleep(STREAM_GRACE_PERIOD).await;
                stopping.cancel();
                tokio::time::sleep(GRACE_PERIOD).await;
            } => tracing::warn!("some requests did not end in time"),
        }
        self.grace_period_over.cancel();
    }
}

/// Returns the configured number of connections, or less if the system allows fewer files.
fn connection_limit(app: &App) -> usize {
    let wanted = app.config.max_connections.clamp(1, Semaphore::MAX_PERMITS);
    let Some(files) = max_open_files().and_then(|it| usize::try_from(it).ok()) else { return wanted };
    let possible = files.saturating_sub(RESERVED_FILES).max(files / 2).max(1);
    if possible < wanted {
        tracing::info!(
            possible,
            wanted,
            "the system allows this process {files} open files: at most {possible} connections are served"
        );
    }
    wanted.min(possible)
}
