//! The spans of a trace that are the output of control actions.

use std::collections::HashMap;

use api::{control::ActionType, trace::Span};
use serde::Deserialize;
use uuid::Uuid;

/// The action that a remediated span is the output of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remediation {
    /// The action.
    pub action: Uuid,
    /// The span whose request was repeated.
    pub original: Option<Uuid>,
    /// The mark of the span: `retry #2`.
    pub label: String,
}

/// The metadata of a remediated span.
#[derive(Deserialize)]
struct RemediationMetadata {
    remediation: RemediationOrigin,
}

/// The part of the metadata that names the action.
#[derive(Deserialize)]
struct RemediationOrigin {
    action_id: Uuid,
    action_type: Option<ActionType>,
    original_span_id: Option<Uuid>,
}

/// Returns the remediations among spans, by the ids of their spans. Those of an original span are numbered by start.
pub fn remediations(spans: &[Span]) -> HashMap<Uuid, Remediation> {
    let mut counts: HashMap<Option<Uuid>, usize> = HashMap::new();
    let mut found = HashMap::new();
    for span in spans {
        let metadata = span.metadata.as_ref().map(|raw| raw.get());
        // Most metadata has no such key, so it is not parsed.
        let Some(metadata) = metadata.filter(|text| text.contains("\"remediation\"")) else { continue };
        let Ok(RemediationMetadata { remediation: origin }) = serde_json::from_str(metadata) else {
            continue;
        };
        let number = counts.entry(origin.original_span_id).or_default();
        *number += 1;
        let word = match origin.action_type {
            Some(ActionType::Retry) => "retry",
            Some(ActionType::FallbackModel) => "fallback",
            Some(ActionType::PromptModification) => "prompt",
            Some(ActionType::Escalate) | None => "remediation",
        };
        let label = format!("{word} #{number}");
        let remediation = Remediation { action: origin.action_id, original: origin.original_span_id, label };
        found.insert(span.id, remediation);
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixture::{id, span};
    use serde_json::{json, value::RawValue};

    fn remediated(n: u128, metadata: &serde_json::Value) -> Span {
        let mut span = span(n, None);
        span.metadata = Some(RawValue::from_string(metadata.to_string()).unwrap());
        span
    }

    #[test]
    fn remediated_spans_are_numbered_by_original_span() {
        let origin = |action: u128, kind: &str, original: u128| json!({"remediation": {"action_id": id(action), "action_type": kind, "original_span_id": id(original)}});
        let spans = [
            span(1, None),
            remediated(2, &origin(81, "retry", 1)),
            remediated(3, &origin(82, "fallback_model", 1)),
            remediated(4, &origin(83, "retry", 9)),
        ];
        let found = remediations(&spans);
        let labels: Vec<&str> = [2, 3, 4].iter().map(|n| found[&id(*n)].label.as_str()).collect();
        assert_eq!(labels, ["retry #1", "fallback #2", "retry #1"]);
        assert_eq!((found.len(), found[&id(3)].action), (3, id(82)));
    }

    #[test]
    fn other_metadata_marks_no_span() {
        let others = [
            json!({"remediation": "by hand"}),
            json!({"remediation": {"action_id": "7"}}),
            json!({"note": "\"remediation\""}),
            json!({"remediation": {"action_id": id(1), "action_type": "unknown"}}),
        ];
        let spans: Vec<Span> = others.iter().zip(2..).map(|(metadata, n)| remediated(n, metadata)).collect();
        assert!(remediations(&spans).is_empty());
    }
}
