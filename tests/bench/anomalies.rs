//! Measures the processor time of detecting anomalies: learning from the past, and one interval of many projects. The
//! server runs in this process, on an empty SQLite database. See docs/benchmarks.md.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[allow(dead_code, reason = "shared with other benchmarks, which use the rest")]
mod measure;

use std::time::Instant;

use entities::{anomaly_detector, trace};
use measure::Processor;
use sea_orm::EntityTrait;
use serde_json::json;
use server::{clock::Clock, features, housekeeping, metric_folding};
use store::metrics::{self, delta::Delta};
use tests::{On, TestApp};
use uuid::Uuid;

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;

/// The options on the command line.
#[derive(Clone, Copy, Debug)]
struct Options {
    /// Number of projects.
    projects: usize,
    /// Days of history.
    days: i64,
    /// Number of traces per hour of each project: from 120 on, intervals have 5 minutes.
    traces: i64,
    /// Number of intervals of an hour to measure.
    hours: i64,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let options = options(std::env::args().skip(1));
    println!("{options:?}");
    let app = TestApp::on(On::Sqlite).await;
    app.full_key().post("/v1/ingest", &json!({"cost": 0.002, "latency_ms": 900})).await.ok();
    let template = trace::Entity::find().one(&app.app.db.write).await.unwrap().unwrap();
    let mut projects = vec![app.project];
    let owner = app.session(api::Role::Owner);
    for number in 1..options.projects {
        let made = owner.post("/v1/projects", &json!({"name": format!("p{number}")})).await.ok();
        projects.push(made["id"].as_str().unwrap().parse().unwrap());
    }
    let mut rng = fastrand::Rng::with_seed(3);
    let now = app.clock.now();
    for day in (1..=options.days).rev() {
        let from = now - day * DAY;
        store(&app, &template, &projects, (from, from + DAY), options.traces, &mut rng).await;
    }
    let processor = Processor::of(std::process::id(), None);
    let count = projects.len() as f64;
    let (before, began) = (processor.seconds(), Instant::now());
    housekeeping::run_round(&app.app, features::ALL).await.unwrap();
    app.drain().await;
    let cpu = (processor.seconds() - before) * 1_000.0 / count;
    println!(
        "learning {} days: {cpu:.1} CPU ms a project, {:.1} s",
        options.days,
        began.elapsed().as_secs_f64()
    );

    let rows = anomaly_detector::Entity::find().all(&app.app.db.write).await.unwrap();
    assert_eq!(rows.len(), projects.len());
    let bytes: usize = rows.iter().map(|it| it.state.len()).sum();
    let interval = rows[0].interval_micros;
    println!(
        "{} bytes of state a project, intervals of {} minutes",
        bytes / rows.len(),
        interval / 60_000_000
    );
    let mut intervals = 0_u32;
    let mut cpu = 0.0;
    while i64::from(intervals) * interval < options.hours * HOUR {
        let now = app.clock.now();
        let start = now - now.rem_euclid(interval);
        store(&app, &template, &projects, (start, start + interval), options.traces, &mut rng).await;
        app.advance((start + interval - now) / 1_000_000 + 60);
        let before = processor.seconds();
        app.drain().await;
        cpu += processor.seconds() - before;
        intervals += 1;
    }
    println!(
        "{intervals} intervals: {:.2} CPU ms a project and interval, {:.2} % of a core",
        cpu * 1_000.0 / count / f64::from(intervals),
        cpu / (f64::from(intervals) * interval as f64 / 1e6) * 100.0,
    );
    app.stop().await;
}

/// Stores the traces of a period as metrics, without their rows.
async fn store(
    app: &TestApp,
    template: &trace::Model,
    projects: &[Uuid],
    (from, end): (i64, i64),
    per_hour: i64,
    rng: &mut fastrand::Rng,
) {
    for project in projects {
        let mut delta = Delta::default();
        for _ in 0..(end - from) * per_hour / HOUR {
            delta.add(&trace::Model {
                project_id: *project,
                started_at: rng.i64(from..end),
                error: (rng.u8(0..100) < 2).then(|| "timed out".to_owned()),
                latency_ms: Some(rng.i64(500..1_500)),
                total_tokens: rng.i64(500..1_500),
                ..template.clone()
            });
        }
        metrics::add(&app.app.db.write, app.tenant, delta, app.clock.now()).await.unwrap();
    }
    while !metrics::waiting(&app.app.db).await.unwrap().is_empty() {
        metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
    }
}

fn options(mut given: impl Iterator<Item = String>) -> Options {
    let mut options = Options { projects: 50, days: 14, traces: 130, hours: 2 };
    while let Some(flag) = given.next() {
        // `cargo bench` passes this flag.
        if flag == "--bench" {
            continue;
        }
        let value = given.next().unwrap_or_else(|| panic!("{flag} needs a value"));
        let number: i64 = value.parse().unwrap_or_else(|_| panic!("{flag} needs a number"));
        match flag.as_str() {
            "--projects" => options.projects = usize::try_from(number).unwrap(),
            "--days" => options.days = number,
            "--traces" => options.traces = number,
            "--hours" => options.hours = number,
            _ => panic!("unknown: {flag}; see docs/benchmarks.md"),
        }
    }
    options
}
