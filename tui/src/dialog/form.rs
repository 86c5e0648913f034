//! A dialog of several lines: some are typed, some are chosen from a list.
//!
//! What was entered is read in one place, [`Form::change`], which says what is wrong with it and
//! in which line; nothing is sent before that.

mod choice;
mod read;

use api::{
    eval::{Evaluation, EvaluatorType, ModelTier},
    evaluator::Evaluator,
};
use crossterm::event::{KeyCode, KeyEvent};
use uuid::Uuid;

pub use choice::Choice;

use crate::input::{Input, InputKind};

/// The purpose of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An evaluation.
    Evaluate,
    /// A rule.
    Rule,
    /// A test of a rule.
    Test {
        /// The id.
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

/// The values that the form of an evaluation begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormDefaults {
    /// The trace.
    pub trace: Option<Uuid>,
    /// The span.
    pub span: Option<Uuid>,
    /// The evaluator.
    pub metric: Option<String>,
    /// The type of the evaluator.
    pub kind: Option<EvaluatorType>,
    /// The tier of the judge model.
    pub tier: Option<ModelTier>,
    /// Options of the evaluator.
    pub config: Option<String>,
}

impl FormDefaults {
    /// Returns the values of an existing evaluation. Its record does not contain the options.
    pub fn again(it: &Evaluation) -> Self {
        Self {
            trace: Some(it.trace_id),
            span: it.span_id,
            metric: Some(it.metric_name.clone()),
            kind: Some(it.evaluator_type),
            tier: it.model_tier,
            config: None,
        }
    }
}

/// The name of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The trace.
    Trace,
    /// The span, if not the whole trace.
    Span,
    /// The project.
    Project,
    /// The evaluator.
    Metric,
    /// The type of the evaluator.
    Type,
    /// The tier of the judge model.
    Tier,
    /// Options of the evaluator.
    Config,
    /// The smallest drop that raises an alert.
    Drop,
    /// The share of traces.
    Sample,
    /// The filter of traces.
    Filter,
    /// Whether it runs.
    Enabled,
}

impl Name {
    /// Returns the label of the field.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Trace => "Trace",
            Self::Span => "Span",
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

    /// Returns the hint shown while the field has the focus.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Trace => "the trace's id, or the end of the id of a loaded one",
            Self::Span => "judges one span; nothing judges the whole trace",
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
    /// The name of the field.
    pub name: Name,
    /// The value.
    pub value: Value,
}

/// The value of a field.
#[derive(Clone, Debug)]
pub enum Value {
    /// Text.
    Text(Input),
    /// One of several.
    Choice(Choice),
}

impl Field {
    fn text(name: Name, text: &str) -> Self {
        Self { name, value: Value::Text(Input::new(InputKind::Dialog, text)) }
    }

    fn choice(name: Name, choice: Choice) -> Self {
        Self { name, value: Value::Choice(choice) }
    }

    /// Whether letters are taken as text.
    pub fn types(&self) -> bool {
        match &self.value {
            Value::Text(_) => true,
            Value::Choice(choice) => choice.letters.is_some(),
        }
    }

    /// The line of text, or the letters that narrow values down.
    pub fn text_mut(&mut self) -> Option<&mut Input> {
        match &mut self.value {
            Value::Text(text) => Some(text),
            Value::Choice(choice) => choice.letters.as_mut(),
        }
    }
}

/// The lines of a dialog.
#[derive(Clone, Debug)]
pub struct Form {
    /// The purpose.
    pub kind: Kind,
    /// The lines.
    pub fields: Vec<Field>,
    /// The description of the chosen evaluator and its options.
    pub about: Option<About>,
    /// The evaluator that the offered types belong to.
    of: Option<String>,
}

/// The description of the selected evaluator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// What the evaluator checks, and the fields it requires.
    pub description: String,
    /// The members of its config; `*` after those that are needed.
    pub options: String,
}

impl Form {
    /// Returns the form of an evaluation with these defaults.
    pub fn evaluate(given: FormDefaults, evaluators: &[Evaluator]) -> Self {
        let text = |id: Option<Uuid>| id.map(|id| id.to_string()).unwrap_or_default();
        let kind = given.kind.map(EvaluatorType::as_str);
        let mut tiers = Choice::of(&["cheap", "premium"]);
        tiers.at = usize::from(given.tier == Some(ModelTier::Premium));
        let fields = vec![
            Field::text(Name::Trace, &text(given.trace)),
            Field::text(Name::Span, &text(given.span)),
            Field::choice(Name::Metric, Choice::awaiting(given.metric.as_deref())),
            Field::choice(Name::Type, Choice::of(kind.as_slice())),
            Field::choice(Name::Tier, tiers),
            Field::text(Name::Config, &given.config.unwrap_or_default()),
        ];
        Self { kind: Kind::Evaluate, fields, about: None, of: given.metric }.with(evaluators)
    }

