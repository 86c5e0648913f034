//! The fields that a filter can contain: the terms of the table of trace filters, and how their values are parsed.

use super::when::{Clock, duration_ms, instant};
use crate::{
    FailureType,
    trace_filter::{FilterDefinition, TERM_ORDER, Term, TraceFilter, ValueType},
};

/// A field of the filter grammar.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The term: name, example, help, completion and flags.
    pub term: &'static Term,
    /// The definition of the filter.
    pub filter: &'static FilterDefinition,
}

/// Query parameters with their values.
pub(super) type Params = Vec<(&'static str, String)>;

/// Returns all fields, in the order of the help.
pub fn fields() -> impl Iterator<Item = Field> {
    TERM_ORDER.iter().filter_map(|it| Field::of(*it))
}

impl Field {
    /// Returns the field of a filter; `None` for a filter without a term.
    pub fn of(filter: TraceFilter) -> Option<Self> {
        let filter = filter.definition();
        Some(Self { term: filter.term.as_ref()?, filter })
    }

    /// Returns the field with this name.
    pub fn named(name: &str) -> Option<Self> {
        fields().find(|field| field.term.name == name)
    }

    /// Converts a value to query parameters, or explains why it is invalid.
    pub(super) fn parse(&self, value: &str, clock: &Clock) -> Result<Params, String> {
        match self.filter.value_type {
            ValueType::Id | ValueType::Text | ValueType::Words => Ok(self.single(value.to_owned())),
            ValueType::Switch => match value {
                "true" | "false" => Ok(self.single(value.to_owned())),
                _ => Err(format!("`{value}` is not true or false")),
            },
            ValueType::Failure => match value.parse::<FailureType>() {
                Ok(kind) if kind.is_filterable() => Ok(self.single(value.to_owned())),
                _ => Err(format!("`{value}` is not one of {}", self.term.completions.join(", "))),
            },
            ValueType::Time => Ok(self.single(instant(value, clock)?.to_string())),
            ValueType::Duration => {
                self.range(value, &Unit { parse: duration_ms, format: |ms| ms.to_string() })
            }
            ValueType::Count => {
                self.range(value, &Unit { parse: whole_number, format: |number| number.to_string() })
            }
            ValueType::Money => self.range(value, &Unit { parse: pico_dollars, format: dollars }),
            ValueType::Tags => match value.split_once('=') {
                Some((key, value)) if !key.is_empty() => {
                    let texts = [key.to_owned(), value.to_owned()];
                    Ok(self.filter.parameters.iter().map(|it| it.name).zip(texts).collect())
                }
                _ => Err(format!("a tag needs its value: `{value}=...`")),
            },
        }
    }

    /// Returns the value of a range's query parameter as a number that can be compared.
    pub(super) fn bound(&self, value: &str) -> Option<u64> {
        match self.filter.value_type {
            ValueType::Money => pico_dollars(value).ok(),
            _ => value.parse().ok(),
        }
    }

    fn single(&self, value: String) -> Params {
        self.filter.parameters.first().map(|it| (it.name, value)).into_iter().collect()
    }

    /// Parses a comparison into inclusive bounds.
    fn range(&self, value: &str, unit: &Unit) -> Result<Params, String> {
        let parse = unit.parse;
        let (low, high) = if let Some((low, high)) = value.split_once("..") {
            let bound = |text: &str| if text.is_empty() { Ok(None) } else { parse(text).map(Some) };
            (bound(low)?, bound(high)?)
        } else if let Some(rest) = value.strip_prefix(">=") {
            (Some(parse(rest)?), None)
        } else if let Some(rest) = value.strip_prefix("<=") {
            (None, Some(parse(rest)?))
        } else if let Some(rest) = value.strip_prefix('>') {
            (Some(parse(rest)?.saturating_add(1)), None)
        } else if let Some(rest) = value.strip_prefix('<') {
            let bound = parse(rest)?.checked_sub(1).ok_or("no value is below zero")?;
            (None, Some(bound))
        } else {
            let exact = parse(value.strip_prefix('=').unwrap_or(value))?;
            (Some(exact), Some(exact))
        };
        match (low, high) {
            (None, None) => Err("a range needs at least one end".to_owned()),
            (Some(low), Some(high)) if low > high => {
                Err(format!("the range {}..{} is empty", (unit.format)(low), (unit.format)(high)))
            }
            (low, high) => {
                let bounds = self.filter.parameters.iter().zip([low, high]);
                Ok(bounds.filter_map(|(it, bound)| Some((it.name, (unit.format)(bound?)))).collect())
            }
        }
    }
}

/// How the bounds of a range are written. Bounds are whole numbers, so that exclusive ones become inclusive.
struct Unit {
    parse: fn(&str) -> Result<u64, String>,
    /// Returns the value of the query parameter.
    format: fn(u64) -> String,
}

fn whole_number(text: &str) -> Result<u64, String> {
    // The server stores signed 64-bit numbers.
    let number = text.replace('_', "").parse::<u64>().ok().filter(|number| i64::try_from(*number).is_ok());
    number.ok_or_else(|| format!("`{text}` is not a whole number"))
}

/// Digits after the decimal point of an amount in dollars.
const MONEY_DIGITS: usize = 12;

/// Parses an amount such as `0.05` or `$2`.
fn pico_dollars(text: &str) -> Result<u64, String> {
    let (whole, fraction) = {
        let amount = text.strip_prefix('$').unwrap_or(text);
        amount.split_once('.').unwrap_or((amount, ""))
    };
    let is_number =
        !whole.is_empty() && (whole.bytes().chain(fraction.bytes())).all(|it| it.is_ascii_digit());
    let number = format!("{whole}{fraction:0<MONEY_DIGITS$}").parse::<u64>().ok();
    number
        .filter(|_| is_number && fraction.len() <= MONEY_DIGITS)
        .ok_or_else(|| format!("`{text}` is not an amount in dollars such as 0.05"))
}

/// Formats an amount as a decimal number of dollars.
fn dollars(pico: u64) -> String {
    let digits = format!("{pico:0>width$}", width = MONEY_DIGITS + 1);
    let (whole, fraction) = digits.split_at(digits.len() - MONEY_DIGITS);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_money_are_exact_to_a_pico_dollar() {
        for (text, pico) in [
            ("0", 0),
            ("$2", 2_000_000_000_000),
            ("0.05", 50_000_000_000),
            ("1.000000000001", 1_000_000_000_001),
        ] {
            assert_eq!(pico_dollars(text), Ok(pico), "{text}");
            assert_eq!(pico_dollars(&dollars(pico)), Ok(pico), "{text}");
        }
        assert_eq!(dollars(50_000_000_000), "0.05");
        for text in ["", ".5", "-1", "1e3", "0.0000000000001", "5 USD", "99999999999999"] {
            assert!(pico_dollars(text).is_err(), "{text}");
        }
    }
}
