//! The encoding of tags and failure types in the rows of traces.

use std::collections::BTreeMap;

use api::FailureType;
use entities::trace;
use semantics::rollup::FailureSet;

/// Returns the tags of a trace.
pub fn tags_of(trace: &trace::Model) -> BTreeMap<String, String> {
    trace.tags.as_deref().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default()
}

/// Returns the failure type of a stored bit.
pub fn failure_of(bit: i16) -> Option<FailureType> {
    FailureType::ALL.iter().copied().find(|it| bit_of(*it) == bit)
}

/// Returns the bit that stands for a failure type in rows.
pub fn bit_of(failure: FailureType) -> i16 {
    i16::from(FailureSet::from(failure).bits())
}
