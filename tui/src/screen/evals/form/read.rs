//! Reads and validates the fields of the forms.

use api::{
    eval::NewEvaluation,
    eval_rule::{NewEvalRule, RuleFilter},
};
use serde_json::{Map, Value as Json};
use uuid::Uuid;

use super::{
    DROP_FIELD, ENABLED_FIELD, FILTER_FIELD, NewEvaluationForm, NewRuleForm, RuleTestForm, SAMPLE_FIELD,
    SPAN_FIELD, TIER_FIELD, TRACE_FIELD,
};
use crate::{
    dialog::{CONFIG_FIELD, FieldError, FieldName, Form, METRIC_FIELD, PROJECT_FIELD, TYPE_FIELD},
    ids::{LoadedIds, is_suffix, resolve_suffix},
    screen::evals::change::EvalsChange,
};
use present::share;

impl RuleTestForm {
    /// Returns the test that the form describes.
    pub fn change(&self, form: &Form, loaded: &LoadedIds) -> Result<EvalsChange, FieldError> {
        Ok(EvalsChange::TestRule { id: self.id, name: self.name.clone(), trace: trace(form, loaded)? })
    }
}

impl NewEvaluationForm {
    /// Returns the evaluation that the form describes.
    pub fn change(form: &Form, loaded: &LoadedIds) -> Result<EvalsChange, FieldError> {
        Ok(EvalsChange::Evaluate(Box::new(NewEvaluation {
            trace_id: trace(form, loaded)?,
            metric_name: metric(form)?,
            evaluator_type: form.word(TYPE_FIELD).filter(|word| !word.is_empty()),
            config: config(form)?,
            model_tier: tier(form),
            span_id: span(form, loaded)?,
        })))
    }
}

impl NewRuleForm {
    /// Returns the rule that the form describes.
    pub fn change(form: &Form) -> Result<EvalsChange, FieldError> {
        let project = form.word(PROJECT_FIELD).and_then(|id| id.parse().ok());
        let project_id = project.ok_or_else(|| form.error(PROJECT_FIELD, "choose a project"))?;
        let metric_name = metric(form)?;
        let kind = form.word(TYPE_FIELD);
        let evaluator_type = kind.ok_or_else(|| form.error(TYPE_FIELD, "choose a type"))?;
        Ok(EvalsChange::CreateRule(Box::new(NewEvalRule {
            project_id,
            metric_name,
            evaluator_type,
            config: config(form)?,
            enabled: Some(form.word(ENABLED_FIELD).as_deref() != Some("no")),
            model_tier: tier(form),
            min_score_drop: drop(form)?,
            filter: filter(form)?,
            sample_rate: Some(sample(form)?),
        })))
    }
}

fn trace(form: &Form, loaded: &LoadedIds) -> Result<Uuid, FieldError> {
    let found = id(form, TRACE_FIELD, "trace", &loaded.traces)?;
    found.ok_or_else(|| form.error(TRACE_FIELD, "the id of a trace is needed"))
}

fn span(form: &Form, loaded: &LoadedIds) -> Result<Option<Uuid>, FieldError> {
    id(form, SPAN_FIELD, "span", &loaded.spans)
}

/// Returns a whole id, or the end of a loaded one.
fn id(form: &Form, name: FieldName, what: &str, loaded: &[Uuid]) -> Result<Option<Uuid>, FieldError> {
    let text = form.typed(name);
    if text.is_empty() {
        return Ok(None);
    }
    if let Ok(id) = text.parse() {
        return Ok(Some(id));
    }
    if !is_suffix(text) {
        return Err(form.error(name, format!("`{text}` is not the id of a {what}, nor the end of one")));
    }
    resolve_suffix(loaded.iter().copied(), text)
        .map(Some)
        .map_err(|unknown| form.error(name, unknown.message(what, text)))
}

