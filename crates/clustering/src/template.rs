//! A message with wildcards in place of its variable parts.

use crate::align::Alignment;
use crate::mask::{TEMPLATE_WILDCARD, mask};
use crate::unwrap::unwrap;
use crate::words::{Word, split};

/// Version of the rules that create templates. Increment it when stored templates are not comparable with new
/// ones.
pub const FINGERPRINT_VERSION: u32 = 1;

/// The end of a template whose colon is followed by a free text, different in each message.
const ANY_END: &str = ": <*>…";

/// Maximum length of the text of a template.
const MAX_TEMPLATE_BYTES: usize = 1024;

/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 120;

/// A message with [`TEMPLATE_WILDCARD`] in place of its variable parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    words: Vec<Word>,
}

impl Template {
    /// Returns the template of one message: unwrapped and masked.
    pub fn of_message(message: &str) -> Self {
        Self::of_masked(&mask(&unwrap(message)))
    }

    /// Parses a stored fingerprint. Returns `None` if another version of the rules made it.
    pub fn parse(fingerprint: &str) -> Option<Self> {
        let (version, text) = fingerprint.split_once(':')?;
        (version.parse() == Ok(FINGERPRINT_VERSION)).then(|| Self::of_masked(text))
    }

    /// Returns the text that a cluster's row stores.
    pub fn fingerprint(&self) -> String {
        format!("{FINGERPRINT_VERSION}:{}", self.text)
    }

    /// Returns the text for display.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the first sentence, shortened to the length of a line.
    pub fn title(&self) -> String {
        let sentence = &self.text[..first_sentence(&self.text)];
        let title = sentence.trim_end_matches(['.', ':', ',', ' ']);
        if title.chars().count() <= MAX_TITLE_CHARS {
            return title.to_owned();
        }
        let cut: String = title.chars().take(MAX_TITLE_CHARS).collect();
        let end = cut.rfind(' ').filter(|it| *it > cut.len() / 2).unwrap_or(cut.len());
        format!("{}…", cut[..end].trim_end())
    }

    /// Returns the template that covers every failure.
    pub(crate) fn of_anything() -> Self {
        Self::of_masked(TEMPLATE_WILDCARD)
    }

    /// Returns whether this is the template that covers every failure.
    pub(crate) fn is_anything(&self) -> bool {
        self.text == TEMPLATE_WILDCARD
    }

    /// Returns the weight of all words.
    pub(crate) fn weight(&self) -> u32 {
        self.words.iter().map(|it| it.weight).sum()
    }

    /// Returns the words.
    pub(crate) fn words(&self) -> &[Word] {
        &self.words
    }

    /// Returns the template of a masked text. The text of a template gives the same template again.
    fn of_masked(masked: &str) -> Self {
        let cut = masked.len() > MAX_TEMPLATE_BYTES;
        let masked = masked.trim();
        let text = &masked[..masked.floor_char_boundary(MAX_TEMPLATE_BYTES)];
        let (words, more) = split(text);
        if !cut && !more {
            return Self { text: text.to_owned(), words };
        }
        // The last word may be cut, and the wildcard needs a place.
        let kept = &words[..words.len().saturating_sub(1)];
        let mut end = kept.last().map_or(0, |it| it.end as usize);
        while end + 8 > MAX_TEMPLATE_BYTES {
            end = text.floor_char_boundary(end - 1);
        }
        let shortened = text[..end].trim_end();
        let text = if shortened.ends_with(TEMPLATE_WILDCARD) || shortened.is_empty() {
            format!("{shortened}{}", if shortened.is_empty() { TEMPLATE_WILDCARD } else { "" })
        } else {
            format!("{shortened} {TEMPLATE_WILDCARD}")
        };
        let (words, _) = split(&text);
        Self { text, words }
    }

    /// Returns the text of a word.
    pub(crate) fn word_text(&self, word: &Word) -> &str {
        &self.text[word.start as usize..word.end as usize]
    }

    /// Returns the template with the words that both templates have in common, and wildcards where they differ.
    /// `alignment` compares this template with the other one.
    pub(crate) fn generalize(&self, alignment: &Alignment) -> Self {
        let mut text = String::with_capacity(self.text.len());
        // The end of the last word that was kept, in this template's text.
        let mut at = 0;
        let mut next = 0;
        for &(mine, _) in alignment.pairs.iter().chain([&(self.words.len(), alignment.other_words)]) {
            let gap = next..mine;
            let has_other = alignment.has_other_words_before(mine);
            let word = self.words.get(mine);
            let glue_end = word.map_or(self.text.len(), |it| it.start as usize);
            if gap.is_empty() && !has_other {
                text.push_str(&self.text[at..glue_end]);
            } else {
                // The punctuation around the gap stays.
                let first = self.words.get(gap.start).filter(|_| !gap.is_empty());
                let before_end = first.map_or(at, |it| it.start as usize);
                let after_start = if gap.is_empty() { at } else { self.words[gap.end - 1].end as usize };
                let before = &self.text[at..before_end];
                text.push_str(if first.is_none() && !text.is_empty() { " " } else { before });
                if !text.trim_end().ends_with(TEMPLATE_WILDCARD) {
                    text.push_str(TEMPLATE_WILDCARD);
                }
                let after = &self.text[after_start..glue_end];
                text.push_str(if after.is_empty() && word.is_some() { " " } else { after });
            }
            if let Some(word) = word {
                if !(word.is_wildcard() && text.trim_end().ends_with(TEMPLATE_WILDCARD)) {
                    text.push_str(self.word_text(word));
                }
                at = word.end as usize;
            }
            next = mine + 1;
        }
        Self::of_masked(&collapse_space(&text))
    }

    /// Returns whether the wildcard at the end stands for any text.
    pub(crate) fn takes_any_end(&self) -> bool {
        self.text.ends_with(ANY_END)
    }

    /// Returns this template up to the end of the words, followed by any text.
    pub(crate) fn keep_head(&self, words: usize) -> Self {
        let end = self.words.get(words.wrapping_sub(1)).map_or(0, |it| it.end as usize);
        Self::of_masked(&format!("{}{ANY_END}", &self.text[..end]))
    }
}

/// Replaces runs of spaces by one.
fn collapse_space(text: &str) -> String {
    let mut collapsed = String::with_capacity(text.len());
    for it in text.chars().filter(|it| *it != '\n') {
        if it != ' ' || !collapsed.ends_with(' ') {
            collapsed.push(it);
        }
    }
    collapsed
}

/// Returns the end of the first sentence that has more than two words.
fn first_sentence(text: &str) -> usize {
    let mut words = 0;
    let mut before = ' ';
    for (at, it) in text.char_indices() {
        let is_end = (it == '.' || it == '!' || it == '?') && {
            let mut after = text[at + 1..].chars();
            after.next() == Some(' ')
                && after.next().is_some_and(|it| it.is_uppercase() || it == '<' || it == '(')
        };
        if is_end && words >= 2 {
            return at + 1;
        }
        if it == '。' {
            return at;
        }
        words += usize::from(it == ' ' && before != ' ');
        before = it;
    }
    text.len()
}

#[cfg(test)]
mod tests;
