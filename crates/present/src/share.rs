//! Shares, such as the sample rate of an eval rule: numbers from 0 to 1, shown as percentages.

/// Number of significant digits that are shown. The error of binary fractions is smaller.
const SHOWN_DIGITS: usize = 6;

/// Formats a share as a percentage, without trailing zeros: `100%`, `12.5%`, `0.002%`.
pub fn text(share: f64) -> String {
    let percent = share * 100.0;
    let rounded: f64 = format!("{percent:.*e}", SHOWN_DIGITS - 1).parse().unwrap_or(percent);
    format!("{rounded}%")
}

/// Parses a share: a number from 0 to 1, or a percentage.
///
/// # Errors
/// Returns a message that continues a sentence that begins with the text.
pub fn parse(text: &str) -> Result<f64, &'static str> {
    let text = text.trim();
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().map(|it| it / 100.0),
        None => text.parse::<f64>(),
    };
    let within = share.ok().filter(|share| (0.0..=1.0).contains(share));
    within.ok_or("is not a share: 0 to 1, or 0% to 100%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_is_shown_without_trailing_zeros() {
        for (share, shown) in [
            (1.0, "100%"),
            (0.1, "10%"),
            (0.125, "12.5%"),
            (0.29, "29%"),
            (0.07, "7%"),
            (0.001, "0.1%"),
            (0.00002, "0.002%"),
            (1e-9, "0.0000001%"),
            (1.0 / 3.0, "33.3333%"),
            (0.0, "0%"),
        ] {
            assert_eq!(text(share), shown);
        }
    }

    #[test]
    fn share_is_parsed_from_number_or_percentage() {
        for (text, share) in [("0.8", 0.8), ("80%", 0.8), ("80 %", 0.8), (" 1 ", 1.0), ("0", 0.0)] {
            assert_eq!(parse(text), Ok(share), "{text}");
        }
        for text in ["", "%", "8", "-0.1", "NaN", "101%", "high"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
