//! Jobs that merge other jobs of their tenant and kind into themselves.

use queue::{JobResult, candidates, claim, finish, merge_waiting};
use tests::on_both_databases;

use super::*;

/// Merges all offered jobs. Returns the numbers of all as the digits of one decimal number.
fn all(own: usize) -> impl FnOnce(&[String]) -> (usize, Work) {
    move |others| (others.len(), Work { n: others.iter().fold(own, |sum, it| sum * 10 + number(it)) })
}

fn number(payload: &str) -> usize {
    serde_json::from_str::<serde_json::Value>(payload).unwrap()["n"].as_u64().unwrap().try_into().unwrap()
}

on_both_databases! {
    async fn waiting_jobs_are_merged_whenever_due(app: TestApp) {
        let (db, now) = (&app.app.db, now(app));
        for (n, due) in [(1, now), (2, now), (4, now + 9), (3, now + 5)] {
            enqueue(app, app.tenant, n, due).await;
        }
        let (other, _) = app.other_tenant(api::Plan::Pro).await;
        enqueue(app, other, 7, now).await;
        let claimed = claim(db, app.tenant, POOL, now, 1).await.unwrap();
        let taken = merge_waiting(db, &claimed[0], 9, all(1)).await.unwrap().unwrap();
        assert_eq!(taken.n, 1_234);
        let left = stored(app).await;
        assert_eq!(left.iter().filter(|it| it.tenant_id == app.tenant).count(), 1);
        assert_eq!(left.iter().find(|it| it.id == claimed[0].id).map(|it| number(&it.payload)), Some(1_234));
        assert_eq!(candidates(db, POOL, now, Uuid::nil(), &[], 9).await.unwrap(), [other]);
        assert!(finish(db, &claimed[0], &JobResult::Done, now).await.unwrap());
    }

    async fn only_the_selected_number_of_jobs_is_merged(app: TestApp) {
        let (db, now) = (&app.app.db, now(app));
        for n in 1..=5 {
            enqueue(app, app.tenant, n, now).await;
        }
        let claimed = claim(db, app.tenant, POOL, now, 2).await.unwrap();
        assert!(merge_waiting(db, &claimed[0], 9, |_| (0, Work { n: 0 })).await.unwrap().is_none());
        assert_eq!(merge_waiting(db, &claimed[0], 2, all(1)).await.unwrap().unwrap().n, 134);
        // A claimed job is not merged.
        assert_eq!(merge_waiting(db, &claimed[0], 9, all(134)).await.unwrap().unwrap().n, 1_345);
        assert!(merge_waiting(db, &claimed[0], 9, all(1_345)).await.unwrap().is_none());
        assert_eq!(stored(app).await.len(), 2);
    }

    /// A worker that lost its claim merges nothing.
    async fn worker_without_claim_merges_no_job(app: TestApp) {
        let (db, now) = (&app.app.db, now(app));
        for n in 1..=3 {
            enqueue(app, app.tenant, n, now).await;
        }
        let mut lost = claim(db, app.tenant, POOL, now, 1).await.unwrap().remove(0);
        lost.fence -= 1;
        assert!(merge_waiting(db, &lost, 9, all(1)).await.unwrap().is_none());
        assert_eq!(stored(app).await.iter().map(|it| number(&it.payload)).collect::<Vec<_>>(), [1, 2, 3]);
    }
}
