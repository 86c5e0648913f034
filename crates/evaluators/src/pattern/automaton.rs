//! Searches with a lazy DFA, whose states are computed when the text needs them and cached while they fit.

use std::cell::RefCell;

use regex_automata::{
    Input,
    hybrid::dfa::{Cache, Config, DFA},
    nfa::thompson::NFA,
};

use crate::budget::spend;

/// Maximum size of the states that a search caches, in bytes; a full cache is cleared.
const CACHE_BYTES: usize = 1024 * 1024;
/// Maximum number of caches of different expressions that a thread keeps during an evaluation.
const MAX_CACHES: usize = 8;
/// Number of bytes of a text between two records of the work done.
const WORK_RECORD_BYTES: usize = 16 * 1024;

thread_local! {
    /// Caches of the evaluation that runs on this thread, by the expression's id. They do not belong to the
    /// expressions, because compiled evaluators are many and live long.
    static THREAD_CACHES: RefCell<Vec<(u64, Cache)>> = const { RefCell::new(Vec::new()) };
}

/// Drops the caches of this thread.
pub(crate) fn forget_caches() {
    THREAD_CACHES.with_borrow_mut(Vec::clear);
}

/// Builds the lazy DFA of an NFA; returns `None` if that is not possible.
pub(super) fn build(nfa: &NFA) -> Option<DFA> {
    let config = Config::new()
        // A Unicode word boundary beside text that is not ASCII ends the search without a result.
        .unicode_word_boundary(true)
        .cache_capacity(CACHE_BYTES)
        .skip_cache_capacity_check(true);
    DFA::builder().configure(config).build_from_nfa(nfa.clone()).ok()
}

/// Returns whether a text matches, or `None` if this DFA cannot determine it.
pub(super) fn is_match(id: u64, dfa: &DFA, text: &[u8]) -> Option<bool> {
    let kept = THREAD_CACHES.with_borrow_mut(|it| {
        let at = it.iter().position(|it| it.0 == id)?;
        Some(it.swap_remove(at).1)
    });
    let mut cache = kept.unwrap_or_else(|| dfa.create_cache());
    let found = search(dfa, &mut cache, text);
    THREAD_CACHES.with_borrow_mut(|it| {
        if it.len() >= MAX_CACHES {
            it.remove(0);
        }
        it.push((id, cache));
    });
    found
}

fn search(dfa: &DFA, cache: &mut Cache, text: &[u8]) -> Option<bool> {
    // Computing a state costs at most a visit of each NFA state.
    let states = dfa.get_nfa().states().len() as u64;
    spend(states);
    let mut state = dfa.start_state_forward(cache, &Input::new(text)).ok()?;
    for block in text.chunks(WORK_RECORD_BYTES) {
        spend(block.len() as u64);
        for &byte in block {
            let next =
                if state.is_tagged() { None } else { Some(dfa.next_state_untagged(cache, state, byte)) };
            state = match next {
                Some(next) if !next.is_unknown() => next,
                _ => {
                    spend(states);
                    dfa.next_state(cache, state, byte).ok()?
                }
            };
            if state.is_tagged() {
                if state.is_match() {
                    return Some(true);
                }
                if state.is_dead() {
                    return Some(false);
                }
                if state.is_quit() {
                    return None;
                }
            }
        }
    }
    spend(states);
    Some(dfa.next_eoi_state(cache, state).ok()?.is_match())
}
