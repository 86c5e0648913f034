//! Numbers in groups: finds cards, national numbers, telephone numbers and IP addresses.

use std::cell::LazyCell;

use super::{
    Hit, Kind, card, ip, national,
    national::WrittenDigits,
    phone, reserved,
    words::{Label, Words},
};

/// Maximum number of groups of one number or sequence.
const MAX_GROUPS: usize = 12;
/// Maximum number of digits of a number.
const MAX_DIGITS: usize = 19;

/// A run of digits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
    /// The separator before the group: a blank, `-`, `.`, `/` or a bracket; 0 for the first group.
    pub before: u8,
}

impl Group {
    pub(super) fn len(self) -> usize {
        self.end - self.start
    }
}

/// Adjacent groups and their surroundings.
pub(super) struct Cluster<'a> {
    /// The text.
    pub bytes: &'a [u8],
    /// The groups, at most [`MAX_GROUPS`].
    pub groups: &'a [Group],
    /// Whether a `+` precedes the first group.
    pub plus: bool,
    /// Where numbers begin and end.
    pub boundaries: Boundaries,
}

/// Where numbers begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boundaries {
    /// Not beside a sign that continues a word, a path or an ID, for the precision of the evaluator.
    Strict,
    /// Also after a sign of markup, and, with a check digit or a characteristic form, after the signs of a path or an ID,
    /// for redaction: masking is preferred to storing.
    Loose,
}

/// Finds numbers in one pass.
pub(super) fn find(text: &str, words: &Words, boundaries: Boundaries, hits: &mut Vec<Hit>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut groups: Vec<Group> = Vec::new();
    while let Some(skipped) = first_digit(&bytes[at..]) {
        let start = at + skipped;
        groups.clear();
        at = read(bytes, start, &mut groups);
        // Shorter numbers are years, prices and versions; an IP address has four groups.
        let digits: usize = groups.iter().map(|it| it.len()).sum();
        if digits < 4 || digits < 7 && groups.len() < 4 {
            continue;
        }
        let is_inside = begins_inside(bytes, &groups);
        if is_inside && boundaries == Boundaries::Strict {
            continue;
        }
        let is_inside = is_inside && !begins_after_markup(bytes, start);
        if is_inside && !begins_after_sign(bytes, start) {
            continue;
        }
        if boundaries == Boundaries::Loose
            && let [_, zeros] = groups[..]
            && zeros.before == b'.'
            && bytes[zeros.start..zeros.end].iter().all(|it| *it == b'0')
        {
            // A number in JSON with a fraction of zero.
            groups.truncate(1);
        }
        let plus = start > 0 && bytes[start - 1] == b'+' || start > 1 && bytes[start - 2..start] == *b"+(";
        let cluster = Cluster { bytes, groups: &groups, plus, boundaries };
        if is_inside {
            classify_part(&cluster, words, hits);
        } else {
            classify_cluster(&cluster, words, hits);
        }
    }
}

/// Returns whether a number follows signs of markup, such as `**`, that do not continue a word.
fn begins_after_markup(bytes: &[u8], start: usize) -> bool {
    let is_sign = |it: &&u8| b"_$#%\\~*".contains(it);
    let signs = bytes[..start].iter().rev().take_while(is_sign).count();
    let before = (start - signs).checked_sub(1).map(|it| bytes[it]);
    signs > 0 && !before.is_some_and(|it| it.is_ascii_alphanumeric())
}

/// Returns whether a number follows a sign that joins the parts of a path or of an ID.
fn begins_after_sign(bytes: &[u8], start: usize) -> bool {
    start.checked_sub(1).is_some_and(|it| b"_$#%\\~*/-".contains(&bytes[it]))
}

/// Finds the number that begins a cluster in a path or an ID, if it has a check digit or a characteristic form.
fn classify_part(cluster: &Cluster, words: &Words, hits: &mut Vec<Hit>) {
    let exact = |to| exact(cluster, 0, to, words);
    // An IP address looks like a version, which paths and IDs have.
    hits.extend((1..=cluster.groups.len()).rev().find_map(exact).filter(|it| it.kind != Kind::IpAddress));
}

/// Returns the position of the first digit.
pub(super) fn first_digit(bytes: &[u8]) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<{ size_of::<u64>() }>();
    for (i, block) in blocks.iter().enumerate() {
        let digits = digits_of(u64::from_le_bytes(*block));
        if digits != 0 {
            return Some(i * size_of::<u64>() + digits.trailing_zeros() as usize / 8);
        }
    }
    let start = bytes.len() - rest.len();
    Some(start + rest.iter().position(u8::is_ascii_digit)?)
}

