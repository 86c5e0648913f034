//! Floors for the detector on simulated months. The example `month` prints the details.

mod incident;
mod project;
mod random;
mod scoring;
mod simulation;

use scoring::MonthScore;
use simulation::{Month, Scenario};

#[test]
fn development_month_incidents_are_detected() {
    let score = MonthScore::of(&Month::simulate(Scenario::Development, 1));
    assert!(score.detected() >= 27, "{score:#?}");
    assert!(score.false_alarms() <= 3, "{score:#?}");
}
