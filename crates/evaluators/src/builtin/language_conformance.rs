//! Evaluates whether an answer is in the requested language.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    code::{CodeConfig, CodeEvaluator, EvaluatorCode},
    config::{ConfigProblem, one_problem},
    definition::{Definition, Method},
    language::{Language, LanguageName, LanguageShare, ask, named},
    subject::Subject,
    target::Target,
    verdict::{Measurement, NotEvaluated},
};

/// The definition of the evaluator `language_conformance`.
pub static DEFINITION: Definition = Definition {
    name: "language_conformance",
    display_name: "Language Match",
    tags: &["quality"],
    description: "Whether the output is in the language of `language`, or in one of several. The score is the \
                  share of its words that are, so a text that is half in another language has about 0.5. Code, \
                  addresses, ids and numbers are ignored. A text of few words or without prose can't be evaluated, nor \
                  can a text in a language other than the 85 known ones.",
    version: 3,
    method: Method::Code(EvaluatorCode::of::<LanguageConfig>()),
};

/// Maximum number of languages in one config.
const MAX_LANGUAGES: usize = 20;

#[derive(Deserialize, JsonSchema)]
struct LanguageConfig {
    /// A code of ISO 639-1 or 639-3 such as `fr`, `fra`, `pt-BR` (the region makes no difference) or `zh-Hant`, or an
    /// English name; or a list of them, of any of these languages.
    language: LanguageNames,
    #[serde(default)]
    target: Target,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum LanguageNames {
    One(#[schemars(length(min = 2, max = 64))] String),
    Several(#[schemars(length(min = 1, max = MAX_LANGUAGES), inner(length(min = 2, max = 64)))] Vec<String>),
}

impl CodeConfig for LanguageConfig {
    fn compile(self) -> Result<impl CodeEvaluator + 'static, Vec<ConfigProblem>> {
        let names = match self.language {
            LanguageNames::One(name) => vec![name],
            LanguageNames::Several(names) => names,
        };
        let mut conformance =
            Conformance { languages: Vec::new(), undetectable: Vec::new(), target: self.target };
        for name in names {
            match named(&name) {
                LanguageName::Detectable(languages) => conformance.languages.extend(languages),
                LanguageName::Undetectable(name) => conformance.undetectable.push(name),
                LanguageName::Unknown => {
                    let message = format!(
                        "`{}` is not a language: use a code of ISO 639-1 or 639-3, such as `fr` or `fra`, or an \
                         English name",
                        name.chars().take(MAX_SHOWN_CHARS).collect::<String>()
                    );
                    return Err(one_problem("language", message));
                }
            }
        }
        Ok(conformance)
    }
}

/// Number of characters of an unknown name that a message repeats.
const MAX_SHOWN_CHARS: usize = 40;

struct Conformance {
    languages: Vec<&'static Language>,
    /// The names of languages that exist but cannot be detected.
    undetectable: Vec<&'static str>,
    target: Target,
}

impl Conformance {
    fn undetectable_error(&self) -> NotEvaluated {
        NotEvaluated::new(format!(
            "this evaluator can't detect {}: use a custom LLM evaluator for this language",
            self.undetectable.join(" or ")
        ))
    }
}

impl CodeEvaluator for Conformance {
    fn evaluate(&self, subject: &Subject) -> Result<Measurement, NotEvaluated> {
        let text = self.target.text(subject)?;
        if self.languages.is_empty() {
            return Err(self.undetectable_error());
        }
        let names: Vec<&str> = self.languages.iter().map(|it| it.name).collect();
        let names = names.join(" or ");
        let LanguageShare::Share { share, rest, sampled } = ask(text, &self.languages) else {
            return Err(NotEvaluated::new(
                "the language of the text can't be detected, because the text is too short or not prose (code, addresses, ids \
                 and numbers are ignored): evaluate a text with a sentence of at least four words",
            ));
        };
        if !self.undetectable.is_empty() && share < 0.995 {
            return Err(self.undetectable_error());
        }
        let note = if sampled { " (read in 16 samples of 2 KiB)" } else { "" };
        let percent = (share * 100.0).round();
        Ok(match rest {
            None if share >= 0.995 => Measurement::good(format!("The text is in {names}{note}.")),
            Some(rest) if share <= 0.005 => {
                Measurement::bad(format!("The text is in {rest}, not in {names}{note}."))
            }
            Some(rest) => Measurement::new(
                share,
                format!("{percent} % of the text is in {names}; most of the rest is in {rest}{note}."),
            ),
            None => Measurement::new(share, format!("{percent} % of the text is in {names}{note}.")),
        })
    }
}
