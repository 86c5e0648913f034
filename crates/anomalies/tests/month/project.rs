//! The simulated projects: their size, season, noise and growth, and unusual events that are not incidents.

/// A simulated project.
#[derive(Clone, Debug)]
pub struct Project {
    pub traces_per_hour: f64,
    /// Logarithm of the ratio of the busiest hour to the mean.
    pub daily_season: f64,
    /// Hour of the day, UTC, with the most traces.
    pub peak_hour: f64,
    /// Volume at weekends compared with other days.
    pub weekend: f64,
    /// Size of the slow noise of the volume.
    pub volume_noise: f64,
    /// Growth of the volume in a week.
    pub weekly_growth: f64,
    pub latency_ms: f64,
    /// Width of the distribution of latencies.
    pub latency_width: f64,
    /// How much longer latencies are at the busiest hour.
    pub latency_season: f64,
    pub error_rate: f64,
    /// Mean cost of a trace, and its coefficient of variation.
    pub cost: f64,
    pub cost_variation: f64,
    pub tokens: f64,
    pub score: f64,
    /// Share of traces that are evaluated.
    pub evaluated_share: f64,
    /// Day on which the first trace arrived.
    pub first_day: f64,
    pub event: ExpectedEvent,
}

/// An unusual event that does not count as an incident.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExpectedEvent {
    None,
    /// A batch of traces: length in minutes, and its volume compared with the mean of the day.
    NightlyBatch {
        minutes: f64,
        size: f64,
    },
    WeeklyBatch {
        minutes: f64,
        size: f64,
    },
    /// A deployment that makes traces a little slower and more expensive from this day on.
    Deployment {
        day: f64,
        latency: f64,
        cost: f64,
    },
    /// The clocks of the users change by an hour on this day.
    ClockChange {
        day: f64,
    },
    /// The server was down, and the period has no data.
    Outage {
        day: f64,
        hours: f64,
    },
}

const USUAL_PROJECT: Project = Project {
    traces_per_hour: 1000.0,
    daily_season: 0.8,
    peak_hour: 14.0,
    weekend: 0.5,
    volume_noise: 0.1,
    weekly_growth: 0.02,
    latency_ms: 1800.0,
    latency_width: 0.6,
    latency_season: 0.1,
    error_rate: 0.01,
    cost: 0.004,
    cost_variation: 1.2,
    tokens: 1800.0,
    score: 0.85,
    evaluated_share: 0.1,
    first_day: 0.0,
    event: ExpectedEvent::None,
};

/// Returns the projects for development: ten with incidents, then two new ones without.
pub fn development_projects() -> Vec<Project> {
    use ExpectedEvent::{Deployment, NightlyBatch, Outage};
    vec![
        Project { traces_per_hour: 20_000.0, weekly_growth: 0.03, ..USUAL_PROJECT },
        Project {
            traces_per_hour: 4_000.0,
            weekend: 0.9,
            event: NightlyBatch { minutes: 10.0, size: 3.0 },
            ..USUAL_PROJECT
        },
        Project { traces_per_hour: 600.0, daily_season: 1.6, weekend: 0.1, peak_hour: 9.0, ..USUAL_PROJECT },
        Project {
            traces_per_hour: 250.0,
            error_rate: 0.03,
            event: Deployment { day: 30.0, latency: 1.12, cost: 1.15 },
            ..USUAL_PROJECT
        },
        Project { traces_per_hour: 80.0, volume_noise: 0.2, peak_hour: 22.0, ..USUAL_PROJECT },
        Project {
            traces_per_hour: 50.0,
            daily_season: 1.5,
            weekend: 0.2,
            evaluated_share: 0.5,
            ..USUAL_PROJECT
        },
        Project {
            traces_per_hour: 30.0,
            cost_variation: 2.0,
            event: Outage { day: 33.0, hours: 5.0 },
            ..USUAL_PROJECT
        },
        Project { traces_per_hour: 15.0, error_rate: 0.005, evaluated_share: 1.0, ..USUAL_PROJECT },
        Project { traces_per_hour: 8.0, weekend: 0.3, evaluated_share: 1.0, ..USUAL_PROJECT },
        Project { traces_per_hour: 3.0, error_rate: 0.05, evaluated_share: 1.0, ..USUAL_PROJECT },
        Project { traces_per_hour: 300.0, first_day: 26.3, ..USUAL_PROJECT },
        Project { traces_per_hour: 3.0, first_day: 31.6, evaluated_share: 1.0, ..USUAL_PROJECT },
    ]
}

