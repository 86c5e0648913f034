//! The regular expressions of a project. Their number, length and compiled size are limited, and so is the length of a match:
//! a search for all matches of an unbounded expression, such as `[A-Z]*[0-9]{3}|[A-Z]{3}`, reads the rest of the text again
//! for each match. [`SearchBudget`] limits how often the bytes of a text are read.

use std::collections::HashSet;

use api::project::RedactionPattern;
use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use super::{MaskedRange, RedactionProblem, merged};

/// Maximum number of patterns of a project.
const MAX_PATTERNS: usize = 20;
/// Maximum length of a pattern in bytes.
const MAX_PATTERN_BYTES: usize = 500;
/// Maximum length of a name in characters.
const MAX_NAME_CHARS: usize = 32;
/// The fewest bytes of a match. Patterns with shorter ones would mask syllables, and placeholders are longer.
const MIN_MATCH_BYTES: usize = 3;
/// The most bytes of a match: a search reads at most as many bytes after each match.
const MAX_MATCH_BYTES: usize = 1_024;
/// Maximum size of a compiled pattern in bytes.
const MAX_COMPILED_BYTES: usize = 64 * 1024;
/// Maximum size of the cache of a pattern's search in bytes, for each thread that searches.
const MAX_SEARCH_CACHE_BYTES: usize = 256 * 1024;
/// Maximum size of the compiled filter, which contains all patterns, in bytes.
const MAX_FILTER_BYTES: usize = 1024 * 1024;
/// Maximum number of ranges to mask in one text.
pub(super) const MAX_RANGES: usize = 100_000;
/// How often the bytes of a text are read again after matches of all patterns, at most.
const MAX_REREADS: usize = 64;
/// Bytes that may be read again in every text.
const MIN_REREAD_BYTES: usize = 64 * 1024;
/// Maximum nesting of groups and repetitions.
const MAX_NESTING: u32 = 50;
/// Texts that no pattern may match: names by which ingest recognizes types of spans, and words of everyday language.
const ORDINARY_TEXTS: [&str; 6] = [
    "gen_ai.operation.name",
    "openinference.span.kind",
    "service.name",
    "The weather is nice",
    "llm",
    "天气很好",
];

/// A named pattern.
struct NamedPattern {
    name: Box<str>,
    regex: Regex,
    /// The most bytes of a match.
    max_match_bytes: usize,
}

/// The compiled patterns of a project.
pub(super) struct Patterns {
    list: Vec<NamedPattern>,
    /// The minimum length in bytes of a match of any pattern; without patterns the maximum, which no text has.
    min_match_bytes: usize,
    /// Whether a pattern may match in the digits of a number.
    may_match_numbers: bool,
    /// Matches every text in which a pattern can match, even where it is a part of a longer text. None: all texts.
    filter: Option<Regex>,
}

/// The bytes of a text that may still be read again after matches.
struct SearchBudget(usize);

impl SearchBudget {
    fn of(text: &str) -> Self {
        Self(text.len().saturating_mul(MAX_REREADS).saturating_add(MIN_REREAD_BYTES))
    }

