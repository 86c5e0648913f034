//! The table of trace filters.
//!
//! A row has the name of the filter as a key and as a field, the type of its value, its query parameters, and its
//! term of the filter grammar with the flags of the command line. `docs/adding-a-trace-filter.md` explains how to
//! add one.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Bounds, FilterDefinition, FilterSource, FilterValue, Flag, Parameter, Tag, Term, ValueType};
use crate::FailureType;

trace_filters! {
    /// Only traces of this project.
    ProjectId, project_id: Id =
        parameters(&[Parameter::new("project_id", "of this project")]);

    /// The exact name of the model.
    Model, model: Text =
        parameters(&[Parameter::new("model", "of this model, exactly")])
        term(Term {
            name: "model",
            example: "model:gpt-4o",
            help: "traces of this model",
            completions: &[],
            flags: &[Flag::plain("model", "MODEL", "Only traces of this model")],
        });

    /// Whether the trace ended in an error.
    Error, error: Switch =
        parameters(&[Parameter::new("error", "failed traces (true) or successful ones (false)")])
        term(Term {
            name: "error",
            example: "error:true",
            help: "traces that failed (true) or did not (false)",
            completions: &["true", "false"],
            flags: &[
                Flag::fixed("error", "true", "Only traces with an error"),
                Flag::fixed("no-error", "false", "Only traces without an error"),
            ],
        });

    /// A failure type of at least one span.
    FailureType, failure_type: Failure =
        parameters(&[Parameter::new(
            "failure_type",
            "with a span of this failure type: timeout, rate_limit, invalid_response, context_length",
        )])
        term(Term {
            name: "failure",
            example: "failure:timeout",
            help: "traces with a span that failed for this reason",
            completions: &["timeout", "rate_limit", "invalid_response", "context_length"],
            flags: &[Flag::plain(
                "failure-type",
                "TYPE",
                "Only traces with a span of this failure type: timeout, rate_limit, invalid_response, context_length",
            )],
        });

    /// The earliest start, inclusive, in microseconds.
    From, from: Time =
        parameters(&[Parameter::new("from", "started at this time or later")])
        term(Term {
            name: "from",
            example: "from:-1h",
            help: "started at or after: -15m, today, yesterday, 2026-11-21, RFC 3339",
            completions: &["-15m", "-1h", "-24h", "today", "yesterday"],
            flags: &[Flag::plain(
                "from",
                "TIME",
                "Only traces started at or after: -15m, yesterday, 2026-11-21, RFC 3339",
            )],
        });

    /// The latest start, inclusive, in microseconds.
    To, to: Time =
        parameters(&[Parameter::new("to", "started at this time or earlier")])
        term(Term {
            name: "to",
            example: "to:2026-11-21T10:00Z",
            help: "started at or before; same formats as from",
            completions: &["-15m", "-1h", "today", "now"],
            flags: &[Flag::plain("to", "TIME", "Only traces started at or before")],
        });

    /// The latest time at which the trace was first stored, inclusive, in microseconds. Requests cannot set it.
    StoredUntil, stored_until: Time = ;

    /// Minimum and maximum latency in milliseconds, both inclusive.
    Latency, latency: Duration =
        parameters(&[
            Parameter::new("latency_min", "milliseconds, inclusive"),
            Parameter::new("latency_max", "milliseconds, inclusive"),
        ])
        term(Term {
            name: "latency",
            example: "latency:>=2s",
            help: "wall-clock time: >=2s, >2s, <=2s, <500ms, 1s..5s",
            completions: &[],
            flags: &[
                Flag::minimum("latency-min", "DURATION", "Minimum latency: 250ms, 2s"),
                Flag::maximum("latency-max", "DURATION", "Maximum latency"),
            ],
        });

    /// Minimum and maximum number of tokens, both inclusive.
    Tokens, tokens: Count =
        parameters(&[
            Parameter::new("token_count_min", "tokens, inclusive"),
            Parameter::new("token_count_max", "tokens, inclusive"),
        ])
        term(Term {
            name: "tokens",
            example: "tokens:>=1000",
            help: "prompt and completion tokens: >=1000, <100, 10..99",
            completions: &[],
            flags: &[
                Flag::minimum("token-count-min", "N", "Minimum number of tokens"),
                Flag::maximum("token-count-max", "N", "Maximum number of tokens"),
            ],
        });

    /// Minimum and maximum cost in pico-dollars, both inclusive.
    Cost, cost: Money =
        parameters(&[
            Parameter::new("min_cost", "US dollars, inclusive"),
            Parameter::new("max_cost", "US dollars, inclusive"),
        ]);

    /// Conditions on tags.
    Tags, tags: Tags =
        parameters(&[
            Parameter::new("tag_key", "with this tag; needs tag_value"),
            Parameter::new("tag_value", "and this value; needs tag_key"),
            Parameter::new("tag", "`key` or `key:value`; repeated, all must match"),
        ])
        term(Term {
            name: "tag",
            example: "tag:env=prod",
            help: "traces with this tag; only one tag is allowed",
            completions: &[],
            flags: &[Flag::plain("tag", "KEY=VALUE", "Only traces with this tag; may be given once")],
        });

    /// The session ID.
    SessionId, session_id: Text =
        parameters(&[Parameter::new("session_id", "of this session")])
        term(Term {
            name: "session",
            example: "session:s-9921",
            help: "traces of this session",
            completions: &[],
            flags: &[],
        });

    /// The end user.
    UserId, user_id: Text =
        parameters(&[Parameter::new("user_id", "of this end user")])
        term(Term {
            name: "user",
            example: "user:u-17",
            help: "traces of this end user",
            completions: &[],
            flags: &[],
        });

    /// The exact name of the trace.
    Name, name: Text =
        parameters(&[Parameter::new("name", "of this name, exactly")])
        term(Term {
            name: "name",
            example: "name:refund_agent",
            help: "traces of this name",
            completions: &[],
            flags: &[],
        });

    /// The sender's own identifier of the trace.
    ExternalId, external_id: Text =
        parameters(&[Parameter::new("external_id", "the sender's own identifier of the trace")]);

    /// Words that the texts contain, in lower case.
    Words, words: Words =
        parameters(&[Parameter::new(
            "q",
            "text in name, error, input or output, ignoring case; searches the newest 2,000 traces in range per page",
        )]);
}

/// The filters with a term, in the order in which help and completion show them.
pub const TERM_ORDER: &[TraceFilter] = &[
    TraceFilter::Model,
    TraceFilter::Error,
    TraceFilter::FailureType,
    TraceFilter::Latency,
    TraceFilter::Tokens,
    TraceFilter::Tags,
    TraceFilter::From,
    TraceFilter::To,
    TraceFilter::Name,
    TraceFilter::SessionId,
    TraceFilter::UserId,
];

impl TraceFilter {
    /// Returns the filter to which a query parameter belongs.
    pub fn with_parameter(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.definition().has_parameter(name))
    }
}
