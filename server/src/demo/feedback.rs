//! Feedback of users on answers.

use api::feedback::FeedbackLabel;
use entities::{feedback, trace};
use fastrand::Rng;
use store::new_id;
use uuid::Uuid;

use crate::app::App;

/// One in this many successful traces gets feedback, and more of the failed ones.
const TRACES_PER_FEEDBACK: u32 = 12;
/// Maximum delay of feedback after an answer, in seconds.
const MAX_DELAY_SECONDS: i64 = 80;

const GOOD_COMMENTS: [&str; 4] = ["", "", "exactly what I needed", "quick and right"];
const BAD_COMMENTS: [&str; 5] = [
    "",
    "answered in the wrong language",
    "invented an order number",
    "too long",
    "that is not what I asked",
];

/// Feedback to be stored.
pub(super) struct DemoFeedback(feedback::Model);

impl DemoFeedback {
    /// Returns the feedback on a trace, if there is any. Failures get feedback more often than successes.
    pub(super) fn draw(rng: &mut Rng, trace: &trace::Model) -> Option<Self> {
        if rng.u32(..TRACES_PER_FEEDBACK) > u32::from(trace.error.is_some()) * 3 {
            return None;
        }
        let good = if trace.error.is_some() { 0.05 } else { 0.86 };
        let label = match rng.f64() {
            it if it < good => FeedbackLabel::Good,
            it if it < good + 0.05 => FeedbackLabel::Neutral,
            _ => FeedbackLabel::Bad,
        };
        let comment = match label {
            FeedbackLabel::Good => GOOD_COMMENTS[rng.usize(..GOOD_COMMENTS.len())],
            FeedbackLabel::Neutral => "",
            FeedbackLabel::Bad => BAD_COMMENTS[rng.usize(..BAD_COMMENTS.len())],
        };
        let ended = trace.ended_at.unwrap_or(trace.started_at);
        let given_at = ended.saturating_add(rng.i64(2..MAX_DELAY_SECONDS) * 1_000_000);
        Some(Self(feedback::Model {
            tenant_id: trace.tenant_id,
            trace_id: trace.id,
            id: Uuid::nil(),
            project_id: trace.project_id,
            span_id: None,
            label: label.as_str().to_owned(),
            comment: (!comment.is_empty()).then(|| comment.to_owned()),
            user_id: trace.user_id.clone(),
            source: "thumbs".to_owned(),
            metadata: None,
            created_at: given_at,
            updated_at: given_at,
        }))
    }

    /// Stores the feedback.
    pub(super) async fn store(self, app: &App) -> anyhow::Result<()> {
        // The feedback of a recent answer may be due in the future; its time is limited to now.
        let at = self.0.created_at.min(app.clock.now());
        let row = feedback::Model { id: new_id(), created_at: at, updated_at: at, ..self.0 };
        store::feedback::save(&app.db, row).await?;
        Ok(())
    }
}
