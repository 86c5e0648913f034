//! The costs of a delivery: statements, and processor time of the server.

use std::time::Duration;

use tests::On;

use crate::{
    process::Process,
    receiver::{Receiver, Response},
};

/// Number of deliveries whose events are published together.
const DELIVERY_COUNT: usize = 500;
/// Number of webhooks that share the deliveries equally.
const WEBHOOK_COUNT: usize = 20;
/// Maximum number of statements on the tables of webhooks for each delivery to one webhook.
const MAX_STATEMENTS_TO_ONE: f64 = 2.0;
/// The same for deliveries to many webhooks, which share statements.
const MAX_STATEMENTS_TO_MANY: f64 = 0.6;

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

/// Fails evaluations, and waits until they have ended and have reached the receivers.
async fn fail(process: &Process, receivers: &[Receiver], count: usize) {
    let known: Vec<usize> = receivers.iter().map(|it| it.received().len()).collect();
    process.fail_evaluations("without latency", count).await;
    let is_empty = async |status: &str| {
        let list = process.key().get(&format!("/v1/eval?status={status}&limit=1")).await.ok();
        list["evaluations"].as_array().unwrap().is_empty()
    };
    while !is_empty("pending").await
        || !is_empty("running").await
        || receivers.iter().zip(&known).any(|(it, known)| it.received().len() < known + count)
    {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    // The results of the last deliveries are stored, and the log is read.
    tokio::time::sleep(Duration::from_secs(2)).await;
}

/// Starts receivers with a webhook each.
async fn receivers(process: &Process, count: usize) -> Vec<Receiver> {
    let mut receivers = Vec::with_capacity(count);
    for _ in 0..count {
        let receiver =
            Receiver::start(&process.authority, &["127.0.0.1"], 2099, |_, _| Response::Status(200)).await;
        process.webhook(&receiver).await;
        receivers.push(receiver);
    }
    receivers
}

/// Returns the number of statements for each delivery of [`DELIVERY_COUNT`] to this number of webhooks.
async fn statements_per_delivery(database: On, webhooks: usize) -> f64 {
    let process = Process::start_with(database, &[("LOUPE_LOG", "warn,sqlx::query=debug")]).await;
    let receivers = receivers(&process, webhooks).await;
    let before = statements(&process);
    assert!(before > 0, "statements are not logged");
    fail(&process, &receivers, DELIVERY_COUNT / webhooks).await;
    (statements(&process) - before) as f64 / DELIVERY_COUNT as f64
}

/// Returns the processor time of each delivery of [`DELIVERY_COUNT`] to one webhook.
async fn processor_time_per_delivery(database: On) -> Duration {
    let process = Process::start(database).await;
    fail(&process, &[], DELIVERY_COUNT).await;
    let mut times = Vec::new();
    for webhooks in [0, 1] {
        let receivers = receivers(&process, webhooks).await;
        let began = processor_time(&process);
        fail(&process, &receivers, DELIVERY_COUNT).await;
        times.push(processor_time(&process) - began);
    }
    times[1].saturating_sub(times[0]) / u32::try_from(DELIVERY_COUNT).unwrap()
}

async fn costs(database: On) {
    let one = statements_per_delivery(database, 1).await;
    let many = statements_per_delivery(database, WEBHOOK_COUNT).await;
    let time = processor_time_per_delivery(database).await;
    println!(
        "{database:?}: statements for each of {DELIVERY_COUNT} deliveries: {one:.2} to one webhook, {many:.2} to \
         {WEBHOOK_COUNT}; {time:?} of processor time"
    );
    assert!(one <= MAX_STATEMENTS_TO_ONE, "{one} statements for each delivery to one webhook");
    assert!(many <= MAX_STATEMENTS_TO_MANY, "{many} statements for each delivery to many webhooks");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delivery_costs_few_statements_on_sqlite() {
    costs(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delivery_costs_few_statements_on_postgres() {
    costs(On::Postgres).await;
}
