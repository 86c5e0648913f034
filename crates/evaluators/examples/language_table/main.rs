//! Generates `src/language/table.bin`, the table of `language_conformance`, from lingua's model crates.
//!
//! ```sh
//! # In a scratch package that depends on `lingua = "=1.8.0"`:
//! cargo fetch
//! # Here, with the folder that cargo unpacked the crates into:
//! cargo run --release -p evaluators --example language_table -- \
//!     ~/.cargo/registry/src/index.crates.io-* crates/evaluators/src/language/table.bin
//! ```
//!
//! `src/language/ORIGIN.md` describes the sources and the recipe. The output depends on the crates only.

use std::{
    collections::{BTreeMap, HashMap},
    error::Error,
    fs,
    path::Path,
};

use fst::Streamer;

/// Columns of the table with lingua's names. Galician follows as the last column. The same order as `TABLE_COLUMNS` in
/// `src/language/names.rs`.
const LINGUA_LANGUAGES: [&str; 62] = [
    "afrikaans",
    "albanian",
    "arabic",
    "azerbaijani",
    "basque",
    "belarusian",
    "bokmal",
    "bosnian",
    "bulgarian",
    "catalan",
    "croatian",
    "czech",
    "danish",
    "dutch",
    "english",
    "esperanto",
    "estonian",
    "finnish",
    "french",
    "ganda",
    "german",
    "hindi",
    "hungarian",
    "icelandic",
    "indonesian",
    "irish",
    "italian",
    "kazakh",
    "latin",
    "latvian",
    "lithuanian",
    "macedonian",
    "malay",
    "maori",
    "marathi",
    "mongolian",
    "nynorsk",
    "persian",
    "polish",
    "portuguese",
    "romanian",
    "russian",
    "serbian",
    "shona",
    "slovak",
    "slovene",
    "somali",
    "sotho",
    "spanish",
    "swahili",
    "swedish",
    "tagalog",
    "tsonga",
    "tswana",
    "turkish",
    "ukrainian",
    "urdu",
    "vietnamese",
    "welsh",
    "xhosa",
    "yoruba",
    "zulu",
];
const SERBIAN_LANGUAGE: &str = "serbian";
/// Frequent words of Galician, most frequent first.
const GALICIAN_WORDS: &str = include_str!("galician.txt");

/// Lengths of letter sequences, the logarithm of the probability that has weight 0, and how many are kept.
const SEQUENCE_LIMITS: [(usize, f64, usize); 2] = [(3, -12.5, 3_000), (4, -13.5, 2_000)];
/// The logarithm of a word's frequency that has weight 0.
const WORD_ZERO: f64 = -12.0;
/// Weight of a word relative to a letter sequence.
const WORD_FACTOR: f64 = 3.0;
const MAX_WORDS: usize = 1_500;
const MIN_WORD_COUNT: u32 = 3;
/// Weights are stored in eighths of a nat.
const PER_NAT: f64 = 8.0;
/// Number of buckets of the table; `TABLE_BUCKETS` in `src/language/table.rs`.
const TABLE_BUCKETS: usize = 1 << 16;
/// Marks a word among keys; `WORD` in `src/language/table.rs`.
const WORD_MARK: u64 = 9;

/// Weights above 0 of one language, by mark and key.
type Weights = HashMap<(u64, String), u8>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(crates), Some(output), None) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err("usage: language_table FOLDER_OF_CRATES OUTPUT".into());
    };
    let mut columns = Vec::new();
    for name in LINGUA_LANGUAGES {
        let folder = Path::new(&crates).join(format!("lingua-{name}-language-model-1.3.0"));
        let mut weights = sequences(&folder.join("models/ngrams.fst"))?;
        weights.extend(words(&fs::read_to_string(folder.join("testdata/sentences.txt"))?));
        if name == SERBIAN_LANGUAGE {
            add_latin_letters(&mut weights);
        }
        columns.push(weights);
    }
    columns.push(galician(&columns));
    fs::write(output, table(&columns))?;
    Ok(())
}

/// Returns the weights of the likeliest letter sequences. The model holds the logarithm of each sequence's
/// probability after the letters before its last one.
fn sequences(model: &Path) -> Result<Weights, Box<dyn Error>> {
    let model = fst::Map::new(fs::read(model)?)?;
    let mut conditional: HashMap<String, f64> = HashMap::new();
    let mut stream = model.stream();
    while let Some((sequence, bits)) = stream.next() {
        conditional.insert(String::from_utf8(sequence.to_vec())?, f64::from_bits(bits));
    }
    let mut weights = Weights::new();
    for (length, zero, kept) in SEQUENCE_LIMITS {
        let mut likeliest: Vec<(f64, &String)> = Vec::new();
        for sequence in conditional.keys().filter(|it| it.chars().count() == length) {
            let ends = sequence.char_indices().map(|(at, letter)| at + letter.len_utf8());
            let parts: Option<Vec<f64>> =
                ends.map(|end| conditional.get(&sequence[..end]).copied()).collect();
            likeliest.extend(parts.map(|it| (it.iter().sum::<f64>(), sequence)));
        }
        likeliest.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        for (probability, sequence) in likeliest.into_iter().take(kept) {
            if let Some(weight) = weight(probability - zero) {
                weights.insert((length as u64, sequence.clone()), weight);
            }
        }
    }
    Ok(weights)
}

