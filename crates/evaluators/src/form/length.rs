//! The length of a text.

use serde_json::{Map, Value, json};

use crate::{definition::ConfigProblem, sentence::counted};

/// Inclusive bounds for characters (Unicode scalar values) and for words (separated by whitespace).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lengths {
    chars: (Option<u64>, Option<u64>),
    words: (Option<u64>, Option<u64>),
}

impl Lengths {
    /// Returns the part of a config's schema that describes these options.
    pub(crate) fn properties() -> Value {
        let bound = |what: &str| json!({"type": "integer", "minimum": 0, "description": what});
        json!({
            "min_chars": bound("Fewest characters."), "max_chars": bound("Most characters."),
            "min_words": bound("Fewest words."), "max_words": bound("Most words.")
        })
    }

    /// Parses the options.
    ///
    /// # Errors
    /// When there is no bound, or a minimum is above its maximum.
    pub(crate) fn of(options: &Map<String, Value>) -> Result<Self, Vec<ConfigProblem>> {
        let at = |name: &str| options.get(name).and_then(Value::as_u64);
        let chars = (at("min_chars"), at("max_chars"));
        let words = (at("min_words"), at("max_words"));
        let above = |it: (Option<u64>, Option<u64>)| matches!(it, (Some(min), Some(max)) if min > max);
        if above(chars) {
            return Err(vec![ConfigProblem::new("min_chars", "is above max_chars")]);
        }
        if above(words) {
            return Err(vec![ConfigProblem::new("min_words", "is above max_words")]);
        }
        if chars == (None, None) && words == (None, None) {
            let message = "needs at least one of min_chars, max_chars, min_words and max_words";
            return Err(vec![ConfigProblem::new("", message)]);
        }
        Ok(Self { chars, words })
    }

    /// Returns `None` if the text is within the bounds, else its length in words for a message.
    pub(crate) fn fails(&self, text: &str) -> Option<String> {
        let chars = || text.chars().count();
        let words = || text.split_whitespace().count();
        outside(self.chars, chars, "character").or_else(|| outside(self.words, words, "word"))
    }
}

fn outside(bounds: (Option<u64>, Option<u64>), count: impl FnOnce() -> usize, unit: &str) -> Option<String> {
    if bounds == (None, None) {
        return None;
    }
    let found = count();
    let says = |limit: u64, than: &str| {
        let has = counted(found, unit, &format!("{unit}s"));
        Some(format!("it has {has}, {than} than {limit}"))
    };
    match bounds {
        (Some(min), _) if (found as u64) < min => says(min, "fewer"),
        (_, Some(max)) if found as u64 > max => says(max, "more"),
        _ => None,
    }
}
