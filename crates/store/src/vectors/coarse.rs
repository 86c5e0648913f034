//! Rotates vectors, and computes coarse codes: one bit per dimension, by which candidates are selected.
//!
//! A vector is rotated randomly, always in the same way, and the sign of each number is stored. The
//! number of different bits of two vectors then approximates their angle within some degrees (random
//! hyperplanes, Charikar 2002). Without the rotation, this would hold only for numbers distributed
//! around zero: for vectors with few numbers, or without negative ones, nearly all bits would be equal.

use api::search::DIMENSIONS;

/// Length of a coarse code in bytes.
pub const CODE_BYTES: usize = DIMENSIONS / 8;
/// Number of dimensions of a rotated vector: a power of two, as the fast rotation requires.
pub const ROTATED_DIMENSIONS: usize = DIMENSIONS.next_power_of_two();

/// Returns PostgreSQL's coarse code of a vector with at most 1,536 numbers; missing numbers are zero.
pub fn signs(numbers: &[f32]) -> [u8; CODE_BYTES] {
    let mut bits = [0; CODE_BYTES];
    for (byte, numbers) in bits.iter_mut().zip(scaled_rotation(numbers, 2).as_chunks::<8>().0) {
        *byte = numbers.iter().fold(0, |byte, it| byte << 1 | u8::from(*it > 0.0));
    }
    bits
}

/// Rotates a vector with at most 1,536 numbers randomly, always in the same way; missing numbers are zero. The length
/// of the vector and its angles with other rotated vectors stay the same. With the third round, the numbers of vectors
/// with only two non-zero numbers are independent of each other too.
pub fn rotate(numbers: &[f32]) -> [f32; ROTATED_DIMENSIONS] {
    let mut rotated = scaled_rotation(numbers, 3);
    #[expect(clippy::cast_precision_loss, reason = "a power of two")]
    let scale = (ROTATED_DIMENSIONS as f32).powf(-1.5);
    rotated.iter_mut().for_each(|it| *it *= scale);
    rotated
}

/// Returns the rotated vector, multiplied by the square root of the number of dimensions in each round.
fn scaled_rotation(numbers: &[f32], rounds: u64) -> [f32; ROTATED_DIMENSIONS] {
    let mut rotated = [0.0; ROTATED_DIMENSIONS];
    rotated.iter_mut().zip(numbers).for_each(|(to, it)| *to = *it);
    // A single rotation would leave the order of vectors with one non-zero number.
    for round in 0..rounds {
        flip(&mut rotated, round);
        mix(&mut rotated);
    }
    rotated
}

/// Changes the sign of half of the numbers, chosen pseudo-randomly, the same ones each time.
fn flip(numbers: &mut [f32; ROTATED_DIMENSIONS], round: u64) {
    for (block, numbers) in (0..).zip(numbers.as_chunks_mut::<64>().0) {
        let random = random(round << 32 | block);
        for (place, number) in numbers.iter_mut().enumerate() {
            *number = f32::from_bits(number.to_bits() ^ ((random >> place & 1) as u32) << 31);
        }
    }
}

/// Computes signed sums of all numbers (the fast Walsh-Hadamard transform).
fn mix(numbers: &mut [f32; ROTATED_DIMENSIONS]) {
    let mut half = 1;
    while half < ROTATED_DIMENSIONS {
        for pair in numbers.chunks_exact_mut(2 * half) {
            let (left, right) = pair.split_at_mut(half);
            for (left, right) in left.iter_mut().zip(right) {
                (*left, *right) = (*left + *right, *left - *right);
            }
        }
        half *= 2;
    }
}

/// Returns the pseudo-random bits of a number (SplitMix64). Stored codes depend on them.
fn random(number: u64) -> u64 {
    let mut bits = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    fn differing(a: &[f32], b: &[f32]) -> u32 {
        signs(a).iter().zip(signs(b)).map(|(a, b)| (a ^ b).count_ones()).sum()
    }

    fn angle(a: &[f32], b: &[f32]) -> f64 {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        (dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()).clamp(-1.0, 1.0).acos()
    }

    #[test]
    fn coarse_code_distance_approximates_angle() {
        let mut random = fastrand::Rng::with_seed(3);
        for (numbers, low) in [(3, -0.5), (40, -0.5), (384, -0.5), (384, 0.0), (1_536, -0.5), (1_536, 0.0)] {
            for nearness in [0.0, 0.3, 1.0] {
                let a: Vec<f32> = (0..numbers).map(|_| random.f32() + low).collect();
                let b: Vec<f32> = a.iter().map(|it| it * nearness + random.f32() + low).collect();
                let expected = DIMENSIONS as f64 * angle(&a, &b) / PI;
                let found = f64::from(differing(&a, &b));
                assert!((found - expected).abs() < 80.0, "{numbers} {low}: {found} for {expected}");
            }
        }
    }

    #[test]
    fn rotation_keeps_lengths_and_angles() {
        let mut random = fastrand::Rng::with_seed(4);
        for numbers in [1, 100, 1_536] {
            let a: Vec<f32> = (0..numbers).map(|_| random.f32()).collect();
            let b: Vec<f32> = (0..numbers).map(|_| random.f32() - 0.7).collect();
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            let (rotated_a, rotated_b) = (rotate(&a), rotate(&b));
            assert!((dot(&a, &a) - dot(&rotated_a, &rotated_a)).abs() < 1e-3 * dot(&a, &a));
            assert!((dot(&a, &b) - dot(&rotated_a, &rotated_b)).abs() < 1e-3 * dot(&a, &a).max(dot(&b, &b)));
        }
    }

    #[test]
    fn coarse_codes_of_unit_vectors_are_orthogonal() {
        let unit = |at: usize| (0..DIMENSIONS).map(|it| f32::from(u8::from(it == at))).collect::<Vec<_>>();
        for (a, b) in [(0, 1), (0, 512), (0, 1_024), (7, 1_535), (100, 101)] {
            assert!(differing(&unit(a), &unit(b)).abs_diff(768) < 110, "{a} {b}");
        }
        assert_eq!(differing(&unit(5), &unit(5)), 0);
    }

    #[test]
    fn coarse_code_is_stable_across_versions() {
        let numbers: Vec<f32> = (0..DIMENSIONS).map(|it| (it % 7) as f32 - 2.5).collect();
        assert_eq!(signs(&numbers)[..8], [79, 167, 202, 59, 108, 106, 131, 0]);
    }
}
