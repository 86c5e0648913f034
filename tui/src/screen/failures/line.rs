//! The filter line of failure clusters: `type:timeout status:open from:-24h`.

use api::{
    failure::ClusterFilter,
    filter::when::{Clock, instant},
};

use crate::shell::{FilterField, LineError, check_period, parse_terms, parse_value};

/// Every field.
pub const FIELDS: &[FilterField] = &[
    FilterField {
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
    FilterField {
        name: "status",
        help: "status:open, with this status",
        values: &["open", "resolved", "muted"],
    },
    FilterField {
        name: "from",
        help: "from:-24h, newest failure at or after: -1h, today, yesterday, 2026-11-21, RFC 3339",
        values: &["-1h", "-24h", "-7d", "today", "yesterday"],
    },
    FilterField {
        name: "to",
        help: "to:yesterday, newest failure at or before; same forms as from",
        values: &["-1h", "today", "yesterday"],
    },
];

/// Parses a line; the clock anchors times such as `-1h`. `field:*` selects everything.
///
/// # Errors
/// Fails with the position of the first wrong character, from 0, and the problem.
pub fn parse(text: &str, clock: &Clock) -> Result<ClusterFilter, LineError> {
    let mut filter = ClusterFilter::default();
    parse_terms(text, FIELDS, |field, _, value| add(&mut filter, field.name, value, clock))?;
    check_period(filter.from, filter.to)?;
    Ok(filter)
}

fn add(filter: &mut ClusterFilter, name: &str, value: &str, clock: &Clock) -> Result<(), String> {
    match name {
        "type" => filter.failure_type = Some(parse_value(value)?),
        "status" => filter.status = Some(parse_value(value)?),
        "from" => filter.from = Some(instant(value, clock)?),
        _ => filter.to = Some(instant(value, clock)?),
    }
    Ok(())
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
