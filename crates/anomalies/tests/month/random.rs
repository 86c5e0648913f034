//! Random numbers with a seed, and the distributions that a simulated project needs.

/// A generator of pseudo-random numbers (SplitMix64); the same seed gives the same numbers on every machine.
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Returns a number from 0 to 1, without 0.
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    pub fn poisson(&mut self, mean: f64) -> u64 {
        if mean > 40.0 {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0) as u64;
        }
        let limit = (-mean).exp();
        let (mut product, mut count) = (self.unit(), 0);
        while product > limit {
            product *= self.unit();
            count += 1;
        }
        count
    }

    pub fn binomial(&mut self, count: u64, probability: f64) -> u64 {
        let probability = probability.clamp(0.0, 1.0);
        if count <= 60 {
            return (0..count).filter(|_| self.unit() < probability).count() as u64;
        }
        let mean = count as f64 * probability;
        if mean < 20.0 {
            return self.poisson(mean).min(count);
        }
        let noise = (mean * (1.0 - probability)).sqrt();
        (mean + noise * self.normal()).round().clamp(0.0, count as f64) as u64
    }

    /// Returns the sum of skewed (log-normal) amounts with this mean and coefficient of variation.
    pub fn sum_of_amounts(&mut self, count: u64, mean: f64, variation: f64) -> f64 {
        if count > 200 {
            let noise = variation / (count as f64).sqrt();
            return count as f64 * mean * (1.0 + noise * self.normal()).max(0.1);
        }
        let sigma = (1.0 + variation * variation).ln().sqrt();
        (0..count).map(|_| mean * (sigma * self.normal() - sigma * sigma / 2.0).exp()).sum()
    }

    /// Returns the 95th percentile of log-normal latencies with this median and width.
    pub fn latency_p95(&mut self, count: u64, median: f64, sigma: f64) -> f64 {
        if count > 40 {
            let noise = sigma * (0.0475 / count as f64).sqrt() / 0.1031;
            return median * (sigma * 1.645 + noise * self.normal()).exp();
        }
        let mut latencies: Vec<f64> = (0..count).map(|_| median * (sigma * self.normal()).exp()).collect();
        latencies.sort_by(f64::total_cmp);
        let rank = (count as f64 - 1.0) * 0.95;
        let low = latencies[rank as usize];
        let high = latencies[(rank as usize + 1).min(latencies.len() - 1)];
        low + (high - low) * rank.fract()
    }
}

/// Noise that changes slowly: each value keeps a share of the one before.
pub struct SlowNoise {
    value: f64,
    size: f64,
    memory: f64,
}

impl SlowNoise {
    pub fn new(size: f64, memory: f64) -> Self {
        Self { value: 0.0, size, memory }
    }

    pub fn next(&mut self, random: &mut Random) -> f64 {
        let fresh = (1.0 - self.memory * self.memory).sqrt();
        self.value = self.memory * self.value + fresh * self.size * random.normal();
        self.value
    }
}
