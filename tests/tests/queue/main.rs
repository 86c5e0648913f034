//! The durable queue, held to what it promises on both databases, with a clock that stands still.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod merging_jobs;
mod promises;
mod simulation;
mod worker;

use entities::job;
use queue::{Job, WorkerPool, new_job};
use sea_orm::{EntityTrait, QueryOrder};
use serde::Serialize;
use tests::TestApp;
use uuid::Uuid;

/// The pool of all jobs here.
const POOL: &WorkerPool = &server::pools::INGEST;

/// Work that no worker knows.
#[derive(Serialize)]
struct Work {
    n: usize,
}

impl Job for Work {
    const KIND: &'static str = "test_work";
    const POOL: &'static WorkerPool = POOL;
    const MAX_ATTEMPTS: i32 = 3;
}

/// Enqueues one piece of work in a transaction of its own.
async fn enqueue(app: &TestApp, tenant: Uuid, n: usize, run_at: i64) -> Uuid {
    let row = new_job(tenant, &Work { n }, run_at, now(app));
    let id = row.id;
    insert(app, row).await;
    id
}

async fn insert(app: &TestApp, row: job::Model) {
    job::Entity::insert(job::ActiveModel::from(row)).exec_without_returning(&app.app.db.write).await.unwrap();
}

/// Every job that is stored, by id.
async fn stored(app: &TestApp) -> Vec<job::Model> {
    job::Entity::find().order_by_asc(job::Column::Id).all(&app.app.db.write).await.unwrap()
}

fn now(app: &TestApp) -> i64 {
    app.app.clock.now()
}
