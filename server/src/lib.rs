//! The service as a library: `loupe-server` is a thin command line around it, and the tests run it with
//! an injected clock.
//!
//! Arrows point down: `features` → features with their endpoints (`evals`, `traces`) → `http` → `app` → `store` →
//! entities. Axum is used only in `http` and in endpoints, the database only in `store` and `queue`.

pub mod access;
pub mod access_cache;
pub mod admin;
pub mod anomalies;
pub mod app;
pub mod audit;
pub mod clock;
pub mod code_runner;
pub mod config;
pub mod control;
pub mod cursor;
pub mod demo;
pub mod deployments;
pub mod embedding;
pub mod endpoints;
pub mod error;
pub mod evals;
pub mod evaluator;
pub mod failures;
pub mod feature;
pub mod features;
pub mod first_start;
pub mod housekeeping;
pub mod http;
pub mod idle_cleanup;
pub mod ignored_settings;
pub mod ingest;
pub mod judging;
pub mod keyed_semaphore;
pub mod limits;
pub mod log_joining;
pub mod long_trace;
pub mod memory;
pub mod metric_folding;
pub mod metrics;
pub mod pools;
pub mod providers;
pub mod remediation;
pub mod reseal;
pub mod retention;
pub mod rule_filter;
pub mod rule_set;
pub mod search;
pub mod seats;
pub mod span_embedding;
pub mod subscriptions;
pub mod telemetry;
pub mod trace_indexing;
pub mod trace_ready;
pub mod trace_removal;
pub mod trace_rules;
pub mod traces;
pub mod webhooks;
