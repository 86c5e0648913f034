//! Evaluates whether an answer has the expected sentiment.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    code::{CodeConfig, CodeEvaluator, EvaluatorCode},
    config::{ConfigProblem, one_problem},
    definition::{Definition, Method},
    judge::{Level, PreferredProvider, Rubric, TracePart},
    language::{Language, LanguageShare, find, guess},
    sentence::counted,
    sentiment::{Sentiment, read},
    subject::Subject,
    target::Target,
    verdict::{Measurement, NotEvaluated},
};

/// The definition of the evaluator `sentiment_match`.
pub static DEFINITION: Definition = Definition {
    name: "sentiment_match",
    display_name: "Sentiment Match",
    tags: &["quality"],
    description: "Whether the sentiment of the output is the expected one. With `expected` a code evaluator \
                  reads English text by its words: 1.0 for the expected sentiment, 0.5 when only one of the two is \
                  neutral, 0.0 for the opposite. Without it a judge decides whether the sentiment suits the input. Needs the \
                  output.",
    version: 1,
    method: Method::CodeOrLlm {
        has_expectation: |config| config.contains_key("expected"),
        code: EvaluatorCode::of::<SentimentConfig>(),
        rubric: &RUBRIC,
    },
};

static RUBRIC: Rubric = Rubric {
    question: "Does the sentiment of the output suit what the input and the instructions in it call for?",
    steps: &[
        "Tell what sentiment is called for: the one that the instructions ask for if they name a tone or a \
         feeling; else the one that a considerate person would answer this user with.",
        "Tell the sentiment that the output carries in its own voice: negative, neutral or positive, and how \
         strong. Quotes, reports and translations carry the sentiment of their source, not of the output.",
        "Compare direction first, then strength, and choose the level.",
    ],
    counts: &[
        "The opposite feeling: cheer about a loss, gloom or blame where the user is glad.",
        "Indifference where sympathy is called for, and gushing where facts are.",
        "A tone that the instructions ask for and the output misses or drops half-way.",
        "Irritation, sarcasm or reproach towards the user.",
    ],
    ignores: &[
        "Whether the output is right, complete or well written.",
        "Politeness: a greeting, thanks, an apology or a polite refusal carries no sentiment of its own.",
        "Unpleasant facts told soberly, and words of feeling that belong to the subject.",
        "Language and dialect; a culture's usual warmth or reserve.",
    ],
    levels: &[
        Level { score: 1.0, meaning: "The sentiment is the one called for, in direction and strength." },
        Level { score: 0.75, meaning: "The right direction, noticeably too strong or too weak." },
        Level { score: 0.5, meaning: "Neutral where a feeling is called for, or the other way round." },
        Level { score: 0.25, meaning: "Mixed, and mostly of the wrong direction." },
        Level { score: 0.0, meaning: "The opposite of the sentiment called for." },
    ],
    needs: &[TracePart::Output],
    uses: &[TracePart::Input, TracePart::Turns],
    prefers: PreferredProvider::OpenAi,
};

/// Number of bytes of a text that are analysed, from its beginning.
const MAX_READ_BYTES: usize = 64 << 10;
/// Number of bytes from which the language of a text is detected.
const LANGUAGE_SAMPLE_BYTES: usize = 400;

#[derive(Deserialize, JsonSchema)]
struct SentimentConfig {
    /// The sentiment that the text should have. With it a code evaluator reads the text, without it a judge.
    expected: Option<Sentiment>,
    #[serde(default)]
    target: Target,
}

impl CodeConfig for SentimentConfig {
    fn compile(self) -> Result<impl CodeEvaluator + 'static, Vec<ConfigProblem>> {
        let Some(expected) = self.expected else {
            let message = "is required by the code evaluator: positive, neutral or negative";
            return Err(one_problem("expected", message));
        };
        Ok(SentimentMatch { expected, target: self.target, english: find("en") })
    }
}

struct SentimentMatch {
    expected: Sentiment,
    target: Target,
    english: Vec<&'static Language>,
}

impl CodeEvaluator for SentimentMatch {
    fn evaluate(&self, subject: &Subject) -> Result<Measurement, NotEvaluated> {
        let text = self.target.text(subject)?;
        let read_part = head(text, MAX_READ_BYTES);
        let reading = read(read_part);
        match guess(head(text, LANGUAGE_SAMPLE_BYTES), &self.english) {
            LanguageShare::Share { share, .. } if share < 0.5 && !(reading.felt > 0 && text.len() < 40) => {
                return Err(NotEvaluated::new(
                    "the code evaluator reads English only, and most of the text is in another language: omit \
                     `expected`, or request `evaluator_type` llm, so that a judge evaluates it",
                ));
            }
            LanguageShare::Undetermined if reading.felt == 0 => {
                return Err(NotEvaluated::new("the text has no words that express a sentiment"));
            }
            _ => {}
        }
        let found = reading.sentiment();
        let distance = (self.expected as i8 - found as i8).unsigned_abs();
        let valence = (reading.valence * 100.0).round() / 100.0;
        let note = if read_part.len() < text.len() { "; only the first 64 KiB were read" } else { "" };
        Ok(Measurement::new(
            1.0 - f64::from(distance) / 2.0,
            format!(
                "The text is {} (valence {valence:.2} from -1 to 1, {}{note}); the expected sentiment is {}.",
                found.word(),
                counted(reading.felt, "word expresses it", "words express it"),
                self.expected.word()
            ),
        ))
    }
}

/// Returns at most `most` bytes from the beginning of a text.
fn head(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
