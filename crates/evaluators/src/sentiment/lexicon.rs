//! What words and phrases weigh, and what they do to others.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

/// Words and phrases in lower case.
pub(super) struct Lexicon {
    words: HashMap<&'static str, Entry>,
    /// First words of phrases, with the longest phrase's number of words.
    phrases: HashMap<&'static str, usize>,
}

/// What is known of a word.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    /// From -40 to 40.
    weight: i8,
    /// What it does, as bits of [`Role`].
    roles: u16,
}

/// What a word does to others, or says of its sentence.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// It strengthens what follows.
    Boosts,
    /// It weakens what follows.
    Damps,
    /// It turns what follows into its opposite.
    Negates,
    /// The rest of the sentence weighs more.
    Turns,
    /// It regrets something.
    Regrets,
    /// It declines something.
    Declines,
    /// Who speaks.
    Speaks,
    /// What machines decline, or regret.
    Service,
    /// What machines decline even without regret.
    Help,
    /// It begins phrases.
    Begins,
}

use Role::{Begins, Boosts, Damps, Declines, Help, Negates, Regrets, Service, Speaks, Turns};

const ROLES: &[(Role, &str)] = &[
    (
        Boosts,
        "absolutely amazingly awfully completely considerably deeply enormously entirely especially exceptionally \
         extremely fully greatly highly hugely incredibly insanely intensely more most particularly purely quite \
         really remarkably so substantially super thoroughly totally tremendously truly unbelievably utterly very such",
    ),
    (
        Damps,
        "almost barely fairly hardly kinda less little marginally occasionally partly relatively scarcely slightly \
         somewhat sorta",
    ),
    (
        Negates,
        "not no never none nobody nor neither nothing nowhere without cannot rarely seldom despite lacks lacked lack \
         isnt dont hardly ain't aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't mustn't \
         needn't shan't shouldn't wasn't weren't won't wouldn't",
    ),
    (Turns, "but however yet"),
    (Regrets, "sorry apologize apologise apologies unfortunately regret afraid"),
    (Declines, "can't cannot unable won't couldn't don't not decline inability"),
    (Speaks, "i i'm we we're my our"),
    (
        Service,
        "help assist provide share answer comply access fulfill discuss assistance support information request do \
         find offer continue inconvenience confusion delay misunderstanding",
    ),
    (Help, "help assist comply discuss"),
];

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut lexicon = Lexicon { words: HashMap::with_capacity(8_192), phrases: HashMap::new() };
    // A later list overrides the weights of earlier ones.
    let lists = [include_str!("vader.txt"), include_str!("reviews.txt"), include_str!("own.txt")];
    for line in lists.iter().flat_map(|it| it.lines()) {
        let Some((words, value)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#')) else { continue };
        let Ok(value) = value.parse() else { continue };
        lexicon.words.entry(words).or_default().weight = value;
        if let Some((first, more)) = words.split_once(' ') {
            let length = more.split(' ').count() + 1;
            let longest = lexicon.phrases.entry(first).or_insert(length);
            *longest = length.max(*longest);
            lexicon.words.entry(first).or_default().roles |= 1 << Begins as u16;
        }
    }
    for (role, words) in ROLES {
        for word in words.split(' ') {
            lexicon.words.entry(word).or_default().roles |= 1 << *role as u16;
        }
    }
    lexicon
});

impl Entry {
    /// In VADER's units, from -4 to 4; 0 when it has no feeling.
    pub(super) fn weight(self) -> f64 {
        f64::from(self.weight) / 10.0
    }

    pub(super) fn is(self, role: Role) -> bool {
        self.roles & 1 << role as u16 != 0
    }
}

impl Lexicon {
    pub(super) fn get() -> &'static Self {
        &LEXICON
    }

    /// What is known of a word.
    pub(super) fn word(&self, word: &str) -> Entry {
        self.words.get(word).copied().unwrap_or_default()
    }

    /// Returns the longest known phrase that these words begin with, its weight and its number of words.
    pub(super) fn phrase(&self, words: &[Cow<'_, str>]) -> Option<(f64, usize)> {
        let longest = *self.phrases.get(words.first()?.as_ref())?;
        (2..=longest.min(words.len())).rev().find_map(|length| {
            let entry = self.words.get(words[..length].join(" ").as_str())?;
            Some((entry.weight(), length))
        })
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
