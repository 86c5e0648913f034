//! The sentiment of an English text, by words: VADER's lexicon and the main rules of VADER, sentence by
//! sentence, in linear time.
//!
//! It differs from VADER where VADER misreads answers of a model. A sentence with an apology or a refusal
//! counts as neutral, because it expresses politeness and not feeling. Polite and technical words have small
//! weights (`own.txt`). The valence of a text is the mean of its sentences, not their sum, so length does not
//! make it extreme.

mod lexicon;
mod sentence;

use lexicon::Lexicon;
use schemars::JsonSchema;
use serde::Deserialize;

/// A sentiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sentiment {
    /// Displeased, sad or hostile.
    Negative,
    /// Neither negative nor positive.
    Neutral,
    /// Pleased, glad, or more friendly than polite.
    Positive,
}

impl Sentiment {
    /// Returns the word for the sentiment in reasonings.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Negative => "negative",
            Self::Neutral => "neutral",
            Self::Positive => "positive",
        }
    }
}

/// The measured sentiment of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SentimentReading {
    /// The valence, from -1.0 to 1.0.
    pub valence: f64,
    /// The number of words that express a feeling.
    pub felt: usize,
}

/// Minimum valence of a positive text. A text at or below the negative of this value is negative.
const MIN_VALENCE: f64 = 0.16;

impl SentimentReading {
    /// Returns the sentiment for the valence.
    pub(crate) fn sentiment(self) -> Sentiment {
        match self.valence {
            it if it >= MIN_VALENCE => Sentiment::Positive,
            it if it <= -MIN_VALENCE => Sentiment::Negative,
            _ => Sentiment::Neutral,
        }
    }
}

/// Measures the sentiment of a text.
pub(crate) fn read(text: &str) -> SentimentReading {
    let lexicon = Lexicon::get();
    let (mut sum, mut weights, mut felt) = (0.0, 0.0, 0);
    for sentence in sentences(text) {
        let (valence, words) = sentence::valence(sentence, lexicon);
        // A sentence without a feeling changes the mean less than one with the opposite feeling.
        let weight = if valence.abs() < 0.05 { 0.35 } else { 1.0 };
        sum += valence * weight;
        weights += weight;
        felt += words;
    }
    SentimentReading { valence: if weights > 0.0 { sum / weights } else { 0.0 }, felt }
}

/// Splits a text into approximate sentences: a sign followed by a blank, or the end of a line, ends one.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| {
            let mut rest = line;
            std::iter::from_fn(move || {
                let bytes = rest.as_bytes();
                if bytes.is_empty() {
                    return None;
                }
                let signs = |it: u8| matches!(it, b'.' | b'!' | b'?');
                let end = (1..bytes.len())
                    .find(|it| bytes[*it].is_ascii_whitespace() && signs(bytes[*it - 1]))
                    .unwrap_or(bytes.len());
                let (sentence, next) = rest.split_at(end);
                rest = next.trim_start();
                Some(sentence)
            })
        })
        .filter(|it| it.bytes().any(|it| it.is_ascii_alphabetic()) || !it.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::{Sentiment, read};

    #[test]
    fn negation_contrast_and_politeness_affect_the_score() {
        for (text, sentiment) in [
            ("I love it!", Sentiment::Positive),
            ("It is not good at all.", Sentiment::Negative),
            ("Sorry, I cannot help with that.", Sentiment::Neutral),
            ("I'm sorry, but I can't share that information.", Sentiment::Neutral),
            ("The room was lovely but the service was horrible.", Sentiment::Negative),
            ("There are no problems at all, it works great.", Sentiment::Positive),
            ("The meeting is on Tuesday at nine.", Sentiment::Neutral),
            ("Thanks! 😍", Sentiment::Positive),
            ("", Sentiment::Neutral),
        ] {
            assert_eq!(read(text).sentiment(), sentiment, "{text}: {:?}", read(text));
        }
    }
}
