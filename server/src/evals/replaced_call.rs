//! A subject in which another model call stands for the recorded one. Pure.

use evaluators::Subject;
use uuid::Uuid;

/// A model call that stands for a recorded one.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplacedCall {
    /// The span of the recorded call.
    pub span_id: Uuid,
    /// The messages of the other call, as JSON.
    pub input: String,
    /// The output of the other call.
    pub output: String,
    /// The model that replied.
    pub model: String,
    /// Latency of the other call minus that of the recorded one, milliseconds.
    pub latency_change_ms: Option<i64>,
    /// Cost of the other call minus that of the recorded one, US dollars.
    pub cost_change: Option<f64>,
    /// Prompt tokens of the other call minus those of the recorded one.
    pub prompt_tokens_change: Option<i64>,
    /// Completion tokens of the other call minus those of the recorded one.
    pub completion_tokens_change: Option<i64>,
}

impl ReplacedCall {
    /// Replaces the call in the subject of a whole trace. Its output stands for that of the trace, and its messages for the
    /// trace's input if that is the input of the recorded call. Figures whose change is unknown become unknown.
    pub fn apply(&self, subject: &mut Subject) {
        let Some(step) = subject.steps.iter_mut().find(|it| it.id == self.span_id) else { return };
        if step.input.is_some() && subject.input == step.input {
            subject.input = Some(self.input.clone());
        }
        subject.output = Some(self.output.clone());
        subject.model = Some(self.model.clone());
        step.input = Some(self.input.clone());
        step.output = Some(self.output.clone());
        step.model = Some(self.model.clone());
        if step.error.take().is_some() {
            subject.error = None;
        }
        let changed = |was: Option<i64>, change: Option<i64>| Some((was? + change?).max(0));
        subject.latency_ms = changed(subject.latency_ms, self.latency_change_ms);
        subject.prompt_tokens = changed(subject.prompt_tokens, self.prompt_tokens_change);
        subject.completion_tokens = changed(subject.completion_tokens, self.completion_tokens_change);
        subject.cost = subject.cost.zip(self.cost_change).map(|(was, change)| (was + change).max(0.0));
    }
}

#[cfg(test)]
mod tests {
    use evaluators::subject::Step;

    use super::*;

    fn text(it: &str) -> Option<String> {
        Some(it.to_owned())
    }

    #[test]
    fn other_call_stands_for_the_recorded_one() {
        let id = Uuid::from_u128(1);
        let step =
            Step { id, input: text("old"), output: text("bad"), error: text("failed"), ..Step::default() };
        let other = Step { id: Uuid::from_u128(2), output: text("tool"), ..Step::default() };
        let mut subject = Subject {
            input: text("old"),
            output: text("bad"),
            error: text("failed"),
            latency_ms: Some(100),
            cost: Some(0.5),
            prompt_tokens: Some(10),
            completion_tokens: Some(5),
            steps: vec![other.clone(), step],
            ..Subject::default()
        };
        let call = ReplacedCall {
            span_id: id,
            input: "new".to_owned(),
            output: "good".to_owned(),
            model: "m".to_owned(),
            latency_change_ms: Some(-30),
            cost_change: None,
            prompt_tokens_change: Some(7),
            completion_tokens_change: Some(-9),
        };
        call.apply(&mut subject);
        assert_eq!((&subject.input, &subject.output, &subject.error), (&text("new"), &text("good"), &None));
        assert_eq!((subject.latency_ms, subject.cost), (Some(70), None));
        assert_eq!((subject.prompt_tokens, subject.completion_tokens), (Some(17), Some(0)));
        assert_eq!((&subject.steps[0], &subject.steps[1].output), (&other, &text("good")));
        let unchanged = Subject { steps: vec![other], ..Subject::default() };
        let mut without = unchanged.clone();
        call.apply(&mut without);
        assert_eq!(without, unchanged);
    }
}
