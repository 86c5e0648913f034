//! Evaluations: how they are created and executed.
//!
//! They are created on demand ([`ask`]), by eval rules when a trace is ready ([`fire`]), and in bulk
//! ([`bulk`]). In every case, one transaction inserts a `pending` row and its job, and reserves the
//! monthly quota of LLM evaluations. Code evaluators are run by [`by_rule`], several at a time; judges
//! are called by [`by_judge`], each in a job of its own, because they are slow.

pub mod ask;
pub mod bulk;
pub mod by_judge;
pub mod by_rule;
pub mod decide;
pub mod endpoints;
pub mod fill;
pub mod fire;
pub mod forget;
pub mod matching;
pub mod preview;
pub mod rules;
pub mod subject;
pub mod view;

use crate::app::Feature;

/// Evaluations of traces.
pub const FEATURE: Feature = Feature {
    jobs: |registry| {
        registry.register::<by_rule::EvaluateByRule>();
        registry.register::<by_judge::EvaluateByJudge>();
        registry.register::<fill::FillBulk>();
        registry.register::<forget::ForgetRule>();
    },
    ..Feature::NONE
};
