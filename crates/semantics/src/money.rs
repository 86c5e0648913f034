//! Money as whole pico-dollars.
//!
//! Floating-point sums depend on the order of their terms, and spans arrive in any order.
//! Costs are therefore added as integers and become doubles only when they are shown.
//! Working out what something costs is [`crate::cost`].

/// An amount of money in units of 1e-12 US dollars.
pub type Pico = i64;

/// Pico-dollars in a dollar.
pub const PICO_PER_USD: i64 = 1_000_000_000_000;

/// The largest amount taken from a client, in dollars. A thousand times this still fits the type
/// only nine times over, so larger claims are treated as mistakes.
pub const MAX_USD: f64 = 1_000_000.0;

/// Doubles hold every integer up to here, so a division below it rounds only once.
const EXACT_IN_DOUBLE: u64 = 1 << 53;

/// Takes an amount in dollars, rounded to the nearest pico-dollar.
///
/// `None` for anything that is no price: not finite, negative, or above [`MAX_USD`].
pub fn from_usd(usd: f64) -> Option<Pico> {
    if !(0.0..=MAX_USD).contains(&usd) {
        return None;
    }
    // Whole dollars apart from the rest, so that a large amount keeps its small digits.
    let whole = usd.trunc();
    let rest = ((usd - whole) * PICO_PER_USD as f64).round();
    Some(whole as i64 * PICO_PER_USD + rest as i64)
}

/// The amount in dollars, as the double nearest to it.
pub fn to_usd(pico: Pico) -> f64 {
    if pico.unsigned_abs() <= EXACT_IN_DOUBLE {
        return pico as f64 / PICO_PER_USD as f64;
    }
    // Converting first would round twice; reading the decimal text rounds once.
    let sign = if pico < 0 { "-" } else { "" };
    let (whole, rest) = (
        pico.unsigned_abs() / PICO_PER_USD.unsigned_abs(),
        pico.unsigned_abs() % PICO_PER_USD.unsigned_abs(),
    );
    format!("{sign}{whole}.{rest:012}").parse().unwrap_or(pico as f64 / PICO_PER_USD as f64)
}

/// What `tokens` cost at `per_million` dollars a million, to the nearest pico-dollar.
///
/// Saturates; a negative or non-finite rate and a negative count cost nothing.
pub fn of_tokens(tokens: i64, per_million: f64) -> Pico {
    // A rate of one dollar a million is 1e6 pico-dollars a token; three more digits are kept so
    // that rates below a micro-dollar a million still count.
    let milli_pico = (per_million * 1e9).round().max(0.0) as i128;
    let cost = milli_pico.saturating_mul(i128::from(tokens.max(0))).saturating_add(500) / 1000;
    i64::try_from(cost).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_sums_show_as_people_write_them() {
        let sum = from_usd(0.1).zip(from_usd(0.2)).map(|(a, b)| a + b);
        assert_eq!(sum.map(to_usd), Some(0.3));
    }

    #[test]
    fn amounts_come_back_as_they_went_in() {
        for usd in [0.0, 1e-12, 0.000_009_9, 0.1, 1.15, 9_007.199_254, 12_345.678_901, 1e6] {
            assert_eq!(from_usd(usd).map(to_usd), Some(usd), "{usd}");
        }
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for usd in [-0.01, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1_000_000.1, 1e300] {
            assert_eq!(from_usd(usd), None, "{usd}");
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
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
