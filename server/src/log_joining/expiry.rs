//! Removes held input after an hour, and records the log records in it that were not joined as rejected.

use std::sync::Arc;

use api::{
    ErrorCode,
    rejection::{RejectionReason, RejectionSource},
};
use futures::future::BoxFuture;
use store::{
    DbError,
    held_input::{EXPIRING_HELD_INPUT, remove_expired},
};
use uuid::Uuid;

use super::HELD_FOR;
use crate::{
    app::App,
    feature::{HousekeepingTask, ROWS_PER_STATEMENT},
    ingest::rejections::RejectedItems,
};

/// Why log records are rejected that were not joined.
const UNJOINED_REASON: &str =
    "the span of the log record was not received within an hour, or has more than 24 MiB of log records";
/// Why messages are rejected.
const LATE_MESSAGE_REASON: &str =
    "the span of the log record has a text of its own, or was received more than an hour before its messages";

/// The removal of held input.
pub struct HeldInputExpiry;

impl HousekeepingTask for HeldInputExpiry {
    fn next_tenant<'a>(&'a self, app: &'a App, last: Uuid) -> BoxFuture<'a, Result<Option<Uuid>, DbError>> {
        Box::pin(EXPIRING_HELD_INPUT.next_tenant(&app.db, last))
    }

    fn run<'a>(&'a self, app: &'a App, tenant: Uuid) -> BoxFuture<'a, Result<(), DbError>> {
        Box::pin(async move {
            let held_for = i64::try_from(HELD_FOR.as_micros()).unwrap_or(i64::MAX);
            while !app.is_stopping() {
                let before = app.clock.now().saturating_sub(held_for);
                let (unjoined, rows) = remove_expired(&app.db, tenant, before, ROWS_PER_STATEMENT).await?;
                for (project, count) in unjoined {
                    reject(app, (tenant, project), count, UNJOINED_REASON).await;
                }
                if rows < ROWS_PER_STATEMENT {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// Records log records with messages that came too late for their spans.
pub(super) async fn reject_late_messages(app: &App, owner: (Uuid, Uuid), count: i64) {
    reject(app, owner, count, LATE_MESSAGE_REASON).await;
}

async fn reject(app: &App, (tenant_id, project_id): (Uuid, Uuid), count: i64, reason: &str) {
    let code = ErrorCode::NotFound.as_str();
    let rejected = usize::try_from(count).unwrap_or_default();
    app.telemetry.ingest.count_rejected(code, rejected);
    let items = RejectedItems {
        tenant_id,
        project_id,
        source: RejectionSource::OtlpLogs,
        sdk: None,
        sdk_version: None,
        rejected,
        reasons: vec![RejectionReason { index: None, code: code.to_owned(), message: reason.to_owned() }],
        // The log records of several requests are rejected together.
        request_id: Arc::from(""),
    };
    app.rejections.record(&app.db, items, app.clock.now()).await;
}
