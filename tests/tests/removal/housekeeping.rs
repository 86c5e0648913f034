//! Other rows with a limited lifetime.

use api::Plan;
use entities::{idempotency, rate_window};
use sea_orm::EntityTrait;
use server::housekeeping;
use tests::{TestApp, on_both_databases};
use uuid::Uuid;

use crate::number_of;

const HOUR: i64 = 3_600;

async fn insert_idempotency_row(app: &TestApp, tenant: Uuid, n: u32, expires_at: i64) {
    let row = idempotency::Model {
        tenant_id: tenant,
        key_hash: n.to_be_bytes().repeat(8),
        body_hash: vec![0; 32],
        holder: Uuid::from_u128(n.into()),
        status: None,
        content_type: None,
        answer: None,
        expires_at,
    };
    idempotency::Entity::insert(idempotency::ActiveModel::from(row))
        .exec_without_returning(&app.app.db.write)
        .await
        .unwrap();
}

async fn insert_rate_window(app: &TestApp, tenant: Uuid, starts_at: i64, bucket: &str) {
    let bucket = bucket.to_owned();
    let row = rate_window::Model { tenant_id: tenant, starts_at, bucket, taken: 1, granted: 1 };
    rate_window::Entity::insert(rate_window::ActiveModel::from(row))
        .exec_without_returning(&app.app.db.write)
        .await
        .unwrap();
}

async fn count_rows(app: &TestApp, tenant: Uuid) -> (i64, i64) {
    let answers = "SELECT COUNT(*) FROM idempotency WHERE tenant_id = $1";
    let windows = "SELECT COUNT(*) FROM rate_window WHERE tenant_id = $1";
    (number_of(app, tenant, answers).await, number_of(app, tenant, windows).await)
}

on_both_databases! {
    async fn expired_responses_and_rate_windows_are_purged(app: TestApp) {
        let (other, _) = app.other_tenant(Plan::Pro).await;
        let now = app.app.clock.now();
        let minute = now / 60_000_000 * 60;
        for tenant in [app.tenant, other] {
            for n in 0..510 {
                insert_idempotency_row(app, tenant, n, now - 1 - i64::from(n)).await;
            }
            insert_idempotency_row(app, tenant, 1_000, now).await;
            insert_idempotency_row(app, tenant, 1_001, now + 1).await;
            for bucket in ["traces", "other"] {
                insert_rate_window(app, tenant, minute, bucket).await;
                insert_rate_window(app, tenant, minute - HOUR, bucket).await;
                insert_rate_window(app, tenant, minute - HOUR - 60, bucket).await;
            }
        }
        housekeeping::run_round(&app.app, server::features::ALL).await.unwrap();
        for tenant in [app.tenant, other] {
            assert_eq!(count_rows(app, tenant).await, (2, 4));
        }
        app.advance(2 * HOUR);
        housekeeping::run_round(&app.app, server::features::ALL).await.unwrap();
        for tenant in [app.tenant, other] {
            assert_eq!(count_rows(app, tenant).await, (0, 0));
        }
    }
}
