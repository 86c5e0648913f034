//! A PostgreSQL that stops answering and comes back.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use serde_json::json;
use tests::{Caller, On, postgres::Database};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use url::Url;

use super::installation::{Installation, full_size};

/// Limits the time to the first 503, and afterwards to the first success.
const BAR: Duration = Duration::from_secs(5);

/// The state of the connections between the server and PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// Bytes pass.
    Up,
    /// Nothing passes, and connections stay open.
    Stalled,
    /// Open connections are closed, and new ones as soon as they are opened.
    Refused,
}

/// A proxy in front of PostgreSQL.
struct Proxy {
    address: SocketAddr,
    link: watch::Sender<Link>,
    /// A counter; each increase breaks the connections that are open then.
    lost: watch::Sender<u64>,
}

impl Proxy {
    async fn start(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (link, lost) = (watch::Sender::new(Link::Up), watch::Sender::new(0));
        let (links, losses) = (link.clone(), lost.clone());
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                if *links.borrow() == Link::Refused {
                    continue;
                }
                tokio::spawn(connect(client, server.clone(), links.subscribe(), losses.subscribe()));
            }
        });
        Self { address, link, lost }
    }

    /// Breaks all open connections: they never carry another byte.
    fn lose_open_connections(&self) {
        self.lost.send_modify(|it| *it += 1);
    }
}

async fn connect(client: TcpStream, server: String, link: watch::Receiver<Link>, lost: watch::Receiver<u64>) {
    let server = TcpStream::connect(server).await.unwrap();
    let (mut refused, losses) = (link.clone(), lost.clone());
    let (client, server) = (client.into_split(), server.into_split());
    tokio::select! {
        () = copy(client.0, server.1, link.clone(), losses.clone()) => {}
        () = copy(server.0, client.1, link, losses) => {}
        _ = refused.wait_for(|it| *it == Link::Refused) => {}
    }
}

/// Forwards bytes while the link is up.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut link: watch::Receiver<Link>,
    lost: watch::Receiver<u64>,
) {
    let losses = *lost.borrow();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(n @ 1..) = from.read(&mut buffer).await else { return };
        _ = link.wait_for(|it| *it != Link::Stalled).await;
        if *lost.borrow() != losses {
            std::future::pending::<()>().await;
        }
        if to.write_all(&buffer[..n]).await.is_err() {
            return;
        }
    }
}

/// Returns the status and the latency; none without a response within 10 s.
async fn timed(request: impl Future<Output = tests::Reply>) -> (u16, Duration) {
    let began = Instant::now();
    let reply = tokio::time::timeout(Duration::from_secs(10), request).await;
    (reply.map_or(0, |it| it.status), began.elapsed())
}

async fn ingest(caller: &Caller) -> (u16, Duration) {
    timed(caller.post("/v1/ingest", &json!({"name": "x"}))).await
}

/// Measures how long it takes until ten requests of each kind succeed in a row.
async fn healed(caller: &Caller) -> Duration {
    let began = Instant::now();
    let mut good = 0;
    while good < 10 {
        let all = tokio::join!(ingest(caller), timed(caller.get("/v1/traces")), timed(caller.get("/readyz")));
        good = if (all.0.0, all.1.0, all.2.0) == (201, 200, 200) { good + 1 } else { 0 };
        assert!(began.elapsed() < Duration::from_secs(60), "not healthy: {all:?}");
    }
    began.elapsed()
}

async fn is_refused_and_heals(fault: Link, lose: bool) {
    let database = Database::create().await.unwrap();
    let url = Url::parse(&database.url()).unwrap();
    let proxy = Proxy::start(format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5432))).await;
    let mut behind = url.clone();
    behind.set_host(Some("127.0.0.1")).unwrap();
    behind.set_port(Some(proxy.address.port())).unwrap();
    let installation = Installation::with(On::Postgres, &[("LOUPE_DATABASE_URL", behind.as_str())]).await;
    let caller = installation.bystander();
    for _ in 0..5 {
        assert_eq!((ingest(&caller).await.0, timed(caller.get("/v1/traces")).await.0), (201, 200));
    }
    proxy.link.send_replace(fault);
    if lose {
        proxy.lose_open_connections();
    }
    // Sent at once: their statements use a link whose failure is not known yet.
    let metrics = "/v1/metrics?metrics=trace_count";
    let first = tokio::join!(
        ingest(&caller),
        ingest(&caller),
        timed(caller.get("/v1/traces")),
        timed(caller.get("/v1/projects")),
        timed(caller.get(metrics)),
        timed(caller.get("/readyz")),
    );
    println!("{fault:?}, lost {lose}: first answers {first:?}");
    for (status, took) in [first.0, first.1, first.2, first.3, first.5] {
        assert!(status == 503 && took < BAR, "{status} after {took:?}");
    }
    // From now on the failure is known, and requests fail at once.
    let away = Duration::from_secs(if full_size() { 25 } else { 3 });
    let began = Instant::now();
    while began.elapsed() < away {
        let reply = caller.get("/v1/traces").await;
        reply.is(503, "overloaded");
        assert!(reply.headers.contains_key("retry-after"));
        let ((stored, took), (ready, _)) = tokio::join!(ingest(&caller), timed(caller.get("/readyz")));
        assert_eq!((stored, ready), (503, 503));
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert_eq!(caller.get("/healthz").await.status, 200);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    proxy.link.send_replace(Link::Up);
    let took = healed(&caller).await;
    println!("{fault:?}, lost {lose}: healthy {took:?} after it was back");
    assert!(took < BAR, "{took:?}");
    drop(installation);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusing_postgres_is_503_in_time_and_heals() {
    is_refused_and_heals(Link::Refused, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_postgres_is_503_in_time_and_heals() {
    is_refused_and_heals(Link::Stalled, false).await;
}

/// Simulates a firewall that drops connections, or a failover of the address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_connections_are_503_in_time_and_replaced() {
    is_refused_and_heals(Link::Stalled, true).await;
}
