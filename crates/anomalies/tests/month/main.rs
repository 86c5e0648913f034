//! Floors for the detector on simulated months. The example `month` prints the details.

mod incident;
mod project;
mod random;
mod scoring;
mod simulation;

use scoring::MonthScore;
use simulation::{Month, Scenario};

/// Simulates two months, and returns the number of detected incidents and of false alarms.
fn detect(scenario: Scenario, seed: u64) -> (usize, usize) {
    let scores = [seed, seed + 1].map(|it| MonthScore::of(&Month::simulate(scenario, it)));
    let sum = |count: fn(&MonthScore) -> usize| scores.iter().map(count).sum();
    (sum(MonthScore::detected), sum(MonthScore::false_alarms))
}

#[test]
fn development_months_meet_their_floors() {
    let (detected, false_alarms) = detect(Scenario::Development, 1);
    assert!(detected >= 56 && false_alarms <= 6, "{detected} of 60 detected, {false_alarms} false alarms");
}

/// Most incidents of these months are in projects with few traces, whose intervals are long.
#[test]
fn development_months_of_small_projects_meet_their_floors() {
    let (detected, false_alarms) = detect(Scenario::Development, 8);
    assert!(detected >= 55 && false_alarms <= 6, "{detected} of 60 detected, {false_alarms} false alarms");
}

#[test]
fn held_out_months_meet_their_floors() {
    let (detected, false_alarms) = detect(Scenario::HeldOut, 1001);
    assert!(detected >= 54 && false_alarms <= 6, "{detected} of 60 detected, {false_alarms} false alarms");
}