/// Returns the highest bit of each byte that is a digit.
fn digits_of(block: u64) -> u64 {
    const ZERO_DIGITS: u64 = u64::from_ne_bytes([b'0'; 8]);
    const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; 8]);
    /// Added to a number from 10 to 127, it sets the highest bit of the byte.
    const BEYOND_NINE: u64 = u64::from_ne_bytes([0x80 - 10; 8]);
    // Digits become 0 to 9, and all other bytes greater.
    let values = block ^ ZERO_DIGITS;
    !(((values & !HIGH_BITS) + BEYOND_NINE) | values) & HIGH_BITS
}

/// Returns the start and the end of the letters and digits around a position. The start is not before `from`.
pub(super) fn token_around(bytes: &[u8], from: usize, at: usize) -> (usize, usize) {
    let is_inside = |it: &&u8| it.is_ascii_alphanumeric();
    let before = bytes[from..at].iter().rev().take_while(is_inside).count();
    let after = bytes[at..].iter().take_while(is_inside).count();
    (at - before, at + after)
}

/// Reads groups that begin here; returns the byte to go on from.
pub(super) fn read(bytes: &[u8], start: usize, groups: &mut Vec<Group>) -> usize {
    let mut at = start;
    let mut before = 0;
    loop {
        let end = at + bytes[at..].iter().take_while(|it| it.is_ascii_digit()).count();
        groups.push(Group { start: at, end, before });
        if groups.len() == MAX_GROUPS {
            return end;
        }
        // `) `, `)-` and ` (` are one separator.
        let between = bytes[end..].iter().take(3).take_while(|it| b" -./()".contains(it)).count();
        let sign = match &bytes[end..end + between] {
            [sign] => *sign,
            [b')', b' ' | b'-'] | [b')', b' ', b'-'] => b')',
            [b' ', b'('] | [b'-', b'('] => b'(',
            [b' ', b'-', b' '] => b'-',
            _ => return end.max(start + 1),
        };
        let next = end + between;
        if !bytes.get(next).is_some_and(u8::is_ascii_digit) {
            return end.max(start + 1);
        }
        before = sign;
        at = next;
    }
}

/// Returns whether these groups continue a word, a decimal, an ID or a path.
fn begins_inside(bytes: &[u8], groups: &[Group]) -> bool {
    let start = groups[0].start;
    let Some(before) = start.checked_sub(1) else { return false };
    let further = before.checked_sub(1).map(|it| bytes[it]);
    match bytes[before] {
        b',' if further.is_some_and(|it| it.is_ascii_digit()) => {
            // 3,14159265358979 is a decimal; 12,4111111111111111 is two fields if a field begins before it.
            let whole = bytes[..before].iter().rev().take_while(|it| it.is_ascii_digit()).count();
            groups.len() == 1 && !begins_field(bytes, before - whole)
        }
        b'-' | b'.' | b'/' | b',' | b':' | b'+' | b'=' => {
            further.is_some_and(|it| it.is_ascii_digit())
                || bytes[before] != b'='
                    && bytes[before] != b':'
                    && further.is_some_and(|it| it.is_ascii_alphanumeric())
        }
        b'_' | b'$' | b'#' | b'%' | b'\\' | b'~' | b'*' => true,
        it => it.is_ascii_alphanumeric(),
    }
}

/// Returns whether a table field may begin here: at the beginning of a line, a quotation or a list, or
/// after a separator.
fn begins_field(bytes: &[u8], start: usize) -> bool {
    start.checked_sub(1).is_none_or(|it| b"\n\r\t,;|\"'[({".contains(&bytes[it]))
}

/// Returns whether a comma and the digits after `groups` are the decimals of a number, as in 12345678,90 or
/// 1.234.567,89. A long number at the beginning of a table field has no decimals: the comma separates fields.
fn has_decimals(bytes: &[u8], groups: &[Group]) -> bool {
    let (first, last) = (groups[0], groups[groups.len() - 1]);
    let decimals = bytes[last.end + 1..].iter().take_while(|it| it.is_ascii_digit()).count();
    if !(1..=2).contains(&decimals) {
        return false;
    }
    let thousands = groups.len() > 1
        && first.len() <= 3
        && groups[1..].iter().all(|it| it.len() == 3 && it.before == groups[1].before)
        && (groups[1].before == b' ' || groups[1].before == b'.' && groups.len() != 4);
    thousands || groups.len() == 1 && first.len() < 13 && !begins_field(bytes, first.start)
}

