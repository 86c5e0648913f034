//! Reads and validates the fields of a form.

use api::{
    eval::NewEvaluation,
    eval_rule::{NewEvalRule, RuleFilter},
};
use serde_json::{Map, Value as Json};
use uuid::Uuid;

use crate::dialog::form::{Choice, Form, Kind, Name, Value};
use crate::{
    change::Change,
    ids::{LoadedIds, is_suffix, resolve_suffix},
};
use present::share;

/// The position of the invalid field, and the problem.
pub type Wrong = (usize, String);

impl Form {
    /// Returns the change that the form describes.
    ///
    /// # Errors
    /// The line of the form with the error, and the expected value.
    pub fn change(&self, loaded: &LoadedIds) -> Result<Change, Wrong> {
        match &self.kind {
            Kind::Test { id, name } => {
                let trace = self.trace(loaded)?;
                Ok(Change::TestRule { id: *id, name: name.clone(), trace })
            }
            Kind::Evaluate => Ok(Change::Evaluate(Box::new(NewEvaluation {
                trace_id: self.trace(loaded)?,
                metric_name: self.metric()?,
                evaluator_type: self.word(Name::Type).filter(|word| !word.is_empty()),
                config: self.config()?,
                model_tier: self.tier(),
                span_id: self.span(loaded)?,
            }))),
            Kind::Rule => {
                let project = self.word(Name::Project).and_then(|id| id.parse().ok());
                let project_id = project.ok_or_else(|| self.wrong(Name::Project, "choose a project"))?;
                let metric_name = self.metric()?;
                let kind = self.word(Name::Type);
                let evaluator_type = kind.ok_or_else(|| self.wrong(Name::Type, "choose a type"))?;
                Ok(Change::CreateRule(Box::new(NewEvalRule {
                    project_id,
                    metric_name,
                    evaluator_type,
                    config: self.config()?,
                    enabled: Some(self.word(Name::Enabled).as_deref() != Some("no")),
                    model_tier: self.tier(),
                    min_score_drop: self.drop()?,
                    filter: self.filter()?,
                    sample_rate: Some(self.sample()?),
                })))
            }
        }
    }

    fn wrong(&self, name: Name, why: impl Into<String>) -> Wrong {
        (self.fields.iter().position(|field| field.name == name).unwrap_or(0), why.into())
    }

    fn typed(&self, name: Name) -> &str {
        match self.field(name).map(|field| &field.value) {
            Some(Value::Text(text)) => text.text().trim(),
            _ => "",
        }
    }

    fn word(&self, name: Name) -> Option<String> {
        self.choice(name).and_then(Choice::word).map(str::to_owned)
    }

    fn trace(&self, loaded: &LoadedIds) -> Result<Uuid, Wrong> {
        let found = self.id(Name::Trace, "trace", &loaded.traces)?;
        found.ok_or_else(|| self.wrong(Name::Trace, "the id of a trace is needed"))
    }

    fn span(&self, loaded: &LoadedIds) -> Result<Option<Uuid>, Wrong> {
        self.id(Name::Span, "span", &loaded.spans)
    }

    /// A whole id, or the end of a loaded one.
    fn id(&self, name: Name, what: &str, loaded: &[Uuid]) -> Result<Option<Uuid>, Wrong> {
        let text = self.typed(name);
        if text.is_empty() {
            return Ok(None);
        }
        if let Ok(id) = text.parse() {
            return Ok(Some(id));
        }
        if !is_suffix(text) {
            return Err(self.wrong(name, format!("`{text}` is not the id of a {what}, nor the end of one")));
        }
        resolve_suffix(loaded.iter().copied(), text)
            .map(Some)
            .map_err(|unknown| self.wrong(name, unknown.message(what, text)))
    }

    /// The chosen evaluator; as long as the list of them is not there, the name as typed.
    fn metric(&self) -> Result<String, Wrong> {
        let Some(choice) = self.choice(Name::Metric) else { return Ok(String::new()) };
        let typed = choice.typed().trim();
        match choice.word() {
            Some(word) => Ok(word.to_owned()),
            None if choice.open && !typed.is_empty() => Ok(typed.to_owned()),
            None if typed.is_empty() => {
                Err(self.wrong(Name::Metric, "type the name of an evaluator, such as answer_relevance"))
            }
            None => Err(self.wrong(Name::Metric, format!("no evaluator fits `{typed}`"))),
        }
    }

    /// Only judges have tiers.
    fn tier(&self) -> Option<String> {
        let rule = self.word(Name::Type).as_deref() == Some("rule");
        self.word(Name::Tier).filter(|_| !rule)
    }

    fn config(&self) -> Result<Option<Map<String, Json>>, Wrong> {
        let text = self.typed(Name::Config);
        if text.is_empty() {
            return Ok(None);
        }
        match serde_json::from_str(text) {
            Ok(Json::Object(config)) => Ok(Some(config)),
            Ok(_) => Err(self.wrong(Name::Config, "the config is an object, such as {\"threshold\": 0.8}")),
            Err(error) => {
                let why = api::plain::json_error(&error);
                let why = format!("the config can't be read: {why}; an example is {{\"threshold\": 0.8}}");
                Err(self.wrong(Name::Config, why))
            }
        }
    }

    fn drop(&self) -> Result<Option<Option<f64>>, Wrong> {
        let text = self.typed(Name::Drop);
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse::<f64>() {
            Ok(drop) if drop.is_finite() && drop >= 0.0 => Ok(Some(Some(drop))),
            _ => Err(self.wrong(Name::Drop, format!("`{text}` is not a drop: 0 or more, such as 0.05"))),
        }
    }

    fn sample(&self) -> Result<f64, Wrong> {
        let text = self.typed(Name::Sample);
        if text.is_empty() {
            return Ok(1.0);
        }
        share::parse(text).map_err(|why| self.wrong(Name::Sample, format!("`{text}` {why}")))
    }

    fn filter(&self) -> Result<Option<RuleFilter>, Wrong> {
        let mut filter = RuleFilter::default();
        for term in terms(self.typed(Name::Filter)).map_err(|why| self.wrong(Name::Filter, why))? {
            let fail = |why: String| self.wrong(Name::Filter, why);
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
}

/// The blank-separated terms of a line; quotes keep blanks together.
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

/// The members that a config may have, in the order of their names, `*` after those that it must.
pub fn options(schema: &Json) -> String {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let Some(members) = schema["properties"].as_object() else { return String::new() };
    let shown = members.keys().map(|name| {
        let needed = if required.contains(&name.as_str()) { "*" } else { "" };
        format!("{name}{needed}")
    });
    shown.collect::<Vec<_>>().join(", ")
}
