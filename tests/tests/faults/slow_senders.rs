//! Request bodies that stop halfway.

use std::time::{Duration, Instant};

use tests::On;
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};

use crate::{
    attacker_connections::{connect, responses},
    bystander::Bystander,
    installation::{Installation, MAX_RESIDENT_MIB, full_size},
};

/// Bytes that each sender announces, and bytes that it sends.
const ANNOUNCED_BYTES: usize = 3_000_000;
const SENT_BYTES: usize = 1_500_000;

/// Announces a body, sends a part of it and stops.
async fn send_half(mut socket: TcpStream, key: String) -> TcpStream {
    let head = format!(
        "POST /v1/ingest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {ANNOUNCED_BYTES}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let block = vec![b' '; 100_000];
    for _ in 0..SENT_BYTES / block.len() {
        // A server that has refused the body may close the connection.
        if tokio::time::timeout(Duration::from_secs(30), socket.write_all(&block)).await.is_err() {
            break;
        }
    }
    socket
}

async fn slow_senders_leave_room_for_others(on: On) {
    let installation = Installation::on(on).await;
    let (senders, hold) = if full_size() { (600, 40) } else { (300, 20) };
    let bystander = Bystander::start(&installation, true).await;
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..senders {
        let socket = connect(&installation).await;
        tasks.spawn(send_half(socket, installation.attacker.clone()));
    }
    let sockets = tasks.join_all().await;
    // After the last byte of the last sender: four waits for memory of 2 s at most, while the buffer of
    // the body grows, and two windows of 5 s of the minimum rate.
    tokio::time::sleep(Duration::from_secs(hold)).await;
    let figures = bystander.stop().await;
    let resident = installation.resident_mib();
    // A loaded machine takes longer to refuse the last bodies.
    let statuses = responses(sockets, Duration::from_secs(30)).await;
    println!(
        "{on:?}: {senders} slow senders: peak {} MiB, {} MiB after {:.0?}; {statuses:?}; bystander {figures}",
        installation.peak_resident_mib(),
        resident,
        began.elapsed()
    );
    figures.assert_served();
    assert!(installation.peak_resident_mib() <= MAX_RESIDENT_MIB);
    assert!(!statuses.contains_key(&0), "an unfinished body got no response");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_senders_leave_room_for_others_on_sqlite() {
    slow_senders_leave_room_for_others(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_senders_leave_room_for_others_on_postgres() {
    slow_senders_leave_room_for_others(On::Postgres).await;
}
