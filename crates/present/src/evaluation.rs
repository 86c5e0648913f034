//! Marks and tones of evaluations and of rule decisions, the same wherever they are shown.

use api::{eval::EvaluationStatus, eval_rule::Decision};

use crate::{glyphs::Glyphs, tone::Tone};

/// The state of an evaluation that the mark of its row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluationMark {
    /// The evaluation is pending or running.
    Unfinished,
    /// The evaluation failed and has no score.
    Failed,
    /// The score of a remediated output is below the score of the original output.
    BelowBaseline,
    /// The label is `pass`.
    Pass,
    /// The label is `warn`.
    Warn,
    /// The label is `fail`.
    Fail,
    /// A score without a label, or with one of the evaluator's own labels, which have no order.
    Scored,
}

impl EvaluationMark {
    /// Returns the mark of an evaluation without a baseline.
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

    /// Returns the glyph and its tone.
    pub const fn glyph_and_tone(self, glyphs: &Glyphs) -> (&'static str, Tone) {
        match self {
            Self::Unfinished => (glyphs.unfinished, Tone::Dim),
            Self::Failed => (glyphs.failed, Tone::Bad),
            Self::BelowBaseline => (glyphs.fall, Tone::Bad),
            Self::Pass => (glyphs.ok, Tone::Good),
            Self::Warn => (glyphs.worse, Tone::Warn),
            Self::Fail => (glyphs.bad, Tone::Bad),
            Self::Scored => (glyphs.leaf, Tone::Plain),
        }
    }
}

/// Returns the tone of a rule decision.
pub const fn decision_tone(decision: Decision) -> Tone {
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
    fn label_without_an_order_is_neither_good_nor_bad() {
        for (status, label, mark, tone) in [
            (EvaluationStatus::Complete, Some("pass"), "✓", Tone::Good),
            (EvaluationStatus::Complete, Some("bad"), "·", Tone::Plain),
            (EvaluationStatus::Complete, None, "·", Tone::Plain),
            (EvaluationStatus::Failed, Some("pass"), "✗", Tone::Bad),
            (EvaluationStatus::Running, None, "…", Tone::Dim),
        ] {
            assert_eq!(
                EvaluationMark::of(status, label).glyph_and_tone(&Glyphs::UNICODE),
                (mark, tone),
                "{status} {label:?}"
            );
        }
    }
}
