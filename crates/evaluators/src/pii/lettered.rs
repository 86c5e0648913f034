//! Numbers that contain letters: bank accounts and some national numbers.

use super::{
    Hit, Kind,
    checks::date,
    iban, national,
    numbers::{self, Boundaries},
    words::{Label, Words},
};

pub(super) fn find(text: &str, words: &Words, boundaries: Boundaries, hits: &mut Vec<Hit>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some((start, end)) = next_token(bytes, at) {
        at = end;
        let is_free = free(bytes, start);
        if !is_free && boundaries == Boundaries::Strict {
            continue;
        }
        let has_letters = bytes[start..end].iter().any(u8::is_ascii_alphabetic);
        if has_letters && let Some(end) = iban::read(bytes, start) {
            hits.push(Hit { kind: Kind::Iban, what: "", start, end, reserved: false });
            at = end;
            continue;
        }
        let has_digits = bytes[start..end].iter().any(u8::is_ascii_digit);
        if is_free && let Some((what, end)) = national(bytes, start, end, has_digits && has_letters, words) {
            hits.push(Hit { kind: Kind::NationalId, what, start, end, reserved: false });
            at = end;
        }
    }
}

/// Returns the next token of letters and digits from `from` on that may begin a number: it contains a digit, or it is two
/// letters before a blank and a digit.
fn next_token(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let digit = from + numbers::first_digit(&bytes[from..])?;
    let (start, end) = numbers::token_around(bytes, from, digit);
    if start == digit && digit > from && bytes[digit - 1] == b' ' {
        let blank = digit - 1;
        let (letters, _) = numbers::token_around(bytes, from, blank);
        if blank - letters == 2 {
            return Some((letters, blank));
        }
    }
    Some((start, end))
}

/// Returns whether a token that begins here is not the rest of a longer token.
fn free(bytes: &[u8], start: usize) -> bool {
    match start.checked_sub(1).map(|it| bytes[it]) {
        Some(b'-' | b'_' | b'.' | b'/' | b'@' | b'%') => {
            start < 2 || !bytes[start - 2].is_ascii_alphanumeric()
        }
        _ => true,
    }
}

/// Returns the kind of national number that begins here, and its end.
fn national(
    bytes: &[u8],
    start: usize,
    end: usize,
    mixed: bool,
    words: &Words,
) -> Option<(&'static str, usize)> {
    let token = &bytes[start..end];
    let length = token.len();
    if !(1..=18).contains(&length) {
        return None;
    }
    let around = || words.around(start, end);
    if mixed {
        if glued(bytes, end) {
            return None;
        }
        let what = match length {
            18 if curp(token) => "Mexican CURP",
            18 if chinese(token) => "Chinese resident number",
            16 if codice_fiscale(token) => "Italian codice fiscale",
            10 if indian_pan(token, || around().has_label(Label::IndianPan)) => "Indian PAN",
            10 if taiwanese(token) && around().has_label(Label::National) => "Taiwanese identity number",
            9 if dni(token) && !around().other() => "Spanish DNI or NIE",
            9 if singaporean(token) && !around().other() => "Singaporean NRIC",
            9 if nino(token)
                && (around().has_label(Label::NationalInsurance) || around().has_label(Label::National)) =>
            {
                "UK national insurance number"
            }
            8 | 9 if around().has_label(Label::National) && irish(token) => "Irish PPS number",
            6..=9 if around().has_label(Label::Passport) && passport(token) => "passport number",
            _ => return None,
        };
        return Some((what, end));
    }
    if token[0].is_ascii_digit() {
        return match length {
            // 12345678-Z (Spain) and 010190-123A (Finland).
            8 => hyphened(bytes, end, 1).filter(|it| dni(it)).map(|_| ("Spanish DNI or NIE", end + 2)),
            6 => hyphened(bytes, end, 4).filter(|it| finnish(it)).map(|_| ("Finnish personal code", end + 5)),
            9 if around().has_label(Label::Passport) => Some(("passport number", end)),
            _ => None,
        };
    }
    // QQ 12 34 56 C.
    (length == 2)
        .then(|| spaced_nino(bytes, start))
        .flatten()
        .map(|end| ("UK national insurance number", end))
}

