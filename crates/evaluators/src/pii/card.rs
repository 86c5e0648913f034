//! Payment cards: issuer ranges, lengths and the Luhn check (ISO/IEC 7812 and the networks' public tables).

use super::checks::{luhn, number, same};

/// The certainty of a number of this range and length without a label word nearby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// Sixteen digits of a large network, or fifteen digits of American Express.
    Usual,
    /// A range and length that are as frequent among other numbers.
    Rare,
}

/// Returns the certainty of a card number by range, length and check digit; none for other numbers.
pub(super) fn range(digits: &[u8]) -> Option<Range> {
    if !(12..=19).contains(&digits.len()) || same(digits) || !luhn(digits) {
        return None;
    }
    let length = digits.len();
    let first = |n: usize| number(&digits[..n]);
    let usual = match (first(1), first(2), first(4), first(6)) {
        (4, ..) => length == 16,
        (_, 34 | 37, ..) => length == 15,
        (_, 51..=55, ..) | (_, _, 2221..=2720, _) => length == 16,
        (_, _, 6011, _) | (_, 65, ..) | (.., 644_000..=649_999) => length == 16,
        (_, _, 3528..=3589, _) => length == 16,
        (_, 62, ..) => length == 16,
        (_, 36 | 38 | 39, ..) | (.., 300_000..=305_999) => length == 14 || length == 16,
        (_, 60, ..) | (_, 81 | 82, ..) => length == 16,
        _ => false,
    };
    if usual {
        return Some(if length == 14 { Range::Rare } else { Range::Usual });
    }
    let rare = match (first(1), first(2), first(4)) {
        // Old JCB cards.
        (_, _, 2131 | 1800) => length == 15,
        (_, 35, _) => length == 16,
        (4, ..) => length == 13 || length == 19,
        (_, 62, _) => length >= 17,
        (_, 50 | 56..=58 | 67..=69, _) => true,
        (_, 63, _) => true,
        (_, 65, _) | (_, _, 6011) | (_, _, 3528..=3589) => length >= 17,
        _ => false,
    };
    rare.then_some(Range::Rare)
}

/// Returns whether cards are printed in groups of these lengths.
pub(super) fn grouped(groups: &[usize]) -> bool {
    match groups {
        [_] => true,
        [4, 6, 5 | 4] => true,
        [rest @ .., last] => rest.len() >= 3 && rest.iter().all(|it| *it == 4) && (1..=4).contains(last),
        [] => false,
    }
}