    /// Returns the form of a rule.
    pub fn rule(project: Option<Uuid>, projects: Vec<(Uuid, String)>, evaluators: &[Evaluator]) -> Self {
        let mut choice = Choice {
            options: projects.into_iter().map(|(id, name)| (id.to_string(), name)).collect(),
            ..Choice::default()
        };
        let chosen = project.map(|id| id.to_string());
        choice.at = choice.options.iter().position(|(id, _)| Some(id) == chosen.as_ref()).unwrap_or(0);
        let fields = vec![
            Field::choice(Name::Project, choice),
            Field::choice(Name::Metric, Choice::awaiting(None)),
            Field::choice(Name::Type, Choice::default()),
            Field::choice(Name::Tier, Choice::of(&["cheap", "premium"])),
            Field::text(Name::Config, ""),
            Field::text(Name::Filter, ""),
            Field::text(Name::Sample, "1"),
            Field::text(Name::Drop, "0"),
            Field::choice(Name::Enabled, Choice::of(&["yes", "no"])),
        ];
        Self { kind: Kind::Rule, fields, about: None, of: None }.with(evaluators)
    }

    /// Returns the form that tests a rule on a trace.
    pub fn test(id: Uuid, name: String, trace: Option<Uuid>) -> Self {
        let trace = trace.map(|id| id.to_string()).unwrap_or_default();
        let fields = vec![Field::text(Name::Trace, &trace)];
        Self { kind: Kind::Test { id, name }, fields, about: None, of: None }
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
        // Without any they are still to come.
        if !evaluators.is_empty() {
            self.fill_evaluators(evaluators);
        }
        self
    }

    /// Sets the evaluators to choose from.
    pub fn fill_evaluators(&mut self, evaluators: &[Evaluator]) {
        let options = evaluators.iter().map(|it| (it.name.clone(), it.name.clone())).collect();
        if let Some(metric) = self.choice_mut(Name::Metric) {
            metric.replace(options);
        }
        self.follow(evaluators);
    }

    /// Sets the projects to choose from.
    pub fn fill_projects(&mut self, projects: Vec<(Uuid, String)>) {
        if let Some(choice) = self.choice_mut(Name::Project) {
            choice.replace(projects.into_iter().map(|(id, name)| (id.to_string(), name)).collect());
        }
    }

    /// Performs a key in a line.
    pub fn key(&mut self, at: usize, key: KeyEvent, evaluators: &[Evaluator]) {
        let Some(field) = self.fields.get_mut(at) else { return };
        match (&mut field.value, key.code) {
            (Value::Choice(choice), KeyCode::Left | KeyCode::Right) => {
                choice.step(key.code == KeyCode::Right);
            }
            (Value::Choice(choice @ Choice { letters: None, .. }), KeyCode::Char(' ')) => choice.step(true),
            _ => {
                return self.edit(at, evaluators, |text| {
                    text.key(key, &[]);
                });
            }
        }
        if field.name == Name::Metric {
            self.follow(evaluators);
        }
    }

    /// Changes the text of a line. Other letters begin again with the value that fits them best.
    pub fn edit(&mut self, at: usize, evaluators: &[Evaluator], change: impl FnOnce(&mut Input)) {
        let Some(field) = self.fields.get_mut(at) else { return };
        let Some(text) = field.text_mut() else { return };
        let before = text.text().to_owned();
        change(text);
        let other = before != text.text();
        if let Value::Choice(choice) = &mut field.value
            && other
        {
            choice.at = 0;
            self.follow(evaluators);
        }
    }

    /// Offers the types of the evaluator in the form and shows its description.
    fn follow(&mut self, evaluators: &[Evaluator]) {
        let name = self.choice(Name::Metric).and_then(Choice::word).map(str::to_owned);
        // Before the evaluators have arrived, the given value is kept.
        if evaluators.is_empty() && name.is_some() {
            return;
        }
        let other = std::mem::replace(&mut self.of, name.clone()) != name;
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
            // If both types exist, the server chooses by the config.
            if optional && options.len() > 1 {
                options.insert(0, (String::new(), "by the config".to_owned()));
            }
            kinds.replace(options);
            // A type that was chosen for one evaluator says nothing of another.
            if other {
                kinds.at = 0;
            }
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
