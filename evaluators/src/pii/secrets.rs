//! Keys, tokens and passwords: by their beginnings, which issuers give them for this purpose, and by
//! the name before them.

mod issued;
mod named;

use super::{Hit, words::Words};
use issued::ISSUED;

/// What begins a secret, in the order of the numbers in [`Words::marks`].
pub(super) fn marks() -> impl Iterator<Item = &'static str> {
    ISSUED.iter().map(|it| it.begins).chain(named::NAMES.iter().map(|it| it.0))
}

pub(super) fn find(text: &str, words: &Words, hits: &mut Vec<Hit>) {
    let mut named_until = 0;
    for (mark, start) in &words.marks {
        if let Some(issued) = ISSUED.get(*mark) {
            hits.extend(issued.read(text, *start));
        } else if let Some((name, class)) = named::NAMES.get(mark - ISSUED.len())
            && *start >= named_until
            && let Some(hit) = named::read(text, *start, start + name.len(), *class)
        {
            named_until = hit.end;
            hits.push(hit);
        }
    }
}

/// Bits of information a character, by the frequencies in the value itself.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value {
        counts[usize::from(*byte)] += 1;
    }
    let length = value.len() as f64;
    counts.iter().filter(|it| **it > 0).map(|it| f64::from(*it) / length).map(|it| -it * it.log2()).sum()
}