/// Returns the chosen evaluator; as long as the list of them is not there, the name as typed.
fn metric(form: &Form) -> Result<String, FieldError> {
    let Some(choice) = form.choice(METRIC_FIELD) else { return Ok(String::new()) };
    let typed = choice.typed().trim();
    match choice.word() {
        Some(word) => Ok(word.to_owned()),
        None if choice.open && !typed.is_empty() => Ok(typed.to_owned()),
        None if typed.is_empty() => {
            Err(form.error(METRIC_FIELD, "type the name of an evaluator, such as answer_relevance"))
        }
        None => Err(form.error(METRIC_FIELD, format!("no evaluator matches `{typed}`"))),
    }
}

/// Returns the tier; only judges have one.
fn tier(form: &Form) -> Option<String> {
    let rule = form.word(TYPE_FIELD).as_deref() == Some("rule");
    form.word(TIER_FIELD).filter(|_| !rule)
}

fn config(form: &Form) -> Result<Option<Map<String, Json>>, FieldError> {
    let text = form.typed(CONFIG_FIELD);
    if text.is_empty() {
        return Ok(None);
    }
    match serde_json::from_str(text) {
        Ok(Json::Object(config)) => Ok(Some(config)),
        Ok(_) => Err(form.error(CONFIG_FIELD, "the config is an object, such as {\"threshold\": 0.8}")),
        Err(error) => {
            let why = api::plain::json_error(&error);
            let why = format!("the config can't be read: {why}; an example is {{\"threshold\": 0.8}}");
            Err(form.error(CONFIG_FIELD, why))
        }
    }
}

fn drop(form: &Form) -> Result<Option<Option<f64>>, FieldError> {
    let text = form.typed(DROP_FIELD);
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(drop) if drop.is_finite() && drop >= 0.0 => Ok(Some(Some(drop))),
        _ => Err(form.error(DROP_FIELD, format!("`{text}` is not a drop: 0 or more, such as 0.05"))),
    }
}

fn sample(form: &Form) -> Result<f64, FieldError> {
    let text = form.typed(SAMPLE_FIELD);
    if text.is_empty() {
        return Ok(1.0);
    }
    share::parse(text).map_err(|why| form.error(SAMPLE_FIELD, format!("`{text}` {why}")))
}

fn filter(form: &Form) -> Result<Option<RuleFilter>, FieldError> {
    let mut filter = RuleFilter::default();
    for term in terms(form.typed(FILTER_FIELD)).map_err(|why| form.error(FILTER_FIELD, why))? {
        let fail = |why: String| form.error(FILTER_FIELD, why);
        let Some((name, value)) = term.split_once(':').filter(|(_, value)| !value.is_empty()) else {
            return Err(fail(format!("`{term}` is not a term such as model:gpt-4o")));
        };
        let value = value.to_owned();
        let before = match name {
            "model" => filter.model.replace(value).is_some(),
            "tag" => filter.tag.replace(value).is_some(),
            "name" => filter.name.replace(value).is_some(),
            "type" => filter.span_type.replace(value).is_some(),
            "error" => match value.as_str() {
                "true" => filter.error.replace(true).is_some(),
                "false" => filter.error.replace(false).is_some(),
                _ => return Err(fail("error is true or false".to_owned())),
            },
            _ => {
                return Err(fail(format!(
                    "there is no field `{name}`; fields: model, name, tag, error, type"
                )));
            }
        };
        if before {
            return Err(fail(format!("`{name}:` is given twice")));
        }
    }
    Ok(Some(filter).filter(|filter| !filter.is_empty()))
}

/// Returns the blank-separated terms of a line; quotes keep blanks together.
fn terms(text: &str) -> Result<Vec<String>, &'static str> {
    let mut terms = Vec::new();
    let (mut term, mut quoted) = (String::new(), false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => {
                if !term.is_empty() {
                    terms.push(std::mem::take(&mut term));
                }
            }
            c => term.push(c),
        }
    }
    if !term.is_empty() {
        terms.push(term);
    }
    if quoted { Err("a quote is not closed") } else { Ok(terms) }
}
