//! Samples traces for eval rules. Pure.

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Whether a sample of this rate contains a trace. Depends only on the trace's ID, so that the result
/// is the same each time, and for every rule.
pub fn is_sampled(trace: Uuid, rate: f64) -> bool {
    if rate >= 1.0 {
        return true;
    }
    let digest = Sha256::digest(trace.as_bytes());
    let fraction = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    // A double has 53 bits of precision.
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    let fraction = (fraction >> 11) as f64 / (1_u64 << 53) as f64;
    fraction < rate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_has_its_share_and_is_stable() {
        let ids: Vec<Uuid> = (0..20_000_u128).map(|it| Uuid::from_u128(it * 7_919)).collect();
        for rate in [0.0, 0.01, 0.25, 0.9, 1.0] {
            let taken = ids.iter().filter(|it| is_sampled(**it, rate)).count();
            let expected = rate * ids.len() as f64;
            assert!((taken as f64 - expected).abs() <= 250.0, "{rate}: {taken}");
            // A smaller sample is a subset of a larger one.
            assert!(ids.iter().all(|it| !is_sampled(*it, rate) || is_sampled(*it, 1.0)));
        }
        assert!(ids.iter().filter(|it| is_sampled(**it, 0.1)).all(|it| is_sampled(*it, 0.2)));
    }
}
