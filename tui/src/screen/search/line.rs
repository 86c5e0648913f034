//! Parses the line of a search: words, and terms such as `type:llm` that filter the spans.

use api::{
    Timestamp,
    filter::when::{Clock, instant},
};

use crate::shell::{FilterField, LineError, check_period};

/// The fields that filter the spans of a search. Any other word with a colon is part of the words.
pub const FIELDS: &[FilterField] = &[
    FilterField {
        name: "type",
        help: "type:llm, spans of this kind",
        values: &["llm", "tool", "retrieval", "other"],
    },
    FilterField { name: "model", help: "model:gpt-4o, spans of this model", values: &[] },
    FilterField {
        name: "project",
        help: "project:checkout-bot, spans of this project, by name or id; project:* of all",
        values: &["*"],
    },
    FilterField {
        name: "from",
        help: "from:-7d, begun at or after: -1h, today, yesterday, 2026-11-21, RFC 3339",
        values: &["-1h", "-24h", "-7d", "today", "yesterday"],
    },
    FilterField {
        name: "to",
        help: "to:yesterday, begun at or before; forms as for from",
        values: &["-1h", "today", "yesterday"],
    },
];

/// A parsed line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchLine {
    /// The words, without the terms.
    pub words: String,
    /// The type of the spans.
    pub kind: Option<String>,
    /// The model of the spans.
    pub model: Option<String>,
    /// The position of the project and its name or id.
    pub project: Option<(usize, String)>,
    /// The earliest start of the spans.
    pub from: Option<Timestamp>,
    /// The latest start of the spans.
    pub to: Option<Timestamp>,
}

impl SearchLine {
    /// Parses a line; the clock anchors times such as `-7d`.
    ///
    /// # Errors
    /// Fails with the position of the first wrong character, from 0, and the problem.
    pub fn parse(text: &str, clock: &Clock) -> Result<Self, LineError> {
        let mut line = Self::default();
        for (at, word) in split(text) {
            let term = word
                .split_once(':')
                .and_then(|(name, value)| Some((FIELDS.iter().find(|field| field.name == name)?, value)));
            match term {
                Some((field, "")) => return Err((at, format!("`{}:` has no value", field.name))),
                Some((field, value)) => line.add(field.name, value, at, clock)?,
                None => {
                    if !line.words.is_empty() {
                        line.words.push(' ');
                    }
                    line.words.push_str(word);
                }
            }
        }
        if line.words.is_empty() {
            return Err((0, "type words to look for; terms only restrict the search".to_owned()));
        }
        check_period(line.from, line.to)?;
        Ok(line)
    }

    fn add(&mut self, name: &str, value: &str, at: usize, clock: &Clock) -> Result<(), LineError> {
        let value_at = at + name.len() + 1;
        let time = || instant(value, clock).map_err(|message| (value_at, message));
        let given = match name {
            "type" => self.kind.replace(value.to_owned()).is_some(),
            "model" => self.model.replace(value.to_owned()).is_some(),
            "project" => self.project.replace((value_at, value.to_owned())).is_some(),
            "from" => self.from.replace(time()?).is_some(),
            _ => self.to.replace(time()?).is_some(),
        };
        if given { Err((at, format!("`{name}:` is given twice"))) } else { Ok(()) }
    }
}

/// Splits a line at blanks; each word comes with the position of its first character.
fn split(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0;
    text.split(char::is_whitespace).filter_map(move |word| {
        let at = next;
        next += word.chars().count() + 1;
        (!word.is_empty()).then_some((at, word))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixture::BASE_MICROS;
    use present::format::Zone;

    fn parse(text: &str) -> Result<SearchLine, (usize, String)> {
        SearchLine::parse(text, &Clock::of(&Zone::Utc.of(Timestamp::from_micros(BASE_MICROS))))
    }

    #[test]
    fn filter_terms_are_separated_from_the_query() {
        let line = parse("refunds  type:llm promised: early from:-1h model:gpt-4o").unwrap();
        assert_eq!(line.words, "refunds promised: early");
        assert_eq!((line.kind.as_deref(), line.model.as_deref()), (Some("llm"), Some("gpt-4o")));
        assert_eq!(line.from, Some(Timestamp::from_micros(BASE_MICROS - 3_600_000_000)));
        assert_eq!(
            parse("https://x.example error:timeout").unwrap().words,
            "https://x.example error:timeout"
        );
    }

    #[test]
    fn invalid_search_line_marks_the_error() {
        assert_eq!(parse("où type:").unwrap_err().0, 3);
        assert_eq!(parse("a from:soon").unwrap_err().0, 7);
        assert_eq!(parse("a type:llm type:tool").unwrap_err().0, 11);
        assert!(parse("type:llm").unwrap_err().1.contains("words"));
        assert!(parse("   ").is_err());
        assert!(parse("a from:today to:yesterday").unwrap_err().1.contains("between"));
    }
}
