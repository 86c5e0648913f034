//! A dialog of several lines: some are typed, some are chosen from a list.
//!
//! What was entered is read in one place, [`Form::change`], which says what is wrong with it and
//! in which line; nothing is sent before that.

mod read;

use api::{eval::EvaluatorType, evaluator::Evaluator};
use crossterm::event::{KeyCode, KeyEvent};
use uuid::Uuid;

use crate::{
    input::{Input, Purpose},
    palette::score,
};

/// What a form makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An evaluation.
    Evaluate,
    /// A rule.
    Rule,
    /// A test of a rule.
    Test {
        /// Which one.
        id: Uuid,
        /// Its metric.
        name: String,
    },
}

impl Kind {
    /// Title of the dialog.
    pub const fn title(&self) -> &'static str {
        match self {
            Self::Evaluate => "Run an evaluation",
            Self::Rule => "New rule",
            Self::Test { .. } => "Test a rule",
        }
    }

    /// The word on the button that goes on.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Evaluate => "Run",
            Self::Rule => "Add",
            Self::Test { .. } => "Test",
        }
    }
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The trace.
    Trace,
    /// The project.
    Project,
    /// The evaluator.
    Metric,
    /// How it judges.
    Type,
    /// Which judge model.
    Tier,
    /// Options of the evaluator.
    Config,
    /// The smallest drop that raises an alert.
    Drop,
    /// The share of traces.
    Sample,
    /// Which traces.
    Filter,
    /// Whether it runs.
    Enabled,
}

impl Name {
    /// What stands before the line.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Trace => "Trace",
            Self::Project => "Project",
            Self::Metric => "Metric",
            Self::Type => "Type",
            Self::Tier => "Tier",
            Self::Config => "Config",
            Self::Drop => "Min drop",
            Self::Sample => "Sample",
            Self::Filter => "Filter",
            Self::Enabled => "Enabled",
        }
    }

    /// What is to be entered, while the line has the keys.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Trace => "the trace's id, or the end of the id of a loaded one",
            Self::Project => "left and right choose",
            Self::Metric => "type a few letters, left and right choose",
            Self::Type => "llm: a judge model reads the trace; rule: code does",
            Self::Tier => "cheap costs less, premium judges better; for type llm",
            Self::Config => "options as JSON; * marks what is needed",
            Self::Drop => "a smaller drop after a control action raises no alert",
            Self::Sample => "share of the matching traces, 0 to 1, or as 25%",
            Self::Filter => "model:M name:N tag:key:value error:true type:llm",
            Self::Enabled => "left and right choose",
        }
    }
}

/// A line.
#[derive(Clone, Debug)]
pub struct Field {
    /// What it is about.
    pub name: Name,
    /// What was entered.
    pub value: Value,
}

/// What was entered in a line.
#[derive(Clone, Debug)]
pub enum Value {
    /// Text.
    Text(Input),
    /// One of several.
    Choice(Choice),
}

/// One of several values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The values: the word, and how it is shown.
    pub options: Vec<(String, String)>,
    /// The chosen one, among those that fit.
    pub at: usize,
    /// Letters that narrow the values down; nothing where there are too few to do so.
    pub typed: Option<String>,
}

impl Choice {
    /// Of words that are shown as they are.
    fn of(words: &[&str]) -> Self {
        let options = words.iter().map(|word| ((*word).to_owned(), (*word).to_owned())).collect();
        Self { options, ..Self::default() }
    }

    /// The values that fit the letters typed, best first.
    pub fn fitting(&self) -> Vec<&(String, String)> {
        let typed = self.typed.as_deref().unwrap_or("");
        let scored = |option| Some((score(typed, option_text(option))?, option));
        let mut fitting: Vec<_> = self.options.iter().filter_map(scored).collect();
        fitting.sort_by_key(|(score, _)| -score);
        fitting.into_iter().map(|(_, option)| option).collect()
    }

