//! The weights of words and phrases, and their effects on other words.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

/// Words and phrases in lower case.
pub(super) struct Lexicon {
    words: HashMap<&'static str, Entry>,
    /// The first words of phrases, with the number of words of the longest phrase.
    phrases: HashMap<&'static str, usize>,
}

/// The weight and roles of a word.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    /// The weight, from -40 to 40.
    weight: i8,
    /// The bits of [`Role`].
    roles: u16,
}

/// The effect of a word on other words or on its sentence.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// Strengthens the following words.
    Boosts,
    /// Weakens the following words.
    Damps,
    /// Negates the following words.
    Negates,
    /// Gives the rest of the sentence more weight.
    Turns,
    /// Expresses regret.
    Regrets,
    /// Expresses refusal.
    Declines,
    /// Names the speaker.
    Speaks,
    /// Names something that an assistant regrets or refuses.
    Service,
    /// Names something that an assistant refuses even without regret.
    Help,
    /// Begins phrases.
    Begins,
}

use Role::{Begins, Boosts, Damps, Declines, Help, Negates, Regrets, Service, Speaks, Turns};

const WORD_ROLES: &[(Role, &str)] = &[
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

static SHARED_LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut lexicon = Lexicon { words: HashMap::with_capacity(8_192), phrases: HashMap::new() };
    // A later list overrides the weights of earlier ones.
    let lists = [include_str!("vader.txt"), include_str!("own.txt")];
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
    for (role, words) in WORD_ROLES {
        for word in words.split(' ') {
            lexicon.words.entry(word).or_default().roles |= 1 << *role as u16;
        }
    }
    lexicon
});

impl Entry {
    /// Returns the weight in VADER's units, from -4 to 4; 0 for a word without feeling.
    pub(super) fn weight(self) -> f64 {
        f64::from(self.weight) / 10.0
    }

    pub(super) fn is(self, role: Role) -> bool {
        self.roles & 1 << role as u16 != 0
    }
}

impl Lexicon {
    pub(super) fn get() -> &'static Self {
        &SHARED_LEXICON
    }

    /// Returns the weight and roles of a word.
    pub(super) fn word(&self, word: &str) -> Entry {
        self.words.get(word).copied().unwrap_or_default()
    }

    /// Returns the weight and the number of words of the longest known phrase at the beginning of these
    /// words.
    pub(super) fn phrase(&self, words: &[Cow<'_, str>]) -> Option<(f64, usize)> {
        let longest = *self.phrases.get(words.first()?.as_ref())?;
        (2..=longest.min(words.len())).rev().find_map(|length| {
            let entry = self.words.get(words[..length].join(" ").as_str())?;
            Some((entry.weight(), length))
        })
    }
}

/// Returns the weight of an emoji.
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
