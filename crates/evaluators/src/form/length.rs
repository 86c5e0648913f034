//! The length of a text.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    config::{ConfigProblem, Count, one_problem},
    sentence::counted,
};

/// Inclusive bounds for characters (Unicode scalar values) and for words (separated by whitespace).
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct LengthBounds {
    /// Minimum number of characters.
    min_chars: Option<Count>,
    /// Maximum number of characters.
    max_chars: Option<Count>,
    /// Minimum number of words.
    min_words: Option<Count>,
    /// Maximum number of words.
    max_words: Option<Count>,
}

impl LengthBounds {
    /// Checks that there is a bound, and that no minimum is above its maximum.
    ///
    /// # Errors
    /// Returns the problem with its field.
    pub(crate) fn checked(self) -> Result<Self, Vec<ConfigProblem>> {
        let Self { min_chars, max_chars, min_words, max_words } = self;
        let is_above =
            |min: Option<Count>, max: Option<Count>| min.zip(max).is_some_and(|(min, max)| min > max);
        if is_above(min_chars, max_chars) {
            return Err(one_problem("min_chars", "is above max_chars"));
        }
        if is_above(min_words, max_words) {
            return Err(one_problem("min_words", "is above max_words"));
        }
        if [min_chars, max_chars, min_words, max_words].iter().all(Option::is_none) {
            let message = "needs at least one of min_chars, max_chars, min_words and max_words";
            return Err(one_problem("", message));
        }
        Ok(self)
    }

    /// Returns `None` if the text is within the bounds, else its length in words for a message.
    pub(crate) fn violation(&self, text: &str) -> Option<String> {
        let chars = || text.chars().count();
        let words = || text.split_whitespace().count();
        outside(self.min_chars, self.max_chars, chars, "character")
            .or_else(|| outside(self.min_words, self.max_words, words, "word"))
    }
}

fn outside(
    min: Option<Count>,
    max: Option<Count>,
    count: impl FnOnce() -> usize,
    unit: &str,
) -> Option<String> {
    if min.is_none() && max.is_none() {
        return None;
    }
    let length = count();
    let has = || counted(length, unit, &format!("{unit}s"));
    match (min, max) {
        (Some(Count(min)), _) if (length as u64) < min => Some(format!("it has {}, fewer than {min}", has())),
        (_, Some(Count(max))) if length as u64 > max => Some(format!("it has {}, more than {max}", has())),
        _ => None,
    }
}
