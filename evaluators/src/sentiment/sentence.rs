//! The valence of a sentence: VADER's rules for negation, boosters, contrast, capitals and signs.

use super::lexicon::{Lexicon, emoji};

/// How a word nearby strengthens or weakens (VADER).
const BOOST: f64 = 0.293;
/// What a word in capitals among others gains.
const CAPITALS: f64 = 0.733;
/// What a negated word is multiplied by.
const NEGATED: f64 = -0.74;
/// What an exclamation mark adds, up to four.
const EXCLAIMED: f64 = 0.292;
/// What the sum is set against: valence is sum / sqrt(sum² + 15).
const ALPHA: f64 = 15.0;

const BOOSTERS: [&str; 36] = [
    "absolutely",
    "amazingly",
    "awfully",
    "completely",
    "considerably",
    "deeply",
    "enormously",
    "entirely",
    "especially",
    "exceptionally",
    "extremely",
    "fully",
    "greatly",
    "highly",
    "hugely",
    "incredibly",
    "insanely",
    "intensely",
    "more",
    "most",
    "particularly",
    "purely",
    "quite",
    "really",
    "remarkably",
    "so",
    "substantially",
    "super",
    "thoroughly",
    "totally",
    "tremendously",
    "truly",
    "unbelievably",
    "utterly",
    "very",
    "such",
];

const DAMPERS: [&str; 15] = [
    "almost",
    "barely",
    "fairly",
    "hardly",
    "kinda",
    "less",
    "little",
    "marginally",
    "occasionally",
    "partly",
    "relatively",
    "scarcely",
    "slightly",
    "somewhat",
    "sorta",
];

const NEGATIONS: [&str; 20] = [
    "not", "no", "never", "none", "nobody", "nor", "neither", "nothing", "nowhere", "without", "cannot",
    "rarely", "seldom", "despite", "lacks", "lacked", "lack", "isnt", "dont", "hardly",
];

/// Words after which the rest of the sentence weighs more.
const TURNS: [&str; 3] = ["but", "however", "yet"];

/// Valence, from -1.0 to 1.0, and the number of words that carry it.
pub(super) fn valence(sentence: &str, lexicon: &Lexicon) -> (f64, usize) {
    let tokens: Vec<&str> =
        sentence.split_whitespace().map(trimmed).filter(|it| !it.is_empty()).take(400).collect();
    let words: Vec<String> = tokens.iter().map(|it| it.to_lowercase().replace('’', "'")).collect();
    if is_manners(&words) {
        return (0.0, 0);
    }
    let shouted = |it: &str| {
        it.len() > 1
            && it.bytes().all(|it| !it.is_ascii_lowercase())
            && it.bytes().any(|it| it.is_ascii_uppercase())
    };
    let some_shouted = tokens.iter().any(|it| shouted(it)) && !tokens.iter().all(|it| shouted(it));
    let turn = words.iter().rposition(|it| TURNS.contains(&it.as_str())).filter(|it| *it > 0);
    let (mut sum, mut felt) = (0.0, 0);
    let mut at = 0;
    while at < words.len() {
        let (weight, length, phrase) = match lexicon.phrase(&words[at..]) {
            Some((weight, length)) => (weight, length, true),
            None => (lexicon.weight(&words[at]).unwrap_or(0.0), 1, false),
        };
        if weight != 0.0 {
            let mut value = weight;
            if some_shouted && shouted(tokens[at]) {
                value += CAPITALS.copysign(value);
            }
            value += nearby(&words, at, weight);
            if !phrase && negated(&words, at) {
                value *= NEGATED;
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
    for weight in sentence.chars().filter_map(emoji).take(8) {
        sum += weight;
        felt += 1;
    }
    if sum != 0.0 {
        let marks = sentence.bytes().filter(|it| *it == b'!').count().min(4);
        sum += (EXCLAIMED * marks as f64).copysign(sum);
    }
    (sum / (sum * sum + ALPHA).sqrt(), felt)
}

/// A word without the signs around it.
fn trimmed(token: &str) -> &str {
    token.trim_matches(|it: char| !it.is_alphanumeric())
}

/// What boosters and dampers among the three words before add, the nearest most.
fn nearby(words: &[String], at: usize, weight: f64) -> f64 {
    (1..=3)
        .filter_map(|back| Some((back, words.get(at.checked_sub(back)?)?.as_str())))
        .map(|(back, word)| {
            let boost = if BOOSTERS.contains(&word) {
                BOOST
            } else if DAMPERS.contains(&word) {
                -BOOST
            } else {
                0.0
            };
            boost.copysign(boost * weight) * [1.0, 0.95, 0.9][back - 1]
        })
        .sum()
}

/// Whether one of the three words before negates this one. "Not only" and "no doubt" do not.
fn negated(words: &[String], at: usize) -> bool {
    (1..=3).any(|back| {
        let Some(place) = at.checked_sub(back) else { return false };
        let word = words[place].as_str();
        let next = words.get(place + 1).map_or("", String::as_str);
        let negates = NEGATIONS.contains(&word) || word.ends_with("n't");
        negates && !matches!((word, next), ("not", "only") | ("no", "doubt") | ("without", "doubt"))
            // "No" answers what was before, when a comma follows it; tokens have lost theirs.
            && !(word == "no" && back > 1)
    })
}

/// Whether the sentence apologises or refuses as a machine does.
fn is_manners(words: &[String]) -> bool {
    let has = |these: &[&str]| words.iter().any(|it| these.contains(&it.as_str()));
    let regrets = has(&["sorry", "apologize", "apologise", "apologies", "unfortunately", "regret", "afraid"]);
    let declines =
        has(&["can't", "cannot", "unable", "won't", "couldn't", "don't", "not", "decline", "inability"]);
    let own = has(&["i", "i'm", "we", "we're", "my", "our"]);
    let subject = has(&[
        "help",
        "assist",
        "provide",
        "share",
        "answer",
        "comply",
        "access",
        "fulfill",
        "discuss",
        "assistance",
        "support",
        "information",
        "request",
        "do",
        "find",
        "offer",
        "continue",
        "inconvenience",
        "confusion",
        "delay",
        "misunderstanding",
    ]);
    let model = words.windows(3).any(|it| it[0] == "as" && it[1] == "an" && it[2] == "ai");
    model
        || regrets && subject && (declines || own)
        || words.len() < 16 && own && declines && has(&["help", "assist", "comply", "discuss"])
}
