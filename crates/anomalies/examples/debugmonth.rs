//! debug
#![allow(missing_docs, clippy::all, clippy::pedantic, dead_code)]
#[path = "../tests/month/incident.rs"]
mod incident;
#[path = "../tests/month/project.rs"]
mod project;
#[path = "../tests/month/random.rs"]
mod random;
#[path = "../tests/month/scoring.rs"]
mod scoring;
#[path = "../tests/month/simulation.rs"]
mod simulation;
use simulation::*;
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let seed: u64 = a[0].parse().unwrap();
    let project: usize = a[1].parse().unwrap();
    let kind = &a[2];
    let (from, to): (f64, f64) = (a[3].parse().unwrap(), a[4].parse().unwrap());
    let month = Month::simulate(Scenario::Development, seed);
    for s in &month.series {
        if s.project != project || format!("{:?}", s.kind) != *kind { continue; }
        let mut d = anomalies::Detector::new(s.kind, s.interval);
        for p in s.points.iter().flatten() {
            let c = d.observe(*p);
            let m = to_minutes(p.start) / 1440.0;
            if (from..to).contains(&m) {
                println!("{m:.3} v={:.3} n={} score={:.2} {}", p.value, p.samples, d.score(), d.debug());
            }
            for c in c { println!("   {m:.3} {c:?}"); }
        }
    }
}
