//! Evaluations: who asks for them, and getting them done.
//!
//! They are asked for by hand ([`ask`]), by rules when a trace is ready ([`fire`]), and many at once
//! ([`bulk`]). Whoever asks stores a `pending` row and the job that does it in one transaction, with
//! what a judge's work takes of the month's quota. Rules of code are run by [`by_rule`], some at
//! once; judges are asked by [`by_judge`], each in a job of its own, because they are waited for.

pub mod ask;
pub mod bulk;
pub mod by_judge;
pub mod by_rule;
pub mod decide;
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