/// Returns the token that ends here, with the letters and digits after the following hyphen.
fn hyphened(bytes: &[u8], end: usize, more: usize) -> Option<Vec<u8>> {
    let from = end - bytes[..end].iter().rev().take_while(|it| it.is_ascii_alphanumeric()).count();
    let rest = bytes.get(end + 1..end + 1 + more)?;
    let sign = matches!(bytes.get(end), Some(b'-' | b'+')) || more == 4 && bytes.get(end) == Some(&b'A');
    let fits = sign
        && rest.iter().all(u8::is_ascii_alphanumeric)
        && !glued(bytes, end + 1 + more)
        && !bytes.get(end + 1 + more).is_some_and(u8::is_ascii_alphanumeric);
    fits.then(|| [&bytes[from..end], rest].concat())
}

/// Returns whether a token that ends here continues after a sign.
fn glued(bytes: &[u8], end: usize) -> bool {
    matches!(bytes.get(end), Some(b'-' | b'_' | b'/' | b'.' | b'@' | b'='))
        && bytes.get(end + 1).is_some_and(u8::is_ascii_alphanumeric)
}

/// Returns whether the letters and digits of a token match a shape of `A` and `9`.
fn shaped(token: &[u8], shape: &str) -> bool {
    token.len() == shape.len()
        && token.iter().zip(shape.bytes()).all(|(byte, shape)| match shape {
            b'A' => byte.is_ascii_alphabetic(),
            _ => byte.is_ascii_digit(),
        })
}

fn digit(byte: u8) -> u8 {
    byte.wrapping_sub(b'0')
}

fn value(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |sum, it| sum * 10 + u32::from(digit(*it)))
}

/// Checks a Spanish DNI or NIE: eight digits and a letter for their remainder mod 23. The first digit of an
/// NIE is written as X, Y or Z.
fn dni(token: &[u8]) -> bool {
    let mut digits = token.to_ascii_uppercase();
    match digits.first() {
        Some(b'X') => digits[0] = b'0',
        Some(b'Y') => digits[0] = b'1',
        Some(b'Z') => digits[0] = b'2',
        _ => {}
    }
    shaped(&digits, "99999999A") && b"TRWAGMYFPDXBNJZSQVHLCKE"[value(&digits[..8]) as usize % 23] == digits[8]
}

/// Checks a British NINO: neither D, F, I, Q, U nor V in the first two places, no O in the second, and no
/// unassigned prefix (HMRC).
fn nino(token: &[u8]) -> bool {
    let token = token.to_ascii_uppercase();
    shaped(&token, "AA999999A")
        && !b"DFIQUV".contains(&token[0])
        && !b"DFIOQUV".contains(&token[1])
        && ![b"BG", b"GB", b"KN", b"NK", b"NT", b"TN", b"ZZ"].iter().any(|it| token.starts_with(*it))
        && (b'A'..=b'D').contains(&token[8])
}

/// Returns the end of a NINO that is written in pairs.
fn spaced_nino(bytes: &[u8], start: usize) -> Option<usize> {
    let written = bytes.get(start..start + 13)?;
    let joined: Vec<u8> = written.iter().copied().filter(|it| *it != b' ').collect();
    let pairs = [2, 5, 8, 11].iter().all(|it| written[*it] == b' ');
    let ends = !bytes.get(start + 13).is_some_and(u8::is_ascii_alphanumeric);
    (pairs && ends && nino(&joined)).then_some(start + 13)
}

/// Checks an Indian PAN. Its fourth letter is the type of taxpayer; a person's is P and needs no label word.
fn indian_pan(token: &[u8], said: impl Fn() -> bool) -> bool {
    shaped(token, "AAAAA9999A")
        && token.iter().all(|it| !it.is_ascii_lowercase())
        && (token[3] == b'P' || b"ABCFGHJLT".contains(&token[3]) && said())
}

/// Checks a Mexican CURP: eighteen characters with a date, a sex and a check digit (RENAPO).
fn curp(token: &[u8]) -> bool {
    let token = token.to_ascii_uppercase();
    if !(shaped(&token[..16], "AAAA999999AAAAAA")
        && token[17].is_ascii_digit()
        && b"HMX".contains(&token[10]))
    {
        return false;
    }
    let digits: Vec<u8> = token[4..10].iter().map(|it| digit(*it)).collect();
    // The alphabet of the check digit has an Ñ between N and O.
    let value = |byte: u8| match byte {
        b'0'..=b'9' => u32::from(byte - b'0'),
        b'A'..=b'N' => u32::from(byte - b'A') + 10,
        _ => u32::from(byte - b'A') + 11,
    };
    let sum: u32 = token[..17].iter().zip((2..=18).rev()).map(|(byte, weight)| value(*byte) * weight).sum();
    date(&digits[2..4], &digits[4..]) && (10 - sum % 10) % 10 == u32::from(digit(token[17]))
}

