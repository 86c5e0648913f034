//! A field of a form that chooses among values.

use crate::{
    fuzzy::score,
    input::{Input, InputKind},
};

/// One of several values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The values: the word that is sent, and the text shown for it.
    pub options: Vec<(String, String)>,
    /// The position of the chosen value among those that match the letters.
    pub at: usize,
    /// The letters that filter the values; none if there are few values.
    pub letters: Option<Input>,
    /// Whether a value that is not listed can be typed.
    pub open: bool,
}

impl Choice {
    /// Returns a choice among words.
    pub fn of(words: &[&str]) -> Self {
        let options = words.iter().map(|word| ((*word).to_owned(), (*word).to_owned())).collect();
        Self { options, ..Self::default() }
    }

    /// Returns a choice among values. The value of this word is selected, or else the first.
    pub fn among(options: Vec<(String, String)>, word: Option<&str>) -> Self {
        let at = options.iter().position(|(it, _)| Some(it.as_str()) == word).unwrap_or(0);
        Self { options, at, ..Self::default() }
    }

    /// Returns a choice whose values are not loaded yet; this word will be selected. Letters filter the values.
    pub fn awaiting(word: Option<&str>) -> Self {
        let letters = Some(Input::new(InputKind::Dialog, ""));
        Self { letters, open: true, ..Self::of(word.as_slice()) }
    }

    /// Returns the letters typed.
    pub fn typed(&self) -> &str {
        self.letters.as_ref().map_or("", Input::text)
    }

    /// Returns the values that match the letters, best match first.
    pub fn fitting(&self) -> Vec<&(String, String)> {
        let typed = self.typed();
        let scored = |option| Some((score(typed, option_text(option))?, option));
        let mut fitting: Vec<_> = self.options.iter().filter_map(scored).collect();
        fitting.sort_by_key(|(score, _)| -score);
        fitting.into_iter().map(|(_, option)| option).collect()
    }

    /// Returns the chosen word.
    pub fn word(&self) -> Option<&str> {
        self.fitting().get(self.at).map(|(word, _)| word.as_str())
    }

    pub(super) fn step(&mut self, forward: bool) {
        let count = self.fitting().len();
        if count > 0 {
            self.at = if forward { self.at + 1 } else { self.at + count - 1 } % count;
        }
    }

    /// Replaces the values. The chosen word stays chosen if it is among them.
    pub(super) fn replace(&mut self, options: Vec<(String, String)>) {
        let word = self.word().map(str::to_owned);
        self.options = options;
        self.open = false;
        let kept = word.and_then(|word| self.fitting().iter().position(|(it, _)| *it == word));
        self.at = kept.unwrap_or(0);
    }
}

fn option_text((_, shown): &(String, String)) -> &str {
    shown
}
