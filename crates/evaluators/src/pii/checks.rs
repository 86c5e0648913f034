//! Check digit algorithms. All functions take digits as numbers from 0 to 9.

/// Checks a number by the Luhn algorithm (ISO/IEC 7812-1, annex B).
pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, it)| {
            let doubled = u32::from(*it) * 2;
            if at % 2 == 0 {
                u32::from(*it)
            } else if doubled > 9 {
                doubled - 9
            } else {
                doubled
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Checks a number by the Verhoeff algorithm, based on the dihedral group of ten elements (India's Aadhaar).
pub(super) fn verhoeff(digits: &[u8]) -> bool {
    const DIHEDRAL_PRODUCT: [[u8; 10]; 10] = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [1, 2, 3, 4, 0, 6, 7, 8, 9, 5],
        [2, 3, 4, 0, 1, 7, 8, 9, 5, 6],
        [3, 4, 0, 1, 2, 8, 9, 5, 6, 7],
        [4, 0, 1, 2, 3, 9, 5, 6, 7, 8],
        [5, 9, 8, 7, 6, 0, 4, 3, 2, 1],
        [6, 5, 9, 8, 7, 1, 0, 4, 3, 2],
        [7, 6, 5, 9, 8, 2, 1, 0, 4, 3],
        [8, 7, 6, 5, 9, 3, 2, 1, 0, 4],
        [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
    ];
    const VERHOEFF_PERMUTATION: [u8; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let mut state = 0_u8;
    for (at, digit) in digits.iter().rev().enumerate() {
        let mut turned = *digit;
        for _ in 0..at % 8 {
            turned = VERHOEFF_PERMUTATION[usize::from(turned)];
        }
        state = DIHEDRAL_PRODUCT[usize::from(state)][usize::from(turned)];
    }
    state == 0
}

/// Checks a number by ISO 7064 mod 11,10 (German tax numbers).
pub(super) fn mod_11_10(digits: &[u8]) -> bool {
    let Some((check, rest)) = digits.split_last() else { return false };
    let product = rest.iter().fold(10_u32, |product, digit| {
        let sum = (product + u32::from(*digit)) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    (11 - product) % 10 == u32::from(*check)
}

/// Returns the weighted sum of digits.
pub(super) fn weighted(digits: &[u8], weights: &[i32]) -> i32 {
    digits.iter().zip(weights).map(|(digit, weight)| i32::from(*digit) * weight).sum()
}

/// Returns the value of up to 19 digits.
pub(super) fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |sum, it| sum.wrapping_mul(10).wrapping_add(u64::from(*it)))
}

/// Returns whether the month and the day exist.
pub(super) fn date(month: &[u8], day: &[u8]) -> bool {
    (1..=12).contains(&number(month)) && (1..=31).contains(&number(day))
}

/// Returns whether all digits are equal.
pub(super) fn same(digits: &[u8]) -> bool {
    digits.windows(2).all(|it| it[0] == it[1])
}

#[cfg(test)]
mod tests {
    use super::{luhn, mod_11_10, verhoeff};

    fn digits(text: &str) -> Vec<u8> {
        text.bytes().map(|it| it - b'0').collect()
    }

    #[test]
    fn one_changed_digit_is_noticed() {
        type Check = fn(&[u8]) -> bool;
        let cases: [(Check, &str); 3] =
            [(luhn, "4539148803436467"), (verhoeff, "234123412346"), (mod_11_10, "86095742719")];
        for (check, good) in cases {
            let good = digits(good);
            assert!(check(&good), "{good:?}");
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] = (bad[at] + 1) % 10;
                assert!(!check(&bad), "{bad:?}");
            }
        }
    }
}
