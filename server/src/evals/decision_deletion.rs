//! Deletes the decisions of deleted eval rules.
//!
//! Decisions are indexed by trace, so all decisions of a tenant are scanned, in batches.

use std::sync::Arc;

use entities::job;
use queue::{Job, JobResult, RunJob, WorkerPool};
use serde::{Deserialize, Serialize};
use store::{DbError, Transaction, eval_rules};
use uuid::Uuid;

use crate::{app::App, pools};

/// A deleted rule whose decisions are deleted.
#[derive(Debug, Serialize, Deserialize)]
pub struct DeleteRuleDecisions {
    /// The rule.
    pub rule: Uuid,
    /// Decisions of traces up to this one are deleted.
    pub after: Uuid,
}

impl Job for DeleteRuleDecisions {
    const KIND: &'static str = "forget_rule";
    const POOL: &'static WorkerPool = &pools::HOUSEKEEPING_POOL;
}

/// Number of decisions that one statement scans.
const DECISIONS_PER_STATEMENT: u64 = 1_000;
/// Number of batches after which the job is continued later.
const BATCHES_PER_RUN: usize = 50;
/// Delay in microseconds before the deletion: other processes may have the rule in their caches for a
/// moment.
const DELAY_MICROS: i64 = 60_000_000;

/// Enqueues the deletion of the decisions of a rule that is being deleted.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn enqueue(txn: &Transaction, tenant: Uuid, rule: Uuid, now: i64) -> Result<(), DbError> {
    queue::enqueue(txn, tenant, &DeleteRuleDecisions { rule, after: Uuid::nil() }, now + DELAY_MICROS, now)
        .await
}

// Deletes decisions batch by batch, up to the number of batches of one run.
impl RunJob<App> for DeleteRuleDecisions {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match delete_batches(app, row.tenant_id, self).await {
            Ok(()) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

async fn delete_batches(app: &App, tenant: Uuid, job: DeleteRuleDecisions) -> Result<(), DbError> {
    let DeleteRuleDecisions { rule, mut after } = job;
    for _ in 0..BATCHES_PER_RUN {
        if app.is_stopping() {
            break;
        }
        match eval_rules::delete_decisions(&app.db, tenant, rule, after, DECISIONS_PER_STATEMENT).await? {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
    let now = app.clock.now();
    queue::enqueue(&app.db.write, tenant, &DeleteRuleDecisions { rule, after }, now, now).await
}
