//! How usual letters and words are in each language: triples and quadruples of letters inside words,
//! and whole words, with a weight for each language that has them.
//!
//! `examples/language_table` generates `table.bin` (`ORIGIN.md` beside it), which is read in place: 2^16 + 1 offsets (u32, little
//! endian) into what follows them, a bucket each; a bucket is a row of entries; an entry is two bytes
//! of the key's hash, the number of languages, and for each its column and its weight in eighths of
//! a nat above what an unseen key would have.

use super::names::COLUMNS;

static TABLE: &[u8] = include_bytes!("table.bin");
const BUCKETS: usize = 1 << 16;
const BODY: usize = (BUCKETS + 1) * 4;

/// What a word as a whole is marked with among keys; those of letters are marked with their number.
const WORD: u64 = 9;

/// Triples of an unknown word of a long text that are read, every second one.
const TRIPLES: usize = 4;

/// Sums of weights, by column.
pub(super) type Scores = [u32; COLUMNS.len()];

/// Adds what a word in lower case says. Of a long text the words that are known say enough, and of the
/// others their triples.
pub(super) fn weigh(word: &[char], long: bool, scores: &mut Scores) {
    let known = add(WORD, word, scores);
    if known && long {
        return;
    }
    for three in
        word.windows(3).step_by(if long { 2 } else { 1 }).take(if long { TRIPLES } else { usize::MAX })
    {
        add(3, three, scores);
    }
    if !long {
        for four in word.windows(4) {
            add(4, four, scores);
        }
    }
}

/// Adds the weights of a key, and tells whether there are any.
fn add(mark: u64, key: &[char], scores: &mut Scores) -> bool {
    let hash = hash(mark, key);
    let bucket = hash as usize & (BUCKETS - 1);
    let offset =
        |at: usize| TABLE.get(at * 4..at * 4 + 4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]]));
    let (Some(from), Some(to)) = (offset(bucket), offset(bucket + 1)) else { return false };
    let mut rest = TABLE.get(BODY + from as usize..BODY + to as usize).unwrap_or_default();
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

/// FNV-1a over the mark and the characters, then mixed.
fn hash(mark: u64, key: &[char]) -> u64 {
    let values = std::iter::once(mark).chain(key.iter().map(|it| u64::from(*it)));
    let sum = values.fold(0xCBF2_9CE4_8422_2325, |sum: u64, it| (sum ^ it).wrapping_mul(0x0100_0000_01B3));
    let sum = (sum ^ (sum >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    sum ^ (sum >> 29)
}

#[cfg(test)]
mod tests {
    use super::{super::names::COLUMNS, BODY, BUCKETS, TABLE, weigh};

    #[test]
    fn the_table_is_whole() {
        let last = &TABLE[BUCKETS * 4..BODY];
        let length = u32::from_le_bytes([last[0], last[1], last[2], last[3]]);
        assert_eq!(BODY + length as usize, TABLE.len());
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
            let mut scores = [0; COLUMNS.len()];
            weigh(&word.chars().collect::<Vec<_>>(), false, &mut scores);
            let best = (0..COLUMNS.len()).max_by_key(|it| scores[*it]);
            assert_eq!(best.map(|it| COLUMNS[it]), Some(code), "{word}");
        }
    }
}
