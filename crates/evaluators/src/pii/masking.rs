//! Finds what redaction masks. Unlike the search of evaluators, it runs on every stored text, so that each detector runs
//! only on texts that can contain what it finds, and it counts values reserved for examples.

use super::{Hit, Kind, emails, ip, lettered, numbers, secrets, words::Words};

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KindSet(u8);

impl KindSet {
    /// Returns the set with one more kind.
    pub(crate) fn with(self, kind: Kind) -> Self {
        Self(self.0 | 1 << kind as u8)
    }

    /// Returns whether the set contains the kind.
    pub(crate) fn contains(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    /// Returns whether the set has no kinds.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the set contains a kind of number, with or without letters.
    fn has_numbers(self) -> bool {
        let numbers = [Kind::Phone, Kind::PaymentCard, Kind::Iban, Kind::NationalId, Kind::IpAddress];
        numbers.into_iter().any(|it| self.contains(it))
    }
}

/// A value to mask, by its bytes in the normalized text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MaskedValue {
    /// The kind.
    pub kind: Kind,
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

/// Returns the values of these kinds in a normalized text, by position and without overlaps. Of overlapping values, the
/// more certain one determines the kind, and all of their text is masked.
pub(crate) fn find(text: &str, kinds: KindSet) -> Vec<MaskedValue> {
    let profile = TextProfile::of(text.as_bytes());
    let numbers = profile.has_number && kinds.has_numbers();
    let mut hits: Vec<Hit> = Vec::new();
    if kinds.contains(Kind::Secret) || numbers {
        let words = Words::of(text);
        if kinds.contains(Kind::Secret) && !words.marks.is_empty() {
            secrets::find(text, &words, &mut hits);
        }
        if profile.has_at {
            emails::find(text, &mut hits);
        }
        if numbers {
            ip::find_v6(text, &mut hits);
            lettered::find(text, &words, &mut hits);
            numbers::find(text, &words, &mut hits);
            if words.has_impersonal() {
                // A number beside a word such as `order` may be personal nevertheless. Masking is preferred to storing.
                numbers::find(text, &Words::default(), &mut hits);
            }
        }
    } else if profile.has_at {
        emails::find(text, &mut hits);
    }
    merged(hits, kinds)
}

/// Merges overlapping hits of these kinds. Hits are in order of certainty.
fn merged(mut hits: Vec<Hit>, kinds: KindSet) -> Vec<MaskedValue> {
    hits.retain(|it| kinds.contains(it.kind) && it.start < it.end);
    let mut order: Vec<(usize, Hit)> = hits.into_iter().enumerate().collect();
    order.sort_by_key(|(rank, it)| (it.start, *rank));
    let mut values: Vec<(usize, MaskedValue)> = Vec::with_capacity(order.len());
    for (rank, hit) in order {
        match values.last_mut() {
            Some((best, last)) if hit.start < last.end => {
                last.end = last.end.max(hit.end);
                if rank < *best {
                    (*best, last.kind) = (rank, hit.kind);
                }
            }
            _ => values.push((rank, MaskedValue { kind: hit.kind, start: hit.start, end: hit.end })),
        }
    }
    values.into_iter().map(|it| it.1).collect()
}

/// What a text can contain, by its characters.
#[derive(Default)]
struct TextProfile {
    /// Whether the text can contain an e-mail address.
    has_at: bool,
    /// Whether the text can contain a number that is long enough to be personal, or an IP address.
    has_number: bool,
}

/// Maximum number of bytes between two digits of a number: `NL91 ABNA 0417` has the widest gap.
const MAX_DIGIT_GAP: usize = 6;
/// The fewest digits of a number that the detectors find.
const MIN_NUMBER_DIGITS: usize = 4;

/// Whether a byte is a digit, a colon or a closing bracket.
const IS_PROFILED: [bool; 256] = {
    let mut table = [false; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = matches!(at as u8, b'0'..=b'9' | b':' | b']' | b')' | b'}');
        at += 1;
    }
    table
};

impl TextProfile {
    /// Reads a text once: digits that stand close together, two colons as in an IPv6 address, and `at` in brackets, as
    /// [`emails`] finds it.
    fn of(bytes: &[u8]) -> Self {
        let mut profile = Self { has_at: bytes.contains(&b'@'), has_number: false };
        let (mut digits, mut last_digit) = (0, 0);
        let mut last_colon = None;
        for (at, byte) in bytes.iter().enumerate().filter(|it| IS_PROFILED[usize::from(*it.1)]) {
            match byte {
                b'0'..=b'9' => {
                    digits = if at - last_digit > MAX_DIGIT_GAP { 1 } else { digits + 1 };
                    profile.has_number |= digits >= MIN_NUMBER_DIGITS;
                    last_digit = at;
                }
                b':' => {
                    let group = last_colon.and_then(|it: usize| bytes.get(it + 1..at));
                    profile.has_number |=
                        group.is_some_and(|it| it.len() <= 4 && it.iter().all(u8::is_ascii_hexdigit));
                    last_colon = Some(at);
                }
                _ => {
                    let before = bytes.get(at.saturating_sub(2)..at).unwrap_or_default();
                    profile.has_at |= before.eq_ignore_ascii_case(b"at");
                }
            }
        }
        profile
    }
}
