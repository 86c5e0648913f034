//! The guarantees of the durable queue on both databases, with a stopped clock.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod guarantees;
mod merging_jobs;
mod scheduling;
mod simulation;
mod worker;

use entities::job;
use queue::{Job, WorkerPool, new_job};
use sea_orm::{EntityTrait, QueryOrder};
use serde::Serialize;
use tests::TestApp;
use uuid::Uuid;

/// The worker pool of all jobs in this suite.
const POOL: &WorkerPool = &server::pools::INGEST_POOL;

/// A job that no worker of the server executes.
#[derive(Serialize)]
struct Work {
    n: usize,
}

impl Job for Work {
    const KIND: &'static str = "test_work";
    const POOL: &'static WorkerPool = POOL;
    const MAX_ATTEMPTS: i32 = 3;
}

/// Enqueues one job in its own transaction.
async fn enqueue(app: &TestApp, tenant: Uuid, n: usize, run_at: i64) -> Uuid {
    let row = new_job(tenant, &Work { n }, run_at, now(app));
    let id = row.id;
    insert(app, row).await;
    id
}

async fn insert(app: &TestApp, row: job::Model) {
    job::Entity::insert(job::ActiveModel::from(row)).exec_without_returning(&app.app.db.write).await.unwrap();
}

/// Returns all stored jobs by id.
async fn stored(app: &TestApp) -> Vec<job::Model> {
    job::Entity::find().order_by_asc(job::Column::Id).all(&app.app.db.write).await.unwrap()
}

fn now(app: &TestApp) -> i64 {
    app.app.clock.now()
}