    /// Returns whether a search may go on that reads this many bytes again.
    fn spend(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

impl Patterns {
    /// Validates and compiles patterns.
    pub(super) fn compile(patterns: &[RedactionPattern]) -> Result<Self, RedactionProblem> {
        if patterns.len() > MAX_PATTERNS {
            return Err(RedactionProblem::new("patterns", format!("has more than {MAX_PATTERNS} entries")));
        }
        let mut list = Vec::with_capacity(patterns.len());
        let mut filters = Vec::with_capacity(patterns.len());
        let (mut min_match_bytes, mut may_match_numbers) = (usize::MAX, false);
        let mut names = HashSet::with_capacity(patterns.len());
        let mut expressions = HashSet::with_capacity(patterns.len());
        for (i, RedactionPattern { name, pattern }) in patterns.iter().enumerate() {
            let at = |field: &str| format!("patterns[{i}].{field}");
            check_name(name).map_err(|why| RedactionProblem::new(at("name"), why))?;
            if !names.insert(name) {
                return Err(RedactionProblem::new(at("name"), "is the name of an earlier pattern"));
            }
            let (regex, hir) = compile(pattern).map_err(|why| RedactionProblem::new(at("pattern"), why))?;
            if !expressions.insert(hir.to_string()) {
                return Err(RedactionProblem::new(at("pattern"), "is equal to an earlier pattern"));
            }
            let max_match_bytes = hir.properties().maximum_len().unwrap_or(MAX_MATCH_BYTES);
            min_match_bytes = min_match_bytes.min(hir.properties().minimum_len().unwrap_or(0));
            may_match_numbers |= may_match_number(&hir);
            list.push(NamedPattern { name: name.as_str().into(), regex, max_match_bytes });
            filters.push(without_looks(&hir));
        }
        Ok(Self { filter: filter(filters), list, min_match_bytes, may_match_numbers })
    }

    /// Returns whether there are no patterns.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the number of patterns.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether a pattern may match in the digits of a number, also with few digits.
    pub(super) fn may_match_numbers(&self) -> bool {
        self.may_match_numbers
    }

    /// Returns whether a pattern may match the text or a part of it.
    pub(super) fn may_match(&self, text: &str) -> bool {
        text.len() >= self.min_match_bytes && self.filter.as_ref().is_none_or(|it| it.is_match(text))
    }

    /// Adds the matches to ranges, merged, and merges all of them. If there are more ranges than [`MAX_RANGES`], or if the
    /// search costs more than its budget, the last range reaches to the end of the text.
    pub(super) fn add_matches<'a>(
        &'a self,
        text: &str,
        mut ranges: Vec<MaskedRange<'a>>,
    ) -> Vec<MaskedRange<'a>> {
        let mut budget = SearchBudget::of(text);
        // The start and the kind of the range that masks the rest of the text.
        let mut rest: Option<MaskedRange<'a>> = None;
        for NamedPattern { name, regex, max_match_bytes } in &self.list {
            let first_new = ranges.len();
            for found in regex.find_iter(text) {
                let range = MaskedRange { start: found.start(), end: found.end(), kind: name };
                if rest.is_some_and(|it| it.start <= range.start) {
                    break;
                }
                let is_affordable = budget.spend(*max_match_bytes.min(&(text.len() - range.start)));
                match ranges[first_new..].last_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    _ => ranges.push(range),
                }
                if !is_affordable || ranges.len() - first_new == MAX_RANGES {
                    rest = Some(MaskedRange { end: text.len(), ..range });
                    break;
                }
            }
            ranges = merged(ranges);
            if let Some(first_beyond) = ranges.get(MAX_RANGES).copied() {
                let start = rest.map_or(first_beyond.start, |it| it.start.min(first_beyond.start));
                rest = Some(MaskedRange { start, end: text.len(), kind: first_beyond.kind });
                ranges.truncate(MAX_RANGES);
            }
        }
        if let Some(rest) = rest {
            ranges.push(rest);
            ranges = merged(ranges);
        }
        ranges
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_word = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_';
    let is_valid = (1..=MAX_NAME_CHARS).contains(&name.len())
        && name.bytes().all(is_word)
        && name.starts_with(|it: char| it.is_ascii_lowercase());
    if !is_valid {
        return Err(format!(
            "must begin with a letter and have at most {MAX_NAME_CHARS} lower-case letters, digits and underscores"
        ));
    }
    if crate::pii::Kind::ALL.iter().any(|it| it.word() == name) {
        return Err("is the name of a detector".to_owned());
    }
    Ok(())
}

