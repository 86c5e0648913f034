//! The wire contract of Loupe: types without behaviour.
//!
//! The server, the command line and the console all depend on this crate, so that each shared name is
//! declared once. Feature `client` adds the typed REST client and the filter grammar, `profile` the
//! files with contexts and credentials, `schema` the schemas of the OpenAPI document.

pub mod anomaly;
pub mod audit;
#[cfg(feature = "client")]
pub mod client;
pub mod control;
pub mod credential;
pub mod deployment;
pub mod enums;
pub mod error;
pub mod eval;
pub mod eval_rule;
pub mod evaluator;
pub mod failure;
pub mod failure_rule;
pub mod feedback;
#[cfg(feature = "client")]
pub mod filter;
pub mod ingest;
pub mod key;
pub mod member;
pub mod metrics;
pub mod model;
pub mod object;
pub mod page;
pub mod plain;
pub mod policy;
#[cfg(feature = "profile")]
pub mod profile;
pub mod project;
pub mod rejection;
pub mod search;
pub mod session;
pub mod tenant;
pub mod text;
pub mod time;
pub mod trace;
pub mod trace_filter;
pub mod usage;
pub mod webhook;

pub use enums::{FailureType, Plan, Role, Scope, SpanType, TraceState};
pub use error::{ErrorBody, ErrorCode, FieldError};
pub use eval::EvaluatorType;
pub use page::PageInfo;
pub use time::Timestamp;
pub use usage::UsageDetails;
