//! The guarantees of the queue, one per test.

use std::collections::HashSet;

use queue::{JobResult, LEASE_MICROS, candidates, claim, finish, heartbeat, release_claim, release_expired};
use sea_orm::ConnectionTrait;
use tests::on_both_databases;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{POOL, Work, enqueue, insert, now, stored};

const SECOND: i64 = 1_000_000;

on_both_databases! {
    async fn job_exists_only_if_its_transaction_commits(app: TestApp) {
        let db = &app.app.db;
        let txn = db.begin().await.unwrap();
        queue::enqueue(&txn, app.tenant, &Work { n: 1 }, now(app), now(app)).await.unwrap();
        txn.rollback().await.unwrap();
        assert_eq!(stored(app).await, []);
        let txn = db.begin().await.unwrap();
        queue::enqueue(&txn, app.tenant, &Work { n: 2 }, now(app), now(app)).await.unwrap();
        txn.commit().await.unwrap();
        let jobs = stored(app).await;
        assert_eq!((jobs.len(), jobs[0].payload.as_str(), jobs[0].status.as_str()), (1, r#"{"n":2}"#, "ready"));
    }

    async fn due_jobs_are_claimed_longest_waiting_first(app: TestApp) {
        let db = &app.app.db;
        let third = enqueue(app, app.tenant, 3, now(app)).await;
        let first = enqueue(app, app.tenant, 1, now(app) - 2).await;
        let second = enqueue(app, app.tenant, 2, now(app) - 1).await;
        let later = enqueue(app, app.tenant, 4, now(app) + SECOND).await;
        for expected in [first, second, third] {
            let claimed = claim(db, app.tenant, POOL, now(app), 1).await.unwrap();
            assert_eq!((claimed.len(), claimed[0].id), (1, expected));
            assert_eq!((claimed[0].attempts, claimed[0].lease_until), (1, Some(now(app) + LEASE_MICROS)));
        }
        assert_eq!(claim(db, app.tenant, POOL, now(app), 10).await.unwrap(), []);
        assert!(candidates(db, POOL, now(app), Uuid::nil(), &[], 8).await.unwrap().is_empty());
        app.advance(1);
        assert_eq!(claim(db, app.tenant, POOL, now(app), 10).await.unwrap()[0].id, later);
    }

    async fn claim_never_exceeds_its_limit(app: TestApp) {
        let db = &app.app.db;
        // The planner's estimate of the table decides its plan, and some plans apply a limit more than once.
        // The statistics say few jobs, and then the table grows.
        for believed in [0, 1, 2, 5, 50] {
            for n in 0..believed {
                enqueue(app, app.tenant, n, now(app)).await;
            }
            app.advance(1);
            db.write.execute_unprepared("ANALYZE").await.unwrap();
            for n in believed..20 {
                enqueue(app, app.tenant, n, now(app)).await;
            }
            let mut left = believed.max(20);
            for limit in [1, 2, 7, 100] {
                let claimed = claim(db, app.tenant, POOL, now(app), u64::try_from(limit).unwrap()).await.unwrap();
                assert_eq!(claimed.len(), limit.min(left), "{limit} of {left}, {believed} believed");
                left -= claimed.len();
                for job in claimed {
                    assert!(finish(db, &job, &JobResult::Done, now(app)).await.unwrap());
                }
            }
        }
    }

    async fn claim_never_takes_jobs_of_another_queue(app: TestApp) {
        let mut row = queue::new_job(app.tenant, &Work { n: 1 }, now(app), now(app));
        row.lane = "another".to_owned();
        insert(app, row).await;
        assert!(candidates(&app.app.db, POOL, now(app), Uuid::nil(), &[], 8).await.unwrap().is_empty());
        assert_eq!(claim(&app.app.db, app.tenant, POOL, now(app), 8).await.unwrap(), []);
    }

    async fn busy_tenant_does_not_delay_other_tenants(app: TestApp) {
        let db = &app.app.db;
        let tenants: Vec<Uuid> = (1..=12_u128).map(Uuid::from_u128).collect();
        for n in 0..200 {
            enqueue(app, tenants[n % 10], n, now(app) - 1_000).await;
        }
        for small in &tenants[10..] {
            enqueue(app, *small, 0, now(app)).await;
        }
        // Claims like a worker: one claim from the next tenant after the last one served.
        let mut last = Uuid::nil();
        let mut served = Vec::new();
        for _ in 0..tenants.len() {
            last = candidates(db, POOL, now(app), last, &[], 1).await.unwrap()[0];
            assert!(!claim(db, last, POOL, now(app), 1).await.unwrap().is_empty());
            served.push(last);
        }
        assert_eq!(served, tenants, "each tenant is served once before any is served twice");
        assert_eq!(candidates(db, POOL, now(app), last, &[], 1).await.unwrap(), tenants[..1], "the first tenant follows the last one");
    }

    async fn claim_never_takes_jobs_of_another_tenant(app: TestApp) {
        let other = Uuid::from_u128(9);
        enqueue(app, other, 1, now(app)).await;
        assert_eq!(claim(&app.app.db, app.tenant, POOL, now(app), 8).await.unwrap(), []);
        assert_eq!(claim(&app.app.db, other, POOL, now(app), 8).await.unwrap().len(), 1);
    }

    async fn finished_job_is_deleted_once(app: TestApp) {
        enqueue(app, app.tenant, 1, now(app)).await;
        let job = claim(&app.app.db, app.tenant, POOL, now(app), 1).await.unwrap().remove(0);
        assert!(finish(&app.app.db, &job, &JobResult::Done, now(app)).await.unwrap());
        assert_eq!(stored(app).await, []);
        assert!(!finish(&app.app.db, &job, &JobResult::Done, now(app)).await.unwrap(), "a job can be finished only once");
    }

    async fn heartbeat_extends_the_claim(app: TestApp) {
        let db = &app.app.db;
        enqueue(app, app.tenant, 1, now(app)).await;
        let job = claim(db, app.tenant, POOL, now(app), 1).await.unwrap().remove(0);
        for _ in 0..3 {
            app.advance(LEASE_MICROS / SECOND - 1);
            assert!(heartbeat(db, &job, now(app)).await.unwrap());
            assert_eq!(release_expired(db, now(app)).await.unwrap(), 0);
        }
        assert!(finish(db, &job, &JobResult::Done, now(app)).await.unwrap());
        assert!(!heartbeat(db, &job, now(app)).await.unwrap());
    }

    async fn worker_without_claim_cannot_finish_the_job(app: TestApp) {
        let db = &app.app.db;
        let id = enqueue(app, app.tenant, 1, now(app)).await;
        let lost = claim(db, app.tenant, POOL, now(app), 1).await.unwrap().remove(0);
        app.advance(LEASE_MICROS / SECOND);
        assert_eq!(release_expired(db, now(app)).await.unwrap(), 0, "the lease is held until it expires");
        app.advance(1);
        assert_eq!(release_expired(db, now(app)).await.unwrap(), 1);
        let why = JobResult::Retry { why: "late".to_owned() };
        let ways = [JobResult::Done, why, JobResult::Snooze { until: 0 }, JobResult::Discard { why: String::new() }];
        for again in [false, true] {
            if again {
                let held = claim(db, app.tenant, POOL, now(app), 1).await.unwrap().remove(0);
                assert_eq!((held.id, held.attempts), (id, 2));
                assert!(held.fence > lost.fence);
            }
            let before = stored(app).await;
            for outcome in &ways {
                assert!(!finish(db, &lost, outcome, now(app)).await.unwrap(), "{outcome:?}");
            }
            assert!(!heartbeat(db, &lost, now(app)).await.unwrap());
            assert!(!release_claim(db, &lost, now(app)).await.unwrap());
            assert_eq!(stored(app).await, before);
        }
    }

    async fn snoozed_and_released_jobs_count_no_attempt(app: TestApp) {
        let db = &app.app.db;
        enqueue(app, app.tenant, 1, now(app)).await;
        for _ in 0..5 {
            let job = claim(db, app.tenant, POOL, now(app), 1).await.unwrap().remove(0);
            assert_eq!(job.attempts, 1);
            assert!(finish(db, &job, &JobResult::Snooze { until: now(app) + 10 * SECOND }, now(app)).await.unwrap());
            assert_eq!(claim(db, app.tenant, POOL, now(app), 1).await.unwrap(), []);
            app.advance(10);
            let job = claim(db, app.tenant, POOL, now(app), 1).await.unwrap().remove(0);
            assert!(release_claim(db, &job, now(app)).await.unwrap());
        }
        assert_eq!(stored(app).await[0].attempts, 0);
    }

    async fn failing_job_backs_off_and_becomes_dead_letter(app: TestApp) {
        let db = &app.app.db;
        let id = enqueue(app, app.tenant, 1, now(app)).await;
        let mut waits = Vec::new();
        for attempt in 1..=3 {
            let job = claim(db, app.tenant, POOL, now(app), 1).await.unwrap().remove(0);
            assert_eq!(job.attempts, attempt);
            let why = format!("failure {attempt}");
            assert!(finish(db, &job, &JobResult::Retry { why: why.clone() }, now(app)).await.unwrap());
            let job = stored(app).await.remove(0);
            assert_eq!((job.id, job.last_error), (id, Some(why)));
            if attempt < 3 {
                assert_eq!(job.status, "ready");
                waits.push(job.run_at - now(app));
                app.clock.advance(job.run_at - now(app));
            } else {
                assert_eq!((job.status.as_str(), job.lease_until), ("dead", None));
            }
        }
        assert!(waits[0] >= SECOND && waits[1] > waits[0], "{waits:?}");
        app.advance(100_000);
        assert_eq!(claim(db, app.tenant, POOL, now(app), 1).await.unwrap(), []);
        assert_eq!(release_expired(db, now(app)).await.unwrap(), 0);
    }

    async fn discarded_job_is_dead_letter_immediately(app: TestApp) {
        enqueue(app, app.tenant, 1, now(app)).await;
        let job = claim(&app.app.db, app.tenant, POOL, now(app), 1).await.unwrap().remove(0);
        assert!(finish(&app.app.db, &job, &JobResult::Discard { why: "no".to_owned() }, now(app)).await.unwrap());
        let job = stored(app).await.remove(0);
        assert_eq!((job.status.as_str(), job.last_error.as_deref()), ("dead", Some("no")));
    }

    async fn job_that_kills_its_workers_becomes_dead_letter(app: TestApp) {
        let db = &app.app.db;
        enqueue(app, app.tenant, 1, now(app)).await;
        for _ in 0..3 {
            assert_eq!(claim(db, app.tenant, POOL, now(app), 1).await.unwrap().len(), 1);
            app.advance(LEASE_MICROS / SECOND + 1);
            assert_eq!(release_expired(db, now(app)).await.unwrap(), 1);
        }
        assert_eq!(stored(app).await[0].status, "dead");
    }

    async fn concurrent_claims_share_no_job(app: TestApp) {
        let db = app.app.db.clone();
        let other = Uuid::from_u128(5);
        let at = now(app);
        let txn = db.begin().await.unwrap();
        for n in 0..500 {
            queue::enqueue(&txn, if n % 2 == 0 { app.tenant } else { other }, &Work { n }, at, at).await.unwrap();
        }
        txn.commit().await.unwrap();
        let mut tasks = JoinSet::new();
        for worker in 0..8_u64 {
            let db = db.clone();
            tasks.spawn(async move {
                let mut mine = Vec::new();
                let mut last = Uuid::from_u128(u128::from(worker));
                loop {
                    let tenants = candidates(&db, POOL, at, last, &[], 8).await.unwrap();
                    let Some(tenant) = tenants.first() else { return mine };
                    last = *tenant;
                    for job in claim(&db, *tenant, POOL, at, 1 + worker).await.unwrap() {
                        mine.push(job.id);
                        assert!(finish(&db, &job, &JobResult::Done, at).await.unwrap());
                    }
                }
            });
        }
        let mut all = Vec::new();
        while let Some(mine) = tasks.join_next().await {
            all.extend(mine.unwrap());
        }
        assert_eq!(all.len(), 500);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 500);
        assert_eq!(stored(app).await, []);
    }
}
