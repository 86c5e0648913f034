//! All database queries, in both dialects, one file per table or topic. The first argument of a query on a
//! tenant's rows is the tenant.
//!
//! Queries take and return rows, and fail with a [`StoreError`]. The store knows neither HTTP nor the rules
//! of the product: decisions that a transaction must make are passed in ([`traces::TraceRules`]).

pub mod anomalies;
pub mod audit;
pub mod backup;
mod bulk;
pub mod bulk_runs;
pub mod check;
pub mod control_actions;
pub mod credentials;
mod db;
mod error;
pub mod eval_rules;
pub mod evaluations;
pub mod evaluators;
pub mod failure_clusters;
pub mod failure_rules;
pub mod failures;
pub mod feedback;
pub mod health;
pub mod held_input;
pub mod housekeeping;
pub mod idempotency;
mod ids;
mod jobs;
pub mod keys;
pub mod members;
mod memory;
pub mod metrics;
mod page;
pub mod policies;
pub mod prices;
pub mod projects;
pub mod prompt_tests;
pub mod prompts;
pub mod quotas;
pub mod rates;
pub mod rejected_input;
pub mod row_text;
pub mod sealed;
pub mod settings;
pub mod sizes;
pub mod span_block;
pub mod tenants;
pub mod text_block;
pub mod text_page;
mod text_rows;
mod trace_filters;
pub mod trace_ids;
pub mod trace_index;
pub mod traces;
pub mod vectors;
pub mod webhooks;

pub use db::{Db, is_duplicate, lost_a_race, sqlite_url};
pub use error::{Result, StoreError};
pub use ids::{derived_id, derived_id_of_bytes, first_id_at, new_id, new_id_at, otel_span_id, text_hash};
pub use jobs::insert_once;
pub use memory::{MemoryAccount, OutOfMemory, Uncounted};
pub use sea_orm::{ConnectionTrait as Connection, DatabaseTransaction as Transaction, DbErr as DbError};
pub use sqlx::Error as SqlError;
