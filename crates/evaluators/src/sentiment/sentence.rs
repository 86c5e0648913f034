//! The valence of a sentence: VADER's rules for negation, boosters, contrast, capitals and signs.

use std::borrow::Cow;

use super::lexicon::{Entry, Lexicon, Role, emoji};

/// Amount by which a nearby booster strengthens a word or a damper weakens it (VADER).
const BOOSTER_GAIN: f64 = 0.293;
/// Amount that a word in capitals gains among words in lower case.
const CAPITALS_GAIN: f64 = 0.733;
/// Factor of a negated word.
const NEGATION_FACTOR: f64 = -0.74;
/// Amount that an exclamation mark adds, up to four of them.
const EXCLAMATION_GAIN: f64 = 0.292;
/// Normalization constant: valence is sum / sqrt(sum² + 15).
const NORMALIZATION_ALPHA: f64 = 15.0;
/// Maximum number of words of a sentence that are read.
const MAX_SENTENCE_WORDS: usize = 400;

/// Returns the valence, from -1.0 to 1.0, and the number of words that express a feeling.
pub(super) fn valence(sentence: &str, lexicon: &Lexicon) -> (f64, usize) {
    let tokens: Vec<&str> = sentence
        .split_whitespace()
        .map(trimmed)
        .filter(|it| !it.is_empty())
        .take(MAX_SENTENCE_WORDS)
        .collect();
    let words: Vec<Cow<'_, str>> = tokens.iter().map(|it| lowered(it)).collect();
    let known: Vec<Entry> = words.iter().map(|it| lexicon.word(it)).collect();
    if is_manners(&words, &known) {
        return (0.0, 0);
    }
    let some_shouted = tokens.iter().any(|it| shouted(it)) && !tokens.iter().all(|it| shouted(it));
    let turn = known.iter().rposition(|it| it.is(Role::Turns)).filter(|it| *it > 0);
    let (mut sum, mut felt) = (0.0, 0);
    let mut at = 0;
    while at < words.len() {
        let phrase = known[at].is(Role::Begins).then(|| lexicon.phrase(&words[at..])).flatten();
        let (weight, length) = phrase.unwrap_or((known[at].weight(), 1));
        if weight != 0.0 {
            let mut value = weight;
            if some_shouted && shouted(tokens[at]) {
                value += CAPITALS_GAIN.copysign(value);
            }
            value += nearby(&known, at) * weight.signum();
            if phrase.is_none() && negated(&words, &known, at) {
                value *= NEGATION_FACTOR;
            }
            value *= match turn {
                Some(turn) if at < turn => 0.5,
                Some(turn) if at > turn => 1.5,
                _ => 1.0,
            };
            sum += value;
            felt += 1;
        }
        at += length;
    }
    if !sentence.is_ascii() {
        for weight in sentence.chars().filter_map(emoji).take(8) {
            sum += weight;
            felt += 1;
        }
    }
    if sum != 0.0 {
        let marks = sentence.bytes().filter(|it| *it == b'!').count().min(4);
        sum += (EXCLAMATION_GAIN * marks as f64).copysign(sum);
    }
    (sum / (sum * sum + NORMALIZATION_ALPHA).sqrt(), felt)
}

/// Returns a word without surrounding signs.
fn trimmed(token: &str) -> &str {
    token.trim_matches(|it: char| !it.is_alphanumeric())
}

fn lowered(token: &str) -> Cow<'_, str> {
    if token.bytes().all(|it| it.is_ascii() && !it.is_ascii_uppercase()) {
        return Cow::Borrowed(token);
    }
    Cow::Owned(token.to_lowercase().replace('’', "'"))
}

/// Returns whether a word is written in capitals.
fn shouted(token: &str) -> bool {
    token.len() > 1
        && token.bytes().all(|it| !it.is_ascii_lowercase())
        && token.bytes().any(|it| it.is_ascii_uppercase())
}

/// Returns the amount that boosters and dampers among the three preceding words add; the nearest adds most.
fn nearby(known: &[Entry], at: usize) -> f64 {
    (1..=3)
        .filter_map(|back| Some((back, known.get(at.checked_sub(back)?)?)))
        .map(|(back, word)| {
            let boost = if word.is(Role::Boosts) {
                BOOSTER_GAIN
            } else if word.is(Role::Damps) {
                -BOOSTER_GAIN
            } else {
                0.0
            };
            boost * [1.0, 0.95, 0.9][back - 1]
        })
        .sum()
}

/// Returns whether one of the three preceding words negates this one. "Not only" and "no doubt" do not.
fn negated(words: &[Cow<'_, str>], known: &[Entry], at: usize) -> bool {
    (1..=3).any(|back| {
        let Some(place) = at.checked_sub(back) else { return false };
        let (word, next) = (words[place].as_ref(), words.get(place + 1).map_or("", AsRef::as_ref));
        known[place].is(Role::Negates)
            && !matches!((word, next), ("not", "only") | ("no" | "without", "doubt"))
            // A more distant "no" answers a question.
            && !(word == "no" && back > 1)
    })
}

/// Returns whether the sentence is a conventional apology or refusal of an assistant.
fn is_manners(words: &[Cow<'_, str>], known: &[Entry]) -> bool {
    let has = |role: Role| known.iter().any(|it| it.is(role));
    let declines = has(Role::Declines);
    let speaks = has(Role::Speaks);
    let model = words.windows(3).any(|it| it[0] == "as" && it[1] == "an" && it[2] == "ai");
    model
        || (declines || speaks) && has(Role::Regrets) && has(Role::Service)
        || words.len() < 16 && speaks && declines && has(Role::Help)
}