    /// The chosen word.
    pub fn word(&self) -> Option<&str> {
        self.fitting().get(self.at).map(|(word, _)| word.as_str())
    }

    fn step(&mut self, forward: bool) {
        let count = self.fitting().len();
        if count > 0 {
            self.at = if forward { self.at + 1 } else { self.at + count - 1 } % count;
        }
    }

    /// Puts other values in place; the chosen word stays chosen, if it is among them.
    fn replace(&mut self, options: Vec<(String, String)>) {
        let word = self.word().map(str::to_owned);
        self.options = options;
        let kept = word.and_then(|word| self.fitting().iter().position(|(it, _)| *it == word));
        self.at = kept.unwrap_or(0);
    }
}

fn option_text((_, shown): &(String, String)) -> &str {
    shown
}

impl Field {
    fn text(name: Name, text: &str) -> Self {
        Self { name, value: Value::Text(Input::new(Purpose::Dialog, text)) }
    }

    fn choice(name: Name, choice: Choice) -> Self {
        Self { name, value: Value::Choice(choice) }
    }

    /// Whether letters are taken as text.
    pub fn types(&self) -> bool {
        match &self.value {
            Value::Text(_) => true,
            Value::Choice(choice) => choice.typed.is_some(),
        }
    }

    /// The line of text, if it is one.
    pub fn text_mut(&mut self) -> Option<&mut Input> {
        match &mut self.value {
            Value::Text(text) => Some(text),
            Value::Choice(_) => None,
        }
    }
}

/// The lines of a dialog.
#[derive(Clone, Debug)]
pub struct Form {
    /// What it makes.
    pub kind: Kind,
    /// The lines.
    pub fields: Vec<Field>,
    /// About the chosen evaluator: what it judges, and its options.
    pub about: Option<About>,
}

/// What is known of the chosen evaluator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// What it checks and needs.
    pub description: String,
    /// The members of its config; `*` after those that are needed.
    pub options: String,
}

impl Form {
    /// Asks for an evaluation, of a trace if one is at hand.
    pub fn evaluate(trace: Option<Uuid>, evaluators: &[Evaluator]) -> Self {
        let trace = trace.map(|id| id.to_string()).unwrap_or_default();
        let fields = vec![
            Field::text(Name::Trace, &trace),
            Field::choice(Name::Metric, Choice { typed: Some(String::new()), ..Choice::default() }),
            Field::choice(Name::Type, Choice::default()),
            Field::choice(Name::Tier, Choice::of(&["cheap", "premium"])),
            Field::text(Name::Config, ""),
        ];
        Self { kind: Kind::Evaluate, fields, about: None }.with(evaluators)
    }

    /// Asks for a rule of a project.
    pub fn rule(project: Option<Uuid>, projects: Vec<(Uuid, String)>, evaluators: &[Evaluator]) -> Self {
        let mut choice = Choice {
            options: projects.into_iter().map(|(id, name)| (id.to_string(), name)).collect(),
            ..Choice::default()
        };
        let chosen = project.map(|id| id.to_string());
        choice.at = choice.options.iter().position(|(id, _)| Some(id) == chosen.as_ref()).unwrap_or(0);
        let fields = vec![
            Field::choice(Name::Project, choice),
            Field::choice(Name::Metric, Choice { typed: Some(String::new()), ..Choice::default() }),
            Field::choice(Name::Type, Choice::default()),
            Field::choice(Name::Tier, Choice::of(&["cheap", "premium"])),
            Field::text(Name::Config, ""),
            Field::text(Name::Filter, ""),
            Field::text(Name::Sample, "1"),
            Field::text(Name::Drop, "0"),
            Field::choice(Name::Enabled, Choice::of(&["yes", "no"])),
        ];
        Self { kind: Kind::Rule, fields, about: None }.with(evaluators)
    }

    /// Asks for the trace that a rule is tried on.
    pub fn test(id: Uuid, name: String, trace: Option<Uuid>) -> Self {
        let trace = trace.map(|id| id.to_string()).unwrap_or_default();
        Self { kind: Kind::Test { id, name }, fields: vec![Field::text(Name::Trace, &trace)], about: None }
    }

