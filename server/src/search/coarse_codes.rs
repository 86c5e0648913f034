//! Vectors with one bit per dimension, by which candidates are selected before they are compared exactly.
//!
//! A vector is rotated randomly, always in the same way, and the sign of each number is kept ([`rotate`]). There
//! are two estimates of the cosine:
//!
//! - The share of different signs approximates the angle between two vectors.
//! - The sum of the numbers of the rotated query, each with the sign of the other vector's number, divided by the sum of
//!   the other vector's magnitudes (RaBitQ, Gao and Long 2024), is twice as exact and takes longer.
//!
//! The rotation makes the errors of both nearly normally distributed, so a cosine is outside of its bounds with a
//! probability of a few per hundred thousand.

use std::{f64::consts::PI, sync::LazyLock};

use store::vectors::{ROTATED_DIMENSIONS, rotate};

/// Number of standard deviations by which the exact cosine may differ from an estimate.
const ERROR_DEVIATIONS: f64 = 4.0;
/// Rounding error of floating-point sums.
const FLOAT_ERROR: f32 = 1e-4;
/// Length of the signs in 64-bit words.
const SIGN_WORDS: usize = ROTATED_DIMENSIONS / 64;

/// The bounds of the cosine by the number of different signs.
static BOUNDS_OF_DIFFERENCE: LazyLock<Vec<CosineBounds>> =
    LazyLock::new(|| (0..=ROTATED_DIMENSIONS).map(CosineBounds::of_difference).collect());

/// Bounds of a cosine, with high probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CosineBounds {
    /// Lower bound.
    pub at_least: f32,
    /// Upper bound.
    pub at_most: f32,
}

impl CosineBounds {
    /// Returns the bounds for a number of different signs, which is distributed binomially: the Wilson interval.
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "a cosine")]
    fn of_difference(differing: usize) -> Self {
        let total = ROTATED_DIMENSIONS as f64;
        let share = differing as f64 / total;
        let square = ERROR_DEVIATIONS * ERROR_DEVIATIONS / total;
        let centre = (share + square / 2.0) / (1.0 + square);
        let half = (square * (share * (1.0 - share) + square / 4.0)).sqrt() / (1.0 + square);
        let cosine = |share: f64| (PI * share.clamp(0.0, 1.0)).cos() as f32;
        Self { at_least: cosine(centre + half) - FLOAT_ERROR, at_most: cosine(centre - half) + FLOAT_ERROR }
    }
}

/// The code of a vector of length 1.
#[derive(Clone, Debug, PartialEq)]
pub struct CoarseCode {
    /// A bit for each number of the rotated vector: 1 if it is positive.
    signs: [u64; SIGN_WORDS],
    /// The sum of the magnitudes of the rotated vector.
    magnitudes: f32,
}

impl CoarseCode {
    /// Returns the code of a vector of length 1.
    pub fn of(numbers: &[f32]) -> Self {
        Self::of_rotated(&rotate(numbers))
    }

    fn of_rotated(rotated: &[f32; ROTATED_DIMENSIONS]) -> Self {
        let mut signs = [0; SIGN_WORDS];
        for (word, numbers) in signs.iter_mut().zip(rotated.as_chunks::<64>().0) {
            *word = numbers.iter().rev().fold(0, |word, it| word << 1 | u64::from(*it > 0.0));
        }
        Self { signs, magnitudes: rotated.iter().map(|it| it.abs()).sum() }
    }
}

/// A query vector.
#[derive(Clone, Debug)]
pub struct CodedQuery {
    signs: [u64; SIGN_WORDS],
    /// For each eight numbers of the rotated query: their sum with the signs that the bits of a byte denote.
    signed_sums: Vec<[f32; 256]>,
}

impl CodedQuery {
    /// Returns the codes of a vector of length 1.
    pub fn of(numbers: &[f32]) -> Self {
        let rotated = rotate(numbers);
        let mut signed_sums = vec![[0.0; 256]; ROTATED_DIMENSIONS / 8];
        for (sums, numbers) in signed_sums.iter_mut().zip(rotated.as_chunks::<8>().0) {
            sums[0] = -numbers.iter().sum::<f32>();
            for byte in 1..sums.len() {
                let (lowest, others) = (byte.trailing_zeros() as usize, byte & (byte - 1));
                sums[byte] = sums[others] + 2.0 * numbers[lowest];
            }
        }
        Self { signs: CoarseCode::of_rotated(&rotated).signs, signed_sums }
    }

