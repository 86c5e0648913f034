//! Evaluates whether a text has the required format.

mod form;

use serde_json::{Map, Value, json};

use self::form::Form;
use crate::{
    budget,
    definition::{ConfigProblem, Definition, Method, Rule},
    form::length::Lengths,
    pattern::MAX_COMPILED_BYTES_TOGETHER,
    subject::Subject,
    target::Target,
    verdict::{Unjudged, Verdict},
};

/// The definition of the evaluator `output_format_compliance`.
pub static DEFINITION: Definition = Definition {
    name: "output_format_compliance",
    display_name: "Format Compliance",
    tags: &["tool-use", "quality"],
    description: "Whether the output, as a whole but for blanks around it, has the form that `format` names: \
                  1.0 if it has, 0.0 if not. JSON (RFC 8259), YAML 1.2, well-formed XML 1.0, CSV (RFC 4180), a \
                  Markdown table (GFM), a regular expression or a length; several by `all_of`, where 1.0 needs all.",
    version: 2,
    config_schema,
    method: Method::Rule(compile),
};

/// Maximum number of formats in one config.
const MOST: usize = 20;

fn config_schema() -> Value {
    let mut one = options();
    let several = json!({
        "type": "array", "minItems": 1, "maxItems": MOST,
        "items": {"type": "object", "properties": one, "required": ["format"], "additionalProperties": false},
        "description": "Several forms, each with its options; instead of `format`."
    });
    if let Value::Object(one) = &mut one {
        one.insert("all_of".into(), several);
        one.insert("target".into(), Target::schema());
    }
    json!({"type": "object", "properties": one})
}

/// Returns the schema of the options of one format.
fn options() -> Value {
    let boolean = |what: &str| json!({"type": "boolean", "default": false, "description": what});
    let mut all = json!({
        "format": {"enum": form::NAMES, "description": "The form."},
        "root": {"enum": ["any", "object", "array"], "default": "any", "description": "json, yaml: what the outermost value has to be."},
        "extract": boolean("json, yaml, xml, csv: whether the text may be in a fenced block, exactly one, with words around it."),
        "namespaces": {"type": "boolean", "default": true, "description": "xml: whether prefixes have to be bound."},
        "delimiter": {"type": "string", "minLength": 1, "maxLength": 1, "default": ",", "description": "csv: what separates fields."},
        "header": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 1000, "description": "csv, markdown_table: the names of the columns, in order."},
        "columns": {"type": "integer", "minimum": 1, "description": "csv, markdown_table: how many columns."},
        "min_rows": {"type": "integer", "minimum": 0, "default": 0, "description": "csv, markdown_table: fewest rows; with a `header`, without it."},
        "ragged": boolean("markdown_table: whether rows may have more or fewer cells than the header."),
        "pattern": {"type": "string", "maxLength": 10000, "description": "regex: the expression, which runs in linear time."},
        "full_match": boolean("regex: whether it has to match the whole text."),
        "case_insensitive": boolean("regex: whether small and capital letters are the same.")
    });
    if let (Value::Object(all), Value::Object(lengths)) = (&mut all, Lengths::properties()) {
        all.extend(lengths);
    }
    all
}

struct Has {
    forms: Vec<Form>,
    target: Target,
}

fn compile(config: &Map<String, Value>) -> Result<Box<dyn Rule>, Vec<ConfigProblem>> {
    let target = Target::of(config).map_err(|it| vec![it])?;
    let one = |field: &str, message: &str| Err(vec![ConfigProblem::new(field, message)]);
    let forms = match (config.get("format"), config.get("all_of").and_then(Value::as_array)) {
        (Some(_), Some(_)) => return one("all_of", "can't stand beside format: put all forms into all_of"),
        (None, None) => return one("format", "is required, or all_of with several"),
        (Some(_), None) => vec![Form::of(config, &["target", "threshold"])?],
        (None, Some(all)) => {
            let others = |it: &&String| !["all_of", "target", "threshold"].contains(&it.as_str());
            if let Some(other) = config.keys().find(others) {
                return one(other, "belongs to one form: put it into all_of beside its format");
            }
            let mut forms = Vec::new();
            for (index, it) in all.iter().enumerate().take(MOST) {
                let empty = Map::new();
                let below = |it: ConfigProblem| {
                    let field = format!("all_of.{index}.{}", it.field);
                    ConfigProblem::new(field.trim_end_matches('.'), it.message)
                };
                let form = Form::of(it.as_object().unwrap_or(&empty), &[]);
                forms.push(form.map_err(|it| it.into_iter().map(below).collect::<Vec<_>>())?);
            }
            forms
        }
    };
    if forms.is_empty() {
        return one("all_of", "needs at least one form");
    }
    if forms.iter().map(Form::bytes).sum::<usize>() > MAX_COMPILED_BYTES_TOGETHER {
        return one(
            "all_of",
            "has regular expressions that grow too large together: use fewer, or repeat less",
        );
    }
    Ok(Box::new(Has { forms, target }))
}

impl Rule for Has {
    fn judge(&self, subject: &Subject) -> Result<Verdict, Unjudged> {
        let text = self.target.bounded_text(subject)?;
        let mut wrong = Vec::new();
        for form in &self.forms {
            budget::poll();
            if let Err(why) = form.holds(text) {
                wrong.push(format!("{}: {why}", form.says()));
            }
        }
        if wrong.is_empty() {
            let names: Vec<&str> = self.forms.iter().map(Form::name).collect();
            return Ok(Verdict::good(format!("the text has the form {}", names.join(", "))));
        }
        Ok(Verdict::bad(wrong.join("; ")))
    }

    fn bytes(&self) -> usize {
        self.forms.iter().map(Form::bytes).sum()
    }
}

#[cfg(test)]
mod tests;
