//! The server is stopped during its work.

use std::time::{Duration, Instant};

use serde_json::json;
use tests::{
    On,
    hang::wait_until,
    process::ServerProcess,
    raw::{connect_to, read_text},
};
use tokio::io::AsyncWriteExt;

use super::{Home, history::History, load::Load};

/// Safety net against a stop that hangs.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signal_stops_server_without_losing_acknowledged_data_on_sqlite() {
    stops(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signal_stops_server_without_losing_acknowledged_data_on_postgres() {
    stops(On::Postgres).await;
}

async fn stops(database: On) {
    let home = Home::on(database).await;
    let (rounds, mut slowest, mut requests) = (stop_count(), Duration::ZERO, 0);
    let mut histories: Vec<History> = Vec::new();
    for round in 0..rounds {
        let mut server = home.setup.start();
        let key = home.caller(&server.url);
        // Each commit enqueues a job that is due five seconds later, so that jobs run when the signal
        // arrives.
        for n in 0..50 {
            key.post("/v1/ingest", &json!({"name": format!("{round}-{n}"), "spans": [{"name": "s"}]}))
                .await
                .ok();
        }
        tokio::time::sleep(Duration::from_millis(4_600)).await;
        let load = Load::start(&key, 200, u128::from(round) + 1);
        tokio::time::sleep(Duration::from_millis(600 + round * 137 % 400)).await;
        slowest = slowest.max(stop(&mut server));
        let history = load.history().await;
        requests += history.acknowledged();
        assert_eq!(home.jobs("running").await, 0, "running jobs were not released: {}", server.log());
        histories.push(history);
    }
    assert!(requests > 100, "{database:?}: only {requests}");
    let server = home.setup.start();
    let began = Instant::now();
    wait_until("the interrupted jobs are executed", async || home.unfinished_jobs().await == 0).await;
    let resumed = began.elapsed();
    for history in histories {
        history.check(&home.caller(&server.url)).await;
    }
    println!(
        "{database:?}: {rounds} stops, {requests} requests acknowledged, the slowest stop {slowest:?}, jobs done within {resumed:?}"
    );
}

/// Stops the server; panics unless it exits successfully. Returns the duration for the printed report.
fn stop(server: &mut ServerProcess) -> Duration {
    let began = Instant::now();
    server.terminate();
    let status = tokio::task::block_in_place(|| server.wait(STOP_TIMEOUT));
    assert!(status.success(), "{status} {}", server.log());
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_requests_do_not_delay_shutdown() {
    let home = Home::on(On::Sqlite).await;
    let mut server = home.setup.start();
    let mut open = endless(&home, &server).await;
    let took = stop(&mut server);
    println!("stopped within {took:?} with a stream, half a head and half a body open");
    // The stream ended regularly; the connection was not reset.
    let rest = read_text(&mut open[0], Duration::from_secs(1)).await;
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_signal_stops_server_immediately() {
    let home = Home::on(On::Sqlite).await;
    // The second signal arrives before the streams get the signal to end, or long after.
    for pause in [0, 50, 1_500] {
        let mut server = home.setup.start();
        let _open = endless(&home, &server).await;
        server.terminate();
        // The system merges two signals that are pending at the same time.
        while !server.log().contains("stopping") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(pause)).await;
        server.terminate();
        let status = tokio::task::block_in_place(|| server.wait(STOP_TIMEOUT));
        // A graceful stop, which waits for the open requests, exits with 0.
        assert_eq!(status.code(), Some(1), "{pause}: {}", server.log());
    }
}

/// Opens connections that wait within a stream, a head and a body.
async fn endless(home: &Home, server: &ServerProcess) -> Vec<tokio::net::TcpStream> {
    let key = &home.key;
    let mut open = Vec::new();
    for (said, answered) in [
        (
            format!("GET /v1/traces/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n"),
            "200 OK",
        ),
        ("GET /v1/traces HTTP/1.1\r\nHost:".to_owned(), ""),
        (
            format!(
                "POST /v1/ingest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
            ),
            "",
        ),
    ] {
        let mut socket = connect_to(&server.url).await;
        socket.write_all(said.as_bytes()).await.unwrap();
        let response = read_text(&mut socket, Duration::from_millis(300)).await;
        assert!(response.contains(answered), "{response}");
        open.push(socket);
    }
    open
}

#[expect(clippy::disallowed_methods, reason = "an environment variable selects a long run")]
fn stop_count() -> u64 {
    std::env::var("LOUPE_TEST_STOPS").ok().map_or(2, |it| it.parse().unwrap())
}