    /// Returns the bounds of the cosine from the number of different signs.
    pub fn wide_bounds(&self, code: &CoarseCode) -> CosineBounds {
        let differing: u32 = self.signs.iter().zip(&code.signs).map(|(a, b)| (a ^ b).count_ones()).sum();
        BOUNDS_OF_DIFFERENCE[differing as usize]
    }

    /// Returns narrower bounds of the cosine, from the signs of the code and the numbers of the query.
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "a cosine")]
    pub fn narrow_bounds(&self, code: &CoarseCode) -> CosineBounds {
        let mut sums = [0.0_f32; 8];
        for (word, tables) in code.signs.iter().zip(self.signed_sums.as_chunks::<8>().0) {
            for ((sum, byte), table) in sums.iter_mut().zip(word.to_le_bytes()).zip(tables) {
                *sum += table[usize::from(byte)];
            }
        }
        let cosine = sums.iter().sum::<f32>() / code.magnitudes;
        // The part of the signs that is orthogonal to the vector, multiplied by a random direction.
        let dimensions = ROTATED_DIMENSIONS as f64;
        let orthogonal = (dimensions / f64::from(code.magnitudes).powi(2) - 1.0).max(0.0);
        let largest = ERROR_DEVIATIONS * (orthogonal / (dimensions - 1.0)).sqrt();
        let sine = (1.0 - (f64::from(cosine).abs() - largest).clamp(0.0, 1.0).powi(2)).sqrt();
        let error = (largest * sine) as f32 + FLOAT_ERROR;
        CosineBounds { at_least: cosine - error, at_most: cosine + error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(numbers: &[f32]) -> Vec<f32> {
        let length = numbers.iter().map(|it| it * it).sum::<f32>().sqrt();
        numbers.iter().map(|it| it / length).collect()
    }

    /// Returns the cosine, and checks that it is within both bounds.
    fn check(a: &[f32], b: &[f32]) -> (CosineBounds, CosineBounds) {
        let cosine: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        let (query, code) = (CodedQuery::of(a), CoarseCode::of(b));
        let (wide, narrow) = (query.wide_bounds(&code), query.narrow_bounds(&code));
        for bounds in [wide, narrow] {
            assert!(bounds.at_least <= cosine && cosine <= bounds.at_most, "{cosine}: {bounds:?}");
        }
        (wide, narrow)
    }

    #[test]
    fn cosine_is_within_bounds_of_codes() {
        let mut random = fastrand::Rng::with_seed(5);
        for dimensions in [1, 2, 7, 384, 1_531] {
            for (nearness, low) in [(0.0, -0.5), (0.5, -0.5), (2.0, -0.5), (0.0, 0.0), (20.0, 0.0)] {
                for _ in 0..40 {
                    let a: Vec<f32> = (0..dimensions).map(|_| random.f32() + low).collect();
                    let b: Vec<f32> = a.iter().map(|it| it * nearness + random.f32() + low).collect();
                    let (wide, narrow) = check(&unit(&a), &unit(&b));
                    let (wide, narrow) = (wide.at_most - wide.at_least, narrow.at_most - narrow.at_least);
                    assert!(wide < 0.29 && narrow < 0.15, "{dimensions} {nearness}: {wide} {narrow}");
                }
            }
        }
    }

    #[test]
    fn cosine_of_sparse_vector_is_within_bounds_of_codes() {
        let mut random = fastrand::Rng::with_seed(6);
        let mut sparse = || {
            let mut numbers = vec![0.0; 1_536];
            for _ in 0..random.usize(1..6) {
                numbers[[0, 1, 2, 3, 700, 1_535][random.usize(..6)]] = random.f32() + 0.01;
            }
            unit(&numbers)
        };
        for _ in 0..500 {
            check(&sparse(), &sparse());
        }
    }

    #[test]
    fn equal_and_opposite_vectors_have_narrow_bounds() {
        let vector = unit(&[0.5, -0.25, 0.125]);
        let opposite: Vec<f32> = vector.iter().map(|it| -it).collect();
        let (_, same) = check(&vector, &vector);
        assert!(same.at_least > 0.97, "{same:?}");
        let (_, contrary) = check(&vector, &opposite);
        assert!(contrary.at_most < -0.97, "{contrary:?}");
    }
}
