//! Filter lines of screens: terms such as `type:timeout`, separated by blanks.

use std::{fmt::Display, str::FromStr};

use api::Timestamp;

use super::LineError;

/// A field of a filter line.
pub struct FilterField {
    /// The name before the colon.
    pub name: &'static str,
    /// An example, and a description of the rows that it selects.
    pub help: &'static str,
    /// Values that `tab` completes; empty for free values.
    pub values: &'static [&'static str],
}

/// Passes the field of each term, the position of its value and the value to `add`, except those of `field:*`, which
/// selects everything.
///
/// # Errors
/// Fails with the position of the first wrong character, from 0, and the problem.
pub fn parse_terms(
    text: &str,
    fields: &'static [FilterField],
    mut add: impl FnMut(&'static FilterField, usize, &str) -> Result<(), String>,
) -> Result<(), LineError> {
    let mut given: Vec<&str> = Vec::new();
    let mut next = 0;
    for word in text.split(char::is_whitespace) {
        let at = next;
        next += word.chars().count() + 1;
        if word.is_empty() {
            continue;
        }
        let (name, value) = word.split_once(':').unwrap_or((word, ""));
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            return Err((at, unknown_field(name, word.contains(':'), fields)));
        };
        if value.is_empty() {
            return Err((at, format!("`{name}:` has no value; {}", field.help)));
        }
        if given.contains(&field.name) {
            return Err((at, format!("`{name}:` is given twice; terms are joined by AND")));
        }
        given.push(field.name);
        if value != "*" {
            let at = at + name.len() + 1;
            add(field, at, value).map_err(|problem| (at, problem))?;
        }
    }
    Ok(())
}

/// Checks that a period does not end before it begins.
///
/// # Errors
/// Fails with the problem, at the start of the line.
pub fn check_period(from: Option<Timestamp>, to: Option<Timestamp>) -> Result<(), LineError> {
    match (from, to) {
        (Some(from), Some(to)) if from > to => Err((0, "nothing is between from and to".to_owned())),
        _ => Ok(()),
    }
}

/// Parses the value of a term.
///
/// # Errors
/// Fails with the problem.
pub fn parse_value<T: FromStr<Err: Display>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error: T::Err| error.to_string())
}

fn unknown_field(name: &str, has_value: bool, fields: &[FilterField]) -> String {
    let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
    let names = names.join(", ");
    if has_value {
        format!("there is no field `{name}`; fields: {names}")
    } else {
        format!("`{name}` is free text; a filter is made of field:value terms: {names}")
    }
}
