//! The line that a search is typed in: words, and terms such as `type:llm` that narrow it down.

use api::{
    Timestamp,
    filter::when::{Clock, instant},
};

/// A field that narrows a search down.
pub struct Field {
    /// What stands before the colon.
    pub name: &'static str,
    /// A whole term, and what it selects.
    pub help: &'static str,
    /// Words that complete it; empty where values are free.
    pub values: &'static [&'static str],
}

/// Every field. Anything else with a colon in it is part of the words.
pub const FIELDS: &[Field] = &[
    Field {
        name: "type",
        help: "type:llm, spans of this kind",
        values: &["llm", "tool", "retrieval", "other"],
    },
    Field { name: "model", help: "model:gpt-4o, spans of this model", values: &[] },
    Field {
        name: "project",
        help: "project:checkout-bot, spans of this project, by name or id; project:* of all",
        values: &["*"],
    },
    Field {
        name: "from",
        help: "from:-7d, begun at or after: -1h, today, yesterday, 2026-11-21, RFC 3339",
        values: &["-1h", "-24h", "-7d", "today", "yesterday"],
    },
    Field {
        name: "to",
        help: "to:yesterday, begun at or before; forms as for from",
        values: &["-1h", "today", "yesterday"],
    },
];

/// A line, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The words, without the terms.
    pub words: String,
    /// Kind of the spans.
    pub kind: Option<String>,
    /// Their model.
    pub model: Option<String>,
    /// Name or id of their project, and at which character it stands.
    pub project: Option<(usize, String)>,
    /// They began at or after this time.
    pub from: Option<Timestamp>,
    /// They began at or before this time.
    pub to: Option<Timestamp>,
}

impl Line {
    /// Reads a line; the clock anchors times such as `-7d`.
    ///
    /// # Errors
    /// The character that is wrong, from 0, and what is wrong with it.
    pub fn parse(text: &str, clock: &Clock) -> Result<Self, (usize, String)> {
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
            return Err((0, "type in words what to look for; terms only narrow it down".to_owned()));
        }
        if matches!((line.from, line.to), (Some(from), Some(to)) if from > to) {
            return Err((0, "nothing is between from and to".to_owned()));
        }
        Ok(line)
    }

    fn add(&mut self, name: &str, value: &str, at: usize, clock: &Clock) -> Result<(), (usize, String)> {
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

/// The blank-separated words of a line, each with the character that it begins at.
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
    use crate::{fixture::BASE, format::Zone};

    fn parse(text: &str) -> Result<Line, (usize, String)> {
        Line::parse(text, &Clock::of(&Zone::Utc.of(Timestamp::from_micros(BASE))))
    }

    #[test]
    fn terms_are_taken_out_of_the_words() {
        let line = parse("refunds  type:llm promised: early from:-1h model:gpt-4o").unwrap();
        assert_eq!(line.words, "refunds promised: early");
        assert_eq!((line.kind.as_deref(), line.model.as_deref()), (Some("llm"), Some("gpt-4o")));
        assert_eq!(line.from, Some(Timestamp::from_micros(BASE - 3_600_000_000)));
        assert_eq!(
            parse("https://x.example error:timeout").unwrap().words,
            "https://x.example error:timeout"
        );
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        assert_eq!(parse("où type:").unwrap_err().0, 3);
        assert_eq!(parse("a from:soon").unwrap_err().0, 7);
        assert_eq!(parse("a type:llm type:tool").unwrap_err().0, 11);
        assert!(parse("type:llm").unwrap_err().1.contains("words"));
        assert!(parse("   ").is_err());
        assert!(parse("a from:today to:yesterday").unwrap_err().1.contains("between"));
    }
}
