//! The measured values of a subject, for evaluators that need them.

use super::Subject;
use crate::verdict::NotEvaluated;

impl Subject {
    /// Returns the wall-clock latency in milliseconds.
    ///
    /// # Errors
    /// Fails when the latency is unknown.
    pub(crate) fn known_latency_ms(&self) -> Result<i64, NotEvaluated> {
        self.latency_ms.ok_or_else(|| {
            NotEvaluated::new(
                "the latency is not known: send `latency_ms`, or the times at which spans start and end",
            )
        })
    }

    /// Returns the cost in US dollars.
    ///
    /// # Errors
    /// Fails when the cost is unknown.
    pub(crate) fn known_cost(&self) -> Result<f64, NotEvaluated> {
        self.cost.filter(|it| it.is_finite()).ok_or_else(|| {
            NotEvaluated::new(
                "the cost is not known: set a price for the model, or send `cost_usd` with the spans",
            )
        })
    }
}

/// Returns whether a cost is at most a limit. Costs are stored in pico-dollars, so a difference of less than
/// half a pico-dollar is ignored.
pub(crate) fn is_cost_within(cost: f64, limit: f64) -> bool {
    cost <= limit + 0.5e-12
}
