//! Vectors as stored and compared: normalized to length 1, in 16-bit floating-point numbers.
//!
//! Only the direction of a vector counts, so all vectors are normalized when they arrive; then no value
//! exceeds the range of 16-bit numbers, and a comparison is a dot product. Rounding changes a cosine by
//! some millionths. Zeros at the end, which pad vectors of models with fewer than 1,536 dimensions, are
//! not stored.

use api::search::DIMENSIONS;

/// Why a vector is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadVector {
    /// It is empty, or too long.
    #[error("must have 1 to {DIMENSIONS} numbers; it has {0}")]
    Length(usize),
    /// It contains infinity or NaN.
    #[error("must have finite numbers only")]
    NotFinite,
    /// It has no direction.
    #[error("must not be all zeros")]
    Zero,
}

/// A vector of length 1 with at most 1,536 numbers; missing numbers are zero.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitVector(Vec<f32>);

impl UnitVector {
    /// Normalizes a vector.
    ///
    /// # Errors
    ///
    /// Fails when it has no direction, or is too long.
    pub fn of(numbers: &[f32]) -> Result<Self, BadVector> {
        if numbers.is_empty() || numbers.len() > DIMENSIONS {
            return Err(BadVector::Length(numbers.len()));
        }
        if !numbers.iter().all(|it| it.is_finite()) {
            return Err(BadVector::NotFinite);
        }
        // The squares of the largest and of the smallest numbers exceed the range of f32.
        let length = numbers.iter().map(|it| f64::from(*it) * f64::from(*it)).sum::<f64>().sqrt();
        if length == 0.0 {
            return Err(BadVector::Zero);
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 1, and rounded anyway")]
        let mut unit: Vec<f32> = numbers.iter().map(|it| (f64::from(*it) / length) as f32).collect();
        let end = unit.iter().rposition(|it| to_half(*it) & 0x7fff != 0).map_or(0, |it| it + 1);
        unit.truncate(end);
        Ok(Self(unit))
    }

    /// Returns its numbers, without zeros at the end.
    pub fn numbers(&self) -> &[f32] {
        &self.0
    }

    /// Returns its numbers as 16-bit floating-point numbers.
    pub fn halves(&self) -> impl Iterator<Item = u16> {
        self.0.iter().map(|it| to_half(*it))
    }
}

/// Rounds a number between -1 and 1 to 16 bits, ties to even.
fn to_half(number: f32) -> u16 {
    let bits = number.to_bits();
    let (sign, size) = ((bits >> 16) & 0x8000, bits & 0x7fff_ffff);
    let half = if size < SMALLEST_NORMAL {
        // The last bit of 0.5 is the last bit of such a number: the addition rounds.
        (f32::from_bits(size) + 0.5).to_bits() - 0.5_f32.to_bits()
    } else {
        (size + 0xfff + ((size >> 13) & 1) - BIAS) >> 13
    };
    #[expect(clippy::cast_possible_truncation, reason = "at most 15 bits and the sign")]
    let half = (half | sign) as u16;
    half
}

/// Converts a finite 16-bit floating-point number.
pub fn from_half(half: u16) -> f32 {
    let size = f32::from_bits(u32::from(half & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
    f32::from_bits(size.to_bits() | u32::from(half & 0x8000) << 16)
}

/// Bits of 2^-14, below which 16-bit numbers are subnormal.
const SMALLEST_NORMAL: u32 = 113 << 23;
/// The difference of the exponent biases, shifted to the exponent's position.
const BIAS: u32 = 112 << 23;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats_between_minus_one_and_one_round_trip() {
        for half in (0..=0x3c00).chain(0x8000..=0xbc00) {
            assert_eq!(to_half(from_half(half)), half, "{half:04x}");
        }
        assert_eq!((from_half(0x3c00), from_half(0x0001)), (1.0, 2.0_f32.powi(-24)));
    }

    #[test]
    fn numbers_are_rounded_to_nearest_half_float() {
        for half in 0..0x3c00_u16 {
            let (low, high) = (from_half(half), from_half(half + 1));
            let middle = f32::midpoint(low, high);
            assert_eq!(to_half(middle), half + (half & 1), "{half:04x}: the even one");
            assert_eq!(to_half(middle.next_down()), half);
            assert_eq!(to_half(middle.next_up()), half + 1);
        }
    }

    #[test]
    fn unit_vector_has_length_one_and_no_trailing_zeros() {
        for scale in [1.0, 1e-38, 1e37, 1e-45] {
            let vector = UnitVector::of(&[3.0 * scale, 4.0 * scale, 0.0, -0.0]).unwrap();
            let length: f32 = vector.numbers().iter().map(|it| it * it).sum();
            assert!((length - 1.0).abs() < 1e-6, "{scale}: {length}");
            assert_eq!(vector.numbers().len(), 2);
        }
    }

    #[test]
    fn vector_without_direction_is_rejected() {
        let refused = |numbers: &[f32]| UnitVector::of(numbers).unwrap_err();
        assert_eq!(refused(&[]), BadVector::Length(0));
        assert_eq!(refused(&[1.0; DIMENSIONS + 1]), BadVector::Length(DIMENSIONS + 1));
        assert_eq!(refused(&[0.0, -0.0]), BadVector::Zero);
        assert_eq!(refused(&[1.0, f32::NAN]), BadVector::NotFinite);
        assert_eq!(refused(&[f32::NEG_INFINITY, 1.0]), BadVector::NotFinite);
    }
}
