//! Vectors with one byte per number, by which candidates are selected before they are compared exactly.
//!
//! A code is a number divided by the vector's scale, rounded. The effect of rounding on a cosine is
//! bounded by the length of the rounding error (Cauchy-Schwarz). It approaches that bound only if
//! errors and vectors have the same direction; otherwise each error is distributed uniformly over the
//! scale, and its dot product with a vector of length 1 has a standard deviation of the scale divided
//! by the root of 12, in any number of dimensions.

/// Number of standard deviations by which the exact cosine may differ from the cosine of the codes.
const ERROR_DEVIATIONS: f32 = 6.0;
/// Rounding error of floating-point sums.
const FLOAT_ERROR: f32 = 1e-6;

/// Bounds of a cosine, as computed from codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cosine {
    /// Lower bound.
    pub at_least: f32,
    /// Upper bound, with high probability.
    pub at_most: f32,
}

/// The parameters of a coded vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coding {
    /// The value of a code of 1.
    pub scale: f32,
    /// The length of the vector of rounding errors.
    pub error: f32,
}

impl Coding {
    /// Appends the codes of a vector of length 1 to `codes`.
    pub fn of(numbers: &[f32], codes: &mut Vec<i8>) -> Self {
        let largest = numbers.iter().fold(0.0_f32, |largest, it| largest.max(it.abs()));
        let scale = (largest / 127.0).max(f32::MIN_POSITIVE);
        let mut error = 0.0;
        codes.extend(numbers.iter().map(|it| {
            let rounded = (it / scale).round();
            error += (it - rounded * scale).powi(2);
            #[expect(clippy::cast_possible_truncation, reason = "a whole number of at most 127")]
            let code = rounded as i8;
            code
        }));
        Self { scale, error: error.sqrt() }
    }
}

/// A query vector.
#[derive(Clone, Debug)]
pub struct CodedQuery {
    codes: Vec<i16>,
    coding: Coding,
}

impl CodedQuery {
    /// Returns the codes of a vector of length 1.
    pub fn of(numbers: &[f32]) -> Self {
        let mut codes = Vec::with_capacity(numbers.len());
        let coding = Coding::of(numbers, &mut codes);
        Self { codes: codes.into_iter().map(i16::from).collect(), coding }
    }

    /// Returns the bounds of the cosine with a vector of length 1, from its codes.
    pub fn cosine(&self, codes: &[i8], coding: Coding) -> Cosine {
        #[expect(clippy::cast_precision_loss, reason = "a millionth of the error of the codes")]
        let product = dot(&self.codes, codes) as f32;
        let cosine = product * coding.scale * self.coding.scale;
        let (own, other) = (self.coding, coding);
        let surely = own.error + other.error + own.error * other.error;
        let likely = ERROR_DEVIATIONS * ((own.scale * own.scale + other.scale * other.scale) / 12.0).sqrt();
        Cosine { at_least: cosine - surely - FLOAT_ERROR, at_most: cosine + likely.min(surely) + FLOAT_ERROR }
    }
}

/// Returns the dot product; missing numbers are zero. The sum of 1,536 products of 127 by 127 does not
/// overflow.
///
/// In chunks of eight, the compiler generates half as many instructions as for a single sum.
fn dot(query: &[i16], codes: &[i8]) -> i32 {
    let both = query.len().min(codes.len());
    let (query, query_rest) = query[..both].as_chunks::<8>();
    let (codes, codes_rest) = codes[..both].as_chunks::<8>();
    let pieces: i32 = query.iter().zip(codes).map(|(a, b)| products(a, b)).sum();
    pieces + products(query_rest, codes_rest)
}

#[inline(always)]
fn products(query: &[i16], codes: &[i8]) -> i32 {
    query.iter().zip(codes).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a vector of length 1 with numbers of all sizes.
    fn vector(seed: u64, dimensions: usize) -> Vec<f32> {
        let mut random = fastrand::Rng::with_seed(seed);
        let numbers: Vec<f32> = (0..dimensions).map(|_| random.f32() + random.f32() - 1.0).collect();
        let length = numbers.iter().map(|it| it * it).sum::<f32>().sqrt();
        numbers.iter().map(|it| it / length).collect()
    }

    #[test]
    fn cosine_is_within_bounds_of_codes() {
        for seed in 0..500 {
            for dimensions in [1, 7, 384, 1_531] {
                let (a, b) = (vector(2 * seed, dimensions), vector(2 * seed + 1, dimensions));
                let mut codes = Vec::new();
                let coding = Coding::of(&b, &mut codes);
                let Cosine { at_least, at_most } = CodedQuery::of(&a).cosine(&codes, coding);
                let cosine: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
                assert!(at_least <= cosine && cosine <= at_most, "{seed} {dimensions}");
                assert!(at_most - at_least < 0.04, "{seed} {dimensions}: {at_least} to {at_most}");
            }
        }
    }

    #[test]
    fn cosine_of_sparse_vector_is_within_bounds_of_codes() {
        let of = |numbers: &[(usize, f32)]| {
            let mut vector = vec![0.0; 1_536];
            numbers.iter().for_each(|(at, number)| vector[*at] = *number);
            let length = vector.iter().map(|it| it * it).sum::<f32>().sqrt();
            vector.iter().map(|it| it / length).collect::<Vec<f32>>()
        };
        let ones: Vec<(usize, f32)> = (0..5).map(|it| (it, 1.0)).collect();
        for numbers in [&ones[..], &[(0, 5.0), (1_535, 12.0)], &[(7, 1.0), (8, 0.3), (9, -0.01)]] {
            let vector = of(numbers);
            let mut codes = Vec::new();
            let coding = Coding::of(&vector, &mut codes);
            let Cosine { at_least, at_most } = CodedQuery::of(&vector).cosine(&codes, coding);
            assert!(at_least <= 1.0 && 1.0 <= at_most, "{numbers:?}: {at_least} to {at_most}");
        }
    }

    #[test]
    fn missing_vector_numbers_count_as_zero() {
        let (short, long) = (vector(1, 384), vector(2, 1_536));
        let mut codes = Vec::new();
        let coding = Coding::of(&long, &mut codes);
        let mut padded = short.clone();
        padded.resize(1_536, 0.0);
        let product = |query: &[f32]| dot(&CodedQuery::of(query).codes, &codes);
        assert_eq!(product(&short), product(&padded));
        assert!(coding.scale > 0.0);
    }
}
