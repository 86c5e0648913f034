//! Prints what the detector finds in simulated months, and the processor time that it needs.
//!
//! `cargo run --release -p anomalies --example month -- development 1 10` simulates ten months from seed 1 on.

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

mod incident;
mod project;
mod random;
mod scoring;
mod simulation;

use std::time::Instant;

use scoring::MonthScore;
use simulation::{Month, Scenario};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scenario = match arguments.first().map(String::as_str) {
        Some("held-out") => Scenario::HeldOut,
        _ => Scenario::Development,
    };
    let number = |index: usize| arguments.get(index).and_then(|it| it.parse::<u64>().ok());
    let (first, count) = (number(1).unwrap_or(1), number(2).unwrap_or(1));
    let is_verbose = arguments.iter().any(|it| it == "details");
    for seed in first..first + count {
        let month = Month::simulate(scenario, seed);
        let points: usize = month.series.iter().map(|it| it.points.len()).sum();
        let began = Instant::now();
        let score = MonthScore::of(&month);
        let time = began.elapsed();
        let mut delays: Vec<f64> = score.delays.iter().flatten().copied().collect();
        delays.sort_by(f64::total_cmp);
        println!(
            "{scenario:?} {seed}: {} of {} incidents, {} false alarms, {} reports, median delay {:.0} min; \
             {:.2} µs a point, {:.1} ms a month of five-minute points",
            score.detected(),
            month.incidents.len(),
            score.false_alarms(),
            score.reports.len(),
            delays.get(delays.len() / 2).copied().unwrap_or(f64::NAN),
            time.as_secs_f64() * 1e6 / points as f64,
            time.as_secs_f64() * 1e3 / points as f64 * 8640.0,
        );
        if is_verbose {
            print_details(&month, &score);
        }
    }
}

fn print_details(month: &Month, score: &MonthScore) {
    for (incident, delay) in month.incidents.iter().zip(&score.delays) {
        let delay = delay.map_or("MISSED".to_owned(), |it| format!("{it:.0} min"));
        println!(
            "  {:<9} project {} {:?} {:?} size {:.2} day {:.2} for {:.0} min",
            delay,
            incident.project,
            incident.target,
            incident.shape,
            incident.size,
            incident.start / 1440.0,
            incident.minutes
        );
    }
    for it in score.reports.iter().filter(|it| it.incident.is_none()) {
        println!(
            "  false: project {} {:?} {:?} day {:.2} score {:.1}",
            it.project,
            it.kind,
            it.direction,
            it.minute / 1440.0,
            it.score
        );
    }
}
