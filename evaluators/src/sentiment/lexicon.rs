//! What words and phrases weigh.

use std::{collections::HashMap, sync::LazyLock};

/// Words and phrases in lower case, from -40 to 40.
pub(super) struct Lexicon {
    words: HashMap<&'static str, i8>,
    /// First words of phrases, with the longest phrase's number of words.
    phrases: HashMap<&'static str, usize>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut lexicon = Lexicon { words: HashMap::with_capacity(8_192), phrases: HashMap::new() };
    for line in include_str!("vader.txt").lines().chain(include_str!("own.txt").lines()) {
        let Some((words, value)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#')) else { continue };
        let Ok(value) = value.parse() else { continue };
        lexicon.words.insert(words, value);
        if let Some((first, more)) = words.split_once(' ') {
            let length = more.split(' ').count() + 1;
            let longest = lexicon.phrases.entry(first).or_insert(length);
            *longest = length.max(*longest);
        }
    }
    lexicon
});

impl Lexicon {
    pub(super) fn get() -> &'static Self {
        &LEXICON
    }

    /// What a word or phrase weighs, in VADER's units from -4 to 4; none when it isn't known.
    pub(super) fn weight(&self, words: &str) -> Option<f64> {
        self.words.get(words).map(|it| f64::from(*it) / 10.0)
    }

    /// The longest known phrase that these words begin with, its weight and its number of words.
    pub(super) fn phrase(&self, words: &[String]) -> Option<(f64, usize)> {
        let longest = *self.phrases.get(words.first()?.as_str())?;
        (2..=longest.min(words.len()))
            .rev()
            .find_map(|length| self.weight(&words[..length].join(" ")).map(|it| (it, length)))
    }
}

/// What an emoji weighs.
pub(super) fn emoji(char: char) -> Option<f64> {
    match char {
        '😀'..='😆'
        | '😊'
        | '😋'
        | '😍'
        | '😎'
        | '😘'
        | '🙂'
        | '🤗'
        | '🥰'
        | '🤩'
        | '🥳'
        | '❤'
        | '💖'
        | '💯'
        | '👍'
        | '🎉'
        | '👏'
        | '🌟'
        | '✨'
        | '☺'
        | '🙌' => Some(2.0),
        '😒'
        | '😔'
        | '😕'
        | '😖'
        | '😞'..='😤'
        | '😩'
        | '😫'
        | '😭'
        | '😱'
        | '🙁'
        | '☹'
        | '👎'
        | '💔'
        | '🤬'
        | '🤮' => Some(-2.0),
        _ => None,
    }
}