/// Returns whether the text after these groups continues a word, a decimal or an ID.
fn ends_inside(cluster: &Cluster, groups: &[Group]) -> bool {
    let bytes = cluster.bytes;
    let mut end = groups[groups.len() - 1].end;
    if cluster.boundaries == Boundaries::Loose && groups.len() == 1 && bytes[end..].starts_with(b".0") {
        end += 1 + bytes[end + 1..].iter().take_while(|it| **it == b'0').count();
    }
    let next = bytes.get(end + 1);
    match bytes.get(end) {
        Some(b'-' | b'_' | b'.' | b'@' | b'\\' | b'=') => next.is_some_and(u8::is_ascii_alphanumeric),
        Some(b',') => next.is_some_and(u8::is_ascii_digit) && has_decimals(bytes, groups),
        Some(b'%') => true,
        Some(it) => it.is_ascii_alphanumeric(),
        None => false,
    }
}

fn classify_cluster(cluster: &Cluster, words: &Words, hits: &mut Vec<Hit>) {
    let groups = cluster.groups;
    let mut from = 0;
    while from < groups.len() {
        let found = (from == 0).then(|| international(cluster, words)).flatten().or_else(|| {
            // Longer candidates come first: a card number contains groups of the shape of an Aadhaar number.
            (from + 1..=groups.len())
                .rev()
                .find_map(|to| exact(cluster, from, to, words).map(|hit| (hit, to)))
        });
        let found = found.or_else(|| local(cluster, from, words));
        match found {
            Some((hit, to)) => {
                hits.push(hit);
                from = to;
            }
            None => from += 1,
        }
    }
}

/// Returns the digits of these groups as numbers, if there are no more than [`MAX_DIGITS`].
pub(super) fn digits(bytes: &[u8], groups: &[Group]) -> Option<Vec<u8>> {
    let count: usize = groups.iter().map(|it| it.len()).sum();
    (count <= MAX_DIGITS)
        .then(|| groups.iter().flat_map(|it| &bytes[it.start..it.end]).map(|it| it - b'0').collect())
}

/// Returns whether these groups are a whole number, without further digits before or after them.
fn alone(cluster: &Cluster, from: usize, to: usize) -> bool {
    let inner = cluster.groups.get(from + 1).filter(|_| to - from > 1).map(|it| it.before);
    let apart = |sign: u8| sign == b' ' && inner.is_some_and(|it| it != b' ') || sign == b'(' || sign == b')';
    // For redaction, one number may stand before another, as in `item 7 06 12 34 56 78`. In longer lists of numbers, some have
    // the form of a personal one by chance.
    let follows_number =
        cluster.boundaries == Boundaries::Loose && from == 1 && cluster.groups[from].before == b' ';
    let first = from == 0 || follows_number || apart(cluster.groups[from].before);
    let last = match cluster.groups.get(to) {
        Some(next) => apart(next.before),
        None => !ends_inside(cluster, &cluster.groups[from..to]),
    };
    first && last
}

/// Returns a card, national number or IP address of exactly these groups.
fn exact(cluster: &Cluster, from: usize, to: usize, words: &Words) -> Option<Hit> {
    let groups = &cluster.groups[from..to];
    let count: usize = groups.iter().map(|it| it.len()).sum();
    if !(4..=MAX_DIGITS).contains(&count) {
        return None;
    }
    let (start, end) = (groups[0].start, groups[groups.len() - 1].end);
    let between: Vec<u8> = groups[1..].iter().map(|it| it.before).collect();
    if groups.len() == 4 && count <= 12 && between == *b"..." && alone(cluster, from, to) && !cluster.plus {
        return address(cluster, groups, words);
    }
    if count < 8 {
        return None;
    }
    let digits = digits(cluster.bytes, groups)?;
    let lengths: Vec<usize> = groups.iter().map(|it| it.len()).collect();
    if (12..=19).contains(&count) && card::grouped(&lengths) && between.windows(2).all(|it| it[0] == it[1]) {
        // An expiry date or a counter may stand beside a card, but no further group of the same length.
        let beside = |group: Option<&Group>, most: usize| group.is_none_or(|it| it.len() <= most);
        let clear = alone(cluster, from, to)
            || between.first().is_none_or(|it| *it == b' ')
                && !(groups.len() == 1
                    && cluster.groups.get(to).is_some_and(|it| it.before != b' ' && it.before != b'/'))
                && (from == 0 || cluster.groups[from].before == b' ')
                && beside(from.checked_sub(1).and_then(|it| cluster.groups.get(it)), 2)
                && beside(cluster.groups.get(to), 3)
                && (to < cluster.groups.len() || !ends_inside(cluster, groups));
        if clear && let Some(range) = card::range(&digits) {
            let around = words.around(start, end);
            if around.has_label(Label::Card) || range == card::Range::Usual && !around.other() {
                let reserved = reserved::card(&digits);
                return Some(Hit { kind: Kind::PaymentCard, what: "", start, end, reserved });
            }
        }
    }
    if !alone(cluster, from, to) || cluster.plus && from == 0 {
        return None;
    }
    let written = WrittenDigits { digits: &digits, groups: &lengths, between: &between };
    let what = national::what(&written, || words.around(start, end))?;
    let reserved = what.starts_with("US") && reserved::social_security(&digits);
    Some(Hit { kind: Kind::NationalId, what, start, end, reserved })
}