    /// The line to begin with: the first one that has to be filled in.
    pub fn first(&self) -> usize {
        let empty = |field: &Field| match &field.value {
            Value::Text(text) => field.name == Name::Trace && text.text().is_empty(),
            Value::Choice(_) => field.name == Name::Metric,
        };
        self.fields.iter().position(empty).unwrap_or(0)
    }

    fn with(mut self, evaluators: &[Evaluator]) -> Self {
        self.fill_evaluators(evaluators);
        self
    }

    /// Takes in the evaluators to choose from.
    pub fn fill_evaluators(&mut self, evaluators: &[Evaluator]) {
        let options = evaluators.iter().map(|it| (it.name.clone(), it.name.clone())).collect();
        if let Some(metric) = self.choice_mut(Name::Metric) {
            metric.replace(options);
        }
        self.follow(evaluators);
    }

    /// Takes in the projects to choose from.
    pub fn fill_projects(&mut self, projects: Vec<(Uuid, String)>) {
        if let Some(choice) = self.choice_mut(Name::Project) {
            choice.replace(projects.into_iter().map(|(id, name)| (id.to_string(), name)).collect());
        }
    }

    /// Performs a key in a line.
    pub fn key(&mut self, at: usize, key: KeyEvent, evaluators: &[Evaluator]) {
        let Some(field) = self.fields.get_mut(at) else { return };
        match (&mut field.value, key.code) {
            (Value::Text(text), _) => {
                text.key(key, &[]);
            }
            (Value::Choice(choice), KeyCode::Left | KeyCode::Right) => {
                choice.step(key.code == KeyCode::Right);
            }
            (Value::Choice(Choice { typed: Some(typed), at, .. }), KeyCode::Char(c)) => {
                typed.push(c);
                *at = 0;
            }
            (Value::Choice(Choice { typed: Some(typed), at, .. }), KeyCode::Backspace) => {
                typed.pop();
                *at = 0;
            }
            (Value::Choice(choice), KeyCode::Char(' ')) => choice.step(true),
            _ => {}
        }
        if field.name == Name::Metric {
            self.follow(evaluators);
        }
    }

    /// Another evaluator may have been chosen: offers its types, and says what it is.
    fn follow(&mut self, evaluators: &[Evaluator]) {
        let name = self.choice(Name::Metric).and_then(Choice::word).map(str::to_owned);
        let chosen = name.and_then(|name| evaluators.iter().find(|it| it.name == name));
        let optional = self.kind == Kind::Evaluate;
        if let Some(kinds) = self.choice_mut(Name::Type) {
            let mut offered: Vec<EvaluatorType> =
                chosen.map(|it| it.evaluator_types.clone()).unwrap_or_default();
            if let Some(usual) = chosen.map(|it| it.evaluator_type) {
                offered.retain(|kind| *kind != usual);
                offered.insert(0, usual);
            }
            let word = |kind: &EvaluatorType| (kind.to_string(), kind.to_string());
            let mut options: Vec<_> = offered.iter().map(word).collect();
            // Where both are offered, the server chooses by what the config says.
            if optional && options.len() > 1 {
                options.insert(0, (String::new(), "by the config".to_owned()));
            }
            kinds.replace(options);
        }
        self.about = chosen.map(|it| About {
            description: it.description.clone(),
            options: read::options(&it.config_schema),
        });
    }

    fn field(&self, name: Name) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    fn choice(&self, name: Name) -> Option<&Choice> {
        match &self.field(name)?.value {
            Value::Choice(choice) => Some(choice),
            Value::Text(_) => None,
        }
    }

    fn choice_mut(&mut self, name: Name) -> Option<&mut Choice> {
        match &mut self.fields.iter_mut().find(|field| field.name == name)?.value {
            Value::Choice(choice) => Some(choice),
            Value::Text(_) => None,
        }
    }
}
