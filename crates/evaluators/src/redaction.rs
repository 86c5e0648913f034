//! Masks personal data, secrets and a project's own patterns in texts before they are stored.
//!
//! The detectors are those of the evaluator `pii_leakage` (`crate::pii`). A masked value becomes `[REDACTED:kind]`, and
//! [`RedactionCounts`] has the number of masked values of each kind. Text that is JSON stays JSON (module `json`): its strings
//! and keys are redacted one by one, and everything else keeps its bytes.
//!
//! All work is linear in the length of the text: the detectors read it a few times, and the patterns of a project have a
//! maximum length and a budget for dense matches (module `patterns`). A text grows to at most twice its length plus
//! `MAX_GROWTH_BYTES`; beyond that, one placeholder replaces its rest. Texts without candidates are only scanned.

mod json;
mod normalized;
mod patterns;

use std::{borrow::Cow, collections::BTreeMap, fmt};

use api::project::RedactionSettings;

use self::{normalized::NormalizedBytes, patterns::Patterns};
use crate::pii::{
    Kind,
    masking::{self, KindSet},
    names::{self, SecretName},
};

/// Number of masked values by kind.
pub type RedactionCounts = BTreeMap<String, u64>;

/// The name that stands for all detectors.
pub const ALL_DETECTORS: &str = "all";

/// Maximum length in bytes of a text whose label is taken into account.
const MAX_LABELLED_BYTES: usize = 1_024;
/// Maximum length of such a label in bytes.
const MAX_LABEL_BYTES: usize = 128;
/// Memory of a pattern in bytes, estimated.
const PATTERN_BYTES: usize = 128 * 1024;

/// The bytes by which a text may grow beyond twice its length.
const MAX_GROWTH_BYTES: usize = 64 * 1024;

/// Error: the settings are invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactionProblem {
    /// The field, such as `patterns[0].pattern`.
    pub field: String,
    /// A message that continues a sentence that names the field.
    pub message: String,
}

impl RedactionProblem {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for RedactionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.message)
    }
}

impl std::error::Error for RedactionProblem {}

/// The compiled settings of a project.
pub struct Redactor {
    kinds: KindSet,
    patterns: Patterns,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("kinds", &self.kinds).finish_non_exhaustive()
    }
}

/// A range of bytes to mask, and the kind in its placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MaskedRange<'a> {
    start: usize,
    end: usize,
    kind: &'a str,
}

/// Whether numbers in JSON are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonNumbers {
    Masked,
    Kept,
}

impl Redactor {
    /// Compiles settings.
    ///
    /// # Errors
    /// Fails with the first invalid field.
    pub fn new(settings: &RedactionSettings) -> Result<Self, RedactionProblem> {
        let mut kinds = KindSet::default();
        // Checked before the entries, so that a long list costs nothing.
        if settings.detectors.len() > Kind::ALL.len() + 1 {
            return Err(RedactionProblem::new("detectors", "has more entries than there are detectors"));
        }
        for (i, name) in settings.detectors.iter().enumerate() {
            if name == ALL_DETECTORS {
                kinds = Kind::ALL.into_iter().fold(kinds, KindSet::with);
                continue;
            }
            let kind = Kind::ALL.into_iter().find(|it| it.word() == name).ok_or_else(|| {
                let names = Kind::ALL.map(Kind::word).join(", ");
                RedactionProblem::new(format!("detectors[{i}]"), format!("must be {ALL_DETECTORS}, {names}"))
            })?;
            kinds = kinds.with(kind);
        }
        Ok(Self { kinds, patterns: Patterns::compile(&settings.patterns)? })
    }