/// Returns the weights of the most frequent words of every second line, beginning with the first. The labelled
/// rows of the tests are from the other lines.
fn words(sentences: &str) -> Weights {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for line in sentences.lines().step_by(2) {
        let lower = line.to_lowercase();
        for word in lower.split(|it| !is_of_word(it)).filter(|it| !it.is_empty()) {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
    }
    let total: u32 = counts.values().sum();
    let mut frequent: Vec<(String, u32)> = counts.into_iter().filter(|it| it.1 >= MIN_WORD_COUNT).collect();
    frequent.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    frequent.truncate(MAX_WORDS);
    let weighed = frequent.into_iter().filter_map(|(word, count)| {
        Some(((WORD_MARK, word), word_weight(f64::from(count) / f64::from(total))?))
    });
    weighed.collect()
}

/// Returns whether a character is a letter, or a mark that belongs to one.
fn is_of_word(char: char) -> bool {
    char.is_alphabetic() || matches!(char, '\u{300}'..='\u{36F}' | '\u{93C}' | '\u{94D}')
}

fn word_weight(frequency: f64) -> Option<u8> {
    weight((frequency.ln() - WORD_ZERO) * WORD_FACTOR)
}

/// Converts nats to a stored weight. Nothing is stored for 0 and below.
fn weight(nats: f64) -> Option<u8> {
    let eighths = (nats * PER_NAT).round().min(255.0);
    (eighths >= 1.0).then_some(eighths as u8)
}

/// Adds each sequence and word of Serbian in Latin letters.
fn add_latin_letters(weights: &mut Weights) {
    let latin: Vec<((u64, String), u8)> = weights
        .iter()
        .map(|((mark, key), weight)| ((*mark, key.chars().map(transliterated).collect::<String>()), *weight))
        .filter(|((mark, key), _)| *mark == WORD_MARK || key.chars().count() as u64 == *mark)
        .collect();
    for (key, weight) in latin {
        let known = weights.entry(key).or_default();
        *known = weight.max(*known);
    }
}

/// Returns a letter of Serbian in Latin letters.
fn transliterated(letter: char) -> &'static str {
    const LETTER_PAIRS: [(char, &str); 30] = [
        ('а', "a"),
        ('б', "b"),
        ('в', "v"),
        ('г', "g"),
        ('д', "d"),
        ('ђ', "đ"),
        ('е', "e"),
        ('ж', "ž"),
        ('з', "z"),
        ('и', "i"),
        ('ј', "j"),
        ('к', "k"),
        ('л', "l"),
        ('љ', "lj"),
        ('м', "m"),
        ('н', "n"),
        ('њ', "nj"),
        ('о', "o"),
        ('п', "p"),
        ('р', "r"),
        ('с', "s"),
        ('т', "t"),
        ('ћ', "ć"),
        ('у', "u"),
        ('ф', "f"),
        ('х', "h"),
        ('ц', "c"),
        ('ч', "č"),
        ('џ', "dž"),
        ('ш', "š"),
    ];
    LETTER_PAIRS.iter().find(|it| it.0 == letter).map_or("", |it| it.1)
}

/// Returns the weights of Galician, for which lingua has no model: the mean of Spanish and Portuguese, less
/// for words, and words of its own with frequencies by their rank.
fn galician(columns: &[Weights]) -> Weights {
    const FREQUENCY_OF_FIRST: f64 = 0.06;
    const SHARE_OF_WORDS: f64 = 0.7;
    let column =
        |name: &str| LINGUA_LANGUAGES.iter().position(|it| *it == name).and_then(|it| columns.get(it));
    let mut weights = Weights::new();
    for (key, weight) in [column("spanish"), column("portuguese")].into_iter().flatten().flatten() {
        *weights.entry(key.clone()).or_default() += weight / 2;
    }
    for ((mark, _), weight) in &mut weights {
        if *mark == WORD_MARK {
            *weight = (f64::from(*weight) * SHARE_OF_WORDS).round() as u8;
        }
    }
    weights.retain(|_, weight| *weight > 0);
    for (rank, word) in GALICIAN_WORDS.split_whitespace().enumerate() {
        if let Some(own) = word_weight(FREQUENCY_OF_FIRST / (rank + 1) as f64) {
            let known = weights.entry((WORD_MARK, word.to_owned())).or_default();
            *known = own.max(*known);
        }
    }
    weights
}

/// Lays the table out as `src/language/table.rs` reads it.
fn table(columns: &[Weights]) -> Vec<u8> {
    let mut buckets: Vec<BTreeMap<u16, BTreeMap<u8, u8>>> = vec![BTreeMap::new(); TABLE_BUCKETS];
    for (column, weights) in (0_u8..).zip(columns) {
        for ((mark, key), weight) in weights {
            let hash = hash(*mark, key);
            let tag = (hash >> 40) as u16;
            let Some(bucket) = buckets.get_mut(hash as usize & (TABLE_BUCKETS - 1)) else { continue };
            // Of two keys with the same bucket and tag the larger weight is kept.
            let known = bucket.entry(tag).or_default().entry(column).or_default();
            *known = (*weight).max(*known);
        }
    }
    let (mut offsets, mut body) = (Vec::new(), Vec::new());
    for bucket in &buckets {
        offsets.extend((body.len() as u32).to_le_bytes());
        for (tag, weights) in bucket {
            body.extend(tag.to_le_bytes());
            body.push(weights.len() as u8);
            body.extend(weights.iter().flat_map(|(column, weight)| [*column, *weight]));
        }
    }
    offsets.extend((body.len() as u32).to_le_bytes());
    offsets.extend(body);
    offsets
}

/// Returns the hash of `src/language/table.rs`: FNV-1a over the mark and the characters, then mixed.
fn hash(mark: u64, key: &str) -> u64 {
    let values = std::iter::once(mark).chain(key.chars().map(u64::from));
    let sum = values.fold(0xCBF2_9CE4_8422_2325, |sum: u64, it| (sum ^ it).wrapping_mul(0x0100_0000_01B3));
    let sum = (sum ^ (sum >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    sum ^ (sum >> 29)
}