/// Checks an Italian codice fiscale: sixteen characters with a date, a place and a check letter (Agenzia
/// delle Entrate).
fn codice_fiscale(token: &[u8]) -> bool {
    const ODD_POSITION_VALUES: [u32; 26] =
        [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];
    let token = token.to_ascii_uppercase();
    if !(token[..6].iter().all(u8::is_ascii_alphabetic)
        && b"ABCDEHLMPRST".contains(&token[8])
        && token[15].is_ascii_alphabetic())
    {
        return false;
    }
    let index = |byte: u8| usize::from(if byte.is_ascii_digit() { byte - b'0' } else { byte - b'A' });
    let sum: u32 = token[..15]
        .iter()
        .enumerate()
        .map(|(at, byte)| {
            if at % 2 == 0 {
                ODD_POSITION_VALUES[index(*byte)]
            } else {
                u32::try_from(index(*byte)).unwrap_or(0)
            }
        })
        .sum();
    sum % 26 == u32::from(token[15] - b'A')
}

fn chinese(token: &[u8]) -> bool {
    let digits: Vec<u8> = token[..17].iter().map(|it| digit(*it)).collect();
    token[17].eq_ignore_ascii_case(&b'X') && digits.iter().all(|it| *it < 10) && national::chinese_x(&digits)
}

/// Checks a Singaporean NRIC or FIN: seven digits, weighted, and a letter of one of two alphabets of eleven
/// (ICA).
fn singaporean(token: &[u8]) -> bool {
    if !shaped(token, "A9999999A") {
        return false;
    }
    let digits: Vec<u8> = token[1..8].iter().map(|it| digit(*it)).collect();
    let sum = super::checks::weighted(&digits, &[2, 7, 6, 5, 4, 3, 2]);
    let (offset, letters) = match token[0] {
        b'S' => (0, b"JZIHGFEDCBA"),
        b'T' => (4, b"JZIHGFEDCBA"),
        b'F' => (0, b"XWUTRQPNMLK"),
        b'G' => (4, b"XWUTRQPNMLK"),
        _ => return false,
    };
    usize::try_from((sum + offset) % 11).is_ok_and(|it| letters[it] == token[8])
}

fn taiwanese(token: &[u8]) -> bool {
    const REGION_LETTERS: &[u8; 26] = b"ABCDEFGHJKLMNPQRSTUVXYWZIO";
    if !shaped(token, "A999999999") || !matches!(token[1], b'1' | b'2' | b'8' | b'9') {
        return false;
    }
    let Some(region) = REGION_LETTERS.iter().position(|it| *it == token[0]) else { return false };
    let region = i32::try_from(region).unwrap_or(0) + 10;
    let digits: Vec<u8> = token[1..].iter().map(|it| digit(*it)).collect();
    (region / 10 + region % 10 * 9 + super::checks::weighted(&digits, &[8, 7, 6, 5, 4, 3, 2, 1, 1])) % 10 == 0
}

fn irish(token: &[u8]) -> bool {
    if !token[..7].iter().all(u8::is_ascii_digit) || !token[7..].iter().all(u8::is_ascii_uppercase) {
        return false;
    }
    let digits: Vec<u8> = token[..7].iter().map(|it| digit(*it)).collect();
    let last = token.get(8).map_or(0, |it| if *it == b'W' { 0 } else { i32::from(it - b'A') + 1 });
    let rest = (super::checks::weighted(&digits, &[8, 7, 6, 5, 4, 3, 2]) + last * 9) % 23;
    i32::from(token[7]) == if rest == 0 { i32::from(b'W') } else { i32::from(b'A') + rest - 1 }
}

/// Checks a Finnish personal identity code: a date, a century sign, three digits and a letter for the
/// remainder mod 31.
fn finnish(token: &[u8]) -> bool {
    if token.len() != 10 || !token[..9].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let digits: Vec<u8> = token[..6].iter().map(|it| digit(*it)).collect();
    date(&digits[2..4], &digits[..2])
        && b"0123456789ABCDEFHJKLMNPRSTUVWXY"[value(&token[..9]) as usize % 31]
            == token[9].to_ascii_uppercase()
}

/// Returns whether a token can be a passport number: one or two letters and digits. Countries differ in more
/// details, which are not checked.
fn passport(token: &[u8]) -> bool {
    token.iter().filter(|it| it.is_ascii_digit()).count() >= 5
        && token.iter().all(|it| !it.is_ascii_lowercase())
}
