//! A form: fields that are typed or chosen from a list.
//!
//! A screen defines the fields and reads them ([`FormPurpose::read`]). Nothing is sent until every field is valid.

mod choice;

use std::{
    fmt::{self, Debug},
    sync::Arc,
};

use api::{eval::EvaluatorType, evaluator::Evaluator};
use crossterm::event::{KeyCode, KeyEvent};
use serde_json::Value as Json;
use uuid::Uuid;

pub use choice::Choice;

use crate::{
    change::Change,
    ids::LoadedIds,
    input::{Input, InputKind},
};

/// The position of the invalid field, and the problem.
pub type FieldError = (usize, String);

/// The purpose of a form. A screen implements it for its forms.
pub trait FormPurpose: Debug + Send + Sync {
    /// Returns the title of the dialog.
    fn title(&self) -> &'static str;

    /// Returns the label of the button.
    fn verb(&self) -> &'static str;

    /// Returns the name and the id of the record that the form is about, and a remark.
    fn subject(&self) -> Option<(&str, Uuid, &'static str)> {
        None
    }

    /// Returns whether the type of the evaluator can be left to the server.
    fn has_optional_type(&self) -> bool {
        false
    }

    /// Returns the change that the form describes.
    ///
    /// # Errors
    /// Fails with the position of the invalid field and the expected value.
    fn read(&self, form: &Form, loaded: &LoadedIds) -> Result<Arc<dyn Change>, FieldError>;
}

/// The name of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldName {
    /// The label.
    pub title: &'static str,
    /// The hint shown while the field has the focus.
    pub hint: &'static str,
}

/// The field that chooses a project; the form fills it.
pub const PROJECT_FIELD: FieldName = FieldName { title: "Project", hint: "left and right choose" };
/// The field that chooses an evaluator; the form fills it.
pub const METRIC_FIELD: FieldName =
    FieldName { title: "Metric", hint: "type a few letters, left and right choose" };
/// The field that chooses among the types of the evaluator; the form fills it.
pub const TYPE_FIELD: FieldName =
    FieldName { title: "Type", hint: "llm: a judge model reads the trace; rule: code does" };
/// The options of the evaluator.
pub const CONFIG_FIELD: FieldName =
    FieldName { title: "Config", hint: "options as JSON; * marks the required ones" };

/// A field.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name.
    pub name: FieldName,
    /// The value.
    pub value: FieldValue,
}

/// The value of a field.
#[derive(Clone)]
pub enum FieldValue {
    /// Text.
    Text(Input),
    /// A secret, which is shown masked and never logged.
    Secret(Input),
    /// One of several.
    Choice(Choice),
}

impl Debug for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.debug_tuple("Text").field(text).finish(),
            Self::Secret(_) => f.write_str("Secret(***)"),
            Self::Choice(choice) => f.debug_tuple("Choice").field(choice).finish(),
        }
    }
}

impl Field {
    /// Returns an empty field for a secret.
    pub fn secret(name: FieldName) -> Self {
        Self { name, value: FieldValue::Secret(Input::new(InputKind::Dialog, "")) }
    }

    /// Returns a field with a text.
    pub fn text(name: FieldName, text: &str) -> Self {
        Self { name, value: FieldValue::Text(Input::new(InputKind::Dialog, text)) }
    }

    /// Returns a field with one of several values.
    pub fn choice(name: FieldName, choice: Choice) -> Self {
        Self { name, value: FieldValue::Choice(choice) }
    }

    /// Returns whether letters edit the field.
    pub fn types(&self) -> bool {
        match &self.value {
            FieldValue::Text(_) | FieldValue::Secret(_) => true,
            FieldValue::Choice(choice) => choice.letters.is_some(),
        }
    }

    /// Returns the line of text, or the letters that filter the values.
    pub fn text_mut(&mut self) -> Option<&mut Input> {
        match &mut self.value {
            FieldValue::Text(text) | FieldValue::Secret(text) => Some(text),
            FieldValue::Choice(choice) => choice.letters.as_mut(),
        }
    }
}

/// A form.
#[derive(Clone, Debug)]
pub struct Form {
    /// The purpose.
    pub purpose: Arc<dyn FormPurpose>,
    /// The fields.
    pub fields: Vec<Field>,
    /// The field that the form begins with.
    pub first: usize,
    /// The description of the chosen evaluator and its options.
    pub about: Option<EvaluatorHelp>,
    /// The evaluator whose types are offered.
    offered_for: Option<String>,
}

/// The description of an evaluator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluatorHelp {
    /// The property that the evaluator checks, and the fields that it requires.
    pub description: String,
    /// The options of its config; `*` follows those that are required.
    pub options: String,
}

impl Form {
    /// Returns a form with these fields that begins with the first one.
    pub fn new(purpose: Arc<dyn FormPurpose>, fields: Vec<Field>) -> Self {
        Self { purpose, fields, first: 0, about: None, offered_for: None }
    }

    /// Begins with a field.
    pub fn beginning_with(mut self, name: FieldName) -> Self {
        self.first = self.position(name);
        self
    }

