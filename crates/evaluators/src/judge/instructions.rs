//! The instructions of a judge: the rubric of a built-in evaluator, or a tenant's template.

use super::{
    rubric::{PreferredProvider, Rubric, TracePart},
    scale::Scale,
    section::PromptPart,
};

/// The instructions of a judge with the scale of its response.
#[derive(Clone, Debug)]
pub struct Instructions {
    task: Task,
    scale: Scale,
    needs: Vec<PromptPart>,
    uses: Vec<PromptPart>,
}

#[derive(Clone, Debug)]
enum Task {
    Rubric(&'static Rubric),
    Template(String),
}

impl From<&'static Rubric> for Instructions {
    fn from(rubric: &'static Rubric) -> Self {
        Self {
            task: Task::Rubric(rubric),
            scale: Scale::ZERO_TO_ONE,
            needs: rubric.needs.iter().copied().map(PromptPart::Trace).collect(),
            uses: rubric.uses.iter().copied().map(PromptPart::Trace).collect(),
        }
    }
}

impl Instructions {
    /// Creates instructions from a template whose placeholders were replaced by names of sections (see
    /// [`crate::custom::llm`]).
    pub(crate) fn of_template(
        text: String,
        scale: Scale,
        needs: Vec<PromptPart>,
        uses: Vec<PromptPart>,
    ) -> Self {
        Self { task: Task::Template(text), scale, needs, uses }
    }

    /// Returns the scale of the response.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// Returns the parts that a trace must have.
    pub fn needs(&self) -> &[PromptPart] {
        &self.needs
    }

    /// Returns the parts that are shown if the trace has them.
    pub fn uses(&self) -> &[PromptPart] {
        &self.uses
    }

    /// Returns the keys of the options that are shown, as dotted paths.
    pub fn config_keys(&self) -> impl Iterator<Item = &str> {
        self.needs.iter().chain(&self.uses).filter_map(|part| match part {
            PromptPart::Config(key) => Some(key.as_str()),
            _ => None,
        })
    }

    /// Returns whether earlier turns are shown; only then must the caller load them.
    pub fn shows_turns(&self) -> bool {
        let turns = PromptPart::Trace(TracePart::Turns);
        self.needs.contains(&turns) || self.uses.contains(&turns)
    }

    /// Returns the provider whose models judge this best; none for a custom evaluator.
    pub fn prefers(&self) -> Option<PreferredProvider> {
        match self.task {
            Task::Rubric(rubric) => Some(rubric.prefers),
            Task::Template(_) => None,
        }
    }

    /// Returns whether `config.rubric` and `config.language` are options of the evaluator. A custom evaluator
    /// has only the options that its tenant declared.
    pub(super) fn takes_options(&self) -> bool {
        matches!(self.task, Task::Rubric(_))
    }

    /// Returns the part of the system message that states the task.
    pub(super) fn task(&self) -> String {
        match &self.task {
            Task::Rubric(rubric) => written(rubric),
            Task::Template(text) => format!("# Your task\n{text}\n"),
        }
    }
}

fn written(rubric: &Rubric) -> String {
    let mut text = format!("# The question\n{}\n\n# How to come to an answer\n", rubric.question);
    for (at, step) in rubric.steps.iter().enumerate() {
        text.push_str(&format!("{}. {step}\n", at + 1));
    }
    let mut list = |title: &str, items: &[&str]| {
        if !items.is_empty() {
            text.push_str(&format!("\n# {title}\n"));
            for item in items {
                text.push_str(&format!("- {item}\n"));
            }
        }
    };
    list("What counts against it", rubric.counts);
    list("What does not", rubric.ignores);
    text.push_str("\n# The scale\n");
    for level in rubric.levels {
        text.push_str(&format!("- {}: {}\n", level.score, level.meaning));
    }
    text.push_str("Take a number between two of these only where the text lies between them.\n");
    text
}
