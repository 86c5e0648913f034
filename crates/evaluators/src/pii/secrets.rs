//! Keys, tokens and passwords, found by the prefixes that issuers assign and by the name before a value.

mod issued;
pub(super) mod marks;
mod named;
pub(crate) mod names;

use super::{Hit, numbers::Boundaries};
use issued::ISSUED_KEYS;

/// Returns the prefixes and names of secrets, in the order of their numbers.
pub(super) fn all_marks() -> impl Iterator<Item = &'static str> {
    issued_marks().chain(named_marks())
}

/// Returns the prefixes that issuers assign.
fn issued_marks() -> impl Iterator<Item = &'static str> {
    ISSUED_KEYS.iter().map(|it| it.begins)
}

/// Returns the names of secrets, in lower case.
fn named_marks() -> impl Iterator<Item = &'static str> {
    named::SECRET_NAMES.iter().map(|it| it.0)
}

/// Finds secrets. `marks` are the number in [`all_marks`] and the start of each prefix and name in the text.
pub(super) fn find(text: &str, marks: &[(usize, usize)], boundaries: Boundaries, hits: &mut Vec<Hit>) {
    let mut named_until = 0;
    // Text that was read from one issuer's prefix is not read again from a later occurrence of the same
    // prefix. Otherwise texts made of prefixes would take time in the product of their number and length. A
    // secret of another issuer may begin in such text.
    let mut read_until = [0; ISSUED_KEYS.len()];
    let mut issued_until = 0;
    for (mark, start) in marks {
        if let Some(issued) = ISSUED_KEYS.get(*mark) {
            if *start < issued_until.max(read_until[*mark]) {
                continue;
            }
            let (hit, until) = issued.read(text, *start, boundaries);
            read_until[*mark] = until;
            issued_until = hit.as_ref().map_or(issued_until, |it| it.end);
            hits.extend(hit);
        } else if let Some((name, class)) = named::SECRET_NAMES.get(mark - ISSUED_KEYS.len())
            && *start >= named_until
            && let Some(hit) = named::read(text, *start, start + name.len(), *class)
        {
            named_until = hit.end;
            hits.push(hit);
        }
    }
}

/// Returns the entropy in bits per character, by the frequencies in the value itself.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value {
        counts[usize::from(*byte)] += 1;
    }
    let length = value.len() as f64;
    counts.iter().filter(|it| **it > 0).map(|it| f64::from(*it) / length).map(|it| -it * it.log2()).sum()
}

#[cfg(test)]
mod tests;
