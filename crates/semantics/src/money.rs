//! Money in whole pico-dollars.
//!
//! Floating-point sums depend on the order of their terms, and spans arrive in any order. Costs are
//! therefore added as integers and converted to doubles only for display. Costs are computed by
//! [`crate::cost`].

/// An amount of money in units of 1e-12 US dollars.
pub type Pico = i64;

/// Number of pico-dollars per dollar.
pub const PICO_PER_USD: i64 = 1_000_000_000_000;

/// The largest amount accepted from a client, in dollars. The integer type can hold nine million
/// dollars, so larger amounts are treated as mistakes.
pub const MAX_USD: f64 = 1_000_000.0;

/// Doubles represent every integer up to this value, so a division below it rounds only once.
const MAX_EXACT_INTEGER: u64 = 1 << 53;

/// Converts US dollars to the nearest pico-dollar.
///
/// Returns `None` for amounts that are not finite, negative, or above [`MAX_USD`].
pub fn from_usd(usd: f64) -> Option<Pico> {
    if !(0.0..=MAX_USD).contains(&usd) {
        return None;
    }
    // Whole dollars are converted separately, so that a large amount keeps its small digits.
    let whole = usd.trunc();
    let rest = ((usd - whole) * PICO_PER_USD as f64).round();
    Some(whole as i64 * PICO_PER_USD + rest as i64)
}

/// Converts to US dollars, rounded to the nearest double.
pub fn to_usd(pico: Pico) -> f64 {
    if pico.unsigned_abs() <= MAX_EXACT_INTEGER {
        return pico as f64 / PICO_PER_USD as f64;
    }
    // Converting to a double first would round twice; parsing the decimal text rounds once.
    let sign = if pico < 0 { "-" } else { "" };
    let (whole, rest) = (
        pico.unsigned_abs() / PICO_PER_USD.unsigned_abs(),
        pico.unsigned_abs() % PICO_PER_USD.unsigned_abs(),
    );
    format!("{sign}{whole}.{rest:012}").parse().unwrap_or(pico as f64 / PICO_PER_USD as f64)
}

/// Returns the cost of `tokens` at `per_million` dollars per million, to the nearest pico-dollar.
///
/// Saturates. Negative or non-finite rates and negative counts cost nothing.
pub fn of_tokens(tokens: i64, per_million: f64) -> Pico {
    // One dollar per million tokens is 1e6 pico-dollars per token; three more digits are kept for rates
    // below a micro-dollar per million.
    let milli_pico = (per_million * 1e9).round().max(0.0) as i128;
    let cost = milli_pico.saturating_mul(i128::from(tokens.max(0))).saturating_add(500) / 1000;
    i64::try_from(cost).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_sums_are_exact() {
        let sum = from_usd(0.1).zip(from_usd(0.2)).map(|(a, b)| a + b);
        assert_eq!(sum.map(to_usd), Some(0.3));
    }

    #[test]
    fn dollar_amounts_round_trip() {
        for usd in [0.0, 1e-12, 0.000_009_9, 0.1, 1.15, 9_007.199_254, 12_345.678_901, 1e6] {
            assert_eq!(from_usd(usd).map(to_usd), Some(usd), "{usd}");
        }
    }

    #[test]
    fn invalid_dollar_amount_is_rejected() {
        for usd in [-0.01, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1_000_000.1, 1e300] {
            assert_eq!(from_usd(usd), None, "{usd}");
        }
    }

    #[test]
    fn extreme_amounts_do_not_overflow() {
        assert_eq!(to_usd(i64::MAX), 9_223_372.036_854_775);
        assert_eq!(to_usd(i64::MIN), -9_223_372.036_854_775);
        assert_eq!(of_tokens(i64::MAX, 1e6), i64::MAX);
        assert_eq!(of_tokens(i64::MAX, f64::INFINITY), i64::MAX);
        assert_eq!(of_tokens(-5, 1.0), 0);
        assert_eq!(of_tokens(5, -1.0), 0);
        assert_eq!(of_tokens(5, f64::NAN), 0);
    }

    #[test]
    fn tokens_are_priced_per_million() {
        assert_eq!(of_tokens(1_000_000, 2.5), 2_500_000_000_000);
        assert_eq!(of_tokens(1, 0.0028), 2_800);
        assert_eq!(of_tokens(3, 0.000_000_4), 1);
    }
}
