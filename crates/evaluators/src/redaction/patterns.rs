//! The regular expressions of a project. All of them run in linear time; their number, length and compiled size are limited.

use std::collections::HashSet;

use api::project::RedactionPattern;
use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind, Repetition};

use super::RedactionProblem;

/// Maximum number of patterns of a project.
const MAX_PATTERNS: usize = 20;
/// Maximum length of a pattern in bytes.
const MAX_PATTERN_BYTES: usize = 500;
/// Maximum length of a name in characters.
const MAX_NAME_CHARS: usize = 32;
/// The fewest bytes of a match. Patterns with shorter ones would mask syllables, and placeholders are longer.
const MIN_MATCH_BYTES: usize = 3;
/// Maximum size of a compiled pattern in bytes.
const MAX_COMPILED_BYTES: usize = 256 * 1024;
/// Maximum size of the cache of a pattern's search in bytes, for each thread that searches.
const MAX_SEARCH_CACHE_BYTES: usize = 256 * 1024;
/// Maximum size of the compiled filter, which contains all patterns, in bytes.
const MAX_FILTER_BYTES: usize = 4 * 1024 * 1024;
/// Maximum nesting of groups and repetitions.
const MAX_NESTING: u32 = 50;
/// Texts that no pattern may match: names by which ingest recognizes what a span is, and words of everyday language.
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
}

/// The compiled patterns of a project.
pub(super) struct Patterns {
    list: Vec<NamedPattern>,
    /// Matches every text in which a pattern can match, even where it is a part of a longer text. None: all texts.
    filter: Option<Regex>,
}

/// The match of a pattern in a text, in bytes.
pub(super) struct PatternMatch<'a> {
    pub(super) name: &'a str,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Patterns {
    /// Validates and compiles patterns.
    pub(super) fn compile(patterns: &[RedactionPattern]) -> Result<Self, RedactionProblem> {
        if patterns.len() > MAX_PATTERNS {
            return Err(RedactionProblem::new("patterns", format!("has more than {MAX_PATTERNS} entries")));
        }
        let mut list = Vec::with_capacity(patterns.len());
        let mut filters = Vec::with_capacity(patterns.len());
        let mut names = HashSet::with_capacity(patterns.len());
        for (i, RedactionPattern { name, pattern }) in patterns.iter().enumerate() {
            let at = |field: &str| format!("patterns[{i}].{field}");
            check_name(name).map_err(|why| RedactionProblem::new(at("name"), why))?;
            if !names.insert(name) {
                return Err(RedactionProblem::new(at("name"), "is the name of an earlier pattern"));
            }
            let (regex, filter) =
                compile(pattern).map_err(|why| RedactionProblem::new(at("pattern"), why))?;
            list.push(NamedPattern { name: name.as_str().into(), regex });
            filters.push(filter);
        }
        Ok(Self { filter: filter(filters), list })
    }

    /// Returns whether there are no patterns.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the number of patterns.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether a pattern may match the text or a part of it.
    pub(super) fn may_match(&self, text: &str) -> bool {
        !self.list.is_empty() && self.filter.as_ref().is_none_or(|it| it.is_match(text))
    }

    /// Calls a function with every match.
    pub(super) fn each_match<'a>(&'a self, text: &str, mut call: impl FnMut(PatternMatch<'a>)) {
        for NamedPattern { name, regex } in &self.list {
            for found in regex.find_iter(text) {
                call(PatternMatch { name, start: found.start(), end: found.end() });
            }
        }
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

/// Returns the compiled pattern, and the pattern without anchors and word boundaries.
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
    let regex = RegexBuilder::new(pattern)
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
    Ok((regex, without_looks(&hir)))
}

/// Returns the expression without anchors and word boundaries: it matches wherever `hir` does, and elsewhere. The nesting is
/// limited by the parser.
fn without_looks(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
        HirKind::Look(_) => Hir::empty(),
        HirKind::Repetition(it) => {
            Hir::repetition(Repetition { sub: Box::new(without_looks(&it.sub)), ..it.clone() })
        }
        HirKind::Capture(it) => without_looks(&it.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(without_looks).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(without_looks).collect()),
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
