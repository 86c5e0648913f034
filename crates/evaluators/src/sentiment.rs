//! The sentiment of an English text, by words: VADER's lexicon and the gist of its rules, sentence by
//! sentence, in linear time.
//!
//! It differs from VADER where that misreads answers of a machine: an apology or a refusal is manners,
//! not feeling, so such a sentence counts as neutral; politeness and technical words weigh little
//! (`own.txt`); words of reviews are added (`reviews.txt`); a text is the mean of its sentences, not their sum, so that length does not make it
//! extreme.

mod lexicon;
mod sentence;

use lexicon::Lexicon;

/// A sentiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sentiment {
    /// Displeased, sad, hostile.
    Negative,
    /// Neither.
    Neutral,
    /// Pleased, glad, friendly beyond politeness.
    Positive,
}

impl Sentiment {
    /// All of them, from worst to best.
    pub(crate) const ALL: [Self; 3] = [Self::Negative, Self::Neutral, Self::Positive];

    /// Returns the word used in configs and reasonings.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Negative => "negative",
            Self::Neutral => "neutral",
            Self::Positive => "positive",
        }
    }
}

/// What a text is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    /// From -1.0 to 1.0.
    pub valence: f64,
    /// Words with a feeling.
    pub felt: usize,
}

/// Valence from which a text is positive. A text at or below its negative is negative. Chosen on the development
/// halves of `tests/data/review-sentences` and `tests/data/sentiment.tsv`.
const MIN_VALENCE: f64 = 0.1;

impl Reading {
    /// Returns the sentiment that the valence stands for.
    pub(crate) fn sentiment(self) -> Sentiment {
        match self.valence {
            it if it >= MIN_VALENCE => Sentiment::Positive,
            it if it <= -MIN_VALENCE => Sentiment::Negative,
            _ => Sentiment::Neutral,
        }
    }
}

/// Reads a text.
pub(crate) fn read(text: &str) -> Reading {
    let lexicon = Lexicon::get();
    let (mut sum, mut weights, mut felt) = (0.0, 0.0, 0);
    for sentence in sentences(text) {
        let (valence, words) = sentence::valence(sentence, lexicon);
        // A sentence without a feeling dilutes less than one with the opposite feeling.
        let weight = if valence.abs() < 0.05 { 0.35 } else { 1.0 };
        sum += valence * weight;
        weights += weight;
        felt += words;
    }
    Reading { valence: if weights > 0.0 { sum / weights } else { 0.0 }, felt }
}

/// Sentences, roughly: a sign with a blank behind it, or the end of a line, ends one.
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
    fn negation_contrast_and_manners_are_heard() {
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
