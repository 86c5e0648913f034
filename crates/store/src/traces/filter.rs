//! The filters of a list of traces, and their SQL.
//!
//! The most selective kind of filter determines the index, which is read in the order of the list. The other
//! filters are conditions on the rows that the index returns.

use std::fmt::Write;

use api::FailureType;
use entities::dialect::Dialect;
use sea_orm::Value;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::traces::{bit_of, class::classes};

/// A condition on tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tag {
    /// A tag with this key and this value.
    Pair(String, String),
    /// A tag with this key and any value.
    Key(String),
    /// A tag in its written form: a key with any value, or `key:value`, where both may contain colons.
    Written(String),
}

/// Maximum number of colons in a written tag. Every colon is one more way to divide it into key and value.
const COLONS: usize = 16;

impl Tag {
    /// Returns the condition for a tag in its written form; `None` when it has too many colons.
    pub fn written(text: &str) -> Option<Self> {
        match text.matches(':').count() {
            0 => Some(Self::Key(text.to_owned())),
            1..=COLONS => Some(Self::Written(text.to_owned())),
            _ => None,
        }
    }

    /// Returns the condition on a row of `t`.
    fn condition(&self, sql: &mut Sql, t: &str, dialect: Dialect) -> String {
        match self {
            Self::Pair(key, value) => pair(sql, t, key, value),
            Self::Key(key) => {
                // The tags of a row are a JSON object that this program wrote. Quotes within its texts are
                // escaped, so these two strings occur only where the key is.
                let member = format!("{}:", serde_json::Value::from(key.as_str()));
                let (first, later) = (sql.arg(format!("{{{member}")), sql.arg(format!(",{member}")));
                let tags = format!("{t}.tags");
                let (first, later) = (dialect.position(&tags, &first), dialect.position(&tags, &later));
                format!("({first} > 0 OR {later} > 0)")
            }
            Self::Written(text) => {
                let mut ways = vec![Self::Key(text.clone()).condition(sql, t, dialect)];
                let colons = text.match_indices(':');
                ways.extend(colons.map(|(at, _)| pair(sql, t, &text[..at], &text[at + 1..])));
                format!("({})", ways.join(" OR "))
            }
        }
    }
}

fn pair(sql: &mut Sql, t: &str, key: &str, value: &str) -> String {
    let tenant = sql.tenant();
    let (key, value) = (sql.arg(key), sql.arg(value));
    format!(
        "EXISTS (SELECT 1 FROM trace_tag g WHERE g.tenant_id = {tenant} AND g.key = {key} \
         AND g.value = {value} AND g.started_at = {t}.started_at AND g.trace_id = {t}.id)"
    )
}

/// The conditions of a list of traces. All must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// Only traces of this project.
    pub project_id: Option<Uuid>,
    /// The exact name of the model.
    pub model: Option<String>,
    /// Whether the trace ended in an error.
    pub error: Option<bool>,
    /// A failure type of at least one span.
    pub failure_type: Option<FailureType>,
    /// The earliest start, inclusive, in microseconds.
    pub from: Option<i64>,
    /// The latest start, inclusive, in microseconds.
    pub to: Option<i64>,
    /// The latest time at which the trace was first stored, inclusive, in microseconds.
    pub stored_until: Option<i64>,
    /// Minimum and maximum latency in milliseconds, both inclusive.
    pub latency: (Option<i64>, Option<i64>),
    /// Minimum and maximum number of tokens, both inclusive.
    pub tokens: (Option<i64>, Option<i64>),
    /// Minimum and maximum cost in pico-dollars, both inclusive.
    pub cost: (Option<i64>, Option<i64>),
    /// Conditions on tags.
    pub tags: Vec<Tag>,
    /// Session ID.
    pub session_id: Option<String>,
    /// End user.
    pub user_id: Option<String>,
    /// The exact name of the trace.
    pub name: Option<String>,
    /// The sender's own identifier of the trace.
    pub external_id: Option<String>,
    /// Words that the texts contain, in lower case.
    pub words: Vec<String>,
}

/// The index or the rows along which a page is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Driver {
    /// One index of `trace`, with the condition that selects its range.
    Index {
        /// The name of the index.
        name: &'static str,
    },
    /// The rows of these tags.
    Tags(Vec<(String, String)>),
    /// The classes of a range, each ordered by time.
    Classes {
        /// The name of the index.
        index: &'static str,
        /// The column of the class.
        column: &'static str,
        /// The classes.
        classes: Vec<i16>,
    },
}

/// A range filter: its index, its columns and its bounds.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// The name of the index.
    pub index: &'static str,
    /// The column of the class.
    pub class: &'static str,
    /// The column of the value.
    pub value: &'static str,
    /// Smallest value.
    pub min: i64,
    /// Largest value.
    pub max: i64,
}

