//! International bank account numbers (ISO 13616): the length for the country and the check mod 97.

/// Returns the length of a country's account numbers (SWIFT registry).
fn length(country: [u8; 2]) -> Option<usize> {
    Some(match &country {
        b"NO" => 15,
        b"BE" => 16,
        b"DK" | b"FI" | b"FK" | b"FO" | b"GL" | b"NL" | b"SD" => 18,
        b"MK" | b"SI" => 19,
        b"AT" | b"BA" | b"EE" | b"KZ" | b"LT" | b"LU" | b"MN" | b"XK" => 20,
        b"CH" | b"HR" | b"LI" | b"LV" => 21,
        b"BG" | b"BH" | b"CR" | b"DE" | b"GB" | b"GE" | b"IE" | b"ME" | b"RS" | b"VA" => 22,
        b"AE" | b"GI" | b"IL" | b"IQ" | b"OM" | b"SO" | b"TL" => 23,
        b"AD" | b"CZ" | b"ES" | b"MD" | b"PK" | b"RO" | b"SA" | b"SE" | b"SK" | b"TN" | b"VG" => 24,
        b"LY" | b"PT" | b"ST" => 25,
        b"IS" | b"TR" => 26,
        b"BI" | b"DJ" | b"FR" | b"GR" | b"IT" | b"MC" | b"MR" | b"SM" => 27,
        b"AL" | b"AZ" | b"BY" | b"CY" | b"DO" | b"GT" | b"HU" | b"LB" | b"NI" | b"PL" | b"SV" => 28,
        b"BR" | b"EG" | b"PS" | b"QA" | b"UA" => 29,
        b"JO" | b"KW" | b"MU" | b"YE" => 30,
        b"MT" | b"SC" => 31,
        b"LC" => 32,
        b"RU" => 33,
        _ => return None,
    })
}

/// Returns the end of an account number that begins at `start`, the beginning of a token.
pub(super) fn read(bytes: &[u8], start: usize) -> Option<usize> {
    let head = bytes.get(start..start + 4)?;
    if !(head[0].is_ascii_alphabetic() && head[1].is_ascii_alphabetic()) {
        return None;
    }
    if !(head[2].is_ascii_digit() && head[3].is_ascii_digit()) {
        return None;
    }
    let country = [head[0].to_ascii_uppercase(), head[1].to_ascii_uppercase()];
    let wanted = length(country)?;
    let mut found = [0_u8; 34];
    let mut taken = 0;
    let mut at = start;
    while taken < wanted {
        let byte = *bytes.get(at)?;
        if byte.is_ascii_alphanumeric() {
            found[taken] = byte.to_ascii_uppercase();
            taken += 1;
        } else if !matches!(byte, b' ' | b'-' | b'.') || !bytes.get(at + 1)?.is_ascii_alphanumeric() {
            return None;
        }
        at += 1;
    }
    if bytes.get(at).is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    (remainder(&found[..wanted]) == 1).then_some(at)
}

/// Returns the remainder mod 97, with the first four characters moved to the end and letters as 10 to 35.
fn remainder(account: &[u8]) -> u32 {
    account[4..].iter().chain(&account[..4]).fold(0, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + u32::from(byte - b'A') + 10) % 97,
    })
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn iban_needs_check_digits_and_length() {
        for good in [
            "DE89370400440532013000",
            "GB29 NWBK 6016 1331 9268 19",
            "fr1420041010050500013m02606",
            "NO93-8601-1117-947",
            "NL91 ABNA 0417 1643 00",
        ] {
            assert_eq!(read(good.as_bytes(), 0), Some(good.len()), "{good}");
        }
        for bad in ["DE88370400440532013000", "GB29 NWBK 6016 1331 9268", "XX89370400440532013000", "DE"] {
            assert_eq!(read(bad.as_bytes(), 0), None, "{bad}");
        }
    }
}
