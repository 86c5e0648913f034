//! Every query, one file a noun. The tenant is the first argument of each that is a tenant's.

pub mod audit;
pub mod backup;
mod bulk;
pub mod bulk_runs;
pub mod check;
pub mod credentials;
mod db;
pub mod eval_rules;
pub mod evaluations;
pub mod evaluators;
pub mod feedback;
pub mod health;
pub mod housekeeping;
pub mod idempotency;
pub mod keys;
pub mod members;
pub mod metrics;
mod page;
pub mod prices;
pub mod projects;
pub mod quotas;
pub mod rates;
pub mod sealed;
pub mod settings;
pub mod sizes;
pub mod tenants;
pub mod traces;
pub mod vectors;

pub use db::{Db, is_duplicate, lost_a_race, sqlite_url};
pub use sea_orm::{ConnectionTrait as Connection, DatabaseTransaction as Transaction, DbErr as DbError};