/// Returns further projects, which were not used to tune the detector.
pub fn held_out_projects() -> Vec<Project> {
    use ExpectedEvent::{ClockChange, Deployment, NightlyBatch, WeeklyBatch};
    vec![
        Project { traces_per_hour: 9_000.0, weekend: 0.7, weekly_growth: 0.06, ..USUAL_PROJECT },
        Project {
            traces_per_hour: 2_000.0,
            peak_hour: 3.0,
            event: WeeklyBatch { minutes: 20.0, size: 4.0 },
            ..USUAL_PROJECT
        },
        Project {
            traces_per_hour: 700.0,
            daily_season: 1.8,
            weekend: 0.15,
            event: ClockChange { day: 35.0 },
            ..USUAL_PROJECT
        },
        Project { traces_per_hour: 200.0, volume_noise: 0.25, latency_width: 1.0, ..USUAL_PROJECT },
        Project {
            traces_per_hour: 90.0,
            cost_variation: 2.5,
            event: Deployment { day: 28.0, latency: 0.6, cost: 0.7 },
            ..USUAL_PROJECT
        },
        Project {
            traces_per_hour: 60.0,
            latency_season: 0.4,
            event: ClockChange { day: 35.0 },
            ..USUAL_PROJECT
        },
        Project {
            traces_per_hour: 25.0,
            error_rate: 0.08,
            event: NightlyBatch { minutes: 60.0, size: 4.0 },
            ..USUAL_PROJECT
        },
        Project {
            traces_per_hour: 12.0,
            weekend: 1.0,
            daily_season: 0.2,
            evaluated_share: 0.6,
            ..USUAL_PROJECT
        },
        Project { traces_per_hour: 6.0, score: 0.6, evaluated_share: 1.0, ..USUAL_PROJECT },
        Project { traces_per_hour: 4.0, daily_season: 1.2, evaluated_share: 1.0, ..USUAL_PROJECT },
        Project { traces_per_hour: 1_500.0, first_day: 24.7, weekly_growth: 0.3, ..USUAL_PROJECT },
        Project { traces_per_hour: 5.0, first_day: 29.2, evaluated_share: 1.0, ..USUAL_PROJECT },
    ]
}

impl Project {
    /// Returns the expected number of traces an hour at a time in minutes from the start, a Monday.
    pub fn rate(&self, minute: f64) -> f64 {
        let day = minute / 1440.0;
        if day < self.first_day {
            return 0.0;
        }
        let clock_change = match self.event {
            ExpectedEvent::ClockChange { day: change } if day >= change => 60.0,
            _ => 0.0,
        };
        let local = minute + clock_change;
        let hour = local / 60.0 % 24.0;
        let season = self.season(hour);
        let weekday = (local / 1440.0).floor() as u64 % 7;
        let weekend = if weekday >= 5 { self.weekend } else { 1.0 };
        let growth = (1.0 + self.weekly_growth).powf(day / 7.0);
        self.traces_per_hour * season * weekend * growth * self.batch(hour, weekday)
    }

    /// Returns the factor of the hour of the day.
    fn season(&self, hour: f64) -> f64 {
        (self.daily_season * (std::f64::consts::TAU * (hour - self.peak_hour) / 24.0).cos()).exp()
    }

    /// Returns the factor of batches, which begin at 2:30.
    fn batch(&self, hour: f64, weekday: u64) -> f64 {
        let (minutes, size) = match self.event {
            ExpectedEvent::NightlyBatch { minutes, size } => (minutes, size),
            ExpectedEvent::WeeklyBatch { minutes, size } if weekday == 6 => (minutes, size),
            _ => return 1.0,
        };
        if (2.5..2.5 + minutes / 60.0).contains(&hour) { size / self.season(hour) } else { 1.0 }
    }

    /// Returns the factors of latency and cost that a deployment causes.
    pub fn deployed(&self, minute: f64) -> (f64, f64) {
        match self.event {
            ExpectedEvent::Deployment { day, latency, cost } if minute / 1440.0 >= day => (latency, cost),
            _ => (1.0, 1.0),
        }
    }

    /// Returns whether a time has no data because the server was down.
    pub fn is_unknown(&self, minute: f64) -> bool {
        matches!(self.event, ExpectedEvent::Outage { day, hours }
            if (day..day + hours / 24.0).contains(&(minute / 1440.0)))
    }

    /// Returns the latency's season, which follows the volume.
    pub fn latency_factor(&self, minute: f64) -> f64 {
        (self.latency_season * (std::f64::consts::TAU * (minute / 60.0 - self.peak_hour) / 24.0).cos()).exp()
    }
}
