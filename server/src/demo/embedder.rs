//! The demo's embedder: computes vectors from words, parts of words and a small dictionary of meanings.
//!
//! A real model learns that "refund" and "money back" are alike. This one has a dictionary for the subjects
//! of the demo's traces, in their languages. Of other words it knows only the spelling.

use std::collections::BTreeMap;

use api::search::DIMENSIONS;

/// Words without a meaning of their own.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do",
    "does", "for", "from", "had", "has", "have", "he", "her", "here", "him", "his", "how", "i", "if", "in",
    "is", "it", "its", "me", "my", "no", "not", "of", "on", "one", "or", "our", "out", "she", "so", "such",
    "than", "that", "the", "their", "them", "then", "there", "they", "this", "to", "was", "we", "were",
    "what", "when", "where", "which", "who", "why", "will", "with", "without", "would", "you", "your", "der",
    "die", "das", "und", "ist", "bitte", "uns", "mir",
];

/// Prefixes of words with similar meanings; scripts without spaces are searched for them too.
const MEANING_PREFIXES: &[&[&str]] = &[
    &["refund", "reimburs", "return", "moneyback", "money", "ersatz", "erstatt", "返金", "退款", "reembols"],
    &["order", "purchase", "bestell", "注文", "订单", "pedido", "طلب"],
    &["deliver", "ship", "parcel", "package", "arriv", "track", "paket", "liefer", "包裹", "customs", "清关"],
    &["damag", "broken", "defect", "beschädigt", "kaputt"],
    &[
        "pay", "paid", "charg", "invoice", "billing", "card", "captur", "plazo", "pagar", "cents", "cost",
        "price",
    ],
    &["cancel", "キャンセル", "取消", "stornier"],
    &["address", "adresse", "地址"],
    &["discount", "offer", "coupon", "code"],
    &["key", "token", "secret", "credential", "rotat", "revok", "auth"],
    &["login", "sign", "sso", "okta", "oidc", "saml", "password", "session"],
    &["limit", "quota", "429", "throttl", "rate"],
    &["webhook", "hmac", "signature", "callback"],
    &["backup", "restor", "バックアップ", "recover"],
    &["import", "export", "upload", "csv"],
    &["error", "fail", "exception", "timeout", "crash", "bug"],
    &["slow", "latency", "performance", "timeout", "wait"],
    &["memory", "leak", "oom"],
    &["database", "sql", "migration", "index", "postgres"],
    &["react", "render", "effect", "component", "tsx"],
    &["ignore", "instruction", "injection", "jailbreak", "prompt"],
];

/// Weights of the features of a text: a meaning, a word, a part of a word.
const MEANING_WEIGHT: f64 = 1.6;
const WORD_WEIGHT: f64 = 1.0;
const WORD_PART_WEIGHT: f64 = 0.35;

/// Returns the vector of a text; never all zeros.
pub(super) fn embed(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f64; DIMENSIONS];
    let mut add = |feature: &str, weight: f64| {
        for (salt, share) in [(0_u64, 0.8), (1, 0.6)] {
            let hash = hash(feature, salt);
            let sign = if hash & 1 == 0 { 1.0 } else { -1.0 };
            let index = (hash >> 1) % (DIMENSIONS as u64);
            if let Some(number) = usize::try_from(index).ok().and_then(|it| vector.get_mut(it)) {
                *number += sign * share * weight;
            }
        }
    };
    // A feature of every text, so that a text without words has a vector too.
    add("text", 0.05);
    for (word, count) in words(text) {
        // A word that occurs ten times is not ten times as important.
        let weight = 1.0 + f64::from(count).ln();
        for (meaning, beginnings) in MEANING_PREFIXES.iter().enumerate() {
            if beginnings.iter().any(|it| has_meaning(&word, it)) {
                add(&format!("meaning {meaning}"), MEANING_WEIGHT * weight.min(2.0));
            }
        }
        add(&format!("word {}", stem(&word)), WORD_WEIGHT * weight);
        let parts = letter_groups(&word);
        #[expect(clippy::cast_precision_loss, reason = "a few parts")]
        let share = WORD_PART_WEIGHT * weight / (parts.len().max(1) as f64).sqrt();
        for part in parts {
            add(&format!("part {part}"), share);
        }
    }
    let length = vector.iter().map(|it| it * it).sum::<f64>().sqrt();
    #[expect(clippy::cast_possible_truncation, reason = "vectors have 32 bits a number")]
    vector.iter().map(|it| (it / length) as f32).collect()
}

/// Returns the cosine similarity of two texts, from -1 to 1.
pub(super) fn similarity(one: &str, other: &str) -> f64 {
    embed(one).iter().zip(embed(other)).map(|(a, b)| f64::from(*a) * f64::from(b)).sum()
}

/// Returns the meaningful words of a text with their counts.
pub(super) fn words(text: &str) -> BTreeMap<String, u32> {
    let mut words = BTreeMap::new();
    for word in text.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty()) {
        let word = word.to_lowercase();
        let is_number = word.bytes().all(|it| it.is_ascii_digit()) && word.len() > 4;
        if !STOP_WORDS.contains(&word.as_str()) && !is_number && word.chars().count() <= 64 {
            *words.entry(word).or_default() += 1;
        }
    }
    words
}

fn has_meaning(word: &str, beginning: &str) -> bool {
    if beginning.is_ascii() { word.starts_with(beginning) } else { word.contains(beginning) }
}

/// Removes an English suffix from a word.
fn stem(word: &str) -> &str {
    let ending =
        ["ing", "ed", "es", "s"].into_iter().find(|it| word.len() > it.len() + 3 && word.ends_with(it));
    ending.map_or(word, |it| &word[..word.len() - it.len()])
}

/// Returns all pairs and triples of letters, with marks at the ends of the word.
fn letter_groups(word: &str) -> Vec<String> {
    let letters: Vec<char> = std::iter::once('^').chain(word.chars()).chain(['$']).collect();
    let size = if word.is_ascii() { 3 } else { 2 };
    letters.windows(size).map(|it| it.iter().collect()).collect()
}

/// Returns the FNV-1a with a final mix: the same on every machine, so that a seed always gives the same demo.
fn hash(text: &str, salt: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_about_the_same_are_nearer_than_others() {
        let refund = "I'd like to return the shoes from A-1, they are too small.";
        let parcel = "Das Paket A-2 ist beschädigt angekommen. Was nun?";
        let key = "How do I rotate an API key?";
        for (question, near, far) in [
            ("money back for an order", refund, key),
            ("refunds", refund, key),
            ("返金", refund, key),
            ("damaged parcel", parcel, key),
            ("exchange credentials", key, parcel),
        ] {
            let (near, far) = (similarity(question, near), similarity(question, far));
            assert!(near > far + 0.05, "{question}: {near} {far}");
        }
    }

    #[test]
    fn every_text_has_a_vector_of_length_one() {
        for text in ["", "...", "12345678", "👟👟👟", "refund"] {
            let vector = embed(text);
            let length: f32 = vector.iter().map(|it| it * it).sum();
            assert!(vector.len() == DIMENSIONS && (length - 1.0).abs() < 1e-3, "{text:?}: {length}");
        }
    }
}
