//! Telephone numbers: with a country code (ITU E.164), and in national notations.

use super::{
    checks::same,
    numbers::{Cluster, Group},
};

/// Country codes of one and two digits; all others have three.
const SHORT_COUNTRY_CODES: [&[u8]; 46] = [
    b"1", b"7", b"20", b"27", b"30", b"31", b"32", b"33", b"34", b"36", b"39", b"40", b"41", b"43", b"44",
    b"45", b"46", b"47", b"48", b"49", b"51", b"52", b"53", b"54", b"55", b"56", b"57", b"58", b"60", b"61",
    b"62", b"63", b"64", b"65", b"66", b"81", b"82", b"84", b"86", b"90", b"91", b"92", b"93", b"94", b"95",
    b"98",
];

/// The first two digits of country codes of three digits.
const LONG_CODE_PREFIXES: [&[u8]; 18] = [
    b"21", b"22", b"23", b"24", b"25", b"26", b"29", b"35", b"37", b"38", b"42", b"50", b"59", b"67", b"68",
    b"69", b"85", b"88",
];

/// Two more blocks of country codes of three digits.
const FURTHER_CODE_PREFIXES: [&[u8]; 2] = [b"96", b"97"];

/// Returns the length of the country code, and the minimum and maximum number of digits after it.
fn national(digits: &[u8]) -> Option<(usize, usize, usize)> {
    let code = SHORT_COUNTRY_CODES.iter().find(|it| digits.starts_with(it)).map(|it| it.len());
    let code = code.or_else(|| {
        let long = LONG_CODE_PREFIXES.iter().chain(&FURTHER_CODE_PREFIXES).any(|it| digits.starts_with(it))
            || digits.starts_with(b"99");
        (long && digits.len() > 3).then_some(3)
    })?;
    let (least, most) = match &digits[..code] {
        b"1" | b"7" => (10, 10),
        b"33" | b"61" | b"27" | b"32" | b"41" | b"34" | b"48" | b"31" => (8, 10),
        b"86" => (9, 11),
        b"91" | b"90" | b"52" | b"57" | b"63" => (10, 11),
        b"55" => (10, 11),
        b"44" => (9, 11),
        b"45" | b"47" | b"65" => (8, 8),
        b"49" | b"43" | b"39" => (6, 12),
        _ => (7, 11),
    };
    Some((code, least, most))
}

/// Returns the number of groups that belong to the number after `+`, or after this many zeros.
pub(super) fn international(cluster: &Cluster, zeros: usize) -> Option<usize> {
    let groups = cluster.groups;
    // +40.712776 is a coordinate.
    if groups.len() == 2 && groups[1].before == b'.' && groups[1].len() > 4 && zeros == 0 {
        return None;
    }
    let mut digits: Vec<u8> = Vec::with_capacity(24);
    let mut best = None;
    for (at, group) in groups.iter().enumerate() {
        if digits.len() + group.len() > 17 + zeros {
            break;
        }
        digits.extend_from_slice(&cluster.bytes[group.start..group.end]);
        let number = digits.get(zeros..).unwrap_or_default();
        let Some((code, least, most)) = national(number) else { continue };
        // The zero in +44 (0)20 is not dialled.
        let trunk = usize::from(number.get(code) == Some(&b'0') && number.len() > code + 1);
        let rest = &number[(code + trunk).min(number.len())..];
        if (least..=most).contains(&rest.len()) && plausible(&number[..code], rest) {
            best = Some(at + 1);
        }
    }
    best
}

fn plausible(code: &[u8], rest: &[u8]) -> bool {
    !same(&rest[1..]) && (code != b"1" || american(&rest.iter().map(|it| it - b'0').collect::<Vec<_>>()))
}

/// Checks a number of the North American Numbering Plan: area and exchange from 200, neither of them N11.
fn american(digits: &[u8]) -> bool {
    let part = |it: &[u8]| it[0] >= 2 && !(it[1] == 1 && it[2] == 1);
    digits.len() == 10 && part(&digits[..3]) && digits[3] >= 2
}

/// Returns whether these groups are a number in a national notation. `is_labelled`: a label word marks it as a
/// telephone number. `bracket`: the first group is in brackets.
pub(super) fn local(digits: &[u8], groups: &[Group], bracket: bool, is_labelled: bool) -> bool {
    if !(7..=13).contains(&digits.len()) || same(digits) || (is_labelled && time(digits, groups)) {
        return false;
    }
    let mut lengths = [0_usize; 6];
    for (slot, group) in lengths.iter_mut().zip(groups) {
        *slot = group.len();
    }
    let lengths = lengths.get(..groups.len()).unwrap_or_default();
    let signs = |wanted: &[u8]| groups[1..].iter().all(|it| wanted.contains(&it.before));
    let even = groups.windows(3).all(|it| it[1].before == it[2].before);
    // Notations that need no label word.
    let shown = match (lengths, digits) {
        ([3, 3, 4], _) if american(digits) => signs(b"-.)") && (bracket || even),
        ([1, 3, 3, 4], [1, rest @ ..]) if american(rest) => signs(b"-.() "),
        // 06 12 34 56 78 (France).
        ([2, 2, 2, 2, 2], [0, 1..=9, ..]) => even && signs(b" .-"),
        // 07700 900123, 020 7946 0958, 0161 496 0000 (United Kingdom); 0412 345 678 (Australia).
        ([5, 6] | [5, 3, 3], [0, 7, ..]) | ([3, 4, 4], [0, 2, ..]) => signs(b" "),
        ([4, 3, 3], [0, 4, ..]) | ([4, 3, 4], [0, 1, ..]) => signs(b" "),
        // 138 1234 5678 (China); 090-1234-5678 (Japan); 010-1234-5678 (South Korea).
        ([3, 4, 4], [1, 3..=9, ..]) => even && signs(b" -"),
        ([3, 4, 4], [0, 7..=9, 0, ..] | [0, 1, 0, ..]) | ([2, 4, 4], [0, 3 | 6, ..]) => signs(b"-"),
        // (11) 91234-5678 (Brazil).
        ([2, 5 | 4, 4], [1..=9, 1..=9, ..]) => bracket && signs(b")-"),
        // 0171 1234567 (Germany).
        ([4, 7 | 8], [0, 1, 5..=7, ..]) => signs(b" -/"),
        // (030) 123456.
        (_, [0, 1..=9, ..]) => bracket && groups.len() >= 2 && digits.len() >= 9,
        _ => false,
    };
    // Seven digits may be part of anything; a label word before them decides.
    shown
        || is_labelled
            && !(digits.len() == 8 && groups.len() == 1 && dated(digits))
            && !(digits.len() == 10 && digits[..2] == [1, 7] && groups.len() == 1)
}

/// Returns whether the digits are dates or times: 2024-01-31, 31.01.2024, 2019-2024, 10-12-2024, or
/// 09:00-17:00 without colons.
fn time(digits: &[u8], groups: &[Group]) -> bool {
    let lengths: Vec<usize> = groups.iter().map(|it| it.len()).collect();
    let year = |at: usize| matches!(digits[at..at + 2], [1, 8 | 9] | [2, 0]);
    match lengths[..] {
        [4, 2, 2] | [4, 1, 2] | [4, 2, 1] => year(0),
        [2, 2, 4] => year(4),
        [1, 2, 4] => year(3),
        [4, 4] => year(0) && year(4),
        _ => false,
    }
}

/// Returns whether the digits are a date such as 20240131.
fn dated(digits: &[u8]) -> bool {
    matches!(digits[..2], [1, 9] | [2, 0]) && super::checks::date(&digits[4..6], &digits[6..])
}
