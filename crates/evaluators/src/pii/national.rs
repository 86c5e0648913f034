//! National identity and tax numbers: their notations and check digits.
//!
//! A number of digits only counts if its check digit is right and either its notation is characteristic or a
//! label word is nearby. Sources are the public rules of the issuing authorities.

use std::cell::LazyCell;

use super::{
    checks::{date, luhn, mod_11_10, number, same, verhoeff, weighted},
    words::{Label, NearbyLabels},
};

/// Digits as written.
pub(super) struct WrittenDigits<'a> {
    /// The values of the digits.
    pub digits: &'a [u8],
    /// The lengths of the groups.
    pub groups: &'a [usize],
    /// The separators between the groups, one fewer than groups.
    pub between: &'a [u8],
}

/// A kind of national number.
struct Rule {
    what: &'static str,
    label: Label,
    length: usize,
    /// Returns whether the digits can be such a number.
    check: fn(&[u8]) -> bool,
    /// The notation that needs no label word: lengths of groups and separators.
    own: Option<(&'static [usize], &'static [u8])>,
}

const NATIONAL_ID_RULES: &[Rule] = &[
    rule("US social security number", Label::SocialSecurity, 9, social_security, Some((&[3, 2, 4], b"--"))),
    rule("US taxpayer number", Label::SocialSecurity, 9, itin, Some((&[3, 2, 4], b"--"))),
    rule("UK health service number", Label::HealthService, 10, nhs, None),
    rule("Aadhaar number", Label::Aadhaar, 12, aadhaar, Some((&[4, 4, 4], b"  "))),
    rule("Brazilian CPF", Label::Cpf, 11, cpf, Some((&[3, 3, 3, 2], b"..-"))),
    rule("Brazilian CNPJ", Label::Cnpj, 14, cnpj, Some((&[2, 3, 3, 4, 2], b"../-"))),
    rule("Chinese resident number", Label::ChineseId, 18, chinese, Some((&[18], b""))),
    rule("German tax number", Label::SteuerId, 11, steuer_id, None),
    rule("French social security number", Label::Nir, 15, nir, Some((&[1, 2, 2, 2, 3, 3, 2], b"      "))),
    rule("French social security number", Label::Nir, 15, nir, Some((&[13, 2], b" "))),
    rule("Japanese My Number", Label::MyNumber, 12, my_number, None),
    rule("Canadian social insurance number", Label::SocialInsurance, 9, sin, None),
    rule("Australian tax file number", Label::TaxFile, 9, tfn, None),
    rule("Australian tax file number", Label::TaxFile, 8, tfn, None),
    rule("South Korean resident number", Label::ResidentRegistration, 13, rrn, Some((&[6, 7], b"-"))),
    rule("Polish PESEL", Label::Pesel, 11, pesel, None),
    rule("Dutch BSN", Label::Bsn, 9, bsn, None),
    rule("South African identity number", Label::SouthAfrican, 13, south_african, Some((&[6, 4, 3], b"  "))),
    rule("Turkish identity number", Label::Tckn, 11, tckn, None),
    rule("Swedish personal number", Label::Nordic, 10, swedish, Some((&[6, 4], b"-"))),
    rule("Swedish personal number", Label::Nordic, 12, |it| swedish(&it[2..]), Some((&[8, 4], b"-"))),
    rule("Norwegian birth number", Label::Nordic, 11, norwegian, None),
    rule("Danish CPR number", Label::Nordic, 10, |it| date(&it[2..4], &it[..2]), None),
    rule("Belgian national number", Label::National, 11, belgian, Some((&[2, 2, 2, 3, 2], b"..-."))),
    rule("Swiss insurance number", Label::National, 13, swiss, Some((&[3, 4, 4, 2], b"..."))),
    rule("Thai identity number", Label::National, 13, thai, Some((&[1, 4, 5, 2, 1], b"----"))),
    rule("Argentine CUIL", Label::National, 11, cuil, Some((&[2, 8, 1], b"--"))),
    rule("Israeli identity number", Label::National, 9, luhn, None),
    rule("Portuguese tax number", Label::National, 9, portuguese, None),
    rule("Romanian personal number", Label::National, 13, romanian, None),
];

