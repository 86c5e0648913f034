//! Finds the values to mask. Unlike the search of evaluators, it runs on every stored text. Therefore each detector runs only
//! on texts that can contain its values. Values reserved for examples are masked too.

use super::{
    Hit, Kind, emails, ip, lettered,
    numbers::{self, Boundaries, Group},
    secrets,
    words::Words,
};

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
    let mut hits: Vec<Hit> = Vec::new();
    if kinds.contains(Kind::Secret) {
        let marks = secrets::marks::of(text);
        if !marks.is_empty() {
            secrets::find(text, &marks, Boundaries::Loose, &mut hits);
        }
    }
    if memchr::memchr(b'@', text.as_bytes()).is_some() || has_spelled_at(text) {
        emails::find(text, &mut hits);
    }
    if kinds.has_numbers() {
        for (start, end) in number_regions(text) {
            find_numbers(text, start, end, &mut hits);
        }
    }
    merged(hits, kinds)
}

/// Returns whether [`find`] finds no value in a text with this label, because both have few digits and none of the signs that
/// values contain, and the label does not name a secret. Most words and IDs are such texts.
pub(crate) fn cannot_contain_value(label: &str, text: &str) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.' | b'/');
    let has_few_digits = |it: &str| it.bytes().filter(u8::is_ascii_digit).count() < MIN_MIXED_DIGITS;
    text.len() < secrets::marks::MIN_ISSUED_BYTES
        && text.bytes().all(is_part)
        && has_few_digits(text)
        && has_few_digits(label)
        && label.is_ascii()
        && !label.contains(['\\', '%'])
        && !label.contains("--")
        && !secrets::marks::has_name(label)
}

/// Finds numbers in a region of a text.
fn find_numbers(text: &str, start: usize, end: usize, hits: &mut Vec<Hit>) {
    let region = &text[start..end];
    let words = Words::on_demand(region);
    let before = hits.len();
    ip::find_v6(region, hits);
    lettered::find(region, &words, Boundaries::Loose, hits);
    numbers::find(region, &words, Boundaries::Loose, hits);
    if words.found_impersonal() {
        // A number beside a word such as `order` may be personal nevertheless. Masking is preferred to storing.
        let no_words = Words::without_labels();
        lettered::find(region, &no_words, Boundaries::Loose, hits);
        numbers::find(region, &no_words, Boundaries::Loose, hits);
    }
    for hit in &mut hits[before..] {
        (hit.start, hit.end) = (hit.start + start, hit.end + start);
    }
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

/// Returns whether a text contains `at` in brackets, as [`emails`] finds it.
fn has_spelled_at(text: &str) -> bool {
    let bytes = text.as_bytes();
    let follows_at =
        |it: usize| bytes[..it].last_chunk().is_some_and(|it: &[u8; 2]| it.eq_ignore_ascii_case(b"at"));
    memchr::memchr3_iter(b']', b')', b'}', bytes).any(follows_at)
}

/// The minimum number of digits of a number without letters, in all of its groups.
const MIN_GROUPED_DIGITS: usize = 7;
/// The minimum number of digits between the letters of a number: `QQ 12 34 56 C`, `131052+308T`, and some IBANs.
const MIN_DIGITS_BESIDE_LETTERS: usize = 6;
/// The fewest digits of a number in a token with letters, such as an Indian PAN.
const MIN_MIXED_DIGITS: usize = 4;
/// The shortest token of letters and digits that is a number.
const MIN_MIXED_BYTES: usize = 6;
/// The number of groups of an IPv4 address.
const IPV4_GROUPS: usize = 4;
/// Text before a number that the detectors read: its label, and the beginning of an IBAN.
const BYTES_BEFORE_NUMBER: usize = 112;
/// Text after a number that the detectors read.
const BYTES_AFTER_NUMBER: usize = 64;

/// Returns the regions of a text around possible numbers, ascending and without overlaps. Prices, dates and times
/// are no such numbers.
fn number_regions(text: &str) -> Vec<(usize, usize)> {
    let mut regions: Vec<(usize, usize)> = Vec::new();
    let mut add = |start: usize, end: usize| {
        let start = text.floor_char_boundary(start.saturating_sub(BYTES_BEFORE_NUMBER));
        let end = text.ceil_char_boundary((end + BYTES_AFTER_NUMBER).min(text.len()));
        regions.push((start, end));
    };
    let bytes = text.as_bytes();
    let mut groups: Vec<Group> = Vec::new();
    let mut at = 0;
    while let Some(skipped) = numbers::first_digit(&bytes[at..]) {
        let digit = at + skipped;
        let (start, end) = numbers::token_around(bytes, at, digit);
        let digits = bytes[start..end].iter().filter(|it| it.is_ascii_digit()).count();
        if digits < end - start {
            if digits >= MIN_MIXED_DIGITS && end - start >= MIN_MIXED_BYTES {
                add(start, end);
            }
            at = end;
            continue;
        }
        groups.clear();
        let cluster_end = numbers::read(bytes, digit, &mut groups);
        let digits: usize = groups.iter().map(|it| it.len()).sum();
        let is_beside_letters = groups.len() > 1 || bytes.get(cluster_end) == Some(&b'+');
        let is_long = digits >= MIN_GROUPED_DIGITS
            || groups.len() >= IPV4_GROUPS
            || digits >= MIN_DIGITS_BESIDE_LETTERS && is_beside_letters;
        if is_long && !is_date(bytes, &groups) {
            add(start, cluster_end);
        }
        at = cluster_end.max(end);
    }
    // A global IPv6 address begins with four hexadecimal digits, and the first is 2 or 3.
    for at in memchr::memchr_iter(b':', bytes) {
        let group = bytes[..at].last_chunk().filter(|it: &&[u8; 4]| matches!(it[0], b'2' | b'3'));
        if group.is_some_and(|it| it.iter().all(u8::is_ascii_hexdigit)) {
            add(at - 4, at);
        }
    }
    regions.sort_unstable();
    regions.dedup_by(|next, last| {
        let joins = next.0 <= last.1;
        if joins {
            last.1 = last.1.max(next.1);
        }
        joins
    });
    regions
}

/// Returns whether groups are a date as in ISO 8601, with or without an hour after it.
fn is_date(bytes: &[u8], groups: &[Group]) -> bool {
    let lengths_and_signs =
        |it: &[Group]| it.iter().map(|it| (it.len(), it.before)).eq([(4, 0), (2, b'-'), (2, b'-')]);
    let (date, rest) = groups.split_at(groups.len().min(3));
    lengths_and_signs(date)
        && matches!(bytes.get(date[0].start..date[0].start + 2), Some(b"19" | b"20"))
        && (rest.is_empty() || rest.len() == 1 && rest[0].len() == 2 && rest[0].before == b' ')
}
