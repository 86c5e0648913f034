//! Regular expressions of tenants: bounded when compiled, interruptible when searched.
//!
//! The syntax is that of the crate `regex`; the search is our own, because that crate's cannot be
//! interrupted, and a search takes time proportional to the compiled size times the text. Only
//! whether an expression matches is ever asked. A lazy DFA, driven byte by byte, answers that; where it
//! cannot (a Unicode word boundary beside text that is not ASCII), the NFA is simulated.

mod automaton;
mod simulation;

use std::{
    error::Error,
    sync::atomic::{AtomicU64, Ordering},
};

use regex_automata::{
    hybrid::dfa::DFA,
    nfa::thompson::{Compiler, Config, NFA, WhichCaptures},
    util::syntax,
};

pub(crate) use self::automaton::forget_caches;
use crate::budget;

/// Bytes of an expression.
const MAX_PATTERN_BYTES: usize = 10_000;
/// Bytes that a compiled expression may take.
pub(crate) const MAX_COMPILED_BYTES: usize = 1024 * 1024;
/// Bytes that all compiled expressions of an evaluator may take together.
pub(crate) const MAX_COMPILED_BYTES_TOGETHER: usize = 4 * 1024 * 1024;
/// Groups and repetitions that may stand within one another.
const MAX_NESTING: u32 = 100;
/// Bytes of a text that an expression is searched in.
pub(crate) const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// The text is longer than [`MAX_TEXT_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// How an expression is matched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PatternOptions {
    /// Upper and lower case are the same.
    pub case_insensitive: bool,
    /// The expression has to match the whole text, not a part of it.
    pub full_match: bool,
}

/// A compiled regular expression.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// Names its cache.
    id: u64,
    nfa: NFA,
    /// None when the expression is beyond what a lazy DFA can do.
    dfa: Option<DFA>,
}

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// With what is wrong, continuing a sentence that names the option.
    pub(crate) fn compile(pattern: &str, options: PatternOptions) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(format!("is longer than {MAX_PATTERN_BYTES} bytes"));
        }
        // By itself first: a closing parenthesis without an opening one must not become valid by the wrapping.
        let alone = nfa(pattern, options)?;
        let nfa = if options.full_match { nfa(&format!(r"\A(?:{pattern})\z"), options)? } else { alone };
        Ok(Self::of(nfa))
    }

    /// Compiles an expression of a JSON Schema, which is in the dialect of ECMAScript.
    ///
    /// # Errors
    /// With what is wrong, continuing a sentence that names the keyword.
    pub(crate) fn compile_ecma(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(format!("is longer than {MAX_PATTERN_BYTES} bytes"));
        }
        let translated = jsonschema_regex::to_rust_regex(pattern).map_err(|()| {
            "is not a regular expression in linear time: look-around and backreferences are not supported"
        })?;
        nfa(&translated, PatternOptions::default()).map(Self::of)
    }

    fn of(nfa: NFA) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let dfa = automaton::build(&nfa);
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), nfa, dfa }
    }

    /// Whether a text matches.
    ///
    /// # Errors
    /// When the text is too long to be searched.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool, TooLong> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(TooLong);
        }
        let bytes = text.as_bytes();
        let found = self.dfa.as_ref().and_then(|it| automaton::is_match(self.id, it, bytes));
        Ok(found.unwrap_or_else(|| simulation::is_match(&self.nfa, bytes)))
    }

    /// Bytes that it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        // The DFA refers to the same NFA; its own tables are made for a search and dropped after it.
        self.nfa.memory_usage()
    }

    /// Steps that a search may take for each byte of a text, at most.
    pub(crate) fn states(&self) -> usize {
        self.nfa.states().len()
    }
}

fn nfa(pattern: &str, options: PatternOptions) -> Result<NFA, String> {
    budget::poll();
    let syntax = syntax::Config::new().case_insensitive(options.case_insensitive).nest_limit(MAX_NESTING);
    let config = Config::new()
        .nfa_size_limit(Some(MAX_COMPILED_BYTES))
        // Where it matches is never asked.
        .which_captures(WhichCaptures::None);
    let nfa = Compiler::new().syntax(syntax).configure(config).build(pattern).map_err(|it| {
        match (it.size_limit(), it.source()) {
            (None, Some(wrong)) => {
                // The library draws a picture over several lines; its last one says what is wrong.
                let text = wrong.to_string();
                let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
                format!("is not a regular expression in linear time: {last}")
            }
            _ => "grows too large when it is compiled: repeat less, or use smaller classes (\\w and \\d mean all of \
                  Unicode; write [a-z] or (?-u:\\w))"
                .into(),
        }
    })?;
    // Repetitions of nothing have states, but may be smaller than the bound says.
    if nfa.memory_usage() > MAX_COMPILED_BYTES {
        return Err("grows too large when it is compiled: repeat less".into());
    }
    Ok(nfa)
}

#[cfg(test)]
mod tests;
