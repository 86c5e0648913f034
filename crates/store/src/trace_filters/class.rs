//! Logarithmic classes of latency, tokens and cost.
//!
//! A range has no term of its own, because a term stands for one value. So each value is stored with its class, two per
//! octave, and classes have terms: a list searches for the few classes of its range.

/// Returns the class of a value: 0 for zero, then two per octave, at most 127.
pub fn class(value: i64) -> i16 {
    let Ok(value) = u64::try_from(value) else { return 0 };
    if value == 0 {
        return 0;
    }
    let octave = value.ilog2();
    // In the upper half of an octave, the bit below the highest is set.
    let upper = octave > 0 && (value >> (octave - 1)) & 1 == 1;
    // At most 1 + 2 * 63 + 1 = 128 for u64; i64 ends below.
    i16::try_from(1 + 2 * octave + u32::from(upper)).unwrap_or(127)
}

/// Returns the classes of the values between `min` and `max`, both inclusive.
pub fn classes(min: i64, max: i64) -> std::ops::RangeInclusive<i16> {
    class(min)..=class(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_increases_with_value() {
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7, 8].map(class), [0, 1, 3, 4, 5, 5, 6, 6, 7]);
        assert_eq!(class(-5), 0);
        assert_eq!(class(i64::MAX), 126);
        let mut last = 0;
        for exponent in 0..63 {
            for value in [1_i64 << exponent, (1 << exponent) + (1 << exponent) / 2] {
                assert!(class(value) >= last);
                last = class(value);
            }
        }
    }
}
