//! The schema, one file per change, forward only.

pub use sea_orm_migration::prelude::*;

mod m0001_foundation;
mod m0002_traces;
mod m0003_jobs;
mod m0004_doors;
mod m0005_dead_jobs;
mod m0006_sessions;
mod m0007_metrics;
mod m0008_vectors;
mod m0009_unmeasured;
mod m0010_evaluations;
mod m0011_failed_again;
mod m0012_usage_details;
mod m0013_projects_by_ingest;
mod m0014_failures;
mod m0015_webhooks;
mod m0016_anomalies;
mod m0017_scores_by_time;
mod m0018_token_metrics;
mod m0019_control_loop;
mod m0020_prompt_deployments;
mod m0021_trace_index;
mod m0022_listed_by_runs;
mod m0023_vectors_by_arrival;
mod m0024_trace_ids;
mod m0025_text_pages;
mod m0026_span_blocks;
mod m0027_rejected_input;
mod m0028_missing_roots;
mod m0029_redaction;
mod m0030_held_input;
#[allow(hidden_glob_reexports, reason = "the helper module is private and hides nothing that is used")]
mod table;

/// All migrations in order.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_foundation::Migration),
            Box::new(m0002_traces::Migration),
            Box::new(m0003_jobs::Migration),
            Box::new(m0004_doors::Migration),
            Box::new(m0005_dead_jobs::Migration),
            Box::new(m0006_sessions::Migration),
            Box::new(m0007_metrics::Migration),
            Box::new(m0008_vectors::Migration),
            Box::new(m0009_unmeasured::Migration),
            Box::new(m0010_evaluations::Migration),
            Box::new(m0011_failed_again::Migration),
            Box::new(m0012_usage_details::Migration),
            Box::new(m0013_projects_by_ingest::Migration),
            Box::new(m0014_failures::Migration),
            Box::new(m0015_webhooks::Migration),
            Box::new(m0016_anomalies::Migration),
            Box::new(m0017_scores_by_time::Migration),
            Box::new(m0018_token_metrics::Migration),
            Box::new(m0019_control_loop::Migration),
            Box::new(m0020_prompt_deployments::Migration),
            Box::new(m0021_trace_index::Migration),
            Box::new(m0022_listed_by_runs::Migration),
            Box::new(m0023_vectors_by_arrival::Migration),
            Box::new(m0024_trace_ids::Migration),
            Box::new(m0025_text_pages::Migration),
            Box::new(m0026_span_blocks::Migration),
            Box::new(m0027_rejected_input::Migration),
            Box::new(m0028_missing_roots::Migration),
            Box::new(m0029_redaction::Migration),
            Box::new(m0030_held_input::Migration),
        ]
    }
}