const fn rule(
    what: &'static str,
    label: Label,
    length: usize,
    check: fn(&[u8]) -> bool,
    own: Option<(&'static [usize], &'static [u8])>,
) -> Rule {
    Rule { what, label, length, check, own }
}

/// Returns the kind of national number of these digits. `around` returns the labels around them.
pub(super) fn what(written: &WrittenDigits, around: impl Fn() -> NearbyLabels) -> Option<&'static str> {
    let length = written.digits.len();
    // Numbers with one repeated digit, such as 000-00-0000, are placeholders.
    if !(8..=18).contains(&length) || same(written.digits) {
        return None;
    }
    let around = LazyCell::new(around);
    NATIONAL_ID_RULES
        .iter()
        .filter(|it| it.length == length && (it.check)(written.digits))
        .find(|it| {
            let own = it
                .own
                .is_some_and(|(groups, between)| written.groups == groups && written.between == between);
            own && !around.other() || around.has_label(it.label) || around.has_label(Label::National)
        })
        .map(|it| it.what)
}

/// Checks a US social security number: area not 000, 666 or 900 and above; neither group nor serial all zeros
/// (SSA, since 2011).
fn social_security(it: &[u8]) -> bool {
    let area = number(&it[..3]);
    area != 0 && area != 666 && area < 900 && it[3..5] != [0, 0] && it[5..] != [0, 0, 0, 0]
}

/// Checks a US ITIN: first three digits 900 and above, fourth and fifth digit 50 to 65, 70 to 88, 90 to 92 or
/// 94 to 99 (IRS).
fn itin(it: &[u8]) -> bool {
    it[0] == 9 && matches!(number(&it[3..5]), 50..=65 | 70..=88 | 90..=92 | 94..=99)
}

