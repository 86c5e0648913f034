//! A vector as it is stored and compared: of length 1, in halves.
//!
//! Only the direction of a vector counts, so all are brought to length 1 when they come in; then
//! no value is out of the range of halves (16-bit floating point), and a comparison is a sum of
//! products. Rounding to halves moves a cosine by some millionths. Zeros at the end, with which
//! models of fewer dimensions are filled up to 1,536, are not kept.

use api::search::DIMENSIONS;
use half::f16;

/// Why something is no vector to search with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadVector {
    /// It has none of its numbers, or too many.
    #[error("must have at most {DIMENSIONS} numbers, and at least one; it has {0}")]
    Length(usize),
    /// One of its numbers is infinite or no number.
    #[error("must have finite numbers only")]
    NotFinite,
    /// It has no direction.
    #[error("must not be all zeros")]
    Zero,
}

/// A vector of length 1 with at most 1,536 numbers; those that it lacks are zero.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitVector(Vec<f32>);

impl UnitVector {
    /// The direction of a vector.
    ///
    /// # Errors
    /// When it has none, or is too long.
    pub fn of(numbers: &[f32]) -> Result<Self, BadVector> {
        if numbers.is_empty() || numbers.len() > DIMENSIONS {
            return Err(BadVector::Length(numbers.len()));
        }
        if !numbers.iter().all(|it| it.is_finite()) {
            return Err(BadVector::NotFinite);
        }
        // The squares of the largest and of the smallest numbers are out of the range of f32.
        let length = numbers.iter().map(|it| f64::from(*it) * f64::from(*it)).sum::<f64>().sqrt();
        if length == 0.0 {
            return Err(BadVector::Zero);
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 1, and rounded anyway")]
        let mut unit: Vec<f32> = numbers.iter().map(|it| (f64::from(*it) / length) as f32).collect();
        let end = unit.iter().rposition(|it| f16::from_f32(*it) != f16::ZERO).map_or(0, |it| it + 1);
        unit.truncate(end);
        Ok(Self(unit))
    }

    /// Its numbers, without zeros at the end.
    pub fn numbers(&self) -> &[f32] {
        &self.0
    }

    /// Returns the components as half-precision numbers, without trailing zeros.
    pub fn halves(&self) -> impl Iterator<Item = f16> {
        self.0.iter().map(|it| f16::from_f32(*it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_length_one_and_no_zeros_at_the_end() {
        for scale in [1.0, 1e-38, 1e37, 1e-45] {
            let vector = UnitVector::of(&[3.0 * scale, 4.0 * scale, 0.0, -0.0]).unwrap();
            let length: f32 = vector.numbers().iter().map(|it| it * it).sum();
            assert!((length - 1.0).abs() < 1e-6, "{scale}: {length}");
            assert_eq!(vector.numbers().len(), 2);
        }
    }

    #[test]
    fn what_has_no_direction_is_refused() {
        let refused = |numbers: &[f32]| UnitVector::of(numbers).unwrap_err();
        assert_eq!(refused(&[]), BadVector::Length(0));
        assert_eq!(refused(&[1.0; DIMENSIONS + 1]), BadVector::Length(DIMENSIONS + 1));
        assert_eq!(refused(&[0.0, -0.0]), BadVector::Zero);
        assert_eq!(refused(&[1.0, f32::NAN]), BadVector::NotFinite);
        assert_eq!(refused(&[f32::NEG_INFINITY, 1.0]), BadVector::NotFinite);
    }
}