impl Filter {
    /// Returns the index to read along when no tag and no range is used, the most selective kind first.
    pub fn index(&self) -> Option<&'static str> {
        Some(match self {
            Self { external_id: Some(_), .. } => "ix_trace_external",
            Self { session_id: Some(_), .. } => "ix_trace_session",
            Self { user_id: Some(_), .. } => "ix_trace_user",
            Self { failure_type: Some(FailureType::Timeout), .. } => "ix_trace_timeout",
            Self { failure_type: Some(FailureType::RateLimit), .. } => "ix_trace_rate_limit",
            Self { failure_type: Some(FailureType::InvalidResponse), .. } => "ix_trace_invalid_response",
            Self { failure_type: Some(FailureType::ContextLength), .. } => "ix_trace_context_length",
            Self { error: Some(true), .. } => "ix_trace_error",
            Self { name: Some(_), .. } => "ix_trace_name",
            Self { model: Some(_), .. } => "ix_trace_model",
            _ => return None,
        })
    }

    /// Returns the range filters that are set.
    pub fn ranges(&self) -> impl Iterator<Item = Range> {
        [
            (self.latency, "ix_trace_latency", "latency_class", "latency_ms"),
            (self.cost, "ix_trace_cost", "cost_class", "cost"),
            (self.tokens, "ix_trace_tokens", "token_class", "total_tokens"),
        ]
        .into_iter()
        .filter(|it| it.0 != (None, None))
        .map(|((min, max), index, class, value)| Range {
            index,
            class,
            value,
            min: min.unwrap_or(0),
            max: max.unwrap_or(i64::MAX),
        })
    }

    /// Adds the conditions to a `WHERE` that already names the tenant. `t` is the table's alias.
    pub fn conditions(&self, sql: &mut Sql, t: &str, dialect: Dialect) {
        let texts = [
            ("model", &self.model),
            ("session_id", &self.session_id),
            ("user_id", &self.user_id),
            ("name", &self.name),
            ("external_id", &self.external_id),
        ];
        if let Some(project) = self.project_id {
            sql.and(t, "project_id", "=", project);
        }
        for (column, value) in texts {
            if let Some(value) = value {
                sql.and(t, column, "=", value.as_str());
            }
        }
        match self.error {
            Some(true) => sql.push(&format!(" AND {t}.error IS NOT NULL")),
            Some(false) => sql.push(&format!(" AND {t}.error IS NULL")),
            None => {}
        }
        if let Some(failure) = self.failure_type {
            // The same expression as in the index, so that the planner sees that the index applies.
            sql.push(&format!(" AND ({t}.failure_types & {}) <> 0", bit_of(failure)));
        }
        if let Some(from) = self.from {
            sql.and(t, "started_at", ">=", from);
        }
        if let Some(to) = self.to {
            sql.and(t, "started_at", "<=", to);
        }
        if let Some(until) = self.stored_until {
            sql.and(t, "created_at", "<=", until);
        }
        for range in self.ranges() {
            sql.and(t, range.value, ">=", range.min);
            sql.and(t, range.value, "<=", range.max);
        }
        for tag in &self.tags {
            let condition = tag.condition(sql, t, dialect);
            sql.push(&format!(" AND {condition}"));
        }
    }
}

impl Range {
    /// Returns the classes that the range overlaps.
    pub fn classes(&self) -> std::ops::RangeInclusive<i16> {
        classes(self.min, self.max)
    }
}

/// SQL under construction. The first parameter is the tenant.
#[derive(Clone, Debug)]
pub struct Sql {
    /// The text so far.
    pub text: String,
    /// The parameters so far.
    pub values: Vec<Value>,
}

impl Sql {
    /// Begins a statement with the tenant as `$1`.
    pub fn new(tenant: Uuid) -> Self {
        Self { text: String::new(), values: vec![tenant.into()] }
    }

    /// Returns the placeholder of the tenant.
    pub fn tenant(&self) -> &'static str {
        "$1"
    }

    /// Adds a parameter. Returns its placeholder.
    pub fn arg(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("${}", self.values.len())
    }

    /// Adds text.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds ` AND t.column op value`.
    pub fn and(&mut self, t: &str, column: &str, op: &str, value: impl Into<Value>) {
        let placeholder = self.arg(value);
        // Writing to a `String` can't fail.
        _ = write!(self.text, " AND {t}.{column} {op} {placeholder}");
    }

    /// Adds the condition that a row comes after `(at, id)` in the order of the list.
    pub fn and_older(&mut self, t: &str, id: &str, after: Option<(i64, Uuid)>) {
        if let Some((at, last)) = after {
            let (at, last) = (self.arg(at), self.arg(last));
            // The second condition implies the first, which gives the range of the index.
            _ = write!(
                self.text,
                " AND {t}.started_at <= {at} AND ({t}.started_at < {at} OR {t}.{id} < {last})"
            );
        }
    }
}
