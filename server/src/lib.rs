//! The service as a library: `loupe-server` is a thin command line around it, and the tests run it with
//! an injected clock.
//!
//! Arrows point down: `http` → features (`ingest`, `trace_ready`) → `store` → entities. Axum is used
//! only in `http` and `error`, the database only in `store` and `queue`.

pub mod access;
pub mod admin;
pub mod app;
pub mod audit;
pub mod clock;
pub mod code_runner;
pub mod config;
pub mod cursor;
pub mod demo;
pub mod embedding;
pub mod endpoints;
pub mod error;
pub mod evals;
pub mod evaluator;
pub mod feature;
pub mod features;
pub mod first_start;
pub mod housekeeping;
pub mod http;
pub mod idle;
pub mod ingest;
pub mod judging;
pub mod keyed_semaphore;
pub mod known;
pub mod later_start;
pub mod limits;
pub mod long_trace;
pub mod memory;
pub mod metric_folding;
pub mod metrics;
pub mod pools;
pub mod providers;
pub mod reseal;
pub mod retention;
pub mod rule_set;
pub mod search;
pub mod seats;
pub mod span_embedding;
pub mod telemetry;
pub mod trace_ready;
pub mod trace_removal;
pub mod trace_rules;
pub mod traces;
