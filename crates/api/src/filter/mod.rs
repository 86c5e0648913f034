//! The filter grammar of trace lists: `error:true latency:>=2s from:-1h`.
//!
//! One parser serves `--filter`, the individual flags of the command line and the filter line of the
//! console, so that all three agree. A filter is a list of query parameters; this module does not send
//! them. Times and durations are parsed in [`when`].

pub mod fields;
pub mod when;

use std::{collections::BTreeMap, fmt};

use chrono::{DateTime, TimeZone};

use crate::{Timestamp, trace_filter::TraceFilter};
use fields::Params;
pub use fields::{Field, fields};

/// Saved filters by name.
pub type Saved = BTreeMap<String, String>;

/// Terms joined by AND, as query parameters of `GET /v1/traces`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    params: Params,
}

/// A term that cannot be parsed, and its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct FilterError {
    /// The text of the filter.
    pub text: String,
    /// Byte offset of the invalid part.
    pub at: usize,
    /// The reason why that part is invalid.
    pub message: String,
    /// A suggested replacement.
    pub hint: Option<String>,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl FilterError {
    /// Returns the number of characters before the invalid part, for a caret under the text.
    pub fn column(&self) -> usize {
        self.text.get(..self.at).map_or(0, |before| before.chars().count())
    }
}

impl Filter {
    /// Parses a filter. `saved` resolves `@name`; `now` is the base of relative times such as `-15m`,
    /// and its time zone that of days such as `yesterday`.
    pub fn parse<Tz: TimeZone + 'static>(
        text: &str,
        saved: &Saved,
        now: &DateTime<Tz>,
    ) -> Result<Self, FilterError> {
        let mut filter = Self::default();
        filter.add_all(text, Some(saved), now)?;
        filter.check().map_err(|message| FilterError {
            text: text.to_owned(),
            at: 0,
            message,
            hint: None,
        })?;
        Ok(filter)
    }

    /// Adds one term, for a flag that corresponds to a field. The error is a sentence.
    pub fn set<Tz: TimeZone + 'static>(
        &mut self,
        field: &str,
        value: &str,
        now: &DateTime<Tz>,
    ) -> Result<(), String> {
        let known = Field::named(field).ok_or_else(|| format!("there is no field `{field}`"))?;
        let added = known.parse(value, &when::Clock::of(now))?;
        self.add(added)?;
        self.check()
    }

    /// Returns the query parameters, in the order given.
    pub fn params(&self) -> &[(&'static str, String)] {
        &self.params
    }

    /// Returns the value of a query parameter.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }

    /// Restricts the filter to traces that started at `start` or later.
    pub fn since(mut self, start: Timestamp) -> Self {
        let from = self.params.iter_mut().find(|(name, _)| *name == "from");
        match from {
            // Both texts have the same format, so the later time is the greater text.
            Some((_, from)) => *from = start.to_string().max(std::mem::take(from)),
            None => self.params.push(("from", start.to_string())),
        }
        self
    }

    /// Restricts the filter to traces that started at `end` or earlier.
    pub fn until(mut self, end: Timestamp) -> Self {
        match self.params.iter_mut().find(|(name, _)| *name == "to") {
            // Both texts have the same format, so the earlier time is the smaller text.
            Some((_, to)) => *to = end.to_string().min(std::mem::take(to)),
            None => self.params.push(("to", end.to_string())),
        }
        self
    }

    /// Returns whether the filter selects all traces.
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }

    /// Returns a note about a surprising effect of the filter.
    pub fn note(&self) -> Option<&'static str> {
        let (min, _) = TraceFilter::Tokens.definition().range_parameters()?;
        let minimum = self.param(min).is_some_and(|min| min != "0");
        minimum.then_some("a minimum of tokens excludes traces that report no tokens")
    }

    fn add_all<Tz: TimeZone + 'static>(
        &mut self,
        text: &str,
        saved: Option<&Saved>,
        now: &DateTime<Tz>,
    ) -> Result<(), FilterError> {
        let fail = |at: usize, message: String, hint: Option<String>| FilterError {
            text: text.to_owned(),
            at,
            message,
            hint,
        };
        for term in split(text).map_err(|at| fail(at, "this quote is not closed".to_owned(), None))? {
            if let Some(name) = term.text.strip_prefix('@') {
                let Some(saved) = saved else {
                    return Err(fail(
                        term.at,
                        format!("a saved filter can't use another, here `@{name}`"),
                        None,
                    ));
                };
                let Some(stored) = saved.get(name) else {
                    let names: Vec<_> = saved.keys().map(|name| format!("@{name}")).collect();
                    let known = (!names.is_empty()).then(|| format!("saved filters: {}", names.join(", ")));
                    return Err(fail(term.at, format!("there is no saved filter `{name}`"), known));
                };
                self.add_all(stored, None, now).map_err(|error| {
                    fail(term.at, format!("in the saved filter `{name}`: {error}"), error.hint)
                })?;
                continue;
            }
            let (field, value) = term.parts().map_err(|(message, hint)| fail(term.at, message, hint))?;
            let value_at = term.at + term.colon.map_or(0, |colon| colon + 1);
            let added = field.parse(value, &when::Clock::of(now)).map_err(|message| {
                fail(value_at, message, Some(format!("for example {}", field.term.example)))
            })?;
            self.add(added).map_err(|message| fail(term.at, message, None))?;
        }
        Ok(())
    }

    fn add(&mut self, params: Params) -> Result<(), String> {
        for (name, value) in params {
            if self.param(name).is_some() {
                return Err(match name {
                    "tag_key" => "a filter can contain only one tag".to_owned(),
                    _ => format!("`{name}` is given twice; a trace must match all terms"),
                });
            }
            self.params.push((name, value));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        for field in fields() {
            let Some((min, max)) = field.filter.range_parameters() else { continue };
            let number = |name| self.param(name).and_then(|value| field.bound(value));
            if number(min).zip(number(max)).is_some_and(|(low, high)| low > high) {
                let text = |name| self.param(name).unwrap_or_default();
                return Err(format!(
                    "no trace can match: {min} {} is greater than {max} {}",
                    text(min),
                    text(max)
                ));
            }
        }
        Ok(())
    }
}

