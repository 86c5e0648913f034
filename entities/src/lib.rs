//! The rows of the database, one file per table, without queries.
//!
//! Times are microseconds since the epoch, money is pico-dollars (1e-12 USD), both as 64-bit integers:
//! they sort, add and compare alike on SQLite and PostgreSQL. On PostgreSQL, every table that a
//! tenant owns has `tenant_id` first in its primary key, so that the schema can be distributed by tenant.

pub mod anomaly;
pub mod anomaly_detector;
pub mod api_key;
pub mod audit_record;
pub mod body;
pub mod control_action;
pub mod dialect;
pub mod eval_bulk;
pub mod eval_rule;
pub mod evaluation;
pub mod evaluator;
pub mod event;
pub mod external_tenant;
pub mod failure;
pub mod failure_cluster;
pub mod failure_clustering;
pub mod failure_rule;
pub mod failure_rule_match;
pub mod failure_trend;
pub mod feedback;
pub mod held_input;
pub mod idempotency;
pub mod job;
pub mod member;
pub mod metric_delta;
pub mod metric_node;
pub mod model_price;
pub mod policy;
pub mod project;
pub mod prompt;
pub mod prompt_deployment;
pub mod prompt_replay;
pub mod prompt_score;
pub mod provider_credential;
pub mod quota_use;
pub mod rate_window;
pub mod rejected_input;
pub mod rule_decision;
pub mod setting;
pub mod span;
pub mod span_block;
pub mod span_vector;
pub mod tenant;
pub mod trace;
pub mod trace_run;
pub mod trace_run_block;
pub mod trace_tail;
pub mod webhook;
pub mod webhook_attempt;
pub mod webhook_delivery;
pub mod webhook_event;
