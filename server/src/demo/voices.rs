//! Feedback of users on answers.

use api::feedback::FeedbackLabel;
use entities::{feedback, trace};
use fastrand::Rng;
use store::new_id;
use uuid::Uuid;

use crate::app::App;

/// One in this many successful traces gets feedback, and more of the failed ones.
const ONE_IN: u32 = 12;
/// Maximum delay of feedback after an answer, in seconds.
const LATER: i64 = 80;

const PLEASED: [&str; 4] = ["", "", "exactly what I needed", "quick and right"];
const DISPLEASED: [&str; 5] = [
    "",
    "answered in the wrong language",
    "invented an order number",
    "too long",
    "that is not what I asked",
];

/// Feedback to be stored.
pub(super) struct Voice(feedback::Model);

impl Voice {
    /// Returns the feedback on a trace, if there is any. Failures get feedback more often than successes.
    pub(super) fn draw(rng: &mut Rng, trace: &trace::Model) -> Option<Self> {
        if rng.u32(..ONE_IN) > u32::from(trace.error.is_some()) * 3 {
            return None;
        }
        let good = if trace.error.is_some() { 0.05 } else { 0.86 };
        let label = match rng.f64() {
            it if it < good => FeedbackLabel::Good,
            it if it < good + 0.05 => FeedbackLabel::Neutral,
            _ => FeedbackLabel::Bad,
        };
        let words = match label {
            FeedbackLabel::Good => PLEASED[rng.usize(..PLEASED.len())],
            FeedbackLabel::Neutral => "",
            FeedbackLabel::Bad => DISPLEASED[rng.usize(..DISPLEASED.len())],
        };
        let ended = trace.ended_at.unwrap_or(trace.started_at);
        let said_at = ended.saturating_add(rng.i64(2..LATER) * 1_000_000);
        Some(Self(feedback::Model {
            tenant_id: trace.tenant_id,
            trace_id: trace.id,
            id: Uuid::nil(),
            project_id: trace.project_id,
            span_id: None,
            label: label.as_str().to_owned(),
            comment: (!words.is_empty()).then(|| words.to_owned()),
            user_id: trace.user_id.clone(),
            source: "thumbs".to_owned(),
            metadata: None,
            created_at: said_at,
            updated_at: said_at,
        }))
    }

    /// Stores the feedback.
    pub(super) async fn say(self, app: &App) -> anyhow::Result<()> {
        // The feedback of a recent answer may be due in the future; its time is limited to now.
        let at = self.0.created_at.min(app.clock.now());
        let said = feedback::Model { id: new_id(), created_at: at, updated_at: at, ..self.0 };
        store::feedback::save(&app.db, said).await?;
        Ok(())
    }
}