fn address(cluster: &Cluster, groups: &[Group], words: &Words) -> Option<Hit> {
    let mut octets = [0_u8; 4];
    for (octet, group) in octets.iter_mut().zip(groups) {
        let text = std::str::from_utf8(&cluster.bytes[group.start..group.end]).ok()?;
        if text.len() > 1 && text.starts_with('0') {
            return None;
        }
        *octet = text.parse().ok()?;
    }
    let (start, end) = (groups[0].start, groups[3].end);
    // `v1.2.3.4` begins inside a word and is excluded earlier.
    ip::is_v4(&octets, words.around(start, end)).then(|| Hit {
        kind: Kind::IpAddress,
        what: "IPv4",
        start,
        end,
        reserved: ip::is_documentation(&octets),
    })
}

/// Returns a telephone number that begins with `+` and a country code.
fn international(cluster: &Cluster, words: &Words) -> Option<(Hit, usize)> {
    let first = cluster.groups[0];
    // `0049 30 …` is characteristic; `00` before other groups is ambiguous.
    let code = cluster.groups.len() > 1 && (3..=5).contains(&first.len()) && first.before == 0;
    let is_labelled = || {
        let around = words.around(first.start, first.end);
        around.has_label(Label::Phone) || code && !around.other()
    };
    let zeros = cluster.bytes[first.start..].starts_with(b"00") && is_labelled();
    let to = if cluster.plus {
        phone::international(cluster, 0)?
    } else if zeros {
        phone::international(cluster, 2)?
    } else {
        return None;
    };
    let end = cluster.groups[to - 1].end;
    if to == cluster.groups.len() && ends_inside(cluster, &cluster.groups[..to]) {
        return None;
    }
    let sign = cluster.bytes[..first.start].iter().rev().take_while(|it| b"+(".contains(it)).count();
    let digits = digits(cluster.bytes, &cluster.groups[..to])?;
    let hit = Hit {
        kind: Kind::Phone,
        what: "",
        start: first.start - sign,
        end,
        reserved: digits.first() == Some(&1) && reserved::phone(&digits),
    };
    Some((hit, to))
}

/// Returns a telephone number in a national notation.
fn local(cluster: &Cluster, from: usize, words: &Words) -> Option<(Hit, usize)> {
    if cluster.plus && from == 0 {
        return None;
    }
    let first = cluster.groups[from];
    let around = LazyCell::new(|| words.around(first.start, cluster.groups[cluster.groups.len() - 1].end));
    let bracket = first.start > 0 && cluster.bytes[first.start - 1] == b'(' || first.before == b'(';
    (from + 1..=cluster.groups.len()).rev().find_map(|to| {
        if !alone(cluster, from, to) {
            return None;
        }
        let groups = &cluster.groups[from..to];
        let digits = digits(cluster.bytes, groups)?;
        // The words are searched only if they can make a difference.
        let is_local = |is_labelled: bool| phone::local(&digits, groups, bracket, is_labelled);
        if !is_local(true) && !is_local(false) {
            return None;
        }
        (!around.other() && is_local(around.has_label(Label::Phone))).then(|| {
            let start = first.start - usize::from(bracket && from == 0 || first.before == b'(');
            let end = groups[groups.len() - 1].end;
            (Hit { kind: Kind::Phone, what: "", start, end, reserved: reserved::phone(&digits) }, to)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::first_digit;

    #[test]
    fn first_digit_is_found_beside_all_bytes() {
        for byte in 0..=u8::MAX {
            for place in 0..20 {
                let mut bytes = [byte; 20];
                bytes[place] = b'7';
                let expected = if byte.is_ascii_digit() { 0 } else { place };
                assert_eq!(first_digit(&bytes), Some(expected), "{byte} {place}");
            }
            assert_eq!(first_digit(&[byte; 20]).is_some(), byte.is_ascii_digit());
        }
    }
}