fn nhs(it: &[u8]) -> bool {
    let rest = 11 - weighted(&it[..9], &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    rest != 10 && rest % 11 == i32::from(it[9])
}

fn aadhaar(it: &[u8]) -> bool {
    it[0] >= 2 && verhoeff(it)
}

/// Checks two check digits mod 11, where a remainder of 10 counts as 0.
fn twice_mod_11(it: &[u8], first: &[i32], second: &[i32]) -> bool {
    let check = |weights: &[i32]| match weighted(it, weights) % 11 {
        0 | 1 => 0,
        rest => 11 - rest,
    };
    i32::from(it[first.len()]) == check(first) && i32::from(it[second.len()]) == check(second)
}

fn cpf(it: &[u8]) -> bool {
    twice_mod_11(it, &[10, 9, 8, 7, 6, 5, 4, 3, 2], &[11, 10, 9, 8, 7, 6, 5, 4, 3, 2])
}

fn cnpj(it: &[u8]) -> bool {
    twice_mod_11(it, &[5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2], &[6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2])
}

/// Checks a Chinese resident identity number (GB 11643); [`chinese_x`] checks those that end in X.
fn chinese(it: &[u8]) -> bool {
    chinese_rest(&it[..17]) == Some((12 - i32::from(it[17])) % 11)
}

/// Checks the seventeen digits before a check character X.
pub(super) fn chinese_x(it: &[u8]) -> bool {
    it.len() == 17 && chinese_rest(it) == Some(2)
}

/// Returns the weighted sum mod 11 of seventeen digits with a region and a date.
fn chinese_rest(it: &[u8]) -> Option<i32> {
    let century = matches!(number(&it[6..8]), 18..=20);
    let sum = weighted(it, &[7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]);
    (matches!(it[0], 1..=8) && century && date(&it[10..12], &it[12..14])).then_some(sum % 11)
}

/// Checks a German tax number: among the first ten digits, exactly one occurs twice or three times.
fn steuer_id(it: &[u8]) -> bool {
    let mut counts = [0_u8; 10];
    for digit in &it[..10] {
        counts[usize::from(*digit)] += 1;
    }
    let repeated: Vec<u8> = counts.into_iter().filter(|it| *it > 1).collect();
    it[0] != 0 && matches!(repeated[..], [2 | 3]) && mod_11_10(it)
}

/// Checks a French NIR: sex, year, month, department, commune, order, and 97 minus the remainder.
fn nir(it: &[u8]) -> bool {
    matches!(it[0], 1 | 2)
        && matches!(number(&it[3..5]), 1..=12 | 20..=42 | 50..=99)
        && 97 - number(&it[..13]) % 97 == number(&it[13..])
}

fn my_number(it: &[u8]) -> bool {
    let rest = weighted(&it[..11], &[6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    i32::from(it[11]) == if rest <= 1 { 0 } else { 11 - rest }
}

fn sin(it: &[u8]) -> bool {
    it[0] != 0 && it[0] != 8 && luhn(it)
}

fn tfn(it: &[u8]) -> bool {
    match it.len() {
        9 => weighted(it, &[1, 4, 3, 7, 5, 8, 6, 9, 10]) % 11 == 0,
        _ => weighted(it, &[10, 7, 8, 4, 6, 3, 5, 1]) % 11 == 0,
    }
}

/// Checks a South Korean RRN. Numbers assigned since October 2020 have no check digit, so only the date
/// counts.
fn rrn(it: &[u8]) -> bool {
    date(&it[2..4], &it[4..6]) && (1..=8).contains(&it[6])
}

fn pesel(it: &[u8]) -> bool {
    let month = number(&it[2..4]) % 20;
    (1..=12).contains(&month)
        && (1..=31).contains(&number(&it[4..6]))
        && weighted(it, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]) % 10 == 0
}

fn bsn(it: &[u8]) -> bool {
    weighted(it, &[9, 8, 7, 6, 5, 4, 3, 2, -1]) % 11 == 0
}

fn south_african(it: &[u8]) -> bool {
    date(&it[2..4], &it[4..6]) && it[10] <= 2 && luhn(it)
}

fn tckn(it: &[u8]) -> bool {
    let odd: i32 = it[..9].iter().step_by(2).map(|it| i32::from(*it)).sum();
    let even: i32 = it[1..8].iter().step_by(2).map(|it| i32::from(*it)).sum();
    let all: i32 = it[..10].iter().map(|it| i32::from(*it)).sum();
    it[0] != 0 && (odd * 7 - even).rem_euclid(10) == i32::from(it[9]) && all % 10 == i32::from(it[10])
}

/// Checks a Swedish personal number. Days from 61 are those of coordination numbers.
fn swedish(it: &[u8]) -> bool {
    (1..=12).contains(&number(&it[2..4])) && matches!(number(&it[4..6]), 1..=31 | 61..=91) && luhn(it)
}

fn norwegian(it: &[u8]) -> bool {
    date(&it[2..4], &it[..2])
        && weighted(it, &[3, 7, 6, 1, 8, 9, 4, 5, 2, 1]) % 11 == 0
        && weighted(it, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1]) % 11 == 0
}

/// Checks a Belgian national number: 97 minus the remainder, with a leading 2 for people born since 2000.
fn belgian(it: &[u8]) -> bool {
    let check = number(&it[9..]);
    let body = number(&it[..9]);
    date(&it[2..4], &it[4..6]) && (97 - body % 97 == check || 97 - (2_000_000_000 + body) % 97 == check)
}

fn swiss(it: &[u8]) -> bool {
    it[..3] == [7, 5, 6] && weighted(it, &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]) % 10 == 0
}

fn thai(it: &[u8]) -> bool {
    let sum = weighted(&it[..12], &[13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]);
    it[0] != 0 && (11 - sum % 11) % 10 == i32::from(it[12])
}

fn cuil(it: &[u8]) -> bool {
    let check = match 11 - weighted(&it[..10], &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11 {
        11 => 0,
        10 => 9,
        check => check,
    };
    matches!(number(&it[..2]), 20 | 23 | 24 | 27) && check == i32::from(it[10])
}

fn portuguese(it: &[u8]) -> bool {
    let rest = weighted(&it[..8], &[9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    matches!(it[0], 1..=3) && i32::from(it[8]) == if rest <= 1 { 0 } else { 11 - rest }
}

fn romanian(it: &[u8]) -> bool {
    let rest = weighted(&it[..12], &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11;
    (1..=8).contains(&it[0])
        && date(&it[3..5], &it[5..7])
        && i32::from(it[12]) == if rest == 10 { 1 } else { rest }
}
