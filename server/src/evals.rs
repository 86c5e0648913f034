//! Evaluations: how they are created and executed.
//!
//! They are created on demand ([`evaluation_request`]), by eval rules when a trace is ready ([`rule_firing`]), and in bulk
//! ([`bulk`]). One transaction inserts a `pending` row and its job, and reserves the monthly quota of LLM evaluations.
//! Code evaluators are run by [`code_evaluation`], several at a time; judges are called by [`llm_evaluation`], each in
//! a job of its own, because they are slow. Most code evaluations of eval rules are never pending: [`immediate`] executes
//! them before the transaction that inserts them.

pub mod bulk;
pub mod bulk_fill;
pub mod code_evaluation;
pub mod decision_deletion;
pub mod end;
mod endpoints;
pub mod evaluation_request;
pub mod immediate;
pub mod llm_evaluation;
pub mod matching;
pub mod preview;
pub mod remediation_firing;
pub mod replaced_call;
pub mod rule_decisions;
pub mod rule_firing;
pub mod rules;
pub mod subject_reader;
pub mod view;

use std::time::Duration;

use crate::feature::{Feature, RowExpiry};

/// How long bulk runs are kept; their evaluations are kept longer.
const BULK_RUN_TTL: Duration = Duration::from_secs(30 * 86_400);

/// Evaluations of traces.
pub const FEATURE: Feature = Feature {
    routes: endpoints::routes,
    jobs: |registry| {
        registry.register::<code_evaluation::EvaluateByCode>();
        registry.register::<llm_evaluation::EvaluateByJudge>();
        registry.register::<bulk_fill::FillBulk>();
        registry.register::<decision_deletion::DeleteRuleDecisions>();
    },
    housekeeping: &[&RowExpiry { rows: store::bulk_runs::EXPIRING_RUNS, after: BULK_RUN_TTL }],
    ..Feature::NONE
};
