//! Splits a masked text into words.

use crate::mask::TEMPLATE_WILDCARD;

/// Maximum number of words of a template. The rest of a longer message is a wildcard.
pub const MAX_TEMPLATE_WORDS: usize = 48;

/// Maximum length of a word; a longer one is variable.
const MAX_WORD_BYTES: usize = 80;

/// Weight of a word of prose.
pub const PROSE_WEIGHT: u32 = 10;
/// Weight of a name that is written like a class, as in `PacketResponder`.
const NAME_WEIGHT: u32 = 6;
/// Weight of a value: a word with digits or underscores, in quotes or brackets, or after an equals sign.
const VALUE_WEIGHT: u32 = 2;
/// Weight of a function word.
const FUNCTION_WORD_WEIGHT: u32 = 3;
/// Weight of a character of a script without spaces.
const CHARACTER_WEIGHT: u32 = 5;

/// Function words, which say little about the failure.
const FUNCTION_WORDS: &[&str] = &[
    "a", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "did", "do", "does", "for",
    "from", "had", "has", "have", "if", "in", "into", "is", "it", "its", "of", "on", "or", "our", "please",
    "so", "that", "the", "their", "then", "there", "these", "this", "to", "too", "was", "we", "were",
    "while", "will", "with", "you", "your",
];

/// The kind of a word by its spelling, which indicates how likely it is the same in all messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordKind {
    /// A wildcard, which stands for variable words.
    Wildcard,
    /// A word of prose, which describes the failure.
    Prose,
    /// The HTTP status of a response.
    Status,
    /// A function word, or a character of a script without spaces.
    Function,
    /// A name such as `PacketResponder`.
    Name,
    /// A word with digits or underscores, in quotes or brackets, or after an equals sign.
    Value,
}

/// Words for a missing value, which indicate a different failure than any present value.
const MISSING_VALUES: &[&str] = &["NoneType", "None", "null", "undefined", "nil"];

/// A word of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// Start of the word in the text, in bytes.
    pub start: u32,
    /// End of the word in the text, in bytes.
    pub end: u32,
    /// Hash of the word in lower case; 0 for a wildcard.
    pub hash: u64,
    /// Cost of a difference in this word; 0 for a wildcard.
    pub weight: u32,
    /// How the word is written.
    pub kind: WordKind,
    /// Whether the word is after the first sentence; such words usually give advice.
    pub is_advice: bool,
}

impl Word {
    /// Returns whether the word is a wildcard.
    pub fn is_wildcard(&self) -> bool {
        self.hash == 0
    }

    /// Returns whether the word is prose or a status, rather than a name, a value or a function word.
    pub fn is_prose(&self) -> bool {
        matches!(self.kind, WordKind::Prose | WordKind::Status)
    }
}

/// Minimum number of words of prose in a first sentence that is long enough to describe the failure.
const MIN_FIRST_SENTENCE_PROSE: usize = 3;

/// Divides the weights of the words after the first sentence. These words usually give advice, which may be missing
/// from messages of the same failure and occurs in messages of different failures.
fn lighten_advice(text: &str, words: &mut [Word]) {
    let mut prose = 0;
    let mut is_advice = false;
    for at in 0..words.len() {
        if is_advice {
            words[at].weight = words[at].weight.div_ceil(3);
            words[at].is_advice = true;
        }
        prose += usize::from(words[at].is_prose());
        let Some(next) = words.get(at + 1) else { break };
        let glue = &text[words[at].end as usize..next.start as usize];
        let is_end = glue.find(['.', '!', '?']).is_some_and(|it| glue[it + 1..].starts_with([' ', ')']));
        let starts_sentence =
            || text[next.start as usize..].starts_with(|it: char| it.is_uppercase() || it == '<');
        is_advice |= is_end && prose >= MIN_FIRST_SENTENCE_PROSE && starts_sentence();
    }
}

/// Returns the first words of a text, and whether there are more.
pub fn split(text: &str) -> (Vec<Word>, bool) {
    let mut words: Vec<Word> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(TEMPLATE_WILDCARD) {
            words.push(word(at, at + TEMPLATE_WILDCARD.len(), 0, 0, WordKind::Wildcard));
            at += TEMPLATE_WILDCARD.len();
        } else {
            let length = word_length(rest);
            if length == 0 {
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            }
            words.push(weighted(text, at, at + length));
            at += length;
        }
        if words.len() > MAX_TEMPLATE_WORDS {
            words.pop();
            lighten_advice(text, &mut words);
            return (words, true);
        }
    }
    lighten_advice(text, &mut words);
    (words, false)
}

