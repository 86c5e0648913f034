//! Regular expressions of tenants, bounded when compiled and interruptible when searched.
//!
//! The syntax is that of the crate `regex`. That crate's search cannot be interrupted, and a search takes
//! time proportional to the compiled size times the text. Evaluators only need to know whether an expression
//! matches. A lazy DFA that reads byte by byte decides this. Where it cannot (a Unicode word boundary beside
//! text that is not ASCII), the NFA is simulated.

mod automaton;
mod simulation;

use std::sync::atomic::{AtomicU64, Ordering};

use regex_automata::{
    hybrid::dfa::DFA,
    nfa::thompson::{Compiler, Config, NFA, WhichCaptures},
    util::syntax,
};
use regex_syntax::hir::{Hir, Look};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use self::automaton::forget_caches;
use crate::{
    budget,
    config_problem::{ConfigProblem, one_problem},
};

/// Maximum length of an expression in bytes.
const MAX_PATTERN_BYTES: usize = 10_000;
/// Maximum memory of a compiled expression in bytes.
pub(crate) const MAX_COMPILED_BYTES: usize = 1024 * 1024;
/// Maximum memory of all compiled expressions of an evaluator in bytes.
pub(crate) const MAX_COMPILED_BYTES_TOGETHER: usize = 4 * 1024 * 1024;
/// Maximum nesting of groups and repetitions.
const MAX_NESTING: u32 = 100;
/// Maximum length of a searched text in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// The error for a text longer than [`MAX_TEXT_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextTooLong;

/// Options of matching.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PatternOptions {
    /// Whether upper and lower case are equal.
    pub case_insensitive: bool,
    /// Whether the expression has to match the whole text.
    pub full_match: bool,
}

/// The options of a config that states an expression.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RegexOptions {
    /// regex: the expression, which runs in linear time.
    // An empty expression is valid: with `full_match` it matches an empty text.
    #[schemars(length(max = MAX_PATTERN_BYTES))]
    pub pattern: String,
    /// regex: whether the expression must match the whole text.
    #[serde(default)]
    pub full_match: bool,
    /// regex: whether upper and lower case are equal.
    #[serde(default)]
    pub case_insensitive: bool,
}

impl RegexOptions {
    /// Compiles the expression.
    ///
    /// # Errors
    /// Fails when the expression is invalid or too large.
    pub(crate) fn compile(&self) -> Result<Pattern, Vec<ConfigProblem>> {
        let options = PatternOptions { case_insensitive: self.case_insensitive, full_match: self.full_match };
        Pattern::compile(&self.pattern, options).map_err(|why| one_problem("pattern", why))
    }
}

/// A compiled regular expression.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// The key of the cache of the expression.
    id: u64,
    nfa: NFA,
    /// The lazy DFA; none if the expression is too complex for one.
    dfa: Option<DFA>,
}

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// Returns a message that continues a sentence that names the option.
    pub(crate) fn compile(pattern: &str, options: PatternOptions) -> Result<Self, String> {
        check_length(pattern)?;
        nfa(pattern, options).map(Self::of)
    }

    /// Compiles an expression of a JSON Schema, which is in the dialect of ECMAScript.
    ///
    /// # Errors
    /// Returns a message that continues a sentence that names the keyword.
    pub(crate) fn compile_ecma(pattern: &str) -> Result<Self, String> {
        check_length(pattern)?;
        let translated = jsonschema_regex::to_rust_regex(pattern).map_err(|()| {
            "is not a regular expression in linear time: look-around and backreferences are not supported"
        })?;
        nfa(&translated, PatternOptions::default()).map(Self::of)
    }

    fn of(nfa: NFA) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let dfa = automaton::build(&nfa);
        Self { id: NEXT_ID.fetch_add(1, Ordering::Relaxed), nfa, dfa }
    }

    /// Returns whether a text matches.
    ///
    /// # Errors
    /// [`TextTooLong`] for a text that is too long to be searched.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool, TextTooLong> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(TextTooLong);
        }
        let bytes = text.as_bytes();
        let found = self.dfa.as_ref().and_then(|it| automaton::is_match(self.id, it, bytes));
        Ok(found.unwrap_or_else(|| simulation::is_match(&self.nfa, bytes)))
    }

    /// Returns the memory of the compiled expression in bytes.
    pub(crate) fn bytes(&self) -> usize {
        // The DFA shares this NFA; its tables exist only during a search.
        self.nfa.memory_usage()
    }

    /// Returns the maximum number of steps of a search for each byte of a text.
    pub(crate) fn states(&self) -> usize {
        self.nfa.states().len()
    }
}

/// Checks that an expression is not too long to be parsed.
fn check_length(pattern: &str) -> Result<(), String> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(format!("is longer than {MAX_PATTERN_BYTES} bytes"));
    }
    Ok(())
}

fn nfa(pattern: &str, options: PatternOptions) -> Result<NFA, String> {
    budget::poll();
    let syntax = syntax::Config::new().case_insensitive(options.case_insensitive).nest_limit(MAX_NESTING);
    let parsed = syntax::parse_with(pattern, &syntax).map_err(|error| {
        // The library's message has several lines; the last one names the error.
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("is not a regular expression in linear time: {last}")
    })?;
    // The parsed expression is anchored, not its text: a text such as `a)|(b` or `(?x)a # comment` would
    // absorb or break the text around the expression.
    let expression = if options.full_match {
        Hir::concat(vec![Hir::look(Look::Start), parsed, Hir::look(Look::End)])
    } else {
        parsed
    };
    let config = Config::new()
        .nfa_size_limit(Some(MAX_COMPILED_BYTES))
        // The position of a match is not needed.
        .which_captures(WhichCaptures::None);
    let nfa = Compiler::new().configure(config).build_from_hir(&expression).map_err(|_| {
        "grows too large when it is compiled: repeat less, or use smaller classes (\\w and \\d mean all of \
         Unicode; write [a-z] or (?-u:\\w))"
    })?;
    // Repetitions of the empty expression have states, but may take less memory than the limit assumes.
    if nfa.memory_usage() > MAX_COMPILED_BYTES {
        return Err("grows too large when it is compiled: repeat less".into());
    }
    Ok(nfa)
}

#[cfg(test)]
mod tests;