/// Returns the compiled pattern, and its expression.
fn compile(pattern: &str) -> Result<(Regex, Hir), String> {
    if pattern.is_empty() || pattern.len() > MAX_PATTERN_BYTES {
        return Err(format!("must have 1 to {MAX_PATTERN_BYTES} bytes"));
    }
    let parsed = regex_syntax::ParserBuilder::new().nest_limit(MAX_NESTING).build().parse(pattern);
    let hir = parsed.map_err(|error| {
        // The library's message has several lines; the last one names the error.
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("is not a regular expression in linear time: {last}")
    })?;
    match hir.properties().minimum_len() {
        None => return Err("matches no text".to_owned()),
        Some(0) => return Err("matches an empty text; require at least one character".to_owned()),
        Some(length) if length < MIN_MATCH_BYTES => {
            return Err(format!("matches texts of {length} bytes; require at least {MIN_MATCH_BYTES}"));
        }
        Some(_) => {}
    }
    match hir.properties().maximum_len() {
        Some(length) if length <= MAX_MATCH_BYTES => {}
        _ => {
            return Err(format!(
                "matches texts of more than {MAX_MATCH_BYTES} bytes; limit repetitions, as in [a-z]{{0,64}} instead of \
                 [a-z]*"
            ));
        }
    }
    if hir.properties().look_set().contains(Look::WordUnicodeNegate) {
        return Err("contains \\B; write \\b or a class".to_owned());
    }
    let hir = with_ascii_boundaries(&hir);
    let regex = RegexBuilder::new(&hir.to_string())
        .nest_limit(MAX_NESTING)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_SEARCH_CACHE_BYTES)
        .build()
        .map_err(|_| {
            "grows too large when it is compiled: repeat less, or use smaller classes (\\w and \\d mean all of \
             Unicode; write [a-z] or [0-9])"
        })?;
    if let Some(text) = ORDINARY_TEXTS.iter().find(|it| regex.is_match(it)) {
        return Err(format!("matches ordinary text such as {text:?}; make it more specific"));
    }
    Ok((regex, hir))
}

/// Returns whether an expression may match a text that contains only the characters of numbers.
fn may_match_number(hir: &Hir) -> bool {
    const NUMBER_CHARACTERS: &[u8] = b"0123456789+-.e";
    let is_in =
        |first: u32, last: u32| NUMBER_CHARACTERS.iter().any(|it| (first..=last).contains(&u32::from(*it)));
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(it) => it.0.iter().all(|it| NUMBER_CHARACTERS.contains(it)),
        HirKind::Class(Class::Unicode(it)) => it.iter().any(|it| is_in(it.start().into(), it.end().into())),
        HirKind::Class(Class::Bytes(it)) => it.iter().any(|it| is_in(it.start().into(), it.end().into())),
        HirKind::Repetition(it) => it.min == 0 || may_match_number(&it.sub),
        HirKind::Capture(it) => may_match_number(&it.sub),
        HirKind::Concat(parts) => parts.iter().all(may_match_number),
        HirKind::Alternation(parts) => parts.iter().any(may_match_number),
    }
}

/// Returns the expression without anchors and word boundaries: it matches wherever `hir` does, and elsewhere.
fn without_looks(hir: &Hir) -> Hir {
    with_looks(hir, &|_| Hir::empty())
}

/// Returns the expression with word boundaries of ASCII. The fast engine of the crate `regex` cannot search for those of
/// Unicode in texts with other letters, and its replacement clears a table for each match.
fn with_ascii_boundaries(hir: &Hir) -> Hir {
    with_looks(hir, &|look| {
        Hir::look(match look {
            Look::WordUnicode => Look::WordAscii,
            Look::WordStartUnicode => Look::WordStartAscii,
            Look::WordEndUnicode => Look::WordEndAscii,
            Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
            Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
            other => other,
        })
    })
}

/// Returns the expression with anchors and word boundaries replaced. The nesting is limited by the parser.
fn with_looks(hir: &Hir, replace: &dyn Fn(Look) -> Hir) -> Hir {
    let all = |parts: &[Hir]| parts.iter().map(|it| with_looks(it, replace)).collect();
    match hir.kind() {
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
        HirKind::Look(look) => replace(*look),
        HirKind::Repetition(it) => {
            Hir::repetition(Repetition { sub: Box::new(with_looks(&it.sub, replace)), ..it.clone() })
        }
        HirKind::Capture(it) => with_looks(&it.sub, replace),
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
    }
}

/// Returns an expression that matches where one of these does; none if it would be too large.
fn filter(expressions: Vec<Hir>) -> Option<Regex> {
    if expressions.is_empty() {
        return None;
    }
    RegexBuilder::new(&Hir::alternation(expressions).to_string())
        .size_limit(MAX_FILTER_BYTES)
        .dfa_size_limit(MAX_FILTER_BYTES)
        .build()
        .ok()
}
