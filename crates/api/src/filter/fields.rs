//! The table of fields that a filter can contain.

use super::when::{Clock, duration_ms, instant};
use crate::FailureType;

/// A field of the filter grammar.
pub struct Field {
    /// The name before the colon.
    pub name: &'static str,
    /// An example of a term.
    pub example: &'static str,
    /// The traces that it selects, in one line.
    pub help: &'static str,
    /// Words for completion; empty when the value is free.
    pub values: &'static [&'static str],
    /// Converts a value to query parameters, or explains why it is invalid.
    pub(super) read: fn(&str, &Clock) -> Result<Params, String>,
}

type Params = Vec<(&'static str, String)>;

impl Field {
    /// Returns the field with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FIELDS.iter().find(|field| field.name == name)
    }
}

/// All fields, in the order of the help.
pub const FIELDS: &[Field] = &[
    Field {
        name: "model",
        example: "model:gpt-4o",
        help: "traces of this model",
        values: &[],
        read: |value, _| plain("model", value),
    },
    Field {
        name: "error",
        example: "error:true",
        help: "traces that failed (true) or did not (false)",
        values: &["true", "false"],
        read: |value, _| match value {
            "true" | "false" => plain("error", value),
            _ => Err(format!("`{value}` is not true or false")),
        },
    },
    Field {
        name: "failure",
        example: "failure:timeout",
        help: "traces with a span that failed for this reason",
        values: &["timeout", "rate_limit", "invalid_response", "context_length"],
        read: |value, _| match value.parse::<FailureType>() {
            Ok(kind) if kind != FailureType::Other => plain("failure_type", value),
            _ => {
                Err(format!("`{value}` is not one of timeout, rate_limit, invalid_response, context_length"))
            }
        },
    },
    Field {
        name: "latency",
        example: "latency:>=2s",
        help: "wall-clock time: >=2s, >2s, <=2s, <500ms, 1s..5s",
        values: &[],
        read: |value, _| range(value, "latency_min", "latency_max", duration_ms),
    },
    Field {
        name: "tokens",
        example: "tokens:>=1000",
        help: "prompt and completion tokens: >=1000, <100, 10..99",
        values: &[],
        read: |value, _| range(value, "token_count_min", "token_count_max", whole),
    },
    Field {
        name: "tag",
        example: "tag:env=prod",
        help: "traces with this tag; only one tag is allowed",
        values: &[],
        read: |value, _| match value.split_once('=') {
            Some((key, value)) if !key.is_empty() => {
                Ok(vec![("tag_key", key.to_owned()), ("tag_value", value.to_owned())])
            }
            _ => Err(format!("a tag needs its value: `{value}=...`")),
        },
    },
    Field {
        name: "from",
        example: "from:-1h",
        help: "started at or after: -15m, today, yesterday, 2026-11-21, RFC 3339",
        values: &["-15m", "-1h", "-24h", "today", "yesterday"],
        read: |value, clock| plain("from", &instant(value, clock)?.to_string()),
    },
    Field {
        name: "to",
        example: "to:2026-11-21T10:00Z",
        help: "started at or before; same formats as from",
        values: &["-15m", "-1h", "today", "now"],
        read: |value, clock| plain("to", &instant(value, clock)?.to_string()),
    },
    Field {
        name: "name",
        example: "name:refund_agent",
        help: "traces of this name",
        values: &[],
        read: |value, _| plain("name", value),
    },
    Field {
        name: "session",
        example: "session:s-9921",
        help: "traces of this session",
        values: &[],
        read: |value, _| plain("session_id", value),
    },
    Field {
        name: "user",
        example: "user:u-17",
        help: "traces of this end user",
        values: &[],
        read: |value, _| plain("user_id", value),
    },
];

fn plain(name: &'static str, value: &str) -> Result<Params, String> {
    Ok(vec![(name, value.to_owned())])
}

fn whole(text: &str) -> Result<u64, String> {
    // The server stores signed 64-bit numbers.
    let number = text.replace('_', "").parse::<u64>().ok().filter(|number| i64::try_from(*number).is_ok());
    number.ok_or_else(|| format!("`{text}` is not a whole number"))
}

/// Parses a comparison into inclusive bounds.
fn range(
    value: &str,
    min: &'static str,
    max: &'static str,
    read: fn(&str) -> Result<u64, String>,
) -> Result<Params, String> {
    let (low, high) = if let Some((low, high)) = value.split_once("..") {
        let bound = |text: &str| if text.is_empty() { Ok(None) } else { read(text).map(Some) };
        (bound(low)?, bound(high)?)
    } else if let Some(rest) = value.strip_prefix(">=") {
        (Some(read(rest)?), None)
    } else if let Some(rest) = value.strip_prefix("<=") {
        (None, Some(read(rest)?))
    } else if let Some(rest) = value.strip_prefix('>') {
        (Some(read(rest)?.saturating_add(1)), None)
    } else if let Some(rest) = value.strip_prefix('<') {
        let bound = read(rest)?.checked_sub(1).ok_or("no value is below zero")?;
        (None, Some(bound))
    } else {
        let exact = read(value.strip_prefix('=').unwrap_or(value))?;
        (Some(exact), Some(exact))
    };
    match (low, high) {
        (None, None) => Err("a range needs at least one end".to_owned()),
        (Some(low), Some(high)) if low > high => Err(format!("the range {low}..{high} is empty")),
        (low, high) => Ok([(min, low), (max, high)]
            .into_iter()
            .filter_map(|(name, bound)| Some((name, bound?.to_string())))
            .collect()),
    }
}
