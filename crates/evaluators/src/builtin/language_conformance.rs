//! Evaluates whether an answer is in the requested language.

use serde_json::{Map, Value, json};

use crate::{
    definition::{ConfigProblem, Definition, Method, Rule},
    language::{Answer, Language, LanguageName, ask, named},
    subject::Subject,
    target::Target,
    verdict::{Unjudged, Verdict},
};

/// The definition of the evaluator `language_conformance`.
pub static DEFINITION: Definition = Definition {
    name: "language_conformance",
    display_name: "Language Match",
    tags: &["quality"],
    description: "Whether the output is in the language of `language`, or in one of several. The score is the \
                  share of its words that are, so a text that is half in another language has about 0.5. Code, \
                  addresses, ids and numbers are left out. A text of few words or without prose can't be judged, nor \
                  can one be told to be in a language other than the 85 known ones.",
    version: 3,
    config_schema,
    method: Method::Rule(compile),
};

/// Maximum number of languages in one config.
const MOST: usize = 20;

fn config_schema() -> Value {
    let one = json!({"type": "string", "minLength": 2, "maxLength": 64});
    json!({
        "type": "object",
        "properties": {
            "language": {
                "anyOf": [one, {"type": "array", "items": one, "minItems": 1, "maxItems": MOST}],
                "description": "A code of ISO 639-1 or 639-3 such as `fr`, `fra`, `pt-BR` (the region makes no difference) or `zh-Hant`, or an \
                                English name; or a list of them, each of which will do."
            },
            "target": Target::schema()
        },
        "required": ["language"]
    })
}

struct Conformance {
    languages: Vec<&'static Language>,
    /// The names of languages that exist but cannot be detected.
    untold: Vec<&'static str>,
    target: Target,
}

fn compile(config: &Map<String, Value>) -> Result<Box<dyn Rule>, Vec<ConfigProblem>> {
    let mut problems = Vec::new();
    let target = Target::of(config).unwrap_or_else(|it| {
        problems.push(it);
        Target::default()
    });
    let (languages, untold) = languages(config.get("language")).unwrap_or_else(|it| {
        problems.push(ConfigProblem::new("language", it));
        Default::default()
    });
    if problems.is_empty() { Ok(Box::new(Conformance { languages, untold, target })) } else { Err(problems) }
}

/// Languages that can be detected, and names of languages that cannot.
type Languages = (Vec<&'static Language>, Vec<&'static str>);

fn languages(value: Option<&Value>) -> Result<Languages, String> {
    let wrong = || {
        format!("is required: a code or an English name such as `fr` or `French`, or a list of 1 to {MOST}")
    };
    let one = value.map(std::slice::from_ref);
    let list = value.and_then(Value::as_array).map(Vec::as_slice).or(one).unwrap_or_default();
    if list.is_empty() || list.len() > MOST {
        return Err(wrong());
    }
    let (mut languages, mut untold) = (Vec::new(), Vec::new());
    for it in list {
        let text = it.as_str().ok_or_else(wrong)?;
        match named(text) {
            LanguageName::Detectable(found) => languages.extend(found),
            LanguageName::Undetectable(name) => untold.push(name),
            LanguageName::Unknown => {
                let text: String = text.chars().take(40).collect();
                return Err(format!(
                    "`{text}` is no language: use a code of ISO 639-1 or 639-3, such as `fr` or `fra`, or an \
                     English name"
                ));
            }
        }
    }
    Ok((languages, untold))
}

impl Conformance {
    fn cannot_tell(&self) -> Unjudged {
        Unjudged::new(format!(
            "whether a text is in {} can't be told: it is not among the languages that this evaluator knows; let a \
             model judge it by an evaluator of your own",
            self.untold.join(" or ")
        ))
    }
}

impl Rule for Conformance {
    fn judge(&self, subject: &Subject) -> Result<Verdict, Unjudged> {
        let text = self.target.text(subject)?;
        if self.languages.is_empty() {
            return Err(self.cannot_tell());
        }
        let names: Vec<&str> = self.languages.iter().map(|it| it.name).collect();
        let names = names.join(" or ");
        let Answer::Share { share, rest, sampled } = ask(text, &self.languages) else {
            return Err(Unjudged::new(
                "the text is too short or no prose, so that no language can be told from it (code, addresses, ids \
                 and numbers are left out): judge a text with a sentence of four words or more",
            ));
        };
        if !self.untold.is_empty() && share < 0.995 {
            return Err(self.cannot_tell());
        }
        let read = if sampled { " (read in 16 samples of 2 KiB)" } else { "" };
        let percent = (share * 100.0).round();
        Ok(match rest {
            None if share >= 0.995 => Verdict::good(format!("The text is in {names}{read}.")),
            Some(rest) if share <= 0.005 => {
                Verdict::bad(format!("The text is in {rest}, not in {names}{read}."))
            }
            Some(rest) => Verdict::new(
                share,
                format!("{percent} % of the text is in {names}; most of the rest is in {rest}{read}."),
            ),
            None => Verdict::new(share, format!("{percent} % of the text is in {names}{read}.")),
        })
    }
}
