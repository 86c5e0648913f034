//! A month of metrics after three weeks of history, with thirty incidents.

use anomalies::{MetricKind, Point, interval_for};

use crate::incident::{Effects, Incident, Shape, Target};
use crate::project::{Project, development_projects, held_out_projects};
use crate::random::{Random, SlowNoise};

/// Days before the month.
pub const HISTORY_DAYS: f64 = 21.0;
/// Days of history and month together.
pub const ALL_DAYS: f64 = HISTORY_DAYS + 30.0;
/// Number of incidents in the month.
pub const INCIDENT_COUNT: usize = 30;
/// Projects with incidents.
const PROJECTS_WITH_INCIDENTS: usize = 10;
/// 1 September 2025, a Monday, in microseconds since 1970.
const FIRST_MONDAY: i64 = 1_756_684_800_000_000;
const MINUTE_MICROS: i64 = 60_000_000;

/// The metrics of a project.
pub const METRIC_KINDS: [MetricKind; 6] = [
    MetricKind::Volume,
    MetricKind::ErrorRate,
    MetricKind::LatencyP95,
    MetricKind::Cost,
    MetricKind::Tokens,
    MetricKind::Score,
];

/// Which projects and shapes of incidents are simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scenario {
    /// The projects and shapes on which the detector was tuned.
    Development,
    /// Projects and shapes of incidents that were not used to tune the detector.
    HeldOut,
}

/// The points of one metric of one project, in the order of time. `None` is an interval without data.
pub struct Series {
    pub project: usize,
    pub kind: MetricKind,
    pub interval: i64,
    pub points: Vec<Option<Point>>,
}

/// A simulated month.
pub struct Month {
    pub series: Vec<Series>,
    pub incidents: Vec<Incident>,
}

/// Returns the time of an interval in minutes from the start of the simulation.
pub fn to_minutes(time: i64) -> f64 {
    (time - FIRST_MONDAY) as f64 / MINUTE_MICROS as f64
}

impl Month {
    pub fn simulate(scenario: Scenario, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let projects = match scenario {
            Scenario::Development => development_projects(),
            Scenario::HeldOut => held_out_projects(),
        };
        let incidents = plan_incidents(scenario, &projects, &mut random);
        let mut series = Vec::new();
        for (index, project) in projects.iter().enumerate() {
            let own: Vec<&Incident> = incidents.iter().filter(|it| it.project == index).collect();
            series.extend(simulate_project(index, project, &own, &mut random));
        }
        Self { series, incidents }
    }
}

/// Kinds of incidents: what changes, how it develops, the range of sizes and the range of minutes.
type IncidentKind = (Target, Shape, (f64, f64), (f64, f64));

fn incident_kinds(scenario: Scenario) -> Vec<(usize, IncidentKind)> {
    use Shape::{Bell, Decay, OnOff, Ramp, Rectangle, Sawtooth, Staircase};
    use Target::{Cost, Errors, Latency, Retries, Score, Tokens, Volume};
    match scenario {
        Scenario::Development => vec![
            (4, (Volume, Rectangle, (2.5, 4.0), (20.0, 60.0))),
            (2, (Volume, Rectangle, (1.9, 2.6), (1800.0, 3600.0))),
            (2, (Volume, Rectangle, (0.3, 0.45), (1800.0, 3600.0))),
            (4, (Volume, Rectangle, (0.0, 0.0), (30.0, 180.0))),
            (5, (Errors, Rectangle, (0.1, 0.4), (20.0, 120.0))),
            (3, (Latency, Rectangle, (1.7, 3.0), (45.0, 240.0))),
            (2, (Latency, Ramp, (2.0, 3.0), (1080.0, 2160.0))),
            (2, (Cost, Rectangle, (2.5, 5.0), (60.0, 300.0))),
            (1, (Tokens, Rectangle, (2.5, 5.0), (60.0, 300.0))),
            (2, (Cost, Ramp, (2.5, 3.5), (1080.0, 2160.0))),
            (3, (Score, Rectangle, (-0.3, -0.12), (240.0, 1440.0))),
        ],
        Scenario::HeldOut => vec![
            (3, (Volume, Decay, (3.0, 5.0), (60.0, 180.0))),
            (3, (Volume, Rectangle, (0.1, 0.3), (60.0, 180.0))),
            (2, (Volume, Bell, (2.5, 3.5), (120.0, 300.0))),
            (3, (Errors, OnOff, (0.2, 0.5), (90.0, 240.0))),
            (2, (Errors, Bell, (0.2, 0.5), (90.0, 240.0))),
            (2, (Errors, Decay, (0.3, 0.6), (60.0, 180.0))),
            (2, (Latency, Staircase, (2.0, 3.0), (180.0, 720.0))),
            (2, (Latency, Sawtooth, (2.5, 4.0), (240.0, 960.0))),
            (2, (Latency, OnOff, (2.0, 3.5), (90.0, 240.0))),
            (2, (Cost, Bell, (3.0, 5.0), (180.0, 480.0))),
            (2, (Tokens, Staircase, (2.5, 4.0), (180.0, 720.0))),
            (2, (Score, Staircase, (-0.35, -0.2), (480.0, 1440.0))),
            (1, (Score, Sawtooth, (-0.4, -0.25), (480.0, 1440.0))),
            (2, (Retries, Decay, (2.0, 3.0), (60.0, 180.0))),
        ],
    }
}

