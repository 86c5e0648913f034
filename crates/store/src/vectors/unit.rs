//! Vectors as stored and compared: normalized to length 1, in 16-bit floating-point numbers.
//!
//! Only the direction of a vector counts, so all vectors are normalized when they arrive; then no value
//! exceeds the range of 16-bit numbers, and a comparison is a dot product. Rounding changes a cosine by
//! some millionths. Zeros at the end, which pad vectors of models with fewer than 1,536 dimensions, are
//! not stored.

use api::search::DIMENSIONS;
use half::{f16, slice::HalfFloatSliceExt};

/// Why a vector is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadVector {
    /// The vector is empty or too long.
    #[error("must have 1 to {DIMENSIONS} numbers; it has {0}")]
    Length(usize),
    /// The vector contains infinity or NaN.
    #[error("must have finite numbers only")]
    NotFinite,
    /// The vector has no direction.
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
        // The squares of the largest and of the smallest numbers exceed the range of f32.
        let length = square(numbers).sqrt();
        // The sum of squares of finite numbers is finite.
        if !length.is_finite() {
            return Err(BadVector::NotFinite);
        }
        if length == 0.0 {
            return Err(BadVector::Zero);
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 1, and rounded anyway")]
        let mut unit: Vec<f32> = numbers.iter().map(|it| (f64::from(*it) / length) as f32).collect();
        let end = unit.iter().rposition(|it| f16::from_f32(*it) != f16::ZERO).map_or(0, |it| it + 1);
        unit.truncate(end);
        Ok(Self(unit))
    }

    /// Returns its numbers, without zeros at the end.
    pub fn numbers(&self) -> &[f32] {
        &self.0
    }

    /// Returns the components as half-precision numbers, without trailing zeros.
    pub fn halves(&self) -> Vec<f16> {
        let mut halves = vec![f16::ZERO; self.0.len()];
        halves.convert_from_f32_slice(&self.0);
        halves
    }
}

/// Returns the sum of squares. With eight sums, the compiler generates instructions for several numbers.
fn square(numbers: &[f32]) -> f64 {
    let (chunks, rest) = numbers.as_chunks::<8>();
    let mut sums = [0.0_f64; 8];
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, it)| *sum += f64::from(*it) * f64::from(*it));
    }
    sums.iter().sum::<f64>() + rest.iter().map(|it| f64::from(*it) * f64::from(*it)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

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
