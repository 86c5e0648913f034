//! Memory of the built server with 50 receivers that hang, stream or send too much.

use std::time::Duration;

use tests::On;

use crate::{
    process::Process,
    receiver::{Receiver, Response},
};

/// Number of receivers.
const RECEIVER_COUNT: usize = 50;
/// Maximum growth of the resident memory in MiB.
const MAX_GROWTH_MIB: u64 = 60;

async fn bad_receivers(database: On) {
    let process = Process::start(database).await;
    let head = |text: &str| format!("HTTP/1.1 200 OK\r\n{text}\r\n\r\n").into_bytes();
    let block = vec![b'x'; 65_536];
    let responses = [
        Response::Hang(Vec::new()),
        Response::Hang(head("content-length: 10")),
        Response::Endless(head("content-length: 10000000000"), block.clone(), Duration::ZERO),
        Response::Endless(head("connection: close"), block.clone(), Duration::ZERO),
        Response::Endless(
            b"HTTP/1.1 200 OK\r\n".to_vec(),
            b"x-header: value\r\n".repeat(1_000),
            Duration::ZERO,
        ),
    ];
    // The first evaluations and requests are part of the idle size.
    process.fail_evaluations("without latency", 20).await;
    process.failed_evaluations().await;
    let idle = process.memory_mib("VmRSS:");
    let mut receivers = Vec::new();
    for n in 0..RECEIVER_COUNT {
        let response = responses[n % responses.len()].clone();
        let receiver =
            Receiver::start(&process.authority, &["127.0.0.1"], 2099, move |_, _| response.clone()).await;
        process.webhook(&receiver).await;
        receivers.push(receiver);
    }
    process.fail_evaluations("without latency", 20).await;
    while receivers.iter().any(|it| it.received().is_empty()) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The wait is long enough for two rounds of timeouts.
    tokio::time::sleep(Duration::from_secs(25)).await;
    let peak = process.memory_mib("VmHWM:");
    let requests: usize = receivers.iter().map(|it| it.received().len()).sum();
    println!("{database:?}: idle {idle} MiB, peak {peak} MiB, {requests} requests");
    assert!(peak <= idle + MAX_GROWTH_MIB, "idle {idle} MiB, peak {peak} MiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_bounded_with_bad_receivers_on_sqlite() {
    bad_receivers(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_bounded_with_bad_receivers_on_postgres() {
    bad_receivers(On::Postgres).await;
}