fn word(start: usize, end: usize, hash: u64, weight: u32, kind: WordKind) -> Word {
    // A masked text has a few kilobytes.
    Word { start: start as u32, end: end as u32, hash, weight, kind, is_advice: false }
}

/// Returns the length of the word at the beginning of a text; 0 if there is none.
fn word_length(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    let Some((_, first)) = chars.next() else { return 0 };
    if is_character_word(first) {
        return first.len_utf8();
    }
    if !(first.is_alphanumeric() || first == '_') {
        return 0;
    }
    let mut end = first.len_utf8();
    while let Some((at, it)) = chars.next() {
        let is_inner = matches!(it, '-' | '\'' | '’' | '.' | '@' | '$')
            && chars.peek().is_some_and(|(_, next)| next.is_alphanumeric() && !is_character_word(*next));
        if !(it.is_alphanumeric() || it == '_' || is_inner) || is_character_word(it) {
            break;
        }
        end = at + it.len_utf8();
    }
    end
}

/// Returns whether a character is written without spaces around words.
fn is_character_word(it: char) -> bool {
    matches!(it, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{0e00}'..='\u{0e7f}')
}

fn weighted(text: &str, start: usize, end: usize) -> Word {
    let it = &text[start..end];
    if it.len() > MAX_WORD_BYTES {
        return word(start, end, 0, 0, WordKind::Wildcard);
    }
    let first = it.chars().next().unwrap_or(' ');
    // Masking leaves no numbers except the status of a response.
    let is_status = it.len() == 3 && it.bytes().all(|it| it.is_ascii_digit());
    let (weight, kind) = if is_character_word(first) {
        (CHARACTER_WEIGHT, WordKind::Function)
    } else if is_status {
        (PROSE_WEIGHT, WordKind::Status)
    } else if MISSING_VALUES.contains(&it) {
        (PROSE_WEIGHT, WordKind::Prose)
    } else if is_value(text, start, end) {
        (VALUE_WEIGHT, WordKind::Value)
    } else if is_function_word(it) {
        (FUNCTION_WORD_WEIGHT, WordKind::Function)
    } else if it.contains('.')
        || it.as_bytes().windows(2).any(|it| it[0].is_ascii_lowercase() && it[1].is_ascii_uppercase())
    {
        (NAME_WEIGHT, WordKind::Name)
    } else {
        (PROSE_WEIGHT, WordKind::Prose)
    };
    word(start, end, hash(it), weight, kind)
}

fn is_function_word(it: &str) -> bool {
    it.len() <= 6 && FUNCTION_WORDS.iter().any(|word| it.eq_ignore_ascii_case(word))
}

/// Returns whether a word is written like a value: with digits or underscores, in quotes, as the only word in
/// brackets, or after an equals sign.
fn is_value(text: &str, start: usize, end: usize) -> bool {
    let it = &text[start..end];
    let before = text[..start].chars().next_back();
    let after = text[end..].chars().next();
    let is_quoted = matches!(before, Some('"' | '\'' | '`' | '“' | '‘' | '«'))
        && matches!(after, Some('"' | '\'' | '`' | '”' | '’' | '»'));
    let is_alone = matches!(
        (before, after),
        (Some('('), Some(')')) | (Some('['), Some(']')) | (Some('<'), Some('>')) | (Some('{'), Some('}'))
    );
    let is_assigned = before == Some('=') || (before == Some(':') && !it.is_empty());
    let is_compound = it.bytes().filter(|it| *it == b'-').count() >= 2;
    is_compound
        || it.bytes().any(|it| it.is_ascii_digit() || it == b'_')
        || is_quoted
        || is_alone
        || is_assigned
}

/// Returns the FNV-1a of the word in lower case, never 0.
fn hash(word: &str) -> u64 {
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    let sum = if word.is_ascii() {
        word.bytes().fold(0xCBF2_9CE4_8422_2325, |sum, byte| step(sum, byte.to_ascii_lowercase()))
    } else {
        word.to_lowercase().bytes().fold(0xCBF2_9CE4_8422_2325, step)
    };
    sum.max(1)
}
