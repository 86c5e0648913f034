//! A line of a form with a fixed set of values.

use crate::{
    fuzzy::score,
    input::{Input, InputKind},
};

/// One of several values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The values: the word, and how it is shown.
    pub options: Vec<(String, String)>,
    /// The chosen one, among those that fit.
    pub at: usize,
    /// Letters that narrow the values down; nothing where there are too few to do so.
    pub letters: Option<Input>,
    /// There may be other values than these, which can be typed.
    pub open: bool,
}

impl Choice {
    /// Returns a choice among words.
    pub(super) fn of(words: &[&str]) -> Self {
        let options = words.iter().map(|word| ((*word).to_owned(), (*word).to_owned())).collect();
        Self { options, ..Self::default() }
    }

    /// A word among values that are not known yet, or none; letters narrow them down.
    pub(super) fn awaiting(word: Option<&str>) -> Self {
        let letters = Some(Input::new(InputKind::Dialog, ""));
        Self { letters, open: true, ..Self::of(word.as_slice()) }
    }

    /// The letters typed.
    pub fn typed(&self) -> &str {
        self.letters.as_ref().map_or("", Input::text)
    }

    /// The values that fit the letters typed, best first.
    pub fn fitting(&self) -> Vec<&(String, String)> {
        let typed = self.typed();
        let scored = |option| Some((score(typed, option_text(option))?, option));
        let mut fitting: Vec<_> = self.options.iter().filter_map(scored).collect();
        fitting.sort_by_key(|(score, _)| -score);
        fitting.into_iter().map(|(_, option)| option).collect()
    }

    /// The chosen word.
    pub fn word(&self) -> Option<&str> {
        self.fitting().get(self.at).map(|(word, _)| word.as_str())
    }

    pub(super) fn step(&mut self, forward: bool) {
        let count = self.fitting().len();
        if count > 0 {
            self.at = if forward { self.at + 1 } else { self.at + count - 1 } % count;
        }
    }

    /// Puts other values in place; the chosen word stays chosen, if it is among them.
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
