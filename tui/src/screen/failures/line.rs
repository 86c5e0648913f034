//! The filter line of failure clusters: `type:timeout status:open from:-24h`.

use std::{fmt::Display, str::FromStr};

use api::{
    failure::ClusterFilter,
    filter::when::{Clock, instant},
};

use crate::shell::LineError;

/// A field of the filter.
pub struct FailuresField {
    /// The name before the colon.
    pub name: &'static str,
    /// An example and the clusters that it selects.
    pub help: &'static str,
    /// Values that `tab` completes.
    pub values: &'static [&'static str],
}

/// Every field.
pub const FIELDS: &[FailuresField] = &[
    FailuresField {
        name: "type",
        help: "type:timeout, of this failure type",
        values: &[
            "timeout",
            "rate_limit",
            "invalid_response",
            "context_length",
            "other",
            "RemediationRegression",
        ],
    },
    FailuresField {
        name: "status",
        help: "status:open, with this status",
        values: &["open", "resolved", "muted"],
    },
    FailuresField {
        name: "from",
        help: "from:-24h, newest failure at or after: -1h, today, yesterday, 2026-11-21, RFC 3339",
        values: &["-1h", "-24h", "-7d", "today", "yesterday"],
    },
    FailuresField {
        name: "to",
        help: "to:yesterday, newest failure at or before; same forms as from",
        values: &["-1h", "today", "yesterday"],
    },
];

/// Parses a line; the clock anchors times such as `-1h`. `field:*` selects everything.
///
/// # Errors
/// Returns the position of the first wrong character, from 0, and the problem.
pub fn parse(text: &str, clock: &Clock) -> Result<ClusterFilter, LineError> {
    let mut filter = ClusterFilter::default();
    let mut given: Vec<&str> = Vec::new();
    let mut next = 0;
    for word in text.split(char::is_whitespace) {
        let at = next;
        next += word.chars().count() + 1;
        if word.is_empty() {
            continue;
        }
        let (name, value) = word.split_once(':').unwrap_or((word, ""));
        let Some(field) = FIELDS.iter().find(|field| field.name == name) else {
            return Err((at, unknown_field(name, word.contains(':'))));
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
            add(&mut filter, field.name, value, clock).map_err(|problem| (at, problem))?;
        }
    }
    if matches!((filter.from, filter.to), (Some(from), Some(to)) if from > to) {
        return Err((0, "nothing is between from and to".to_owned()));
    }
    Ok(filter)
}

fn add(filter: &mut ClusterFilter, name: &str, value: &str, clock: &Clock) -> Result<(), String> {
    match name {
        "type" => filter.failure_type = Some(read(value)?),
        "status" => filter.status = Some(read(value)?),
        "from" => filter.from = Some(instant(value, clock)?),
        _ => filter.to = Some(instant(value, clock)?),
    }
    Ok(())
}

fn read<T: FromStr<Err: Display>>(word: &str) -> Result<T, String> {
    word.parse().map_err(|error: T::Err| error.to_string())
}

fn unknown_field(name: &str, has_value: bool) -> String {
    let names: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
    let names = names.join(", ");
    if has_value {
        format!("there is no field `{name}`; fields: {names}")
    } else {
        format!("`{name}` is free text; a filter is made of field:value terms: {names}")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::{FailureType, Timestamp, failure::ClusterStatus};
    use present::format::Zone;

    use super::*;
    use crate::fixture::BASE_MICROS;

    fn parsed(text: &str) -> Result<ClusterFilter, LineError> {
        parse(text, &Clock::of(&Zone::Utc.of(Timestamp::from_micros(BASE_MICROS))))
    }

    #[test]
    fn cluster_filter_terms_become_request_parameters() {
        let filter = parsed("type:timeout  status:open from:-24h").unwrap();
        assert_eq!(filter.failure_type, Some(FailureType::Timeout));
        assert_eq!(filter.status, Some(ClusterStatus::Open));
        assert_eq!(filter.from, Some(Timestamp::from_micros(BASE_MICROS - 86_400_000_000)));
        assert_eq!(parsed("type:* status:*").unwrap(), ClusterFilter::default());
    }

    #[test]
    fn every_completed_value_of_the_filter_is_valid() {
        for field in FIELDS {
            for value in field.values {
                assert!(parsed(&format!("{}:{value}", field.name)).is_ok(), "{}:{value}", field.name);
            }
        }
    }

    #[test]
    fn invalid_cluster_filter_marks_the_error() {
        assert_eq!(parsed("é type:other").unwrap_err().0, 0);
        assert_eq!(parsed("type:timeout status:").unwrap_err().0, 13);
        assert_eq!(parsed("status:done").unwrap_err().0, 7);
        assert_eq!(parsed("type:other type:other").unwrap_err().0, 11);
        assert!(parsed("typ:x").unwrap_err().1.contains("fields: type, status"));
        assert!(parsed("from:today to:yesterday").unwrap_err().1.contains("between"));
    }
}
