//! The buckets of latency histograms: each is 1 % wide, and at least one millisecond, so that the
//! middle of a bucket is within half a percent of every value in it. They are computed with integers,
//! so they are the same on every machine.

use std::sync::LazyLock;

/// The lowest value of each bucket, in milliseconds.
static LOWEST_OF_BUCKETS: LazyLock<Vec<i64>> = LazyLock::new(|| {
    let mut bounds = vec![0_i64];
    while let Some(&last) = bounds.last() {
        let wide = i128::from(last) * 101 / 100;
        let Ok(next) = i64::try_from(wide.max(i128::from(last) + 1)) else { break };
        bounds.push(next);
    }
    bounds
});

/// Returns the number of buckets.
pub fn count() -> usize {
    LOWEST_OF_BUCKETS.len()
}

/// Returns the bucket of a latency in milliseconds; a negative one counts as 0.
pub fn of(latency_ms: i64) -> u16 {
    let above = LOWEST_OF_BUCKETS.partition_point(|it| *it <= latency_ms.max(0));
    u16::try_from(above.saturating_sub(1)).unwrap_or(u16::MAX)
}

/// Returns the middle of a bucket, in milliseconds.
#[expect(clippy::cast_precision_loss, reason = "a bucket is wider than the error from 2^53 on")]
pub fn middle(bin: u16) -> f64 {
    let at = usize::from(bin);
    let lowest = LOWEST_OF_BUCKETS.get(at).copied().unwrap_or(i64::MAX);
    let highest = LOWEST_OF_BUCKETS.get(at + 1).map_or(i64::MAX, |it| it - 1);
    lowest as f64 + (highest - lowest) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use crate::metrics::bins::*;

    #[test]
    fn latency_bucket_is_within_half_a_percent() {
        for latency in 0..200 {
            assert_eq!(middle(of(latency)), latency as f64);
        }
        let mut latency = 200_i64;
        while let Some(next) = latency.checked_mul(1_003).map(|it| it / 1_000 + 1) {
            let off = (middle(of(latency)) - latency as f64).abs() / latency as f64;
            assert!(off <= 0.005, "{latency}: {off}");
            assert!(of(latency) <= of(next));
            latency = next;
        }
        assert_eq!(of(-5), 0);
        assert_eq!(usize::from(of(i64::MAX)), count() - 1);
        assert!(count() < usize::from(u16::MAX));
    }
}
