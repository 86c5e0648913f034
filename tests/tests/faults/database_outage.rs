//! A PostgreSQL that stops answering and comes back.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection};
use tests::{
    Caller, On, Reply,
    hang::{must_end, wait_until},
    postgres::Database,
    sse::EventStream,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use url::Url;

use super::{
    attacker_connections,
    installation::{Installation, full_size},
};

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

/// Returns the status, and the latency for the printed report. A request must end although the database is
/// unreachable.
async fn timed(request: impl Future<Output = Reply>) -> (u16, Duration) {
    let began = Instant::now();
    let reply = must_end("a request gets a response", request).await;
    (reply.status, began.elapsed())
}

async fn ingest(caller: &Caller) -> (u16, Duration) {
    timed(caller.post("/v1/ingest", &json!({"name": "x"}))).await
}

/// Waits until ten requests of each kind succeed in a row. Returns the duration for the printed report.
async fn wait_for_recovery(caller: &Caller) -> Duration {
    let (began, mut successes) = (Instant::now(), 0);
    wait_until("the server recovers", async || {
        let all = tokio::join!(ingest(caller), timed(caller.get("/v1/traces")), timed(caller.get("/readyz")));
        successes = if (all.0.0, all.1.0, all.2.0) == (201, 200, 200) { successes + 1 } else { 0 };
        successes == 10
    })
    .await;
    began.elapsed()
}

/// A server whose connections to PostgreSQL pass a proxy.
struct ProxiedServer {
    proxy: Proxy,
    installation: Installation,
    database: Database,
}

impl ProxiedServer {
    async fn start() -> Self {
        let database = Database::create().await.unwrap();
        let url = Url::parse(&database.url()).unwrap();
        let proxy = Proxy::start(format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5432))).await;
        let mut proxied = url.clone();
        proxied.set_host(Some("127.0.0.1")).unwrap();
        proxied.set_port(Some(proxy.address.port())).unwrap();
        let installation =
            Installation::with(On::Postgres, &[("LOUPE_DATABASE_URL", proxied.as_str())]).await;
        Self { proxy, installation, database }
    }

    /// Locks tables past the proxy, so that statements of the server wait until the connection is closed.
    async fn lock(&self, tables: &str) -> PgConnection {
        let mut connection = PgConnection::connect(&self.database.url()).await.unwrap();
        connection.execute("BEGIN").await.unwrap();
        connection.execute(sqlx::AssertSqlSafe(format!("LOCK TABLE {tables}"))).await.unwrap();
        connection
    }

    /// Waits until statements of the server wait for locks.
    async fn wait_for_blocked_statement(&self, statement: &str) {
        let mut connection = PgConnection::connect(&self.database.url()).await.unwrap();
        wait_until(&format!("a statement like {statement} is blocked"), async || {
            let blocked: i64 = sqlx::query_scalar(
                "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
                 AND wait_event_type = 'Lock' AND query LIKE $1",
            )
            .bind(format!("%{statement}%"))
            .fetch_one(&mut connection)
            .await
            .unwrap();
            blocked > 0
        })
        .await;
    }

    /// Loses all open connections until the server has noticed it, and then lets it reconnect.
    async fn lose_connections(&self) {
        self.proxy.link.send_replace(Link::Stalled);
        self.proxy.lose_open_connections();
        let caller = self.installation.bystander();
        wait_until("the loss is detected", async || timed(caller.get("/readyz")).await.0 == 503).await;
        self.proxy.link.send_replace(Link::Up);
    }
}

