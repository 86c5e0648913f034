//! Searches by simulating the NFA: tracks all states that it can be in, byte by byte.

use regex_automata::{
    nfa::thompson::{NFA, State},
    util::primitives::StateID,
};

use crate::budget::spend;

/// A set of NFA states.
struct States {
    members: Vec<StateID>,
    /// The round in which each state was last added.
    added: Vec<u32>,
    round: u32,
}

impl States {
    fn of(nfa: &NFA) -> Self {
        Self { members: Vec::new(), added: vec![0; nfa.states().len()], round: 1 }
    }

    /// Adds a state; returns false when the set contains it already.
    fn add(&mut self, state: StateID) -> bool {
        let added = &mut self.added[state.as_usize()];
        if *added == self.round {
            return false;
        }
        *added = self.round;
        self.members.push(state);
        true
    }

    fn clear(&mut self) {
        self.members.clear();
        // The limit of texts is below the range of the counter.
        self.round += 1;
    }
}

/// Returns whether a text matches.
pub(super) fn is_match(nfa: &NFA, text: &[u8]) -> bool {
    let (mut now, mut next) = (States::of(nfa), States::of(nfa));
    let mut open = Vec::new();
    for at in 0..=text.len() {
        // A match may begin at any position.
        if reach(nfa, text, at, nfa.start_anchored(), &mut now, &mut open) {
            return true;
        }
        let Some(&byte) = text.get(at) else { break };
        next.clear();
        spend(now.members.len() as u64 + 1);
        for &state in &now.members {
            let target = match nfa.state(state) {
                State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
                State::Sparse(sparse) => sparse.matches_byte(byte),
                State::Dense(dense) => dense.matches_byte(byte),
                _ => None,
            };
            if let Some(target) = target
                && reach(nfa, text, at + 1, target, &mut next, &mut open)
            {
                return true;
            }
        }
        std::mem::swap(&mut now, &mut next);
    }
    false
}

/// Adds a state and those reachable without a byte; returns true when one of them is a match.
fn reach(
    nfa: &NFA,
    text: &[u8],
    at: usize,
    from: StateID,
    states: &mut States,
    open: &mut Vec<StateID>,
) -> bool {
    open.clear();
    open.push(from);
    while let Some(state) = open.pop() {
        if !states.add(state) {
            continue;
        }
        match nfa.state(state) {
            State::Look { look, next } if nfa.look_matcher().matches(*look, text, at) => open.push(*next),
            State::Union { alternates } => open.extend(alternates.iter().copied()),
            State::BinaryUnion { alt1, alt2 } => open.extend([*alt1, *alt2]),
            State::Capture { next, .. } => open.push(*next),
            State::Match { .. } => return true,
            _ => {}
        }
    }
    false
}
