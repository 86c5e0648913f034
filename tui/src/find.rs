//! Moves from match to match of find, over rows of any kind.

/// Returns the next match after a position, or the one before it, wrapping around at the end.
pub fn next(count: usize, at: usize, forward: bool, hit: impl Fn(usize) -> bool) -> Option<usize> {
    (1..=count)
        .map(|step| if forward { (at + step) % count } else { (at + count - step) % count })
        .find(|at| hit(*at))
}

/// Returns the number of the match at or before a position, from 1, and the number of matches.
pub fn counted(count: usize, at: usize, hit: impl Fn(usize) -> bool) -> (usize, usize) {
    let hits: Vec<usize> = (0..count).filter(|at| hit(*at)).collect();
    (hits.iter().filter(|hit| **hit <= at).count(), hits.len())
}
