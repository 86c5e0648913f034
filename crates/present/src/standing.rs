//! How evaluations and decisions of rules stand: the same mark and tone wherever they are shown.

use api::{eval::EvaluationStatus, eval_rule::Decision};

use crate::{Glyphs, Tone};

/// How an evaluation stands, in the one mark of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It waits, or a worker is at it.
    Unfinished,
    /// It has no score.
    Failed,
    /// The score of a remediated output lies below that of the output before.
    Below,
    /// The label is `pass`.
    Pass,
    /// The label is `warn`.
    Warn,
    /// The label is `fail`.
    Fail,
    /// A label of the evaluator's own, which nobody ranks, or none.
    Scored,
}

impl Standing {
    /// How an evaluation stands by itself; nothing is below a baseline that is not known.
    pub fn of(status: EvaluationStatus, label: Option<&str>) -> Self {
        match (status, label) {
            (EvaluationStatus::Pending | EvaluationStatus::Running, _) => Self::Unfinished,
            (EvaluationStatus::Failed, _) => Self::Failed,
            (EvaluationStatus::Complete, Some("pass")) => Self::Pass,
            (EvaluationStatus::Complete, Some("warn")) => Self::Warn,
            (EvaluationStatus::Complete, Some("fail")) => Self::Fail,
            (EvaluationStatus::Complete, _) => Self::Scored,
        }
    }

    /// Its mark and its tone.
    pub const fn look(self, glyphs: &Glyphs) -> (&'static str, Tone) {
        match self {
            Self::Unfinished => (glyphs.unfinished, Tone::Dim),
            Self::Failed => (glyphs.failed, Tone::Bad),
            Self::Below => (glyphs.fall, Tone::Bad),
            Self::Pass => (glyphs.ok, Tone::Good),
            Self::Warn => (glyphs.worse, Tone::Warn),
            Self::Fail => (glyphs.bad, Tone::Bad),
            Self::Scored => (glyphs.leaf, Tone::Plain),
        }
    }
}

/// How a decision deserves to be read.
pub const fn of_decision(decision: Decision) -> Tone {
    match decision {
        Decision::Queued => Tone::Good,
        Decision::Quota | Decision::Paused => Tone::Bad,
        Decision::NotReady | Decision::Disabled => Tone::Warn,
        Decision::Filtered | Decision::SampledOut | Decision::Duplicate => Tone::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_ranks_is_neither_good_nor_bad() {
        for (status, label, mark, tone) in [
            (EvaluationStatus::Complete, Some("pass"), "✓", Tone::Good),
            (EvaluationStatus::Complete, Some("bad"), "·", Tone::Plain),
            (EvaluationStatus::Complete, None, "·", Tone::Plain),
            (EvaluationStatus::Failed, Some("pass"), "✗", Tone::Bad),
            (EvaluationStatus::Running, None, "…", Tone::Dim),
        ] {
            assert_eq!(
                Standing::of(status, label).look(&Glyphs::UNICODE),
                (mark, tone),
                "{status} {label:?}"
            );
        }
    }
}
