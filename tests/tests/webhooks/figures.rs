//! The costs of a delivery: statements, and processor time of the server.

use std::time::Duration;

use tests::On;

use crate::{
    process::Process,
    receiver::{Receiver, Response},
};

/// Number of events that are published together.
const EVENT_COUNT: usize = 500;
/// Maximum number of statements on the tables of webhooks for each of them.
const MAX_STATEMENTS_PER_DELIVERY: f64 = 2.0;

/// Returns the number of statements on the tables of webhooks so far.
fn statements(process: &Process) -> usize {
    let log = process.server().log();
    log.lines().filter(|it| it.contains("sqlx::query") && it.contains("webhook")).count()
}

/// Returns the processor time of the server so far.
fn processor_time(process: &Process) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.server().id())).unwrap();
    // User and system time, in hundredths of a second, are fields 14 and 15; the second may contain spaces.
    let fields = stat.rsplit(") ").next().unwrap().split(' ').skip(11).take(2);
    Duration::from_millis(fields.map(|it| it.parse::<u64>().unwrap() * 10).sum())
}

/// Fails evaluations, and waits until they have ended and have reached the receiver if there is one.
async fn fail(process: &Process, receiver: Option<&Receiver>) {
    let known = receiver.map_or(0, |it| it.received().len());
    process.fail_evaluations("without latency", EVENT_COUNT).await;
    let is_empty = async |status: &str| {
        let list = process.key().get(&format!("/v1/eval?status={status}&limit=1")).await.ok();
        list["evaluations"].as_array().unwrap().is_empty()
    };
    while !is_empty("pending").await
        || !is_empty("running").await
        || receiver.is_some_and(|it| it.received().len() < known + EVENT_COUNT)
    {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    // The results of the last deliveries are stored, and the log is read.
    tokio::time::sleep(Duration::from_secs(2)).await;
}

async fn costs(database: On) {
    let logging = Process::start_with(database, &[("LOUPE_LOG", "warn,sqlx::query=debug")]).await;
    let receiver =
        Receiver::start(&logging.authority, &["127.0.0.1"], 2099, |_, _| Response::Status(200)).await;
    logging.webhook(&receiver).await;
    let before = statements(&logging);
    fail(&logging, Some(&receiver)).await;
    let each = (statements(&logging) - before) as f64 / EVENT_COUNT as f64;
    assert!(before > 0, "statements are not logged");

    let process = Process::start(database).await;
    fail(&process, None).await;
    let mut times = Vec::new();
    let receiver =
        Receiver::start(&process.authority, &["127.0.0.1"], 2099, |_, _| Response::Status(200)).await;
    for receiver in [None, Some(&receiver)] {
        if let Some(receiver) = receiver {
            process.webhook(receiver).await;
        }
        let began = processor_time(&process);
        fail(&process, receiver).await;
        times.push(processor_time(&process) - began);
    }
    let time = times[1].saturating_sub(times[0]) / u32::try_from(EVENT_COUNT).unwrap();
    println!(
        "{database:?}: {each:.2} statements for each of {EVENT_COUNT} deliveries, and {time:?} of processor time"
    );
    assert!(each <= MAX_STATEMENTS_PER_DELIVERY, "{each} statements for each delivery");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delivery_costs_few_statements_on_sqlite() {
    costs(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delivery_costs_few_statements_on_postgres() {
    costs(On::Postgres).await;
}