async fn check_outage_and_recovery(fault: Link, lose: bool) {
    let ProxiedServer { proxy, installation, database } = ProxiedServer::start().await;
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
    println!("{fault:?}, lost {lose}: first responses {first:?}");
    for (status, took) in [first.0, first.1, first.2, first.3, first.5] {
        assert_eq!(status, 503, "after {took:?}");
    }
    // From now on the failure is known.
    for _ in 0..if full_size() { 100 } else { 10 } {
        let reply = caller.get("/v1/traces").await;
        reply.is(503, "overloaded");
        assert!(reply.headers.contains_key("retry-after"));
        let ((stored, _), (ready, _)) = tokio::join!(ingest(&caller), timed(caller.get("/readyz")));
        assert_eq!((stored, ready), (503, 503));
        assert_eq!(caller.get("/healthz").await.status, 200);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    proxy.link.send_replace(Link::Up);
    let took = wait_for_recovery(&caller).await;
    println!("{fault:?}, lost {lose}: recovered {took:?} after the link was up");
    drop((installation, database));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusing_postgres_gives_503_and_recovers() {
    check_outage_and_recovery(Link::Refused, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_postgres_gives_503_and_recovers() {
    check_outage_and_recovery(Link::Stalled, false).await;
}

/// Simulates a firewall that drops connections, or a failover of the address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_connections_give_503_and_are_replaced() {
    check_outage_and_recovery(Link::Stalled, true).await;
}

/// Sends the same request until its idempotency key is free and the database is reachable. Returns the response.
async fn repeat_until_decided(caller: &Caller, key: &str) -> Reply {
    must_end("the request is decided", async {
        loop {
            let reply = create_project(caller, key).await;
            if !matches!(reply.status, 409 | 503) {
                return reply;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await
}

async fn create_project(caller: &Caller, key: &str) -> Reply {
    let request = caller.request(reqwest::Method::POST, "/v1/projects");
    caller.send(request.header("idempotency-key", key).json(&json!({"name": "only once"}))).await
}

async fn count_created_projects(caller: &Caller) -> usize {
    let list = caller.get("/v1/projects?limit=100").await.ok();
    let named = |it: &&Value| it["name"] == "only once";
    list["projects"].as_array().unwrap().iter().filter(named).count()
}

/// The request has claimed its key and waits for the database when the connections are lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idempotency_key_is_released_after_lost_connections() {
    let proxied = ProxiedServer::start().await;
    let caller = proxied.installation.bystander();
    // Connections that have prepared the statement send it completely: PostgreSQL executes it after the loss, in a
    // transaction that is never ended.
    let prepare = async |n: usize| caller.post("/v1/projects", &json!({"name": format!("before {n}")})).await;
    futures::future::join_all((0..16).map(prepare)).await;
    let lock = proxied.lock("project IN EXCLUSIVE MODE").await;
    let client = caller.clone();
    let first = tokio::spawn(async move { timed(create_project(&client, "lost")).await });
    proxied.wait_for_blocked_statement("INSERT INTO \"project\"").await;
    proxied.lose_connections().await;
    assert_eq!(first.await.unwrap().0, 503);
    lock.close().await.unwrap();
    let reply = repeat_until_decided(&caller, "lost").await;
    assert_eq!(reply.status, 201, "{}", reply.text());
}

/// The request has succeeded and its response is about to be stored when the connections are closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn response_for_idempotency_key_is_stored_after_closed_connections() {
    let proxied = ProxiedServer::start().await;
    let caller = proxied.installation.bystander();
    let project = proxied.lock("project IN EXCLUSIVE MODE").await;
    let client = caller.clone();
    let first = tokio::spawn(async move { create_project(&client, "stored").await });
    proxied.wait_for_blocked_statement("INSERT INTO \"project\"").await;
    let keys = proxied.lock("idempotency IN EXCLUSIVE MODE").await;
    project.close().await.unwrap();
    proxied.wait_for_blocked_statement("UPDATE \"idempotency\"").await;
    let mut administrator = PgConnection::connect(&proxied.database.url()).await.unwrap();
    let terminated = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity \
                      WHERE datname = current_database() AND application_name = 'loupe-server'";
    administrator.execute(terminated).await.unwrap();
    let first = first.await.unwrap();
    keys.close().await.unwrap();
    let reply = repeat_until_decided(&caller, "stored").await;
    assert_eq!((reply.status, count_created_projects(&caller).await), (201, 1), "{}", reply.text());
    assert!(reply.headers.contains_key("idempotency-replayed"));
    if first.status == 201 {
        assert_eq!(reply.json()["id"], first.json()["id"]);
    }
}

/// The connections are lost while a stream reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_continues_after_lost_connections() {
    let proxied = ProxiedServer::start().await;
    let caller = proxied.installation.bystander();
    let mut stream = EventStream::open(&caller, "/v1/traces/stream", None).await;
    assert_eq!(ingest(&caller).await.0, 201);
    assert_eq!(stream.next().await.unwrap().name, "trace");
    let lock = proxied.lock("trace IN ACCESS EXCLUSIVE MODE").await;
    proxied.wait_for_blocked_statement("t.updated_at >=").await;
    proxied.lose_connections().await;
    lock.close().await.unwrap();
    wait_for_recovery(&caller).await;
    let stored = caller.post("/v1/ingest", &json!({"name": "after the loss"})).await.ok();
    loop {
        let event = stream.next().await.expect("the stream ended");
        if event.data["id"] == stored["id"] {
            break;
        }
    }
}

/// The connections are lost while an export reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn export_is_aborted_after_lost_connections() {
    let proxied = ProxiedServer::start().await;
    let attacker = proxied.installation.attacker();
    // The texts of one page exceed what the buffers between the server and the client hold.
    for n in 0..60 {
        let text: String = std::iter::repeat_with(fastrand::alphanumeric).take(200_000).collect();
        attacker.post("/v1/ingest", &json!({"id": format!("t{n}"), "input": text})).await.ok();
    }
    let path = "/v1/traces/export";
    let mut sockets =
        attacker_connections::ask_without_reading(&proxied.installation, path, 1, Duration::from_secs(2))
            .await;
    let mut socket = sockets.pop().unwrap();
    let lock = proxied.lock("trace, span, event IN ACCESS EXCLUSIVE MODE").await;
    let reading = tokio::spawn(async move {
        let mut body = Vec::new();
        // The server closes the connection before the end of the body.
        _ = socket.read_to_end(&mut body).await;
        body
    });
    proxied.wait_for_blocked_statement("SELECT").await;
    proxied.lose_connections().await;
    let body = must_end("the export ends", reading).await.unwrap();
    lock.close().await.unwrap();
    assert!(body.starts_with(b"HTTP/1.1 200 OK") && !body.ends_with(b"0\r\n\r\n"), "{} bytes", body.len());
}
