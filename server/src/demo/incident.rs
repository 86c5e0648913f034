//! An incident that has not ended when the demo starts: the provider limits the rate of the support agent.

use api::{SpanType, ingest::TraceItem};
use fastrand::Rng;

use super::{
    error_messages::RATE_LIMIT_MESSAGE,
    texts::{SUPPORT_EXCHANGES, USER_NAMES},
    trace_builder::TraceBuilder,
};

/// Number of failed traces.
pub(super) const INCIDENT_TRACES: usize = 60;
/// Time since the start of the incident in microseconds: several intervals of the anomaly detection.
const INCIDENT_MICROS: i64 = 4 * 3_600_000_000;
/// Time between the end of the incident and the start of the demo, in microseconds: the history has no
/// later traces.
const QUIET_MICROS: i64 = 90_000_000;

/// Returns the failed traces of the incident, which lasts until shortly before `now` (microseconds).
pub(super) fn traces(rng: &mut Rng, now: i64) -> Vec<TraceItem> {
    let failed_trace = |_| {
        let start = now - rng.i64(QUIET_MICROS..INCIDENT_MICROS);
        let (question, _) = SUPPORT_EXCHANGES[rng.usize(..SUPPORT_EXCHANGES.len())];
        let mut builder = TraceBuilder::new(rng, "support.answer", start);
        let user = USER_NAMES[rng.usize(..USER_NAMES.len())];
        builder.set_user(user, None, &[("env", "production"), ("release", "2.15.0-rc1")]);
        let call = builder.step("answer", SpanType::Llm, rng.i64(80..400));
        builder.set_texts(call, question, "");
        builder.set_model_call(rng, call, "gpt-4o");
        builder.set_error(call, RATE_LIMIT_MESSAGE);
        builder.end(question, Err(RATE_LIMIT_MESSAGE))
    };
    (0..INCIDENT_TRACES).map(failed_trace).collect()
}
