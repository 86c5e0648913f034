//! The frequencies of letters and words in each language: trigrams and quadrigrams of letters inside words,
//! and whole words, with a weight for each language that has them.
//!
//! `examples/language_table` generates `table.bin` (see `ORIGIN.md` beside it), which is read in place. It
//! starts with 2^16 + 1 offsets (u32, little endian) of the buckets that follow them. A bucket is a sequence
//! of entries. An entry is two bytes of the key's hash, the number of languages, and for each language its
//! column and its weight in eighths of a nat above the weight of an unseen key.

use super::names::TABLE_COLUMNS;

static TABLE_BYTES: &[u8] = include_bytes!("table.bin");
const TABLE_BUCKETS: usize = 1 << 16;
const TABLE_BODY_OFFSET: usize = (TABLE_BUCKETS + 1) * 4;

/// The mark of a whole word among the keys; the mark of an n-gram is its number of letters.
const WHOLE_WORD_MARK: u64 = 9;

/// Maximum number of trigrams of an unknown word that are read in a long text; every second trigram is skipped.
const MAX_READ_TRIGRAMS: usize = 4;

/// Sums of weights by column.
pub(super) type Scores = [u32; TABLE_COLUMNS.len()];

/// Adds the weights of a word in lower case. In a long text a known word counts by itself, and an unknown
/// word by its trigrams.
pub(super) fn add_word_weights(word: &[char], long: bool, scores: &mut Scores) {
    let known = add(WHOLE_WORD_MARK, word, scores);
    if known && long {
        return;
    }
    for three in word.windows(3).step_by(if long { 2 } else { 1 }).take(if long {
        MAX_READ_TRIGRAMS
    } else {
        usize::MAX
    }) {
        add(3, three, scores);
    }
    if !long {
        for four in word.windows(4) {
            add(4, four, scores);
        }
    }
}

/// Adds the weights of a key; returns whether the table contains the key.
fn add(mark: u64, key: &[char], scores: &mut Scores) -> bool {
    let hash = hash(mark, key);
    let bucket = hash as usize & (TABLE_BUCKETS - 1);
    let offset = |at: usize| {
        TABLE_BYTES.get(at * 4..at * 4 + 4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]]))
    };
    let (Some(from), Some(to)) = (offset(bucket), offset(bucket + 1)) else { return false };
    let mut rest = TABLE_BYTES
        .get(TABLE_BODY_OFFSET + from as usize..TABLE_BODY_OFFSET + to as usize)
        .unwrap_or_default();
    let wanted = ((hash >> 40) as u16).to_le_bytes();
    while let [first, second, count, more @ ..] = rest {
        let Some((weights, next)) = more.split_at_checked(usize::from(*count) * 2) else { return false };
        if [*first, *second] == wanted {
            for pair in weights.chunks_exact(2) {
                if let Some(score) = scores.get_mut(usize::from(pair[0])) {
                    *score += u32::from(pair[1]);
                }
            }
            return true;
        }
        rest = next;
    }
    false
}

/// Returns the FNV-1a hash of the mark and the characters, with a final mix.
fn hash(mark: u64, key: &[char]) -> u64 {
    let values = std::iter::once(mark).chain(key.iter().map(|it| u64::from(*it)));
    let sum = values.fold(0xCBF2_9CE4_8422_2325, |sum: u64, it| (sum ^ it).wrapping_mul(0x0100_0000_01B3));
    let sum = (sum ^ (sum >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    sum ^ (sum >> 29)
}

#[cfg(test)]
mod tests {
    use super::{
        super::names::TABLE_COLUMNS, TABLE_BODY_OFFSET, TABLE_BUCKETS, TABLE_BYTES, add_word_weights,
    };

    #[test]
    fn language_table_has_all_parts() {
        let last = &TABLE_BYTES[TABLE_BUCKETS * 4..TABLE_BODY_OFFSET];
        let length = u32::from_le_bytes([last[0], last[1], last[2], last[3]]);
        assert_eq!(TABLE_BODY_OFFSET + length as usize, TABLE_BYTES.len());
    }

    #[test]
    fn words_weigh_most_in_their_language() {
        for (code, word) in [
            ("de", "nicht"),
            ("fr", "toujours"),
            ("pl", "przez"),
            ("ru", "который"),
            ("gl", "unha"),
            ("de", "der"),
        ] {
            let mut scores = [0; TABLE_COLUMNS.len()];
            add_word_weights(&word.chars().collect::<Vec<_>>(), false, &mut scores);
            let best = (0..TABLE_COLUMNS.len()).max_by_key(|it| scores[*it]);
            assert_eq!(best.map(|it| TABLE_COLUMNS[it]), Some(code), "{word}");
        }
    }
}