/// Distributes the incidents over the projects and three periods of the month.
fn plan_incidents(scenario: Scenario, projects: &[Project], random: &mut Random) -> Vec<Incident> {
    let mut kinds: Vec<IncidentKind> =
        incident_kinds(scenario).into_iter().flat_map(|(count, it)| std::iter::repeat_n(it, count)).collect();
    assert_eq!(kinds.len(), INCIDENT_COUNT);
    for index in (1..kinds.len()).rev() {
        kinds.swap(index, random.below(index + 1));
    }
    // Incidents of the volume go to projects with enough traces: the first seven.
    kinds.sort_by_key(|it| matches!(it.0, Target::Volume | Target::Retries));
    let mut places: Vec<(usize, usize)> =
        (0..INCIDENT_COUNT).map(|it| (it % PROJECTS_WITH_INCIDENTS, it / PROJECTS_WITH_INCIDENTS)).collect();
    for index in (1..places.len()).rev() {
        places.swap(index, random.below(index + 1));
    }
    places.sort_by_key(|it| it.0 < 7);
    let planned = kinds.into_iter().zip(places);
    planned
        .map(|((target, shape, sizes, lengths), (project, period))| {
            let it = &projects[project];
            let rate = it.traces_per_hour;
            // With few traces, an incident is detectable only if it is long or large.
            let (longer, larger) = match rate {
                rate if rate >= 120.0 => (1.0, 1.0),
                rate if rate >= 20.0 => (2.5, 1.2),
                rate if rate >= 10.0 => (6.0, 1.5),
                _ => (10.0, 1.8),
            };
            let mut minutes = random.between(lengths.0, lengths.1);
            if minutes < 1000.0 {
                minutes *= longer;
            }
            let size = random.between(sizes.0, sizes.1);
            let size = match target {
                Target::Errors => (size * larger).min(0.9),
                Target::Score => size * larger.min(1.2),
                Target::Volume => size,
                _ => 1.0 + (size - 1.0) * larger,
            };
            let mut day = HISTORY_DAYS + 2.0 + 9.0 * period as f64 + random.below(6) as f64;
            while it.weekend < 0.6 && matches!(day as u64 % 7, 5 | 6) {
                day -= 1.0;
            }
            // Incidents begin in busy hours.
            let hour = it.peak_hour + random.between(-5.0, 1.0);
            Incident { project, target, shape, start: day * 1440.0 + hour * 60.0, minutes, size }
        })
        .collect()
}

/// Slow changes of a project that all its metrics have.
struct Noises {
    volume: SlowNoise,
    latency: SlowNoise,
    errors: SlowNoise,
    cost: SlowNoise,
    score: SlowNoise,
}

fn simulate_project(
    index: usize,
    project: &Project,
    incidents: &[&Incident],
    random: &mut Random,
) -> Vec<Series> {
    let interval = interval_for(project.traces_per_hour * 24.0);
    let minutes = (interval / MINUTE_MICROS) as f64;
    // Noise that fades within about an hour.
    let memory = (-minutes / 60.0).exp();
    let mut noises = Noises {
        volume: SlowNoise::new(project.volume_noise, memory),
        latency: SlowNoise::new(0.06, memory),
        errors: SlowNoise::new(0.25, memory),
        cost: SlowNoise::new(0.06, memory),
        score: SlowNoise::new(0.01, memory),
    };
    let mut series: Vec<Series> =
        METRIC_KINDS.map(|kind| Series { project: index, kind, interval, points: Vec::new() }).into();
    for step in 0..(ALL_DAYS * 1440.0 / minutes) as i64 {
        let minute = step as f64 * minutes;
        if minute / 1440.0 < project.first_day {
            continue;
        }
        let start = FIRST_MONDAY + step * interval;
        let values = simulate_interval(project, incidents, &mut noises, (minute, minutes), random);
        for (series, (value, samples)) in series.iter_mut().zip(values) {
            let point = (!project.is_unknown(minute)).then_some(Point { start, value, samples });
            series.points.push(point);
        }
    }
    series
}

/// Returns value and samples of each metric in the order of [`METRIC_KINDS`].
fn simulate_interval(
    project: &Project,
    incidents: &[&Incident],
    noises: &mut Noises,
    (minute, minutes): (f64, f64),
    random: &mut Random,
) -> [(f64, u64); 6] {
    let mut effects = Effects::default();
    for incident in incidents {
        incident.apply(minute, &mut effects);
    }
    let (deployed_latency, deployed_cost) = project.deployed(minute);
    let volume_noise = noises.volume.next(random).exp();
    let traces = random.poisson(project.rate(minute) * minutes / 60.0 * volume_noise * effects.volume);
    let error_rate = project.error_rate * noises.errors.next(random).exp() + effects.errors;
    let failures = random.binomial(traces, error_rate);
    let median = project.latency_ms * project.latency_factor(minute) * deployed_latency * effects.latency;
    let median = median * noises.latency.next(random).exp();
    let latency =
        if traces > 0 { random.latency_p95(traces, median, project.latency_width) } else { f64::NAN };
    let cost_mean = project.cost * deployed_cost * effects.cost * noises.cost.next(random).exp();
    let cost = random.sum_of_amounts(traces, cost_mean, project.cost_variation);
    let tokens = random.sum_of_amounts(traces, project.tokens * effects.tokens, project.cost_variation * 0.7);
    let evaluated = random.binomial(traces, project.evaluated_share);
    let score = project.score + noises.score.next(random) + effects.score;
    let deviation = 0.25 / (evaluated.max(1) as f64).sqrt() * random.normal();
    let score = if evaluated > 0 { (score + deviation).clamp(0.0, 1.0) } else { f64::NAN };
    [
        (traces as f64, traces),
        (failures as f64, traces),
        (latency, traces),
        (cost, traces),
        (tokens, traces),
        (score, evaluated),
    ]
}
