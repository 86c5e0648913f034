//! The end of a request's time.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::{SendError, Stage};

/// The time at which a request must be complete, with all of its steps.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// Returns the deadline of a request that starts now.
    pub fn after(timeout: Duration) -> Self {
        // A timeout of centuries would overflow.
        let now = Instant::now();
        Self(now.checked_add(timeout).unwrap_or(now + Duration::from_secs(86_400)))
    }

    /// Runs one step until the deadline.
    ///
    /// # Errors
    ///
    /// Fails when the step fails, or with [`SendError::TimedOut`] and the stage.
    pub async fn limit<T, E: Into<SendError>>(
        self,
        stage: Stage,
        step: impl Future<Output = Result<T, E>>,
    ) -> Result<T, SendError> {
        match tokio::time::timeout_at(self.0, step).await {
            Ok(outcome) => outcome.map_err(Into::into),
            Err(_) => Err(SendError::TimedOut(stage)),
        }
    }
}
