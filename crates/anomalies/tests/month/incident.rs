//! Incidents: what is changed, how the change develops, and which metrics show it.

use anomalies::MetricKind;

/// What an incident changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    Volume,
    Latency,
    Errors,
    Cost,
    Tokens,
    Score,
    /// Clients repeat failed requests: more traces, more errors, longer latencies.
    Retries,
}

/// How the intensity of an incident develops from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    // Shapes for development.
    /// Full intensity from the start to the end.
    Rectangle,
    /// Grows from zero to full intensity, then ends.
    Ramp,
    // Held-out shapes, written before the detector was tuned.
    /// Full intensity at the start, then fades.
    Decay,
    /// Alternates between full and zero intensity every quarter of an hour.
    OnOff,
    /// A third of the intensity, then two thirds, then full.
    Staircase,
    /// Grows and shrinks like a bell.
    Bell,
    /// Grows and drops three times.
    Sawtooth,
}

impl Shape {
    /// Returns the intensity from 0 to 1 at a share of the duration.
    fn intensity(self, share: f64, minutes: f64) -> f64 {
        match self {
            Self::Rectangle => 1.0,
            Self::Ramp => share,
            Self::Decay => (-3.0 * share).exp(),
            Self::OnOff => f64::from(u8::from(((share * minutes / 15.0) as u64).is_multiple_of(2))),
            Self::Staircase => ((share * 3.0).floor() + 1.0) / 3.0,
            Self::Bell => (std::f64::consts::PI * share).sin().powi(2),
            Self::Sawtooth => (share * 3.0).fract(),
        }
    }
}

/// An incident of a project.
#[derive(Clone, Debug)]
pub struct Incident {
    pub project: usize,
    pub target: Target,
    pub shape: Shape,
    /// Minutes from the start of the history.
    pub start: f64,
    pub minutes: f64,
    /// Factor by which the value changes at full intensity; for error rates and scores, the amount that is
    /// added.
    pub size: f64,
}

/// What the incidents of a project change at one time.
pub struct Effects {
    pub volume: f64,
    pub latency: f64,
    pub errors: f64,
    pub cost: f64,
    pub tokens: f64,
    pub score: f64,
}

impl Default for Effects {
    fn default() -> Self {
        Self { volume: 1.0, latency: 1.0, errors: 0.0, cost: 1.0, tokens: 1.0, score: 0.0 }
    }
}

impl Incident {
    pub fn end(&self) -> f64 {
        self.start + self.minutes
    }

    /// Applies the incident at a time in minutes.
    pub fn apply(&self, minute: f64, effects: &mut Effects) {
        if !(self.start..self.end()).contains(&minute) {
            return;
        }
        let intensity = self.shape.intensity((minute - self.start) / self.minutes, self.minutes);
        // A factor of zero is an outage.
        let factor = 1.0 + (self.size - 1.0) * intensity;
        match self.target {
            Target::Volume => effects.volume *= factor,
            Target::Latency => effects.latency *= factor,
            Target::Errors => effects.errors += self.size * intensity,
            Target::Cost => effects.cost *= factor,
            Target::Tokens => {
                effects.tokens *= factor;
                effects.cost *= factor;
            }
            Target::Score => effects.score += self.size * intensity,
            Target::Retries => {
                effects.volume *= factor;
                effects.latency *= factor;
                effects.errors += 0.3 * intensity;
            }
        }
    }

    /// Returns the metrics that show the incident.
    pub fn metrics(&self) -> &'static [MetricKind] {
        use MetricKind::{Cost, ErrorRate, LatencyP95, Score, Tokens, Volume};
        match self.target {
            Target::Volume => &[Volume, Cost, Tokens],
            Target::Latency => &[LatencyP95],
            Target::Errors => &[ErrorRate],
            Target::Cost => &[Cost],
            Target::Tokens => &[Tokens, Cost],
            Target::Score => &[Score],
            Target::Retries => &[Volume, ErrorRate, LatencyP95, Cost, Tokens],
        }
    }
}