    /// Offers these evaluators. A chosen one stays chosen with its type.
    pub fn with_evaluators(mut self, evaluators: &[Evaluator]) -> Self {
        self.offered_for = self.word(METRIC_FIELD);
        // An empty list has not been loaded yet.
        if !evaluators.is_empty() {
            self.fill_evaluators(evaluators);
        }
        self
    }

    /// Sets the evaluators to choose from.
    pub fn fill_evaluators(&mut self, evaluators: &[Evaluator]) {
        let options = evaluators.iter().map(|it| (it.name.clone(), it.name.clone())).collect();
        if let Some(metric) = self.choice_mut(METRIC_FIELD) {
            metric.replace(options);
        }
        self.follow(evaluators);
    }

    /// Sets the projects to choose from.
    pub fn fill_projects(&mut self, projects: Vec<(Uuid, String)>) {
        if let Some(choice) = self.choice_mut(PROJECT_FIELD) {
            // The value that leaves the project to the server stays.
            let mut options: Vec<_> =
                choice.options.iter().filter(|(id, _)| id.is_empty()).cloned().collect();
            options.extend(projects.into_iter().map(|(id, name)| (id.to_string(), name)));
            choice.replace(options);
        }
    }

    /// Handles a key in a field.
    pub fn key(&mut self, at: usize, key: KeyEvent, evaluators: &[Evaluator]) {
        let Some(field) = self.fields.get_mut(at) else { return };
        match (&mut field.value, key.code) {
            (FieldValue::Choice(choice), KeyCode::Left | KeyCode::Right) => {
                choice.step(key.code == KeyCode::Right);
            }
            (FieldValue::Choice(choice @ Choice { letters: None, .. }), KeyCode::Char(' ')) => {
                choice.step(true)
            }
            _ => {
                return self.edit(at, evaluators, |text| {
                    text.key(key, &[]);
                });
            }
        }
        if field.name == METRIC_FIELD {
            self.follow(evaluators);
        }
    }

    /// Changes the text of a field. If the letters of a choice change, the best match is chosen.
    pub fn edit(&mut self, at: usize, evaluators: &[Evaluator], change: impl FnOnce(&mut Input)) {
        let Some(field) = self.fields.get_mut(at) else { return };
        let Some(text) = field.text_mut() else { return };
        let before = text.text().to_owned();
        change(text);
        let other = before != text.text();
        if let FieldValue::Choice(choice) = &mut field.value
            && other
        {
            choice.at = 0;
            self.follow(evaluators);
        }
    }

    /// Offers the types of the evaluator in the form and shows its description.
    fn follow(&mut self, evaluators: &[Evaluator]) {
        let name = self.choice(METRIC_FIELD).and_then(Choice::word).map(str::to_owned);
        // Before the evaluators have arrived, the given value is kept.
        if evaluators.is_empty() && name.is_some() {
            return;
        }
        let other = std::mem::replace(&mut self.offered_for, name.clone()) != name;
        let chosen = name.and_then(|name| evaluators.iter().find(|it| it.name == name));
        let optional = self.purpose.has_optional_type();
        if let Some(kinds) = self.choice_mut(TYPE_FIELD) {
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
            // A type that was chosen for one evaluator does not apply to another.
            if other {
                kinds.at = 0;
            }
        }
        self.about = chosen.map(|it| EvaluatorHelp {
            description: it.description.clone(),
            options: options_of(&it.config_schema),
        });
    }

    /// Returns the error of a field.
    pub fn error(&self, name: FieldName, problem: impl Into<String>) -> FieldError {
        (self.position(name), problem.into())
    }

    /// Returns the text of a field, without the blanks around it.
    pub fn typed(&self, name: FieldName) -> &str {
        match self.field(name).map(|field| &field.value) {
            Some(FieldValue::Text(text) | FieldValue::Secret(text)) => text.text().trim(),
            _ => "",
        }
    }

    /// Returns the chosen value of a field.
    pub fn word(&self, name: FieldName) -> Option<String> {
        self.choice(name).and_then(Choice::word).map(str::to_owned)
    }

    fn position(&self, name: FieldName) -> usize {
        self.fields.iter().position(|field| field.name == name).unwrap_or(0)
    }

    fn field(&self, name: FieldName) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the choice of a field.
    pub fn choice(&self, name: FieldName) -> Option<&Choice> {
        match &self.field(name)?.value {
            FieldValue::Choice(choice) => Some(choice),
            FieldValue::Text(_) | FieldValue::Secret(_) => None,
        }
    }

    fn choice_mut(&mut self, name: FieldName) -> Option<&mut Choice> {
        match &mut self.fields.iter_mut().find(|field| field.name == name)?.value {
            FieldValue::Choice(choice) => Some(choice),
            FieldValue::Text(_) | FieldValue::Secret(_) => None,
        }
    }
}

/// Returns the options that a config schema allows, in the order of their names, with `*` after the required ones.
fn options_of(schema: &Json) -> String {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let Some(members) = schema["properties"].as_object() else { return String::new() };
    let shown = members.keys().map(|name| {
        let needed = if required.contains(&name.as_str()) { "*" } else { "" };
        format!("{name}{needed}")
    });
    shown.collect::<Vec<_>>().join(", ")
}
