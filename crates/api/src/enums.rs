//! Closed and open enumerations of the wire format.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

/// Kind of a span. An open enumeration: the server stores unknown words unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum SpanType {
    /// A request to a language model.
    Llm,
    /// An execution of a tool or function.
    Tool,
    /// A retrieval of documents.
    Retrieval,
    /// Other work; the default.
    #[default]
    Other,
    /// A word that this version does not know, stored unchanged.
    Custom(String),
}

impl SpanType {
    /// Returns the word on the wire and in the database.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Llm => "llm",
            Self::Tool => "tool",
            Self::Retrieval => "retrieval",
            Self::Other => "other",
            Self::Custom(word) => word,
        }
    }
}

impl From<Cow<'_, str>> for SpanType {
    fn from(word: Cow<'_, str>) -> Self {
        match word.as_ref() {
            "llm" => Self::Llm,
            "tool" => Self::Tool,
            "retrieval" => Self::Retrieval,
            "other" | "" => Self::Other,
            _ => Self::Custom(word.into_owned()),
        }
    }
}

impl From<String> for SpanType {
    fn from(word: String) -> Self {
        Cow::<str>::Owned(word).into()
    }
}

impl From<SpanType> for String {
    fn from(kind: SpanType) -> Self {
        match kind {
            SpanType::Custom(word) => word,
            known => known.as_str().to_owned(),
        }
    }
}

#[cfg(feature = "schema")]
impl utoipa::PartialSchema for SpanType {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        let text =
            utoipa::openapi::schema::ObjectBuilder::new().schema_type(utoipa::openapi::schema::Type::String);
        text.description(Some("`llm`, `tool`, `retrieval`, `other`, or another word")).into()
    }
}

#[cfg(feature = "schema")]
impl utoipa::ToSchema for SpanType {}

impl fmt::Display for SpanType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Error: a word is not a value of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not one of {expected}")]
pub struct UnknownWord {
    /// The unknown word.
    pub given: String,
    /// The allowed words, separated by commas.
    pub expected: String,
}

/// Declares a closed enumeration whose variants are words on the wire.
macro_rules! words {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the word on the wire and in the database.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        // Not derived: inside a macro, the derive macro uses the names of the variants instead of the
        // words.
        #[cfg(feature = "schema")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .description(Some(concat!($($doc),*).trim()))
                    .enum_values(Some([$($word),+]))
                    .into()
            }
        }

        #[cfg(feature = "schema")]
        impl utoipa::ToSchema for $name {}

        impl std::str::FromStr for $name {
            type Err = $crate::enums::UnknownWord;
            fn from_str(word: &str) -> Result<Self, $crate::enums::UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::enums::UnknownWord { given: word.to_owned(), expected: [$($word),+].join(", ") }),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;

words! {
    /// Class of a failure.
    FailureType {
        /// The operation exceeded its time limit.
        Timeout = "timeout",
        /// The provider rejected the request because of its rate limit.
        RateLimit = "rate_limit",
        /// The response did not have the requested format.
        InvalidResponse = "invalid_response",
        /// The prompt exceeded the model's context length.
        ContextLength = "context_length",
        /// Any other error. Not a value of the `failure_type` filter.
        Other = "other",
        /// A remediated output that scores lower than the original. No span has this type.
        RemediationRegression = "RemediationRegression",
    }
}

impl FailureType {
    /// The types by which traces can be filtered, and for which the default failure rule fires.
    pub const FILTERABLE_TYPES: [Self; 4] =
        [Self::Timeout, Self::RateLimit, Self::InvalidResponse, Self::ContextLength];

    /// Returns whether traces can be filtered by this type.
    pub fn is_filterable(self) -> bool {
        Self::FILTERABLE_TYPES.contains(&self)
    }
}

words! {
    /// State of a trace. Its spans are stored and counted in every state.
    TraceState {
        /// No ended root span is stored, and a span arrived during the last ten minutes.
        Running = "running",
        /// No ended root span is stored, and no span arrived for ten minutes. A later span changes the state again.
        Interrupted = "interrupted",
        /// The root span has ended, or the sender declares the trace complete, or only spans of other processes are
        /// missing and no span arrived for ten minutes.
        Complete = "complete",
    }
}

words! {
    /// Role of a member.
    Role {
        /// May read.
        Viewer = "viewer",
        /// May read, create and change.
        Member = "member",
        /// May do everything, including deletion and settings.
        Owner = "owner",
    }
}

words! {
    /// Plan of a tenant. Ordered: a later plan includes the earlier ones.
    Plan {
        /// The free plan.
        Starter = "starter",
        /// Adds webhooks and search.
        Pro = "pro",
        /// Adds the control loop.
        Team = "team",
        /// Adds larger limits.
        Business = "business",
        /// No hard limits.
        Enterprise = "enterprise",
    }
}

words! {
    /// A restriction of an API key. A key without scopes has full access.
    Scope {
        /// Read-only access.
        Query = "query",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn unknown_span_type_is_kept() {
        let kind: SpanType = serde_json::from_str("\"guardrail\"").unwrap();
        assert_eq!(kind, SpanType::Custom("guardrail".into()));
        assert_eq!(serde_json::to_string(&kind).unwrap(), "\"guardrail\"");
    }

    #[test]
    fn enum_words_round_trip() {
        for plan in Plan::ALL {
            assert_eq!(plan.as_str().parse::<Plan>().unwrap(), *plan);
            assert_eq!(serde_json::to_string(plan).unwrap(), format!("\"{plan}\""));
        }
        assert!("gold".parse::<Plan>().is_err());
        assert!(Plan::Starter < Plan::Pro);
    }
}