/// One term of a filter: text up to a space.
struct TermText {
    /// Byte offset in the filter.
    at: usize,
    /// The term without its quotes.
    text: String,
    /// Offset of the first colon outside quotes.
    colon: Option<usize>,
}

impl TermText {
    fn parts(&self) -> Result<(Field, &str), (String, Option<String>)> {
        let Some(colon) = self.colon else {
            return Err(match self.text.as_str() {
                "OR" | "AND" | "NOT" | "|" | "||" | "&&" => {
                    (format!("`{}` is not supported; a trace must match all terms", self.text), None)
                }
                text if text.starts_with('-') => (
                    "terms can't be negated".to_owned(),
                    Some("error:false is the opposite of error:true".to_owned()),
                ),
                text => {
                    (
                        format!("`{text}` is free text; a filter is made of field:value terms"),
                        Some(nearest(text).map_or_else(known_fields, |field| {
                            format!("did you mean {}", field.term.example)
                        })),
                    )
                }
            });
        };
        let (name, value) = (&self.text[..colon], &self.text[colon + 1..]);
        if name.starts_with('-') {
            return Err(("terms can't be negated".to_owned(), None));
        }
        match Field::named(name) {
            Some(_) if value.is_empty() => Err((format!("`{name}:` has no value"), None)),
            Some(field) => Ok((field, value)),
            None => Err((
                format!("there is no field `{name}`"),
                Some(
                    nearest(name)
                        .map_or_else(known_fields, |field| format!("did you mean `{}:`?", field.term.name)),
                ),
            )),
        }
    }
}

/// Splits a filter into terms; the error is the offset of an unclosed quote.
fn split(text: &str) -> Result<Vec<TermText>, usize> {
    let mut terms: Vec<TermText> = Vec::new();
    let mut open = false;
    let mut quote: Option<usize> = None;
    for (at, c) in text.char_indices() {
        if c == '"' {
            quote = if quote.is_some() { None } else { Some(at) };
        }
        if quote.is_none() && c.is_whitespace() {
            open = false;
            continue;
        }
        if !open {
            terms.push(TermText { at, text: String::new(), colon: None });
            open = true;
        }
        if let Some(term) = terms.last_mut() {
            if c == ':' && quote.is_none() && term.colon.is_none() {
                term.colon = Some(term.text.len());
            }
            if c != '"' {
                term.text.push(c);
            }
        }
    }
    quote.map_or(Ok(terms), Err)
}

fn known_fields() -> String {
    let names: Vec<_> = fields().map(|field| field.term.name).collect();
    format!("fields: {}", names.join(", "))
}

/// Bytes of the longest word that is compared with the names of fields.
const MAX_MISSPELLED_BYTES: usize = 64;

/// Returns the field whose name begins with the word or is at most two edits away.
fn nearest(word: &str) -> Option<Field> {
    // The distance takes time proportional to both lengths, and no long word is near to a field's name.
    if word.len() > MAX_MISSPELLED_BYTES {
        return None;
    }
    let word = word.to_lowercase();
    let prefixed = fields().find(|field| word.len() >= 2 && field.term.name.starts_with(&word));
    prefixed.or_else(|| {
        let distances = fields().map(|field| (strsim::levenshtein(&word, field.term.name), field));
        distances.filter(|(edits, _)| *edits <= 2).min_by_key(|(edits, _)| *edits).map(|(_, field)| field)
    })
}

#[cfg(test)]
mod tests;
