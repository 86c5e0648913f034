//! The filter line of Approvals: `kind:action type:retry`. It selects among the loaded rows.

use api::control::ActionType;

use super::queue::{ApprovalRow, requested_type};
use crate::shell::{FilterField, LineError, parse_terms, parse_value};

/// Every field.
pub const FIELDS: &[FilterField] = &[
    FilterField {
        name: "kind",
        help: "kind:deployment, versions of prompts; kind:action, control actions",
        values: &["deployment", "action"],
    },
    FilterField {
        name: "prompt",
        help: "prompt:support-tone, deployments whose prompt has this in its name",
        values: &[],
    },
    FilterField {
        name: "type",
        help: "type:retry, actions of this type",
        values: &["retry", "fallback_model", "prompt_modification", "escalate"],
    },
    FilterField {
        name: "status",
        help: "status:shipped, with this status",
        values: &[
            "ab_passed",
            "pending_approval",
            "shipped",
            "regressed",
            "rejected",
            "rolled_back",
            "superseded",
            "ab_running",
            "ab_failed",
            "queued",
            "running",
            "succeeded",
            "failed",
        ],
    },
];

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowKind {
    Deployment,
    Action,
}

/// The rows that a filter line selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalFilter {
    kind: Option<RowKind>,
    prompt: Option<String>,
    action_type: Option<ActionType>,
    status: Option<String>,
}

impl ApprovalFilter {
    /// Parses a line. `field:*` selects everything.
    ///
    /// # Errors
    /// Fails with the position of the first wrong character, from 0, and the problem.
    pub fn parse(text: &str) -> Result<Self, LineError> {
        let mut filter = Self::default();
        parse_terms(text, FIELDS, |field, _, value| filter.add(field, value))?;
        Ok(filter)
    }

    fn add(&mut self, field: &FilterField, value: &str) -> Result<(), String> {
        match field.name {
            "kind" => {
                self.kind = Some(match value {
                    "deployment" => RowKind::Deployment,
                    "action" => RowKind::Action,
                    _ => return Err(format!("there is no kind `{value}`; kinds: deployment, action")),
                });
            }
            "prompt" => self.prompt = Some(value.to_lowercase()),
            "type" => self.action_type = Some(parse_value(value)?),
            _ if field.values.contains(&value) => self.status = Some(value.to_owned()),
            _ => return Err(format!("there is no status `{value}`; statuses: {}", field.values.join(", "))),
        }
        Ok(())
    }

    /// Returns whether the filter selects a row.
    pub fn matches(&self, row: &ApprovalRow<'_>) -> bool {
        if self.status.as_deref().is_some_and(|status| status != row.status()) {
            return false;
        }
        match row {
            ApprovalRow::Deployment(it) => {
                let has_name = |words: &String| it.prompt_name.to_lowercase().contains(words);
                self.kind != Some(RowKind::Action)
                    && self.action_type.is_none()
                    && self.prompt.as_ref().is_none_or(has_name)
            }
            ApprovalRow::Action(it) => {
                let has_type = |wanted| it.action_type == wanted || requested_type(it) == wanted;
                self.kind != Some(RowKind::Deployment)
                    && self.prompt.is_none()
                    && self.action_type.is_none_or(has_type)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_completed_value_of_the_approval_filter_is_valid() {
        for field in FIELDS {
            for value in field.values {
                assert!(ApprovalFilter::parse(&format!("{}:{value}", field.name)).is_ok());
            }
        }
        assert_eq!(ApprovalFilter::parse("kind:* status:*").unwrap(), ApprovalFilter::default());
    }

    #[test]
    fn invalid_approval_filter_marks_the_error() {
        assert_eq!(ApprovalFilter::parse("kind:rule").unwrap_err().0, 5);
        assert_eq!(ApprovalFilter::parse("kind:action type:repeat").unwrap_err().0, 17);
        assert!(ApprovalFilter::parse("status:done").unwrap_err().1.contains("ab_passed"));
        assert!(ApprovalFilter::parse("retry").unwrap_err().1.contains("kind, prompt, type, status"));
    }
}
