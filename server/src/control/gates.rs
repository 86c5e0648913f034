//! The limits of the control loop on one trace. Pure.

use api::control::{ActionType, EscalationReason};
use store::control_actions::ActionCounts;

/// The limits of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthLimits {
    /// Maximum number of retries on a trace; a further retry is escalated.
    pub max_retry_depth: i16,
    /// Maximum number of actions on a trace; any further action is escalated.
    pub max_cascade_depth: i16,
}

/// Why an action must be escalated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escalation {
    /// The limit that was reached.
    pub reason: EscalationReason,
    /// The number of actions on the trace that was compared with the limit.
    pub count: i64,
}

/// Decides whether a requested action exceeds a limit of its trace. The limit of the cascade is compared first, as the
/// specification requires.
pub fn escalation(action: ActionType, counts: ActionCounts, limits: DepthLimits) -> Option<Escalation> {
    let ActionCounts { retries, remediations } = counts;
    if action == ActionType::Escalate {
        return None;
    }
    if remediations >= i64::from(limits.max_cascade_depth) {
        return Some(Escalation { reason: EscalationReason::CascadeDepthExhausted, count: remediations });
    }
    if action == ActionType::Retry && retries >= i64::from(limits.max_retry_depth) {
        return Some(Escalation { reason: EscalationReason::RetryThresholdExceeded, count: retries });
    }
    None
}

#[cfg(test)]
mod tests {
    use ActionType::{Escalate, FallbackModel, PromptModification, Retry};
    use EscalationReason::{CascadeDepthExhausted, RetryThresholdExceeded};

    use super::*;

    fn reason(action: ActionType, retries: i64, remediations: i64) -> Option<(EscalationReason, i64)> {
        let limits = DepthLimits { max_retry_depth: 3, max_cascade_depth: 5 };
        let counts = ActionCounts { retries, remediations };
        escalation(action, counts, limits).map(|it| (it.reason, it.count))
    }

    #[test]
    fn retries_are_escalated_at_the_retry_depth() {
        assert_eq!(reason(Retry, 0, 0), None);
        assert_eq!(reason(Retry, 2, 4), None);
        assert_eq!(reason(Retry, 3, 3), Some((RetryThresholdExceeded, 3)));
        assert_eq!(reason(Retry, 4, 4), Some((RetryThresholdExceeded, 4)));
        for other in [FallbackModel, PromptModification] {
            assert_eq!(reason(other, 4, 4), None, "{other}");
        }
    }

    #[test]
    fn all_actions_are_escalated_at_the_cascade_depth_first() {
        for action in [Retry, FallbackModel, PromptModification] {
            assert_eq!(reason(action, 0, 4), None, "{action}");
            assert_eq!(reason(action, 3, 5), Some((CascadeDepthExhausted, 5)), "{action}");
        }
        assert_eq!(reason(Escalate, 9, 9), None);
    }
}