    /// Returns the memory of the redactor in bytes, estimated.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.patterns.len() * PATTERN_BYTES
    }

    /// Redacts a text, or the strings, keys and numbers of a JSON text. Returns `None` if nothing was masked.
    pub fn text(&self, text: &str, counts: &mut RedactionCounts) -> Option<String> {
        self.nested(text, Vec::new(), counts, JsonNumbers::Masked, json::MAX_DEPTH, true)
    }

    /// Redacts a JSON text and keeps its numbers, for texts whose numbers are times and IDs.
    pub fn json_strings(&self, text: &str, counts: &mut RedactionCounts) -> Option<String> {
        self.nested(text, Vec::new(), counts, JsonNumbers::Kept, json::MAX_DEPTH, true)
    }

    /// Redacts a text with a label, such as the key of an attribute: a label tells a telephone number from an order number.
    pub fn labelled_text(&self, label: &str, text: &str, counts: &mut RedactionCounts) -> Option<String> {
        if self.masks_whole(label, text) {
            let kind = Kind::Secret.word();
            return self.plain(text, vec![MaskedRange { start: 0, end: text.len(), kind }], counts);
        }
        let is_used = !self.kinds.is_empty()
            && label.len() <= MAX_LABEL_BYTES
            && text.len() <= MAX_LABELLED_BYTES
            && !json::is_json_like(text);
        if !is_used {
            return self.text(text, counts);
        }
        let label = without_call(label);
        if masking::cannot_contain_value(&label, text) {
            return self.plain(text, Vec::new(), counts);
        }
        let prefix = label.len() + ": ".len();
        let mut labelled = String::with_capacity(prefix + text.len());
        labelled.push_str(&label);
        labelled.push_str(": ");
        labelled.push_str(text);
        let mut ranges = self.detected(&labelled);
        ranges.retain(|it| it.end > prefix);
        for range in &mut ranges {
            (range.start, range.end) = (range.start.saturating_sub(prefix), range.end - prefix);
        }
        self.plain(text, ranges, counts)
    }

    /// Returns whether numbers with few digits and fractions with this label may be masked.
    pub fn searches_small_numbers(&self, label: &str) -> bool {
        self.patterns.may_match_numbers()
            || self.kinds.contains(Kind::Secret) && SecretName::of(label).is_some()
    }

    /// Returns whether a JSON text may have a key that is the name of a secret.
    fn has_secret_names(&self, text: &str) -> bool {
        self.kinds.contains(Kind::Secret) && (names::may_have_secret_key(text) || text.contains("\\u"))
    }

    /// Returns whether the label is the name of a secret, and this is its value.
    fn masks_whole(&self, label: &str, value: &str) -> bool {
        self.kinds.contains(Kind::Secret) && SecretName::of(label).is_some_and(|it| it.masks(value))
    }

    /// Redacts a text at this depth of JSON in JSON. `ranges` are to be masked in any case.
    fn nested<'a>(
        &'a self,
        text: &str,
        mut ranges: Vec<MaskedRange<'a>>,
        counts: &mut RedactionCounts,
        numbers: JsonNumbers,
        depth: u32,
        has_unread: bool,
    ) -> Option<String> {
        if has_unread {
            ranges.extend(self.detected(text));
        }
        if json::is_json_like(text) && depth > 0 {
            return json::JsonRedaction::new(self, text, merged(ranges), numbers, depth).run(counts);
        }
        self.plain(text, ranges, counts)
    }

    /// Returns the ranges that the detectors find, in bytes of the text.
    fn detected(&self, text: &str) -> Vec<MaskedRange<'static>> {
        if self.kinds.is_empty() {
            return Vec::new();
        }
        let normalized = NormalizedBytes::of(text);
        let found = masking::find(normalized.text(), self.kinds);
        let range = |it: masking::MaskedValue| MaskedRange {
            start: normalized.origin(it.start),
            end: normalized.end_origin(it.end),
            kind: it.kind.word(),
        };
        found.into_iter().map(range).filter(|it| it.start < it.end).collect()
    }

    /// Masks ranges and the matches of the patterns in a text that is not JSON.
    fn plain<'a>(
        &'a self,
        text: &str,
        ranges: Vec<MaskedRange<'a>>,
        counts: &mut RedactionCounts,
    ) -> Option<String> {
        let ranges = self.with_matches(text, ranges);
        if ranges.is_empty() {
            return None;
        }
        let mut out = String::with_capacity(text.len() + ranges.len().min(1_024) * 8);
        let mut copied = 0;
        for MaskedRange { start, end, kind } in ranges {
            out.push_str(text.get(copied..start).unwrap_or_default());
            push_placeholder(&mut out, kind);
            count(counts, kind);
            copied = end;
            if out.len() > max_redacted_bytes(text) {
                // The placeholder stands for the rest of the text too.
                return Some(out);
            }
        }
        out.push_str(text.get(copied..).unwrap_or_default());
        Some(out)
    }

    /// Returns ranges and the matches of the patterns, merged.
    fn with_matches<'a>(&'a self, text: &str, ranges: Vec<MaskedRange<'a>>) -> Vec<MaskedRange<'a>> {
        if self.patterns.may_match(text) {
            return self.patterns.add_matches(text, ranges);
        }
        merged(ranges)
    }
}

/// Returns the length in bytes beyond which the rest of a text becomes one placeholder.
fn max_redacted_bytes(text: &str) -> usize {
    text.len().saturating_mul(2).saturating_add(MAX_GROWTH_BYTES)
}

/// Returns a label without the word `call`. In labels, it names the call of a function and not one by telephone.
fn without_call(label: &str) -> Cow<'_, str> {
    let bytes = label.as_bytes();
    let begins_call =
        |at: usize| bytes[at..].first_chunk().is_some_and(|it: &[u8; 4]| it.eq_ignore_ascii_case(b"call"));
    if !memchr::memchr2_iter(b'c', b'C', bytes).any(begins_call) {
        return Cow::Borrowed(label);
    }
    Cow::Owned(["call", "Call", "CALL"].iter().fold(label.to_owned(), |label, word| label.replace(word, "")))
}

/// Sorts ranges, and merges those that overlap, and those of the same kind that follow each other directly.
fn merged(mut ranges: Vec<MaskedRange<'_>>) -> Vec<MaskedRange<'_>> {
    ranges.sort_by_key(|it| it.start);
    ranges.dedup_by(|next, last| {
        let joins = next.start < last.end || next.start == last.end && next.kind == last.kind;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
    ranges
}

fn push_placeholder(out: &mut String, kind: &str) {
    out.push_str("[REDACTED:");
    out.push_str(kind);
    out.push(']');
}

fn count(counts: &mut RedactionCounts, kind: &str) {
    match counts.get_mut(kind) {
        Some(count) => *count += 1,
        None => _ = counts.insert(kind.to_owned(), 1),
    }
}

#[cfg(test)]
mod tests;
