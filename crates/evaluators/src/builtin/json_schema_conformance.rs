//! Evaluates whether a text is JSON that conforms to a schema.

use serde_json::{Map, Value, json};

use crate::{
    definition::{ConfigProblem, Definition, Method, Rule},
    form::{
        BLANKS, fence,
        json::{self, Faulty},
    },
    schema::{self, Outcome, Schema},
    sentence::counted,
    subject::Subject,
    target::Target,
    verdict::{Unjudged, Verdict},
};

/// The definition of the evaluator `json_schema_conformance`.
pub static DEFINITION: Definition = Definition {
    name: "json_schema_conformance",
    display_name: "JSON Schema",
    tags: &["tool-use"],
    description: "Whether the output, as a whole, is JSON that conforms to `schema`: 1.0 if it is, 0.0 if \
                  not. Drafts 4, 6, 7, 2019-09 and 2020-12; nothing outside of the schema is fetched, \
                  patterns have no look-around. The reasoning names the places that fail, never their values.",
    version: 2,
    config_schema,
    method: Method::Rule(compile),
};

fn config_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "schema": {"type": ["object", "boolean"], "description": "The JSON Schema."},
            "draft": {"enum": schema::DRAFTS, "description": "How the schema is read when it has no `$schema`; default 2020-12."},
            "formats": {"type": "boolean", "default": false, "description": "Whether `format` is checked."},
            "extract": {
                "type": "boolean", "default": false,
                "description": "Whether a text that is no JSON may hold the JSON in a fenced block, exactly one."
            },
            "target": Target::schema()
        },
        "required": ["schema"]
    })
}

struct Conforms {
    schema: Schema,
    extract: bool,
    target: Target,
}

fn compile(config: &Map<String, Value>) -> Result<Box<dyn Rule>, Vec<ConfigProblem>> {
    let Some(schema) = config.get("schema") else {
        return Err(vec![ConfigProblem::new("schema", "is required: the JSON Schema to hold the text to")]);
    };
    let schema = Schema::compile(schema, draft(config)?, flag(config, "formats"), "schema")?;
    let target = Target::of(config).map_err(|it| vec![it])?;
    Ok(Box::new(Conforms { schema, extract: flag(config, "extract"), target }))
}

fn draft(config: &Map<String, Value>) -> Result<Option<jsonschema::Draft>, Vec<ConfigProblem>> {
    let Some(name) = config.get("draft") else { return Ok(None) };
    match name.as_str().and_then(schema::draft) {
        Some(draft) if config.get("schema").is_none_or(|it| it.get("$schema").is_none()) => Ok(Some(draft)),
        // The library would prefer the option to the schema's own `$schema`; here `$schema` wins.
        Some(_) => Ok(None),
        None => {
            Err(vec![ConfigProblem::new("draft", format!("must be one of {}", schema::DRAFTS.join(", ")))])
        }
    }
}

fn flag(config: &Map<String, Value>, name: &str) -> bool {
    config.get(name).and_then(Value::as_bool).unwrap_or(false)
}

impl Rule for Conforms {
    fn judge(&self, subject: &Subject) -> Result<Verdict, Unjudged> {
        let text = self.target.bounded_text(subject)?.trim_matches(BLANKS);
        let (value, read) = match json::value(text) {
            Ok(value) => (value, text),
            Err(fault) if self.extract => match fence::blocks(text, &["json"]) {
                [Some(block), None] => match json::value(block) {
                    Ok(value) => (value, block),
                    Err(fault) => return no_json("the fenced block", &fault),
                },
                [Some(_), Some(_)] => {
                    return Ok(Verdict::bad(
                        "there is more than one fenced block, so which one is meant is open",
                    ));
                }
                _ => return no_json("the text", &fault),
            },
            Err(fault) => return no_json("the text", &fault),
        };
        verdict(self.schema.check(&value, read.len()))
    }

    fn bytes(&self) -> usize {
        self.schema.bytes()
    }
}

fn no_json(what: &str, fault: &Faulty) -> Result<Verdict, Unjudged> {
    match fault {
        Faulty::Form(why) => Ok(Verdict::bad(format!("{what} is not JSON: {why}"))),
        Faulty::Reach(why) => Err(Unjudged::new(format!("{what} is JSON, but {why}"))),
    }
}

/// Returns the verdict for a result of schema validation.
pub(crate) fn verdict(outcome: Outcome) -> Result<Verdict, Unjudged> {
    match outcome {
        Outcome::Conforms => Ok(Verdict::good("the JSON conforms to the schema")),
        Outcome::Fails(told, _) if told.is_empty() => {
            Ok(Verdict::bad("the JSON does not conform to the schema, in more places than are looked for"))
        }
        Outcome::Fails(told, more) => {
            let mut said: Vec<String> = told.iter().map(|it| it.sentence()).collect();
            if more > 0 {
                said.push(format!("and {}", counted(more, "more failure", "more failures")));
            }
            Ok(Verdict::bad(format!("the JSON does not conform to the schema: {}", said.join("; "))))
        }
        Outcome::Unfinished => Err(Unjudged::new(
            "the schema takes too many steps on this JSON: let fewer alternatives lead to one another, or name \
             the alternative by a constant member",
        )),
    }
}

#[cfg(test)]
mod tests;
